"""The contents of a cache, counted, and the records of the runs that filled it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.levels import blocks_of
from featpipe.cache.texts import LEVEL_BIT, Texts
from featpipe.errors import UsageError
from featpipe.report import RunReport, report_from_dict
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from featpipe.cache.cache import Cache
    from featpipe.cache.forgotten import Forgotten
    from featpipe.store import Reader, TableReader

#: Rows looked up at a time.
_BLOCK = 1 << 16


def read_runs(cache: Cache) -> list[RunReport]:
    """Every run, oldest first; fields that a later featpipe added to a record are ignored."""
    if tables.RUNS not in cache.reader:
        return []
    table = cache.reader.table(tables.RUNS)
    texts = Texts(*table.ragged_many("record", np.arange(table.n_rows))).strings()
    # Ids begin with the time. In a merged cache the rows of one file come after those of another.
    return sorted(
        (report_from_dict(json.loads(text)) for text in texts), key=lambda run: run.run_id
    )


def find_run(ids: Iterable[str], name: str) -> str:
    """One of some ids of runs: by the id, the beginning of it, or ``last``.

    Raises:
        UsageError: no such run, or several.

    """
    known = sorted(set(ids))
    if name == "last" and known:
        return known[-1]
    found = [name] if name in known else [one for one in known if one.startswith(name)]
    if len(found) != 1:
        what = "several runs begin with" if found else "no run"
        raise UsageError(f"{what} {name!r}", hint="featpipe runs list CACHE")
    return found[0]


@dataclass(frozen=True, slots=True)
class SpaceSummary:
    """One space: the vectors of one fingerprint."""

    name: str
    n_vectors: int
    dim: int
    dtype: str
    fingerprint: str
    spec: Mapping[str, object]
    units_with_vector: Mapping[str, int]
    """Per level, distinct texts that have a vector here."""


@dataclass(frozen=True, slots=True)
class CacheSummary:
    """Counts of one cache file."""

    path: str
    file_bytes: int
    documents: int
    """Places at which a document was found."""
    contents: int
    """Distinct contents among them."""
    units: int
    """Occurrences of units in all contents, over all levels."""
    units_by_level: Mapping[str, int]
    unique_by_level: Mapping[str, int]
    texts: int
    """Distinct unit texts, over all levels."""
    spaces: tuple[SpaceSummary, ...]
    entities: Mapping[str, int]
    """Entities per tagger, each distinct paragraph counted once."""
    terms: Mapping[str, int]
    """Size of the vocabulary per analyser."""
    runs: int

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return asdict(self)


def summarise(cache: Cache) -> CacheSummary:
    """Count everything. Reads keys and offsets, no vectors; memory: a byte for each text."""
    reader, forgotten = cache.reader, cache.stored_documents.forgotten()
    occurrences = _count_units(reader, forgotten)
    levels = _count_levels(cache.stored_documents.level_bits())
    return CacheSummary(
        path=cache.address,
        file_bytes=reader.file_bytes,
        documents=cache.stored_documents.n_places(),
        contents=_count_kept(reader, tables.DOCUMENTS, forgotten),
        units=sum(occurrences.values()),
        units_by_level=occurrences,
        unique_by_level=levels,
        texts=_count_kept(reader, tables.TEXTS, forgotten),
        spaces=tuple(
            _summarise_space(cache, reader.table(f"embeddings/{name}")) for name in cache.spaces()
        ),
        entities={
            name: _count_values(reader.table(f"entities/{name}"), "labels", forgotten)
            for name in cache.stored_documents.taggers()
        },
        terms={
            name.removeprefix("terms/").removesuffix("/vocabulary"): _count_kept(
                reader, name, forgotten
            )
            for name in reader.tables()
            if name.startswith("terms/") and name.endswith("/vocabulary")
        },
        runs=_count_rows(reader, tables.RUNS),
    )


def _count_units(reader: Reader, forgotten: Forgotten) -> dict[str, int]:
    """Occurrences of units by level."""
    if tables.DOCUMENTS not in reader or tables.TEXTS not in reader:
        return dict.fromkeys(LEVELS, 0)
    documents = reader.table(tables.DOCUMENTS)
    return {level: _count_values(documents, f"{level}_keys", forgotten) for level in LEVELS}


def _count_values(table: TableReader, column: str, forgotten: Forgotten) -> int:
    """Values of a ragged column, without those of forgotten rows."""
    if not forgotten:
        return table.n_values(column)
    blocks = blocks_of(table, column)
    return sum(len(table.ragged_many(column, forgotten.kept(table, rows))[0]) for rows in blocks)


def _count_levels(bits: NDArray[np.uint8]) -> dict[str, int]:
    """How many of some texts occur at each level."""
    return {level: int(np.count_nonzero(bits & bit)) for level, bit in LEVEL_BIT.items()}


def _summarise_space(cache: Cache, table: TableReader) -> SpaceSummary:
    stored = cache.stored_documents
    forgotten, n_vectors = stored.forgotten(), 0
    covered = dict.fromkeys(LEVELS, 0)
    for start in range(0, table.n_rows, _BLOCK):
        rows = forgotten.kept(table, np.arange(start, min(start + _BLOCK, table.n_rows)))
        n_vectors += len(rows)
        bits = stored.bits_of(np.asarray(table.gather("keys", rows), np.uint8))
        for level, n in _count_levels(bits).items():
            covered[level] += n
    vectors, spec = table.spec.columns[0], json.loads(table.attributes["spec"])
    return SpaceSummary(
        name=table.name.partition("/")[2],
        n_vectors=n_vectors,
        dim=int(vectors.shape[0]),
        dtype=str(spec.get("dtype", vectors.dtype)),
        fingerprint=table.attributes["fingerprint"],
        spec=spec,
        units_with_vector=covered,
    )


def _count_kept(reader: Reader, name: str, forgotten: Forgotten) -> int:
    if name not in reader:
        return 0
    table = reader.table(name)
    if not forgotten:
        return table.n_rows
    starts = range(0, table.n_rows, _BLOCK)
    blocks = (np.arange(start, min(start + _BLOCK, table.n_rows)) for start in starts)
    return sum(len(forgotten.kept(table, rows)) for rows in blocks)


def _count_rows(reader: Reader, name: str) -> int:
    return reader.table(name).n_rows if name in reader else 0
