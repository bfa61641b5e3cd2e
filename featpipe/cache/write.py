"""Writing to a cache: rows for the one child process that makes every group and row of the file.

Guarantees: the rows of one `CacheWriter.append` are one commit; once it is acknowledged, they
survive the loss of any process. The child imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from logging import getLogger
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np

from featpipe.cache import tables
from featpipe.cache.derived import DerivedRows
from featpipe.errors import DictionaryLocked, PoolBroken, PoolFull, raise_original
from featpipe.pool.role import Role
from featpipe.store import Reader, Writer, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from featpipe.cache.tables import Rows
    from featpipe.cache.texts import Texts
    from featpipe.pool import Outcome, Pool
    from featpipe.store import TableSpec

logger = getLogger(__name__)

#: Name of the writer's role in its pool.
WRITE = "write"

#: A caller that goes on while so much waits for the disk only fills memory and descriptors.
_MOST_OPEN = 8
_MOST_OPEN_BYTES = 64 << 20

#: Seconds between two attempts to take a lock that another process holds.
_TRY_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class LocalTerms:
    """Term ids of distinct units, against a vocabulary of this batch alone.

    The writer turns them into ids of the file's vocabulary, so workers need share nothing.
    """

    keys: NDArray[np.uint8]
    vocabulary: Texts
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]


class TermTables(NamedTuple):
    """The tables that hold the term statistics of one analyser."""

    vocabulary: str
    units: str


class _Commit(NamedTuple):
    """Rows under way, and what to do when they are durable."""

    then: Callable[[], None] | None
    n_bytes: int


def _n_bytes(rows: Mapping[str, Rows], terms: LocalTerms | None) -> int:
    columns = [column for table in rows.values() for column in table.values()]
    parts = [part for c in columns for part in (c if isinstance(c, tuple) else (c,))]
    if terms is not None:
        parts += [terms.keys, terms.ids, terms.lengths, terms.vocabulary.values]
    return sum(part.nbytes for part in parts)


class CacheWriter:
    """Appends rows to a cache through its writer process.

    Appends are committed in the order of the calls. Their rows are durable when ``then`` is called,
    and when :meth:`settle`, or a ``with`` block, has ended without an error.

    Args:
        pool: whose roles include that of :func:`write_role`. :meth:`open` makes one.
        cache: the file, where the pool's writer takes it from each task
            (`featpipe.cache.write_files`).

    Raises:
        DictionaryLocked: by any call: another process writes this cache, for longer than the role
            waits.
        WriteFailed: by any call: disk full, read-only ...; what was acknowledged stays.

    """

    def __init__(self, pool: Pool, cache: Path | None = None) -> None:
        self.pool = pool
        self._cache = "" if cache is None else str(cache)
        self._numbers = count()
        self._open: dict[int, _Commit] = {}
        self._open_bytes = 0

    @classmethod
    def open(cls, cache: Path, specs: Mapping[str, TableSpec], *, wait_s: float = 0.0) -> Self:
        """A writer with a pool of its own; the child starts at once, beside the caller's work."""
        from featpipe.pool import Pool  # the child imports this module, and needs no pool

        return cls(Pool([write_role(cache, specs, wait_s=wait_s, is_lazy=False)]))

    @property
    def n_open(self) -> int:
        """Commits under way."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether the caller should wait for answers before it makes more rows."""
        return len(self._open) >= _MOST_OPEN or self._open_bytes >= _MOST_OPEN_BYTES

    def append(
        self,
        rows: Mapping[str, Rows],
        terms: LocalTerms | None = None,
        *,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Hand over rows by table as one commit; returns before they are written.

        Without any rows it has the file made, if need be, and its lock held.

        Raises:
            PoolFull: far more than `is_full` asks for is under way: :meth:`settle` first.

        """
        self._submit(WriteTask(rows, terms, self._cache), then)

    def release(self) -> None:
        """Have the file trimmed and released, and return when it is; the pool goes on.

        Other tasks of the pool must have ended.
        """
        self.settle()
        self._submit(WriteTask({}, None, self._cache, is_last=True), None)
        self.settle()

    def _submit(self, task: WriteTask, then: Callable[[], None] | None) -> None:
        number = next(self._numbers)
        commit = self._open[number] = _Commit(then, _n_bytes(task.rows, task.terms))
        self._open_bytes += commit.n_bytes
        try:
            self.pool.submit(WRITE, task, tag=number)
        except PoolFull:  # nothing was submitted: there is no answer to wait for
            self._open_bytes -= self._open.pop(number).n_bytes
            raise
        except PoolBroken as error:
            raise_original(error)

    def settle(self, *, most_open: int = 0) -> None:
        """Return when at most so many commits are under way.

        Other tasks of the pool must have ended: their outcomes would come out here.
        """
        try:
            while len(self._open) > most_open:
                for outcome in self.pool.completed():
                    self.take(outcome)
        except PoolBroken as error:
            raise_original(error)

    def take(self, outcome: Outcome) -> None:
        """Take the outcome of a commit, where the caller waits for a shared pool."""
        commit = self._open.pop(cast("int", outcome.tag))
        self._open_bytes -= commit.n_bytes
        if outcome.error is not None:
            raise outcome.error.__cause__ or outcome.error
        if commit.then is not None:
            commit.then()

    def close(self) -> None:
        """Have the file trimmed and released, and stop the pool."""
        self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.settle()
        finally:
            self.close()


def write_role(
    cache: Path,
    specs: Mapping[str, TableSpec],
    terms: TermTables | None = None,
    *,
    wait_s: float = 0.0,
    is_lazy: bool = True,
) -> Role:
    """The role of the writer.

    Args:
        cache: the file; made when it does not exist.
        specs: table name -> its columns, for every table that may be written.
        terms: tables of the analyser whose statistics may be written.
        wait_s: how long to wait from now for another process that writes the cache.
        is_lazy: whether the child starts with the first rows, else with the pool.

    """
    return Role(
        name=WRITE,
        target="featpipe.cache.write:WriteRole",
        arguments={
            "cache": str(cache),
            "specs": dict(specs),
            "terms": terms,
            "wait_until": monotonic() + wait_s,
        },
        threads=1,
        prefetch=8,
        max_losses=10,  # rows are to blame for nothing: a writer that is killed is replaced
        start_deadline_s=wait_s + 300,
        is_lazy=is_lazy,
    )


@dataclass(frozen=True, slots=True, eq=False)
class WriteTask:
    """Parent -> writer: rows by table, written in this order, made durable together."""

    rows: Mapping[str, Rows]
    terms: LocalTerms | None = None
    cache: str = ""
    """The file, for a writer of many files; else the role's own."""
    is_last: bool = False
    """Whether a writer of many files trims and releases this one."""


class WriteRole:
    """Appends rows to tables that it creates when first needed.

    Args:
        cache, specs, terms: as of :func:`write_role`.
        wait_until: until when to wait for another writer to be done, in seconds of the clock that
            all processes of a machine share (``time.monotonic``): a restart waits no longer.

    Raises:
        DictionaryLocked: another process writes this file, and went on for longer than that.

    """

    def __init__(
        self,
        cache: str,
        specs: Mapping[str, TableSpec],
        terms: TermTables | None,
        wait_until: float,
    ) -> None:
        self._specs = specs
        self._writer = _open_when_free(Path(cache), wait_until)
        self._terms = TermWriter(Path(cache), self._writer, terms, specs) if terms else None
        self._derived = DerivedRows(self._writer, specs)

    def run(self, task: WriteTask) -> None:
        """Append and commit; when this returns, the rows survive the loss of any process."""
        try:
            self._append(task)
            self._writer.commit()
        except BaseException:
            self._derived.forget()
            raise

    def _append(self, task: WriteTask) -> None:
        if task.rows:
            self._derived.catch_up()
        for name, rows in task.rows.items():
            if name != tables.TEXT_LEVELS:  # of which only new ones get a row
                self._writer.table(name, self._specs[name]).append(rows)
        self._derived.append(task.rows)
        if task.terms is not None:
            if self._terms is None:
                raise ValueError("this writer was given no tables for terms")
            self._terms.append(task.terms)

    def close(self) -> None:
        """Trim and release the file."""
        self._writer.close()


def _open_when_free(cache: Path, until: float) -> Writer:
    is_logged = False
    while True:
        try:
            return Writer.open(cache)
        except DictionaryLocked as error:
            if monotonic() >= until:
                raise
            if not is_logged:
                logger.warning("waiting up to %.0f s: %s", until - monotonic(), error.message)
                is_logged = True
            # The other process gives no notice when it is done.
            sleep(_TRY_AGAIN_S)


class TermWriter:
    """Appends the terms of one analyser: local term ids become those of the file's vocabulary.

    The caller commits.

    Args:
        path: of the cache.
        writer: that owns it.
        tables: vocabulary and units of the analyser.
        specs: their columns.

    """

    def __init__(
        self, path: Path, writer: Writer, tables: TermTables, specs: Mapping[str, TableSpec]
    ) -> None:
        self._path = path
        self._writer = writer
        self._tables = tables
        self._specs = specs
        self._ids: NDArray[np.uint32] | None = None

    def append(self, terms: LocalTerms) -> None:
        """Add the units that have no row yet."""
        ids = self.ids_of(terms.vocabulary)[terms.ids]
        units = self._writer.table(self._tables.units, self._specs[self._tables.units])
        units.append({"keys": terms.keys, "ids": (ids, terms.lengths)})

    def ids_of(self, terms: Texts) -> NDArray[np.uint32]:
        """The file's ids of distinct terms; new ones are added to the vocabulary, durably."""
        name = self._tables.vocabulary
        vocabulary = self._writer.table(name, self._specs[name])
        known, self._ids = self._ids, None
        if known is None or len(known) != vocabulary.n_rows:
            known = self._read_ids()
        keys = keys_of(terms.strings())
        new = np.flatnonzero(vocabulary.find(keys) < 0)
        if len(new):
            first = int(known.max(initial=0)) + 1
            ids = np.arange(first, first + len(new), dtype=np.uint32)
            vocabulary.append({"keys": keys[new], "id": ids, "term": terms.take(new).ragged})
            # Durable before any row that refers to it: after a crash, an id that was lost could
            # else be given to another term. Of a commit that fails any rows may be in the file, so
            # the ids are read again then.
            self._writer.commit()
            known = np.concatenate([known, ids])
        self._ids = known
        return known[vocabulary.find(keys)]

    def _read_ids(self) -> NDArray[np.uint32]:
        """Ids by row of the vocabulary, as they are stored."""
        with Reader(self._path) as reader:
            if self._tables.vocabulary not in reader:
                return np.empty(0, np.uint32)
            table = reader.table(self._tables.vocabulary)
            return np.array(table.gather("id", np.arange(table.n_rows)), np.uint32)
