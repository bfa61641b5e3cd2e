"""What a run reports: frozen values shared by library, command line and run record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that was left out, and why. The other documents of the run were finished."""

    source: str
    reason: str
    error: str
    """Name of the error class, such as ``UnreadableDocument``."""


@dataclass(frozen=True, slots=True)
class LevelCount:
    """Units of one level: occurrences, distinct texts, and where their vectors came from."""

    level: str
    n_units: int
    n_unique: int
    n_hits: int
    n_encoded: int


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run of ``build-cache``; every file handed in is accounted for."""

    n_documents: int
    n_loaded: int
    n_unchanged: int
    quarantined: tuple[Quarantined, ...]
    levels: tuple[LevelCount, ...]
    n_units: int
    n_unique: int
    n_hits: int
    n_encoded: int
    n_entities: int
    n_windows: int
    """Long texts were read in this many windows beyond their first; nothing was truncated."""
    seconds: float
    run_id: str
    was_interrupted: bool = False
    notes: tuple[str, ...] = field(default=())
    """Fallbacks and lowered precision, in words."""

    def summary(self) -> str:
        """The last line of every run."""
        return (
            f"documents {self.n_loaded} loaded, {len(self.quarantined)} quarantined; "
            f"units {self.n_units}, unique {self.n_unique}, "
            f"hits {self.n_hits}, encoded {self.n_encoded}; {self.seconds:.1f} s"
        )

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)
