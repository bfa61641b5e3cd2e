"""The error for damaged rows: names file, table, rows and the next command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import DamagedRows
from featpipe.store.folder_layout import cache_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED = 5


def damaged_rows(
    path: str, table: str, rows: Sequence[int], documents: Sequence[str] = ()
) -> DamagedRows:
    """The error for these rows of a table, which belong to ``documents`` as far as it is known."""
    what = f"row {rows[0]} is" if len(rows) == 1 else f"{len(rows)} rows ({_first(rows)}) are"
    error = DamagedRows(
        f"{path} is damaged: in table {table} {what} not as written",
        hint=f"featpipe repair {cache_of(Path(path))}",
    )
    error.table, error.rows = table, tuple(rows)
    return of_documents(error, documents)


def of_documents(error: DamagedRows, documents: Sequence[str]) -> DamagedRows:
    """The error, naming the documents that its rows belong to, if it names none yet."""
    if error.document or not documents:
        return error
    named = f"{error.message} (document {_first(documents)})"
    found = DamagedRows(named, hint=error.hint)
    found.table, found.rows, found.document = error.table, error.rows, documents[0]
    return found


def _first(things: Sequence[object]) -> str:
    return ", ".join(map(str, things[:_NAMED])) + (" ..." if len(things) > _NAMED else "")
