"""The error for damaged rows: names file, table, rows and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.errors import DamagedRows

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED = 5


def damaged_rows(path: str, table: str, rows: Sequence[int]) -> DamagedRows:
    """The error for these rows of a table."""
    named = ", ".join(map(str, rows[:_NAMED])) + (" ..." if len(rows) > _NAMED else "")
    what = f"row {named} is" if len(rows) == 1 else f"{len(rows)} rows ({named}) are"
    error = DamagedRows(
        f"{path} is damaged: in table {table} {what} not as written",
        hint=f"featpipe repair {path}",
    )
    error.table, error.rows = table, tuple(rows)
    return error
