"""Damage: bits of a file that are not as they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.store import Reader

if TYPE_CHECKING:
    from pathlib import Path


def flip(path: Path, offset: int, mask: int = 1) -> None:
    """Flip bits of one byte, in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


def offset_of(path: Path, table: str, column: str, at: int) -> int:
    """Where in the file a row of a column stands, or a value of a ragged one, by its number."""
    with Reader(path) as reader:
        view = reader.table(table).now.view
        return (view.fixed | view.values)[column].offset_of(at)


def damage(path: Path, table: str, column: str, row: int = 1) -> None:
    """Flip a bit in a row, of a ragged column in its first value."""
    with Reader(path) as reader:
        view = reader.table(table).now.view
        at = int(view.bounds(column, row, row + 1)[0]) if column in view.values else row
    flip(path, offset_of(path, table, column, at), 4)
