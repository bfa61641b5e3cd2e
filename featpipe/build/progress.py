"""Progress of a run: what its listener sees, and every count that ends up in its report."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.build.busy import CardTimes
from featpipe.report import Counts, FailedUnits, Quarantined, RunReport
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from featpipe.build.messages import FeatureBatch, PreparedBatch, PrepareTask
    from featpipe.build.queue import UnitStates
    from featpipe.errors import PoolError

#: Doubts beyond this many are counted, not listed.
_MOST_NOTES = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run. Counts only ever grow, but for what waits."""

    n_sources: int
    n_sources_done: int
    """Read and cut into units, recognised as unchanged, or quarantined."""
    n_quarantined: int
    n_units: int
    n_unique: int
    n_hits: int
    n_encoded: int
    n_waiting: int
    """Distinct units that still need a vector."""
    n_waiting_others: int
    """The same for entities and terms."""
    seconds: float
    """Since the run began."""
    seconds_left: float | None
    """Once every document is read and the devices' pace is known; None before."""
    n_others: int = 0
    """Distinct units met that need entities or terms, a unit of both counted twice."""

    @property
    def hit_rate(self) -> float:
        """Share of unit occurrences that needed no encoding, in [0, 1]."""
        return 1 - (self.n_encoded + self.n_waiting) / self.n_units if self.n_units else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)


@dataclass(slots=True)
class RunRecord:
    """Counts, losses and notes while a run goes on."""

    run_id: str
    n_documents: int
    levels: tuple[str, ...] = LEVELS
    """Those that this run computes; documents are always cut at all of them."""
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """Folder of the model, by the table that it fills."""
    counts: Counts = field(default_factory=Counts)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_departed: int = 0
    cards: tuple[str, ...] = ()
    """Of the workers that encode on one."""
    encode_s: float = 0.0
    """Seconds in which workers had something to encode."""
    n_batches: int = 0
    """Batches of features that workers answered with."""
    n_stored_before: int = 0
    """Vectors that earlier runs of the same job stored, and the cache holds: they are no hits."""
    _by_workers: Counter[str] = field(default_factory=Counter)
    """Notes of workers, and how often each event was; 0 for a lasting fact."""
    _n_more_notes: int = 0
    _started: float = field(default_factory=monotonic)

    def add_prepared(self, batch: PreparedBatch) -> None:
        """Documents read in this run."""
        self.counts += batch.counts
        self.quarantined.extend(batch.quarantined)
        room = _MOST_NOTES - len(self.notes)
        self.notes.extend(batch.notes[:room])
        self._n_more_notes += len(batch.notes[room:])

    def add_lost_documents(self, task: PrepareTask, error: PoolError) -> None:
        """Documents that killed their worker, or ran past their deadline."""
        self.quarantined.extend(Quarantined.of(file.source.id, error) for file in task.files)

    def add_features(self, batch: FeatureBatch) -> None:
        """Rows that were computed; they count as encoded once the writer acknowledged them."""
        self.n_batches += 1
        self.counts += batch.counts
        for words, n in batch.notes:
            self._by_workers[words] += n

    def progress(
        self, vectors: UnitStates, every: Iterable[UnitStates], seconds_left: float | None
    ) -> Progress:
        """A snapshot for the listener; ``vectors`` is one of ``every`` product's states."""
        others = [states for states in every if states is not vectors]
        return Progress(
            n_sources=self.n_documents,
            n_sources_done=self.counts.n_loaded + len(self.quarantined),
            n_quarantined=len(self.quarantined),
            n_units=sum(self._units_by_level().values()),
            n_unique=self._n_unique(vectors),
            n_hits=self._n_hits(vectors),
            n_encoded=self.n_stored_before + vectors.n_stored,
            n_waiting=vectors.n_waiting,
            n_waiting_others=sum(states.n_waiting for states in others),
            seconds=monotonic() - self._started,
            seconds_left=seconds_left,
            n_others=sum(states.n_unique for states in others),
        )

    def report(
        self, vectors: UnitStates, every: Iterable[UnitStates], was_interrupted: bool
    ) -> RunReport:
        """What the run did, once it is over."""
        counts = self.counts
        seconds = monotonic() - self._started
        times = CardTimes(self.cards, seconds, self.encode_s, counts.tokenize_s, counts.card_s)
        return RunReport(
            run_id=self.run_id,
            n_documents=self.n_documents,
            n_loaded=counts.n_loaded,
            n_unchanged=counts.n_unchanged,
            quarantined=tuple(sorted(self.quarantined, key=lambda q: q.source)),
            units_by_level=self._units_by_level(),
            n_unique=self._n_unique(vectors),
            n_hits=self._n_hits(vectors),
            n_encoded=self.n_stored_before + vectors.n_stored,
            failed=tuple(_group_failures(every)),
            n_entities=counts.n_entities,
            n_long=counts.n_long,
            n_extra_windows=counts.n_extra_windows,
            seconds=seconds,
            was_interrupted=was_interrupted,
            notes=tuple(filter(None, (*self._all_notes(), times.describe()))),
            n_long_tokens=counts.n_long_tokens,
            n_cut_tokens=counts.n_cut_tokens,
            checkpoints=self.checkpoints,
            n_departed=self.n_departed,
            card_share=times.share,
        )

    def _n_hits(self, vectors: UnitStates) -> int:
        return max(0, vectors.n_hits - self.n_stored_before)

    def _n_unique(self, vectors: UnitStates) -> int:
        # What an earlier run stored may not have been met again yet.
        return vectors.n_unique + max(0, self.n_stored_before - vectors.n_hits)

    def _units_by_level(self) -> dict[str, int]:
        found = self.counts.units_by_level
        return {level: found[level] for level in self.levels if level in found}

    def _all_notes(self) -> Iterable[str]:
        yield from self.notes
        if self._n_more_notes:
            yield f"... and {self._n_more_notes} more notes"
        yield from (f"{n} {words}" if n else words for words, n in self._by_workers.items())


def _group_failures(every: Iterable[UnitStates]) -> Iterable[FailedUnits]:
    for states in every:
        by_reason: dict[str, list[bytes]] = {}
        for key, reason in states.failed.items():
            by_reason.setdefault(reason, []).append(key)
        for reason, keys in by_reason.items():
            yield FailedUnits(states.product.table, reason, len(keys), keys[0].hex())
