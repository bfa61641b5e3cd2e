"""What a dictionary holds, without reading its rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.store.lock import Owner, read_owner
from featpipe.store.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from featpipe.store.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class TableOverview:
    """One table. ``used_bytes`` is what its rows, keys, checksums and index take."""

    name: str
    n_rows: int
    columns: tuple[str, ...]
    attributes: dict[str, str]
    is_keyed: bool
    used_bytes: int

    def __str__(self) -> str:
        kind = "rows by key" if self.is_keyed else "rows"
        size = readable_bytes(self.used_bytes)
        return f"{self.name}: {self.n_rows:,} {kind}, {size} ({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class Overview:
    """A dictionary.

    ``disk_bytes`` is what the file really occupies, ``size_bytes`` what ``ls`` and a careless copy
    say: room for rows to come is in the file's length, but on no disk.
    """

    path: Path
    version: int
    created: str
    size_bytes: int
    disk_bytes: int
    owner: Owner | None
    tables: tuple[TableOverview, ...]

    @property
    def spare_bytes(self) -> int:
        """What compacting may give back, about."""
        return max(0, self.disk_bytes - sum(table.used_bytes for table in self.tables))

    @property
    def empty_bytes(self) -> int:
        """Room that is in the file's length only."""
        return max(0, self.size_bytes - self.disk_bytes)

    def __str__(self) -> str:
        state = "closed" if self.owner and self.owner.is_closed else f"last written by {self.owner}"
        head = (
            f"{self.path}: layout {self.version}, made {self.created}, {state}",
            (
                f"{readable_bytes(self.disk_bytes)} on disk, "
                f"{readable_bytes(self.spare_bytes)} of them spare (what featpipe compact may give "
                f"back), {readable_bytes(self.empty_bytes)} more in the file's length only"
            ),
        )
        return "\n".join((*head, *map(str, self.tables)))


def inspect_dictionary(path: str | Path) -> Overview:
    """Raises UnreadableDictionary, NewerDictionary."""
    with Reader(path) as reader:
        root = reader.root_attributes()
        descriptor = os.open(reader.path, os.O_RDONLY)
        try:
            status, owner = os.fstat(descriptor), read_owner(descriptor)
        finally:
            os.close(descriptor)
        return Overview(
            path=reader.path,
            version=int(root["version"]),
            created=str(root.get("created", "")),
            size_bytes=status.st_size,
            disk_bytes=status.st_blocks * 512,
            owner=owner,
            tables=tuple(overview_of(reader.table(name)) for name in reader.tables()),
        )


def overview_of(table: TableReader) -> TableOverview:
    """The line of one table."""
    view = table.now.view
    used = sum(column.row_bytes * table.n_rows for column in view.fixed.values())
    used += sum(table.n_values(name) * column.row_bytes for name, column in view.values.items())
    used += view.index.capacity * 4 if view.index else 0
    return TableOverview(
        name=table.name,
        n_rows=table.n_rows,
        columns=tuple(describe(table)),
        attributes=table.attributes,
        is_keyed=table.spec.keyed,
        used_bytes=used,
    )


def describe(table: TableReader) -> Iterable[str]:
    """Each column as ``name dtype[shape]``."""
    for column in table.spec.columns:
        shape = "×".join(map(str, column.shape))
        ragged = "…" if column.name in table.now.view.values else ""
        dtype = str(column.dtype).lstrip("<|")
        size = f"[{shape}]" if shape else ""
        yield f"{column.name} {dtype}{size}{ragged}"


def readable_bytes(size: int) -> str:
    """``"1.5 MiB"``."""
    value = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
