"""The workers of a build that need no model: one prepares documents, one counts terms.

The prepare worker turns files into rows, already in columns as the writer stores them, so that the
parent forwards arrays and looks only at the distinct unit texts.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.messages import BEGIN_WITHIN_S, FeatureBatch, PreparedBatch, PrepareTask
from featpipe.cache import tables
from featpipe.cache.places import read_identified, source_rows
from featpipe.cache.texts import Texts, UnitCollector, Units, join_keys
from featpipe.cache.write import LocalTerms
from featpipe.documents import load_document, segment
from featpipe.errors import DocumentError
from featpipe.lexical.terms import Analyser
from featpipe.lexical.words import Words
from featpipe.report import Counts, Quarantined
from featpipe.settings import LEVELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.build.messages import FeatureTask, UnreadFile
    from featpipe.cache.places import Preparation
    from featpipe.cache.tables import Rows
    from featpipe.documents import Document, LoadLimits, Source
    from featpipe.lexical.terms import AnalyserName


class PrepareRole:
    """Reads files and cuts their text into units.

    Args:
        preparation: loaders, segmenter, words and OCR; part of a document's identity.
        limits: beyond which a document is refused.

    """

    def __init__(self, preparation: Preparation, limits: LoadLimits) -> None:
        self._preparation = preparation
        self._limits = limits
        self._words = Words()

    def run(self, task: PrepareTask) -> PreparedBatch:
        """Read the files of the task; one that cannot be used becomes a ``Quarantined``.

        Files not begun within :data:`BEGIN_WITHIN_S` are handed back as the batch's ``rest``.
        """
        batch, begun = _Batch(), monotonic()
        for n_done, file in enumerate(task.files):
            if n_done and monotonic() - begun > BEGIN_WITHIN_S:
                return replace(batch.finished(), rest=PrepareTask(task.files[n_done:]))
            try:
                self._prepare(file, batch)
            except DocumentError as error:
                batch.quarantined.append(Quarantined.of(file.source.id, error))
        return batch.finished()

    def _prepare(self, file: UnreadFile, batch: _Batch) -> None:
        source = file.source
        data, identity = read_identified(source, self._limits, self._preparation, file.identity)
        document = load_document(
            data,
            source=source.id,
            limits=self._limits,
            media_type=source.media_type,
            bytes_hash=identity.bytes_hash,
        )
        batch.add(source, identity.key, document, self._words)


@dataclass(slots=True)
class _Batch:
    """Rows of several documents on their way to columns."""

    collector: UnitCollector = field(default_factory=UnitCollector)
    sources: list[Source] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    metas: list[str] = field(default_factory=list)
    spans: dict[str, list[NDArray[np.uint32]]] = field(default_factory=dict)
    positions: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    quarantined: list[Quarantined] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spans = {level: [] for level in LEVELS}
        self.positions = {level: [] for level in LEVELS}

    def add(self, source: Source, key: bytes, document: Document, words: Words) -> None:
        spans = spans_by_level(document.text, words)
        for level in LEVELS:
            cut = [document.text[a:b] for a, b in spans[level].tolist()]
            self.spans[level].append(spans[level])
            self.positions[level].append(self.collector.add(cut, level))
        self.sources.append(source)
        self.keys.append(key)
        self.texts.append(document.text)
        self.metas.append(_meta(document))
        self.notes.extend(f"{source.id}: {note}" for note in document.notes)

    def finished(self) -> PreparedBatch:
        units = self.collector.units()
        return PreparedBatch(
            rows={
                tables.TEXTS: {"keys": units.keys, "text": units.texts.ragged},
                tables.DOCUMENTS: self._documents(units),
                tables.SOURCES: source_rows(self.sources, self.keys),
                tables.TEXT_LEVELS: {"text": units.keys, "bits": units.levels},
            }
            if self.sources
            else {},
            units=units,
            counts=Counts(
                n_loaded=len(self.sources),
                units_by_level={level: sum(map(len, self.positions[level])) for level in LEVELS},
            ),
            quarantined=tuple(self.quarantined),
            notes=tuple(self.notes),
        )

    def _documents(self, units: Units) -> Rows:
        rows: Rows = {
            "keys": join_keys(self.keys),
            "text": Texts.from_strings(self.texts).ragged,
            "meta": Texts.from_strings(self.metas).ragged,
        }
        for level in LEVELS:
            lengths = np.fromiter(map(len, self.spans[level]), np.int64, len(self.keys))
            rows[f"{level}_spans"] = (np.concatenate(self.spans[level]), lengths)
            rows[f"{level}_keys"] = (
                units.keys[np.concatenate(self.positions[level]).astype(np.intp)],
                lengths,
            )
        return rows


def spans_by_level(text: str, words: Words) -> dict[str, NDArray[np.uint32]]:
    """Unit spans (n, 2) per level, in order. Blank words are left out."""
    segments = segment(text)
    pieces = [text[a:b] for a, b in segments.sentences.tolist()]
    spans, lengths = words.spans_many(pieces)
    shifted = spans + np.repeat(segments.sentences[:, 0], lengths)[:, None]
    blank = [text[a:b].isspace() for a, b in shifted.tolist()]
    return {
        "paragraph": segments.paragraphs,
        "sentence": segments.sentences,
        "word": shifted[~np.array(blank, bool)].astype(np.uint32).reshape(-1, 2),
    }


def _meta(document: Document) -> str:
    """A document's properties besides its text, as JSON; spans as lists of numbers."""
    return json.dumps(
        {
            "bytes_hash": document.bytes_hash,
            "text_hash": document.text_hash,
            "title": document.title,
            "media_type": document.media_type,
            "encoding": document.encoding,
            "loader": document.loader,
            "notes": document.notes,
            "pages": [astuple(page) for page in document.pages],
            "tables": [astuple(table) for table in document.tables],
            "headings": [astuple(heading) for heading in document.headings],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


class CountRole:
    """Turns unit texts into BM25 terms, each distinct text once ever.

    Args:
        analyser: name of the term analyser.

    """

    def __init__(self, analyser: AnalyserName) -> None:
        self._analyser = Analyser(analyser)

    def run(self, task: FeatureTask) -> FeatureBatch:
        """Term ids of every unit of the task, against a vocabulary of their own."""
        counted = self._analyser.count(task.units.texts.strings())
        terms = LocalTerms(
            keys=task.units.keys,
            vocabulary=Texts.from_strings(counted.vocabulary),
            ids=counted.ids,
            lengths=counted.lengths.astype(np.int64),
        )
        return FeatureBatch(table=task.table, rows={}, terms=terms)
