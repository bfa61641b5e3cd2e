"""The tally of a run: every count that ends up in its report, in one place."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.report import FailedUnits, Quarantined, RunReport
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from featpipe.build.messages import FeatureBatch, PreparedBatch
    from featpipe.build.queue import Ledger
    from featpipe.documents import Source
    from featpipe.errors import PoolError

# Progress: what a run tells its listener, a few times a second.


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

    @property
    def hit_rate(self) -> float:
        """Share of unit occurrences that needed no encoding, in [0, 1]."""
        return 1 - (self.n_encoded + self.n_waiting) / self.n_units if self.n_units else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)


#: Doubts beyond this many are counted, not listed.
_MOST_NOTES = 200


@dataclass(slots=True)
class Tally:
    """Counts while a run goes on."""

    run_id: str
    n_documents: int
    levels: tuple[str, ...] = LEVELS
    """Those that this run computes; documents are always cut at all of them."""
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_loaded: int = 0
    n_unchanged: int = 0
    n_entities: int = 0
    n_long: int = 0
    n_extra_windows: int = 0
    n_long_tokens: int = 0
    n_cut_tokens: int = 0
    _by_workers: Counter[str] = field(default_factory=Counter)
    """What workers had to say, and how often; 0 for what holds all the time."""
    _n_units: Counter[str] = field(default_factory=Counter)
    _n_more_notes: int = 0
    _started: float = field(default_factory=monotonic)

    def add_unchanged(self, n_documents: int, n_units: Mapping[str, int]) -> None:
        """Documents of a former run."""
        self.n_loaded += n_documents
        self.n_unchanged += n_documents
        self._count_units(n_units)

    def add_prepared(self, batch: PreparedBatch) -> None:
        """Documents read in this run."""
        self.n_loaded += batch.n_loaded
        self.quarantined.extend(batch.quarantined)
        self._count_units(batch.n_units)
        room = _MOST_NOTES - len(self.notes)
        self.notes.extend(batch.notes[:room])
        self._n_more_notes += len(batch.notes[room:])

    def _count_units(self, n_units: Mapping[str, int]) -> None:
        self._n_units.update({level: n_units[level] for level in self.levels})

    def add_lost_documents(self, sources: Iterable[Source], error: PoolError) -> None:
        """Documents that killed their worker, or ran past their deadline."""
        self.quarantined.extend(Quarantined.of(source.id, error) for source in sources)

    def add_encoded(self, batch: FeatureBatch) -> None:
        """Rows that were computed; they count as encoded once the writer acknowledged them."""
        self.n_entities += batch.n_entities
        self.n_long += batch.n_long
        self.n_extra_windows += batch.n_extra_windows
        self.n_long_tokens += batch.n_long_tokens
        self.n_cut_tokens += batch.n_cut_tokens
        for words, n in batch.notes:
            self._by_workers[words] += n

    def progress(
        self, vectors: Ledger, ledgers: Iterable[Ledger], seconds_left: float | None
    ) -> Progress:
        """A snapshot for the listener."""
        n_waiting = sum(ledger.n_waiting for ledger in ledgers)
        return Progress(
            n_sources=self.n_documents,
            n_sources_done=self.n_loaded + len(self.quarantined),
            n_quarantined=len(self.quarantined),
            n_units=self._n_units.total(),
            n_unique=vectors.n_unique,
            n_hits=vectors.n_hits,
            n_encoded=vectors.n_stored,
            n_waiting=vectors.n_waiting,
            n_waiting_others=n_waiting - vectors.n_waiting,
            seconds=monotonic() - self._started,
            seconds_left=seconds_left,
        )

    def report(
        self, vectors: Ledger, ledgers: Iterable[Ledger], was_interrupted: bool
    ) -> RunReport:
        """What the run did, once it is over."""
        more = (f"... and {self._n_more_notes} more notes",) if self._n_more_notes else ()
        return RunReport(
            run_id=self.run_id,
            n_documents=self.n_documents,
            n_loaded=self.n_loaded,
            n_unchanged=self.n_unchanged,
            quarantined=tuple(sorted(self.quarantined, key=lambda q: q.source)),
            units_by_level=dict(self._n_units),
            n_unique=vectors.n_unique,
            n_hits=vectors.n_hits,
            n_encoded=vectors.n_stored,
            failed=tuple(_group_failures(ledgers)),
            n_entities=self.n_entities,
            n_long=self.n_long,
            n_extra_windows=self.n_extra_windows,
            seconds=monotonic() - self._started,
            was_interrupted=was_interrupted,
            notes=(*self.notes, *more, *self._notes_of_workers()),
            n_long_tokens=self.n_long_tokens,
            n_cut_tokens=self.n_cut_tokens,
        )

    def _notes_of_workers(self) -> Iterable[str]:
        return (f"{n} {words}" if n else words for words, n in self._by_workers.items())


def _group_failures(ledgers: Iterable[Ledger]) -> Iterable[FailedUnits]:
    for ledger in ledgers:
        by_reason: dict[str, list[bytes]] = {}
        for key, reason in ledger.failed.items():
            by_reason.setdefault(reason, []).append(key)
        for reason, keys in by_reason.items():
            yield FailedUnits(ledger.product.table, reason, len(keys), keys[0].hex())
