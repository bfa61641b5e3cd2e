"""Gaps: which sentences of a document have no vector yet, and which paragraphs no entities.

An unfinished build leaves gaps, and the next one fills them. What was extracted or learned from a
document with gaps is therefore known by them too, so that it is never taken for what the whole
evidence gives.
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


def gaps_of_rows(
    reader: Reader, documents: TableReader, rows: Sequence[int], evidence: Sequence[tuple[str, str]]
) -> list[str]:
    """One string for each stored document; "" where nothing is missing.

    Args:
        reader: of the cache.
        documents: its table of documents.
        rows: of the documents in it.
        evidence: (level, table) of what belongs to the units of a level.

    """
    found: list[str] = []
    for start in range(0, len(rows), _BLOCK):
        some = np.asarray(rows[start : start + _BLOCK], np.int64)
        whole = [list(_of_level(reader, documents, some, *one)) for one in evidence]
        found.extend(join_gaps(parts) for parts in zip(*whole, strict=True))
    return found or [""] * len(rows)


def gaps_of_keys(reader: Reader, table: str, keys: NDArray[np.uint8]) -> bytes:
    """Which of some units (n, 16) a table lacks; empty when it has them all."""
    return _spell(reader.table(table).find(keys) >= 0)


def join_gaps(parts: Sequence[bytes]) -> str:
    """The gaps of several tables as one short string."""
    if not any(parts):
        return ""
    return hash_bytes(b"".join(len(part).to_bytes(8, "little") + part for part in parts))


def _of_level(
    reader: Reader, documents: TableReader, rows: NDArray[np.int64], level: str, table: str
) -> Iterator[bytes]:
    keys, lengths = documents.ragged_many(f"{level}_keys", rows)
    is_there = reader.table(table).find(keys) >= 0
    ends = np.cumsum(lengths).tolist()
    for end, n in zip(ends, lengths.tolist(), strict=True):
        yield _spell(is_there[end - n : end])


def _spell(is_there: NDArray[np.bool_]) -> bytes:
    if is_there.all():
        return b""
    return len(is_there).to_bytes(8, "little") + np.packbits(is_there).tobytes()
