"""Messages between the parent and the workers of a build: small frozen values and arrays.

This module imports no model, so that neither the parent nor the writer imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from featpipe.report import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.cache.places import Identity
    from featpipe.cache.tables import Rows
    from featpipe.cache.texts import Units
    from featpipe.cache.write import LocalTerms
    from featpipe.documents import Source
    from featpipe.encoders.spec import EncoderSettings, TaggerSettings
    from featpipe.report import Quarantined


#: Seconds after which a prepare task begins no further document: the deadline is one document's,
#: and this is the most by which it can be late.
BEGIN_WITHIN_S = 0.5


class UnreadFile(NamedTuple):
    """A document to read; ``identity`` as the parent found it, None where it did not look."""

    source: Source
    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class PrepareTask:
    """Parent -> prepare worker: a few documents to read."""

    files: tuple[UnreadFile, ...]

    def split(self) -> tuple[PrepareTask, ...] | None:
        """Each document alone; the pool calls this to find the one to blame.

        Not halves: one that hangs would then take its deadline once for every halving.
        """
        return tuple(PrepareTask((file,)) for file in self.files) if len(self) > 1 else None

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedBatch:
    """Prepare worker -> parent (-> writer). Rows by table, the distinct units, and the losses."""

    rows: Mapping[str, Rows]
    units: Units
    counts: Counts
    quarantined: tuple[Quarantined, ...]
    notes: tuple[str, ...]
    rest: PrepareTask | None = None
    """Documents that were not begun, so that each has the whole of its deadline."""


@dataclass(frozen=True, slots=True)
class EncoderPlan:
    """Parent -> encode worker, once: which checkpoint fills which table of vectors."""

    table: str
    path: str
    settings: EncoderSettings
    fingerprint: str
    is_unproven: bool = False
    """Whether the worker is to measure how far its first texts' vectors are from float32."""


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

    def split(self) -> tuple[FeatureTask, FeatureTask] | None:
        """Two halves; the pool calls this to find the unit to blame. None of a single unit."""
        if len(self) < 2:
            return None
        first, second = self.units.halves()
        return FeatureTask(self.table, first), FeatureTask(self.table, second)

    def __len__(self) -> int:
        return len(self.units)


@dataclass(frozen=True, slots=True, eq=False)
class FeatureBatch:
    """Encode or count worker -> parent (-> writer): rows, and the units that have none."""

    table: str
    rows: Rows
    terms: LocalTerms | None = None
    """Instead of ``rows``, where the writer must turn term ids into the file's."""
    failed: tuple[tuple[bytes, str], ...] = ()
    """(key, reason) of every unit that could not be computed."""
    also: tuple[FeatureBatch, ...] = ()
    """Rows of other tables that came of the same work."""
    counts: Counts = field(default_factory=Counts)
    least_cosine: float = 1.0
    """Of vectors that were compared with float32's, because the plan is unproven."""
    notes: tuple[tuple[str, int], ...] = ()
    """How they were computed: (words, how often since the last batch); 0 for a lasting fact."""
