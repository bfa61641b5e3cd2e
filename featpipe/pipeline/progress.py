"""Progress: what a run tells its listener, a few times a second."""

from __future__ import annotations

from dataclasses import asdict, dataclass


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
