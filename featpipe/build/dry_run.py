"""Preview: what a build would do, counted without computing a vector or writing a row."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from featpipe.build.intake import KnownDocuments
from featpipe.build.messages import PrepareTask
from featpipe.build.progress import Tally
from featpipe.build.queue import Ledger
from featpipe.store import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from featpipe.build.intake import Intake
    from featpipe.build.messages import PreparedBatch
    from featpipe.build.plan import Plan
    from featpipe.cache.texts import Units
    from featpipe.pool import Outcome, Pool
    from featpipe.report import Quarantined


@dataclass(frozen=True, slots=True)
class Preview:
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


def preview(
    cache: Path, plan: Plan, pool: Pool, intake: Intake, reader: Reader, n_documents: int
) -> Preview:
    """Read and cut every document that is not known, and look up every unit."""
    counting = _Counting(plan, intake, reader, Tally("", n_documents, plan.levels))
    counting.take_all(pool, counting.tasks())
    while counting.rest:
        handed_back, counting.rest = counting.rest, []
        counting.take_all(pool, handed_back)
    report = counting.tally.report(counting.ledger, [counting.ledger], was_interrupted=False)
    return Preview(
        n_documents=n_documents,
        n_loaded=report.n_loaded,
        n_unchanged=report.n_unchanged,
        quarantined=report.quarantined,
        units_by_level=report.units_by_level,
        n_unique=report.n_unique,
        n_hits=report.n_hits,
        n_missing=counting.ledger.n_issued,
        missing_characters=counting.n_characters,
        missing_bytes=counting.ledger.n_issued * plan.vector_bytes,
        free_bytes=shutil.disk_usage(cache.absolute().parent).free,
    )


class _Counting:
    """A run that hands out nothing but documents."""

    def __init__(self, plan: Plan, intake: Intake, reader: Reader, tally: Tally) -> None:
        self.tally = tally
        self.ledger = Ledger(plan.products[0], reader)
        self.n_characters = 0
        self.rest: list[PrepareTask] = []
        """Handed back by workers, to be given out again."""
        self._intake = intake
        self._reader = reader
        self._known = KnownDocuments(reader)

    def tasks(self) -> Iterator[PrepareTask]:
        """The documents that must be read; known ones are counted on the way."""
        while (chunk := self._intake.next_chunk()) is not None:
            self.tally.quarantined.extend(chunk.quarantined)
            found = self._known.find_units(chunk) if chunk.known else None
            if found is not None:
                self.tally.add_unchanged(len(chunk.known), found.n_units)
                rows = self.ledger.find_missing(self._reader, found.keys, found.levels)
                self._count(found.take(rows))
            elif chunk.known:
                yield PrepareTask(tuple(chunk.known))
            if chunk.task is not None:
                yield chunk.task

    def take_all(self, pool: Pool, tasks: Iterable[PrepareTask]) -> None:
        """What workers make of these tasks."""
        for outcome in pool.map("prepare", tasks, ordered=False):
            for part in outcome.parts:
                self.take(part)

    def take(self, part: Outcome) -> None:
        """A prepared batch, or the documents that were lost."""
        if part.error is not None:
            self.tally.add_lost_documents(cast("PrepareTask", part.payload).sources, part.error)
            return
        batch = cast("PreparedBatch", part.value)
        self.tally.add_prepared(batch)
        if batch.rest is not None:
            self.rest.append(batch.rest)
        units = batch.units
        self._count(units.take(self.ledger.find_missing(self._reader, units.keys, units.levels)))

    def _count(self, missing: Units) -> None:
        self.n_characters += sum(map(len, missing.texts.strings()))
