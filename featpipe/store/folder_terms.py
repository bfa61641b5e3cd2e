"""Terms of a folder cache: one vocabulary of those of all files, each of which counts its own ids.

Guarantees: a term has one id, which stays for as long as the tables are valid; new terms get higher
ones. Other processes may count otherwise: the ``checks`` of the rows of term ids are mixed with a
digest of the vocabulary, so that what was derived from other ids is not taken for these.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UnreadableDictionary
from featpipe.fork_lock import make_lock
from featpipe.store.folder_table import FolderTable
from featpipe.store.schema import CHECKS, END_SUFFIX, KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.folder_members import MemberFiles, Route
    from featpipe.store.schema import TableSpec
    from featpipe.store.table_reader import TableReader

    Rows = NDArray[np.int64]
    Words = NDArray[np.uint64]

#: Translations that are kept, in ids; that of another file is made when it is needed.
_KEPT_IDS = 4 << 20


@dataclass(frozen=True, slots=True)
class Union:
    """The distinct terms of all files.

    Attributes:
        heads, tails: the two halves of their keys (n,), sorted.
        ids: of each of these (n,).
        firsts: by id, the first row of the term among those of all files (n,).
        n_rows: rows of all files that it was made from.
        digest: 32 bits that change with any id.
    """

    heads: Words
    tails: Words
    ids: Rows
    firsts: Rows
    n_rows: int
    digest: int

    @classmethod
    def empty(cls) -> Union:
        """Of no files."""
        none = np.zeros(0, np.uint64)
        return cls(none, none, none.astype(np.int64), none.astype(np.int64), 0, 0)

    def extended(self, keys: NDArray[np.uint8]) -> Union:
        """With the terms of further rows, whose keys (n, 16) are given."""
        words = np.ascontiguousarray(keys).view("<u8")
        heads = np.concatenate([self.heads, words[:, 0]])
        tails = np.concatenate([self.tails, words[:, 1]])
        rows = np.concatenate([self.firsts[self.ids], np.arange(len(keys)) + self.n_rows])
        order = np.lexsort((rows, tails, heads))
        heads, tails, rows = heads[order], tails[order], rows[order]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (heads[1:] != heads[:-1]) | (tails[1:] != tails[:-1])
        heads, tails, rows = heads[is_first], tails[is_first], rows[is_first]
        # By first row: terms that were known keep their ids, since their rows come first.
        ids = np.argsort(np.argsort(rows, kind="stable"), kind="stable")
        firsts = np.sort(rows)
        digest = blake2b(heads.tobytes() + ids.tobytes(), digest_size=4).digest()
        n_rows = self.n_rows + len(keys)
        return Union(heads, tails, ids, firsts, n_rows, int.from_bytes(digest, "little"))

    def find(self, keys: NDArray[np.uint8]) -> Rows:
        """Ids of the terms of these keys (n, 16), -1 where there is none."""
        words = np.ascontiguousarray(keys, np.uint8).reshape(-1, 16).view("<u8")
        found = np.full(len(words), -1, np.int64)
        at = np.searchsorted(self.heads, words[:, 0])
        going = np.flatnonzero(at < len(self.heads))
        while len(going):  # once, unless two keys have the same first half
            place = at[going]
            is_head = self.heads[place] == words[going, 0]
            is_it = is_head & (self.tails[place] == words[going, 1])
            found[going[is_it]] = self.ids[place[is_it]]
            at[going] += 1
            going = going[is_head & ~is_it & (place + 1 < len(self.heads))]
        return found


class FolderVocabulary(FolderTable):
    """The distinct terms of all files; the id of each is its row number."""

    def __init__(self, folder: MemberFiles, name: str, spec: TableSpec, route: Route) -> None:
        super().__init__(folder, name, spec, route)
        self._union = Union.empty()
        self._union_lock = make_lock()

    @property
    def union(self) -> Union:
        """The terms as of the last refresh."""
        segments = self.segments
        with self._union_lock:
            if self._union.n_rows != segments.n_rows:
                runs = super()._runs(self._union.n_rows, segments.n_rows)
                keys = [self._members.table(number).slice(KEYS, a, b) for number, a, b, _ in runs]
                self._union = self._union.extended(np.concatenate(keys))
            return self._union

    @property
    def n_rows(self) -> int:
        """Distinct terms."""
        return len(self.union.firsts)

    def own_ids(self, number: int) -> NDArray[np.int64]:
        """By id in one file the id here, -1 where that file has none."""
        member = self._folder.member_table(number, self._name)
        if member is None:
            return np.zeros(0, np.int64)
        own = np.asarray(member.slice("id", 0, member.n_rows), np.int64)
        here = np.full(int(own.max(initial=-1)) + 1, -1, np.int64)
        here[own] = self.union.find(member.slice(KEYS, 0, member.n_rows))
        return here

    def bad_rows(self, start: int, stop: int) -> Rows:
        """Rows of start:stop whose bytes are not those that were written."""
        found = [np.zeros(0, np.int64)]
        for number, at, own in self._by_file(np.arange(start, stop)):
            bad = self._members.table(number).bad_rows(int(own.min()), int(own.max()) + 1)
            found.append(at[np.isin(own, bad)] + start)
        return np.sort(np.concatenate(found))

    def blocks(self, name: str) -> Iterator[AnyArray]:
        """A whole column, as one block."""
        if name in self._offsets:
            _, lengths = self.ragged_many(name.removesuffix(END_SUFFIX), np.arange(self.n_rows))
            yield np.cumsum(lengths).astype(np.uint64)
        else:
            yield self.gather_bits(name, np.arange(self.n_rows))

    def slices(self, names: Sequence[str], start: int, stop: int) -> list[AnyArray]:
        """Copies of rows start:stop of several columns."""
        return [self.gather_bits(name, np.arange(start, stop)) for name in names]

    def row(self, name: str, row: int) -> AnyArray:
        """One row of a column."""
        found: AnyArray = self.gather_bits(name, [row])[0]
        return found

    def n_values(self, name: str) -> int:
        """The number of values of a ragged column, over all rows."""
        return int(self.ragged_many(name, np.arange(self.n_rows))[1].sum())

    def find(self, keys: NDArray[np.uint8]) -> Rows:
        """Rows of these keys ((n, 16) uint8), -1 when absent: (n,) int64."""
        return self.union.find(keys)

    def find_one(self, key: bytes) -> int:
        """The row of one key; -1 when absent."""
        return int(self.union.find(np.frombuffer(key, np.uint8))[0])

    def has(self, key: bytes) -> bool:
        """Whether there is a row of this key."""
        return self.find_one(key) >= 0

    def get(self, name: str, key: bytes) -> AnyArray | None:
        """One key's row of a column; None when absent."""
        row = self.find_one(key)
        return None if row < 0 else self.row(name, row)

    def look_up(self, name: str, keys: NDArray[np.uint8]) -> tuple[AnyArray, NDArray[np.bool_]]:
        """A column's rows by key: (n, *shape), zeros where absent, and (n,) whether present."""
        rows = self.find(keys)
        is_there = rows >= 0
        some = self.gather(name, rows[is_there])
        found = np.zeros((len(rows), *some.shape[1:]), some.dtype)
        found[is_there] = some
        return found, is_there

    def _gathered_from(
        self,
        rows: ArrayLike,
        name: str,
        out: AnyArray | None,
        read: Callable[[TableReader, Rows], AnyArray],
    ) -> AnyArray:
        found = super()._gathered_from(rows, name, out, read)
        if name == "id":  # those of the files are no one's here
            found[...] = np.asarray(rows)
        return found

    def _by_file(self, rows: Rows) -> Iterator[tuple[int, Rows, Rows]]:
        return super()._by_file(self.union.firsts[rows])

    def _locate_one(self, row: int) -> tuple[int, int]:
        self._checked_rows([row])
        return super()._locate_one(int(self.union.firsts[row]))


class FolderTerms(FolderTable):
    """The term ids of texts, in ids of the whole vocabulary."""

    def __init__(
        self,
        folder: MemberFiles,
        name: str,
        spec: TableSpec,
        route: Route,
        vocabulary: FolderVocabulary,
    ) -> None:
        super().__init__(folder, name, spec, route)
        self._vocabulary = vocabulary
        self._translations: OrderedDict[int, NDArray[np.int64]] = OrderedDict()
        self._translations_lock = make_lock()

    def ragged(self, name: str, row: int) -> AnyArray:
        """The values of one row of a ragged column."""
        return self.ragged_many(name, [row])[0]

    def blocks(self, name: str) -> Iterator[AnyArray]:
        """A whole column, in a few blocks for each file."""
        return (self._mixed(name, block) for block in super().blocks(name))

    def slices(self, names: Sequence[str], start: int, stop: int) -> list[AnyArray]:
        """Rows start:stop of several columns."""
        found = super().slices(names, start, stop)
        return [self._mixed(name, block) for name, block in zip(names, found, strict=True)]

    def row(self, name: str, row: int) -> AnyArray:
        """One row of a column."""
        return self._mixed(name, super().row(name, row))

    def _gathered_from(
        self,
        rows: ArrayLike,
        name: str,
        out: AnyArray | None,
        read: Callable[[TableReader, Rows], AnyArray],
    ) -> AnyArray:
        return self._mixed(name, super()._gathered_from(rows, name, out, read))

    def _mixed(self, name: str, found: AnyArray) -> AnyArray:
        """Checksums of rows, which stand for their ids here."""
        return found ^ np.uint32(self._vocabulary.union.digest) if name == CHECKS else found

    def _values_in(self, number: int, name: str, rows: Rows) -> tuple[AnyArray, Rows]:
        values, lengths = super()._values_in(number, name, rows)
        if name != "ids":
            return values, lengths
        ids = np.asarray(values, np.int64)
        here = self._translation(number, int(ids.max(initial=-1)))
        return here[ids].astype(values.dtype), lengths

    def _translation(self, number: int, most: int) -> NDArray[np.int64]:
        """By id in one file, up to ``most`` at least, the id here."""
        with self._translations_lock:
            here = self._translations.pop(number, None)
            if here is None or most >= len(here):
                here = self._vocabulary.own_ids(number)
            if most >= len(here):
                raise UnreadableDictionary(
                    f"{self._folder.path}: {self._name} refers to terms that are not in the file",
                    hint="featpipe verify names the damaged file",
                )
            self._translations[number] = here
            n_kept = sum(map(len, self._translations.values()))
            while n_kept > _KEPT_IDS and len(self._translations) > 1:
                n_kept -= len(self._translations.popitem(last=False)[1])
            return here
