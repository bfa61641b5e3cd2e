"""A dry run: what a build would do, counted without computing a vector or writing a row."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from featpipe.build.progress import RunRecord
from featpipe.build.queue import UnitStates
from featpipe.store import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from featpipe.build.intake import Intake, KnownUnits
    from featpipe.build.messages import PreparedBatch, PrepareTask
    from featpipe.build.plan import Plan
    from featpipe.cache.texts import Units
    from featpipe.pool import Outcome, Pool
    from featpipe.report import Quarantined


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """Exact counts: documents are read and cut, only the encoding is left out."""

    n_documents: int
    n_loaded: int
    n_unchanged: int
    quarantined: tuple[Quarantined, ...]
    units_by_level: Mapping[str, int]
    n_unique: int
    n_hits: int
    n_missing: int
    missing_characters: int
    missing_bytes: int
    """Size of the vectors that would be added."""
    free_bytes: int
    """Free space where the cache lies."""
    notes: tuple[str, ...] = ()
    """What was passed over."""

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)

    def summary(self) -> str:
        """One line."""
        return (
            f"documents {self.n_loaded} readable, {len(self.quarantined)} not; "
            f"units {sum(self.units_by_level.values())}, unique {self.n_unique}, "
            f"hits {self.n_hits}, to encode {self.n_missing} "
            f"({self.missing_characters} characters); vectors {self.missing_bytes / 2**20:.1f} MiB,"
            f" free {self.free_bytes / 2**30:.1f} GiB"
        )


class DryRun:
    """A run that hands out nothing but documents. Used once.

    Args:
        plan: what a build would fill.
        pool: with the role ``prepare``.
        intake: the files.
        reader: of the cache, or of an empty one.

    """

    def __init__(self, plan: Plan, pool: Pool, intake: Intake, reader: Reader) -> None:
        self._plan = plan
        self._pool = pool
        self._intake = intake
        self._reader = reader
        self._vectors = UnitStates(plan.products[0], reader)
        self._n_characters = 0
        self._rest: list[PrepareTask] = []
        """Handed back by workers, to be given out again."""

    def finish(self, cache: Path, n_documents: int) -> DryRunReport:
        """Read and cut every document that is not known, and look up every unit."""
        record = RunRecord("", n_documents, self._plan.levels)
        self._prepare(self._tasks(record), record)
        while self._rest:
            handed_back, self._rest = self._rest, []
            self._prepare(handed_back, record)
        counted = record.report(self._vectors, [self._vectors], was_interrupted=False)
        return DryRunReport(
            n_documents=n_documents,
            n_loaded=counted.n_loaded,
            n_unchanged=counted.n_unchanged,
            quarantined=counted.quarantined,
            units_by_level=counted.units_by_level,
            n_unique=counted.n_unique,
            n_hits=counted.n_hits,
            n_missing=self._vectors.n_issued,
            missing_characters=self._n_characters,
            missing_bytes=self._vectors.n_issued * self._plan.vector_bytes,
            free_bytes=shutil.disk_usage(cache.absolute().parent).free,
        )

    def _tasks(self, record: RunRecord) -> Iterator[PrepareTask]:
        """The documents that must be read; known ones are counted on the way."""
        while (chunk := self._intake.next_chunk()) is not None:
            record.quarantined.extend(chunk.quarantined)
            record.counts += chunk.counts
            if chunk.known is not None:
                self._count(chunk.known)
            if chunk.task is not None:
                yield chunk.task

    def _prepare(self, tasks: Iterable[PrepareTask], record: RunRecord) -> None:
        for outcome in self._pool.map("prepare", tasks, ordered=False):
            for part in outcome.parts:
                self._take(part, record)

    def _take(self, part: Outcome, record: RunRecord) -> None:
        if part.error is not None:
            record.add_lost_documents(cast("PrepareTask", part.payload), part.error)
            return
        batch = cast("PreparedBatch", part.value)
        record.add_prepared(batch)
        if batch.rest is not None:
            self._rest.append(batch.rest)
        self._count(batch.units)

    def _count(self, units: Units | KnownUnits) -> None:
        missing = self._vectors.find_missing(self._reader, units.keys, units.levels)
        self._n_characters += sum(map(len, units.take(missing).texts.strings()))


@contextmanager
def open_or_empty(cache: Path) -> Iterator[Reader]:
    """The cache's reader, or that of an empty one that is gone afterwards."""
    if cache.exists():
        with Reader(cache) as reader:
            yield reader
        return
    with TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.h5"
        Writer.open(empty).close()
        with Reader(empty) as reader:
            yield reader
