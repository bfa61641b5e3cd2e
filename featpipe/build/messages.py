"""What travels between the parent and its workers: small frozen values, and arrays by descriptor.

Apart from the roles, so that the writer never imports torch, nor the parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.cache.texts import Keys, Units
    from featpipe.cache.write import LocalTerms, Rows
    from featpipe.documents import Source
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings
    from featpipe.report import Quarantined


#: Seconds after which a prepare task begins no further document: the deadline is one document's,
#: and this is the most by which it can be late.
BEGIN_WITHIN_S = 0.5


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """Parent -> prepare worker: a few documents to read, by path; parted to find a killer."""

    sources: tuple[Source, ...]

    def split(self) -> tuple[PrepareTask, ...] | None:
        """Each document alone; the engine calls this to find the one to blame.

        Not halves: one that hangs would then take its deadline once for every halving.
        """
        return tuple(PrepareTask((source,)) for source in self.sources) if len(self) > 1 else None

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedBatch:
    """Prepare worker -> parent (-> writer). Rows by table, the distinct units, and the losses."""

    rows: Mapping[str, Rows]
    units: Units
    n_units: Mapping[str, int]
    """Occurrences per level."""
    quarantined: tuple[Quarantined, ...]
    notes: tuple[str, ...]
    n_loaded: int
    rest: PrepareTask | None = None
    """Documents that were not begun, so that each has the whole of its deadline."""


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """Parent -> encode worker, once: which checkpoint fills which table of vectors."""

    table: str
    path: str
    settings: EncoderSettings
    fingerprint: str


@dataclass(frozen=True, slots=True)
class TaggerPlan:
    """Parent -> encode worker, once: which checkpoint fills which table of entities."""

    table: str
    path: str
    settings: TaggerSettings
    fingerprint: str


#: Stands for a table in tasks whose units lack both a vector and entities, of one trunk.
TOGETHER = "vectors and entities"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTask:
    """Parent -> encode or count worker: units that lack a row in ``table``."""

    table: str
    units: Units

    def split(self) -> tuple[FeatureTask, FeatureTask]:
        """Two halves; the engine calls this to find the unit to blame."""
        first, second = self.units.halves()
        return FeatureTask(self.table, first), FeatureTask(self.table, second)

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True, slots=True, eq=False)
class FeatureBatch:
    """Encode or count worker -> parent (-> writer): rows, and the units that have none.

    ``n_extra_windows`` counts the windows of ``n_long`` long texts beyond their first, and
    ``n_long_tokens`` their tokens beyond it, of which ``n_cut_tokens`` were left out.
    """

    table: str
    rows: Rows
    terms: LocalTerms | None = None
    """Instead of ``rows``, where the writer must turn term ids into the file's."""
    failed: tuple[tuple[bytes, str], ...] = ()
    """(key, reason) of every unit that could not be computed."""
    stored: Keys | None = None
    """Keys of units that had a row already."""
    also: tuple[FeatureBatch, ...] = ()
    """Rows of other tables that came of the same work."""
    n_entities: int = 0
    n_tokens: int = 0
    n_extra_windows: int = 0
    n_long: int = 0
    n_long_tokens: int = 0
    n_cut_tokens: int = 0
    notes: tuple[tuple[str, int], ...] = ()
    """What a user should know of how it was computed: (words, how often since the last batch)."""
