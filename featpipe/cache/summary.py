"""The contents of a cache, counted, and the records of the runs that filled it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.texts import Texts
from featpipe.errors import UsageError
from featpipe.report import RunReport, report_from_dict
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from featpipe.cache.cache import Cache
    from featpipe.cache.forgotten import Forgotten
    from featpipe.store import Reader


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
    """Count everything. Reads keys and offsets, no vectors."""
    reader, forgotten = cache.reader, cache.stored_documents.forgotten()
    occurrences, unique_rows = _count_units(reader, forgotten)
    return CacheSummary(
        path=str(cache.path),
        file_bytes=reader.file_bytes,
        documents=cache.stored_documents.n_places(),
        contents=_count_kept(reader, tables.DOCUMENTS, forgotten),
        units=sum(occurrences.values()),
        units_by_level=occurrences,
        unique_by_level={level: len(rows) for level, rows in unique_rows.items()},
        texts=_count_kept(reader, tables.TEXTS, forgotten),
        spaces=tuple(
            _summarise_space(reader, name, unique_rows, forgotten) for name in cache.spaces()
        ),
        entities={
            name: _count_entities(reader, name, forgotten)
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


def _count_units(
    reader: Reader, forgotten: Forgotten
) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Occurrences per level, and per level the rows of its distinct texts in ``/texts``."""
    none = np.empty(0, np.int64)
    if tables.DOCUMENTS not in reader or tables.TEXTS not in reader:
        return dict.fromkeys(LEVELS, 0), dict.fromkeys(LEVELS, none)
    documents, texts = reader.table(tables.DOCUMENTS), reader.table(tables.TEXTS)
    rows = forgotten.kept_rows(documents)
    counts, unique = {}, {}
    for level in LEVELS:
        keys, lengths = documents.ragged_many(f"{level}_keys", rows)
        counts[level] = int(lengths.sum())
        found = texts.find(np.asarray(keys).reshape(-1, 16))
        unique[level] = np.unique(found[found >= 0])
    return counts, unique


def _summarise_space(
    reader: Reader, name: str, unique_rows: Mapping[str, np.ndarray], forgotten: Forgotten
) -> SpaceSummary:
    table = reader.table(f"embeddings/{name}")
    vectors = table.spec.columns[0]
    covered = {}
    for level, rows in unique_rows.items():
        keys = np.asarray(reader.table(tables.TEXTS).gather("keys", rows)) if len(rows) else None
        covered[level] = 0 if keys is None else int((table.find(keys) >= 0).sum())
    spec = json.loads(table.attributes["spec"])
    return SpaceSummary(
        name=name,
        n_vectors=len(forgotten.kept_rows(table)),
        dim=int(vectors.shape[0]),
        dtype=str(spec.get("dtype", vectors.dtype)),
        fingerprint=table.attributes["fingerprint"],
        spec=spec,
        units_with_vector=covered,
    )


def _count_entities(reader: Reader, tagger: str, forgotten: Forgotten) -> int:
    table = reader.table(f"entities/{tagger}")
    _, lengths = table.ragged_many("labels", forgotten.kept_rows(table))
    return int(lengths.sum())


def _count_kept(reader: Reader, name: str, forgotten: Forgotten) -> int:
    return len(forgotten.kept_rows(reader.table(name))) if name in reader else 0


def _count_rows(reader: Reader, name: str) -> int:
    return reader.table(name).n_rows if name in reader else 0
