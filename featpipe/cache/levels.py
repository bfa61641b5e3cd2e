"""Levels: at which levels each text occurs, kept beside the texts.

``/levels`` is a log of (key of a text, bits of `LEVEL_BIT`). The bits of a text are the union of
its rows: the writer appends one when the text is first stored, and one when it is seen at a further
level. A row without bits is a mark: the log covers a document and all before it. The documents
after it, written by a featpipe from before the log, are read themselves.

Guarantee: bits are those that the documents' own keys give, whatever wrote them. A mark holds for
its place in the log, and for its document at its row; where rows before them were lost or put in,
by a repair or by merging, it is void.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.texts import LEVEL_BIT, join_keys
from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from featpipe.store import TableReader, Writer

    Bits = NDArray[np.uint8]
    #: Of rows of a table those that are not forgotten.
    Keep = Callable[[TableReader, NDArray[np.int64]], NDArray[np.int64]]

#: Keys or rows read at a time.
_BLOCK = 1 << 16


def level_bits(reader: Reader, keep: Keep | None = None) -> Bits:
    """Levels of every text, as bits of `LEVEL_BIT` by row of ``/texts``: (n,).

    Memory: a byte for each text, besides a block.

    Args:
        reader: of the cache.
        keep: where documents were forgotten: theirs do not count.

    """
    if tables.TEXTS not in reader:
        return np.zeros(0, np.uint8)
    bits = np.zeros(reader.table(tables.TEXTS).n_rows, np.uint8)
    first = 0
    if keep is None:  # else the log may have levels that only forgotten documents have
        _add_logged(reader, bits)
        first = n_covered(reader)
    _add_documents(reader, bits, first, keep)
    return bits


def n_covered(reader: Reader) -> int:
    """How many rows of ``/documents``, from the first, have their levels in the log."""
    if tables.TEXT_LEVELS not in reader or tables.DOCUMENTS not in reader:
        return 0
    log, documents = reader.table(tables.TEXT_LEVELS), reader.table(tables.DOCUMENTS)
    for stop in range(log.n_rows, 0, -_BLOCK):
        start = max(0, stop - _BLOCK)
        marks = np.flatnonzero(np.asarray(log.slice("bits", start, stop)) == 0) + start
        for mark in marks[::-1].tolist():
            found = np.asarray(log.row("text", mark)).tobytes()
            row = int.from_bytes(found[8:], "little")
            # Another one: the log of a commit may be seen before its documents.
            if row < documents.n_rows and found == _mark(documents.row("keys", row), row, mark):
                return row + 1
    return 0


def _mark(document: NDArray[np.generic], row: int, place: int) -> bytes:
    """What a row of the log holds, at its place, that covers the document at a row."""
    whole = document.tobytes() + place.to_bytes(8, "little")
    return blake2b(whole, digest_size=8).digest() + row.to_bytes(8, "little")


def logged_bits(reader: Reader) -> Bits:
    """As `level_bits`, of the log alone: what is known of a shard without its documents."""
    bits = np.zeros(reader.table(tables.TEXTS).n_rows if tables.TEXTS in reader else 0, np.uint8)
    if tables.TEXTS in reader:
        _add_logged(reader, bits)
    return bits


def _add_logged(reader: Reader, bits: Bits) -> None:
    if tables.TEXT_LEVELS not in reader:
        return
    log, texts = reader.table(tables.TEXT_LEVELS), reader.table(tables.TEXTS)
    for start in range(0, log.n_rows, _BLOCK):
        stop = min(start + _BLOCK, log.n_rows)
        logged = np.asarray(log.slice("bits", start, stop))
        rows = texts.find(np.asarray(log.slice("text", start, stop)))
        for bit in LEVEL_BIT.values():
            _add(bits, rows[(logged & bit) != 0], bit)


def _add_documents(reader: Reader, bits: Bits, first: int, keep: Keep | None) -> None:
    if tables.DOCUMENTS not in reader:
        return
    documents, texts = reader.table(tables.DOCUMENTS), reader.table(tables.TEXTS)
    for level, bit in LEVEL_BIT.items():
        for rows in blocks_of(documents, f"{level}_keys", first):
            kept = rows if keep is None else keep(documents, rows)
            keys, _ = documents.ragged_many(f"{level}_keys", kept)
            _add(bits, texts.find(np.asarray(keys).reshape(-1, 16)), bit)


def blocks_of(table: TableReader, column: str, first: int = 0) -> Iterator[NDArray[np.int64]]:
    """All rows of a table from ``first`` on, cut so that a block has not too many values."""
    per_row = table.n_values(column) / max(1, table.n_rows)
    step = max(1, int(_BLOCK / max(1.0, per_row)))
    for start in range(first, table.n_rows, step):
        yield np.arange(start, min(start + step, table.n_rows))


def _add(bits: Bits, rows: NDArray[np.int64], bit: int) -> None:
    """Set one bit; a row of -1 stands for a text that is not stored."""
    bits[rows[rows >= 0]] |= np.uint8(bit)


class LevelLog:
    """The writer's side of ``/levels``. The caller commits.

    Args:
        writer: that owns the cache.

    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._bits: Bits | None = None

    def catch_up(self) -> None:
        """Add the levels of committed documents that the log does not cover."""
        with Reader(self._writer.path) as reader:
            if tables.DOCUMENTS not in reader or tables.TEXTS not in reader:
                return
            n_documents, first = reader.table(tables.DOCUMENTS).n_rows, n_covered(reader)
            if first == n_documents:
                return
            known = np.zeros(reader.table(tables.TEXTS).n_rows, np.uint8)
            _add_logged(reader, known)
            bits = known.copy()
            _add_documents(reader, bits, first, None)
            texts = reader.table(tables.TEXTS)
            for rows in np.array_split(np.flatnonzero(bits & ~known), len(bits) // _BLOCK + 1):
                self._log(np.asarray(texts.gather("keys", rows), np.uint8), bits[rows])
            self.cover(reader.table(tables.DOCUMENTS).row("keys", n_documents - 1), n_documents - 1)
        self._bits = bits

    def append(self, texts: NDArray[np.uint8], bits: Bits) -> None:
        """Add the levels of texts (n, 16), distinct and appended before, as far as they are new.

        Texts of another file of the same shard are logged as they are given.
        """
        table = self._writer.table(tables.TEXTS, tables.texts_spec())
        known = self._known(max(1, table.n_rows))
        rows = table.find(texts)
        is_here = rows >= 0
        fresh = np.flatnonzero(bits & ~np.where(is_here, known[rows], 0))
        self._log(texts[fresh], bits[fresh])
        known[rows[is_here]] |= bits[is_here]

    def cover(self, document: NDArray[np.generic], row: int) -> None:
        """Note that the levels of the document of this key, and of all before its row, are here."""
        place = self._writer.table(tables.TEXT_LEVELS, tables.levels_spec()).n_rows
        self._log(join_keys([_mark(document, row, place)]), np.zeros(1, np.uint8))

    def forget(self) -> None:
        """Read the log again when it is next needed: rows appended to it were lost."""
        self._bits = None

    def _log(self, texts: NDArray[np.uint8], bits: Bits) -> None:
        self._writer.table(tables.TEXT_LEVELS, tables.levels_spec()).append(
            {"text": texts, "bits": bits}
        )

    def _known(self, n_texts: int) -> Bits:
        """Bits by row, with room for all texts appended until now."""
        if self._bits is None:
            with Reader(self._writer.path) as reader:
                self._bits = np.zeros(n_texts, np.uint8)
                if tables.TEXTS in reader:
                    _add_logged(reader, self._bits)
        if len(self._bits) < n_texts:
            grown = np.zeros(max(n_texts, 2 * len(self._bits)), np.uint8)
            grown[: len(self._bits)] = self._bits
            self._bits = grown
        return self._bits
