"""The report of a run: frozen values shared by library, command line and run record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.errors import FeatpipeError


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that was left out, and why. The other documents of the run were finished."""

    source: str
    reason: str
    error: str
    """Name of the error class, such as ``UnreadableDocument``."""

    @classmethod
    def of(cls, source: str, error: FeatpipeError) -> Quarantined:
        """The reason in one line: the source is named once, the next step comes last."""
        why = error.message.removeprefix(f"{source}: ")
        return cls(source, f"{why}; {error.hint}" if error.hint else why, type(error).__name__)


@dataclass(frozen=True, slots=True)
class FailedUnits:
    """Unit texts that could not be computed, all for one reason. The others were."""

    table: str
    reason: str
    n_units: int
    example: str
    """The key of one of them, hexadecimal."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a part of a run did; the counts of two parts add up with ``+``."""

    n_loaded: int = 0
    """Files whose units the cache now knows, the unchanged ones included."""
    n_unchanged: int = 0
    units_by_level: Mapping[str, int] = field(default_factory=dict)
    """Occurrences of units in these files."""
    n_entities: int = 0
    """Entities found."""
    n_long: int = 0
    """Texts longer than the model's window."""
    n_extra_windows: int = 0
    """Windows of long texts beyond their first."""
    n_long_tokens: int = 0
    """Tokens of long texts beyond their first window."""
    n_cut_tokens: int = 0
    """Of these, left out."""
    tokenize_s: float = 0.0
    """Seconds that workers spent on tokens of texts for vectors."""
    card_s: float = 0.0
    """Seconds in which a card computed."""

    def __add__(self, other: Counts) -> Counts:
        levels = {**self.units_by_level, **other.units_by_level}
        return Counts(
            n_loaded=self.n_loaded + other.n_loaded,
            n_unchanged=self.n_unchanged + other.n_unchanged,
            units_by_level={
                level: self.units_by_level.get(level, 0) + other.units_by_level.get(level, 0)
                for level in levels
            },
            n_entities=self.n_entities + other.n_entities,
            n_long=self.n_long + other.n_long,
            n_extra_windows=self.n_extra_windows + other.n_extra_windows,
            n_long_tokens=self.n_long_tokens + other.n_long_tokens,
            n_cut_tokens=self.n_cut_tokens + other.n_cut_tokens,
            tokenize_s=self.tokenize_s + other.tokenize_s,
            card_s=self.card_s + other.card_s,
        )


@dataclass(frozen=True, slots=True, repr=False)
class RunReport:
    """One run of ``build-cache``; every file handed in is accounted for.

    ``n_documents == n_loaded + len(quarantined)`` unless the run was interrupted, and
    ``n_unique == n_hits + n_encoded + failed vectors`` likewise.
    """

    run_id: str
    n_documents: int
    """Files handed in."""
    n_loaded: int
    """Files whose units the cache now knows, the unchanged ones included."""
    n_unchanged: int
    quarantined: tuple[Quarantined, ...]
    units_by_level: Mapping[str, int]
    n_unique: int
    """Distinct unit texts met in this run, over all levels."""
    n_hits: int
    """Distinct unit texts whose vector was stored before."""
    n_encoded: int
    """Distinct unit texts whose vector was computed, and is durable."""
    failed: tuple[FailedUnits, ...]
    n_entities: int
    """Entities found in this run."""
    n_long: int
    """Texts longer than the model's window: read in overlapping windows, not truncated, unless
    ``n_cut_tokens`` says otherwise. Those that were refused are among ``failed``."""
    n_extra_windows: int
    seconds: float
    was_interrupted: bool = False
    notes: tuple[str, ...] = ()
    """Doubts of the loaders (guessed encodings ...), fallbacks, lowered precision: in words."""
    n_long_tokens: int = 0
    """Tokens of long texts beyond their first window."""
    n_cut_tokens: int = 0
    """Of these, left out: none unless ``on_truncate="warn"`` was asked for."""
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    """Folder of the model, by the table that it filled."""
    n_departed: int = 0
    """Documents that left the cache: found elsewhere now, or gone from what it was to follow."""
    card_share: float | None = None
    """Share of ``seconds`` in which the cards computed; None where there was none."""

    @property
    def n_units(self) -> int:
        """Occurrences of units, over all levels."""
        return sum(self.units_by_level.values())

    @property
    def is_complete(self) -> bool:
        """Nothing was left out."""
        return not (self.quarantined or self.failed or self.was_interrupted)

    def summary(self) -> str:
        """The last line of every run."""
        return (
            f"documents {self.n_loaded} loaded, {len(self.quarantined)} quarantined"
            f"{f', {self.n_departed} left' if self.n_departed else ''}; "
            f"units {self.n_units}, unique {self.n_unique}, "
            f"hits {self.n_hits}, encoded {self.n_encoded}; {self.seconds:.1f} s"
        )

    def __repr__(self) -> str:
        return f"<RunReport {self.run_id}: {self.summary()}>"

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self) | {"n_units": self.n_units}


def report_from_dict(record: Mapping[str, Any]) -> RunReport:  # Any: the values of a JSON object
    """The report of `RunReport.as_dict`; fields that a later featpipe added are ignored."""
    known = RunReport.__dataclass_fields__
    content = {name: value for name, value in record.items() if name in known}
    content["quarantined"] = tuple(Quarantined(**lost) for lost in record["quarantined"])
    content["failed"] = tuple(FailedUnits(**failed) for failed in record["failed"])
    content["notes"] = tuple(record["notes"])
    return RunReport(**content)
