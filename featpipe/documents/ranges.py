"""Ranges of a large file that holds many documents, so that several processes can share it.

Guarantee: the documents of all ranges, one after the other, are those of the file, under the same
ids. Only records that share an id are not told apart by their line where their ranges differ, and
equal lines are then one document.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zipfile import ZipFile

from featpipe.documents.media_type import DAMAGED_ZIP
from featpipe.documents.source import LINES, holds_texts, in_jsonl, in_zip, is_archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from featpipe.documents.source import Source

_BLOCK_BYTES = 8 << 20


class Range(NamedTuple):
    """Bytes of a JSONL file at which lines begin, or numbers of members of an archive."""

    start: int
    stop: int
    first: int = 1
    """Number of the first line."""


def ranges_of(source: Source, most_bytes: int) -> list[Range]:
    """Ranges of about so many bytes each; none where the file should be read as a whole."""
    suffix = source.path.suffix.lower()
    try:
        if source.part is not None or source.path.stat().st_size < 2 * most_bytes:
            return []
        if suffix in LINES and holds_texts(source.path):
            return list(_of_lines(source.path, most_bytes))
        if suffix == ".zip" and is_archive(source.path):
            return list(_of_members(source.path, most_bytes))
    except DAMAGED_ZIP:
        pass  # reading it raises
    return []


def in_range(source: Source, part: Range) -> Iterator[Source]:
    """The documents of a range.

    Raises:
        OSError, BadZipFile: the file has changed since, or cannot be read.
    """
    if source.path.suffix.lower() == ".zip":
        return in_zip(source, part.start, part.stop)
    return in_jsonl(source, part.start, part.stop, part.first)


def _of_lines(path: Path, most_bytes: int) -> Iterator[Range]:
    size = path.stat().st_size
    start, first, number = 0, 1, 1
    for at, n_lines in _line_starts(path, most_bytes):
        number += n_lines
        yield Range(start, at, first)
        start, first = at, number
    if start < size:
        yield Range(start, size, first)


def _line_starts(path: Path, every: int) -> Iterator[tuple[int, int]]:
    """Where the first line after each ``every`` bytes begins, and how many ended since the last."""
    with path.open("rb") as file:
        at, wanted, n_lines = 0, every, 0
        while block := file.read(_BLOCK_BYTES):
            begun = 0
            while (end := block.find(b"\n", max(begun, wanted - at - 1))) >= 0:
                n_lines += block.count(b"\n", begun, end + 1)
                yield at + end + 1, n_lines
                begun, n_lines = end + 1, 0
                wanted = at + begun + every
            n_lines += block.count(b"\n", begun)
            at += len(block)


def _of_members(path: Path, most_bytes: int) -> Iterator[Range]:
    with ZipFile(path) as archive:
        sizes = [info.compress_size for info in archive.infolist()]
    bounds, spent = [0], 0
    for number, size in enumerate(sizes, start=1):
        spent += size
        if spent >= most_bytes:
            bounds.append(number)
            spent = 0
    if bounds[-1] < len(sizes):
        bounds.append(len(sizes))
    yield from (Range(start, stop) for start, stop in pairwise(bounds))
