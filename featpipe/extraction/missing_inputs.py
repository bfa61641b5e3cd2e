"""Missing inputs: which sentences of a document have no vector, and which paragraphs no entities.

An unfinished build leaves some out, and the next one fills them in. Results and fitted fields are
also identified by what was missing, so they are never taken for those of all inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.documents import hash_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store import Reader, TableReader

#: Documents looked at together: their keys take some MB.
_BLOCK = 1024


def missing_of_rows(
    reader: Reader, documents: TableReader, rows: Sequence[int], tables: Sequence[tuple[str, str]]
) -> list[str]:
    """One string for each stored document; "" where nothing is missing.

    Args:
        reader: of the cache.
        documents: its table of documents.
        rows: of the documents in it.
        tables: (level, table) of the inputs that belong to the units of a level.

    """
    found: list[str] = []
    for start in range(0, len(rows), _BLOCK):
        some = np.asarray(rows[start : start + _BLOCK], np.int64)
        whole = [list(_of_level(reader, documents, some, *one)) for one in tables]
        found.extend(join_missing(parts) for parts in zip(*whole, strict=True))
    return found or [""] * len(rows)


def _of_level(
    reader: Reader, documents: TableReader, rows: NDArray[np.int64], level: str, table: str
) -> Iterator[bytes]:
    keys, lengths = documents.ragged_many(f"{level}_keys", rows)
    is_there = reader.table(table).find(keys) >= 0
    ends = np.cumsum(lengths).tolist()
    for end, n in zip(ends, lengths.tolist(), strict=True):
        yield _spelled(is_there[end - n : end])


def missing_of_keys(reader: Reader, table: str, keys: NDArray[np.uint8]) -> bytes:
    """Which of some units (n, 16) a table lacks; empty when it has them all."""
    return _spelled(reader.table(table).find(keys) >= 0)


def _spelled(is_there: NDArray[np.bool_]) -> bytes:
    if is_there.all():
        return b""
    return len(is_there).to_bytes(8, "little") + np.packbits(is_there).tobytes()


def join_missing(parts: Sequence[bytes]) -> str:
    """What several tables lack as one short string."""
    if not any(parts):
        return ""
    return hash_bytes(b"".join(len(part).to_bytes(8, "little") + part for part in parts))
