"""The tables of one name in the files of a folder cache: which may hold a key, opened when needed.

Guarantees: a table has the same schema in each file; a key is looked for only in the files of its
shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.errors import DictionaryChanged, DictionaryError, UnreadableDictionary
from featpipe.store.folder_layout import shard_of, shard_of_one
from featpipe.store.folder_rows import grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.store.reader import Reader
    from featpipe.store.schema import TableSpec
    from featpipe.store.table_reader import TableReader

    Rows = NDArray[np.int64]


class MemberFiles(Protocol):
    """The files of a folder, as its tables use them."""

    path: Path
    checks_rows: bool

    def member(self, number: int) -> Reader:
        """The reader of the file of this number."""

    def member_table(self, number: int, name: str) -> TableReader | None:
        """The table in the file of this number; None where the file has none of this name."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a table's rows may lie.

    Attributes:
        files: numbers of the files, in the order of their rows.
        by_shard: of these, by shard, in the order of publication; None: a key may be in any file.
        bits: of the shards.
    """

    files: tuple[int, ...]
    by_shard: Mapping[int, tuple[int, ...]] | None = None
    bits: int = 0


class MemberTables:
    """The tables of one name. Methods raise DictionaryChanged once they were retired.

    Args:
        folder: of the files.
        name: of the tables.
        spec: their schema.
        route: the files.
    """

    def __init__(self, folder: MemberFiles, name: str, spec: TableSpec, route: Route) -> None:
        self.route = route
        self.is_retired = False  #: row numbers are void
        self._folder = folder
        self._name = name
        self._spec = spec
        self._compared: set[int] = set()  #: files whose schema was compared

    def require_valid(self) -> None:
        """Raises DictionaryChanged once row numbers are void."""
        if self.is_retired:
            raise DictionaryChanged(
                f"files of {self._folder.path} were replaced: row numbers of table {self._name}"
                " are void",
                hint="take the table from the reader again",
            )

    def table(self, number: int) -> TableReader:
        """The table in one file. Raises DictionaryChanged where there is none there any more."""
        self.require_valid()
        member = self.open(number)
        if member is None:
            raise DictionaryChanged(f"{self._folder.path} lost a table {self._name}")
        return member

    def open(self, number: int) -> TableReader | None:
        """The table in one file, None where there is none there.

        Raises UnreadableDictionary where its schema is not that of the other files.
        """
        member = self._folder.member_table(number, self._name)
        if member is not None and number not in self._compared:
            if member.spec != self._spec:
                raise UnreadableDictionary(
                    f"{self._folder.member(number).path}: table {self._name} has another schema"
                    " than in the other files of the cache",
                    hint="move the file out of the folder; it is of another cache",
                )
            self._compared.add(number)
        return member

    def any(self) -> TableReader:
        """Of the first file that has the table."""
        for number in self.route.files:
            member = self.open(number)
            if member is not None:
                return member
        raise DictionaryChanged(f"{self._folder.path} lost its tables {self._name}")

    def of_key(self, key: bytes) -> Iterator[tuple[int, TableReader]]:
        """The files that may hold a key, one after the other."""
        self.require_valid()
        route = self.route
        files = route.files
        if route.by_shard is not None:
            files = route.by_shard.get(shard_of_one(key, route.bits), ())
        for number in files:
            member = self.open(number)
            if member is not None:
                yield number, member

    def of_keys(self, keys: NDArray[np.uint8], found: Rows) -> Iterator[tuple[int, Rows]]:
        """(file, places of the keys to look for there), leaving out those that were found before.

        The caller fills ``found`` between two steps.
        """
        self.require_valid()
        route = self.route
        if not self._spec.keyed:
            raise DictionaryError(f"table {self._name} has no keys to be found by")
        if route.by_shard is None:
            for number in route.files:
                at = np.flatnonzero(found < 0)
                if len(at) and self.open(number) is not None:
                    yield number, at
            return
        for shard, at in grouped(shard_of(keys, route.bits)):
            for number in route.by_shard.get(shard, ()):
                left = at[found[at] < 0]
                if len(left) and self.open(number) is not None:
                    yield number, left
