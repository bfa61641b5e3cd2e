"""Page source: documents made ready for extraction, with the vectors and entities of one cache.

Guarantees: a cached document is read back, and no model is ever asked about it; of any other text
only what the cache lacks is computed, by the models that filled the cache.
"""

from __future__ import annotations

import json
from dataclasses import replace
from os.path import realpath
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from cachetools import LRUCache, cachedmethod

from featpipe.documents import (
    Document,
    Source,
    segment,
)
from featpipe.errors import (
    MissingDocuments,
    UnreadableDocument,
)
from featpipe.extraction.messages import (
    FromSource,
    Inline,
    Loaded,
    OnDisk,
    Stored,
    Upload,
    name_of,
)
from featpipe.extraction.missing_inputs import join_missing, missing_of_keys, missing_of_rows
from featpipe.extraction.named_documents import read_source, stored_or_read
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import (
    Page,
    page_of_document,
    page_of_text,
    with_vectors,
)
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.table_headers import table_headers
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.documents import LoadLimits
    from featpipe.extraction.messages import Given
    from featpipe.on_demand.messages import Entity, TextFeatures
    from featpipe.on_demand.space import Checkpoints
    from featpipe.store import TableReader

    #: Texts -> vectors (n, dim).
    Encode = Callable[[Sequence[str]], NDArray[np.generic]]
    #: (checkpoints, cache, space, tagger) -> the models: in a worker process, or in this one.
    OpenModels = Callable[[Checkpoints, Cache, str | None, str | None], TextFeatures]

#: Characters of the pages that are kept: some hundred MB at the most.
_MOST_KEPT = 2_000_000


class PageSource:
    """Makes pages. Any thread may call.

    Args:
        cache: opened.
        space: name of the space; may be left out when there is at most one.
        encode: texts -> vectors (n, dim) of the same space, for texts the cache does not hold.
        checkpoints: models for the same, loaded at the first such text, entities included.
        open_models: where the models are loaded.
        limits: beyond which a document is refused.

    """

    def __init__(
        self,
        cache: Cache,
        space: str | None,
        encode: Encode | None,
        checkpoints: Checkpoints | None,
        open_models: OpenModels,
        limits: LoadLimits,
    ) -> None:
        self._cache, self._limits = cache, limits
        self.n_encoded = 0
        """Sentences that were given to an encoder."""
        self._kept: LRUCache[tuple[object, ...], PageFeatures] = LRUCache(
            _MOST_KEPT, lambda features: len(features.page.text)
        )
        self._lock = Lock()
        self._dictionary: Dictionary | None = None
        if space is not None or cache.spaces():
            self._dictionary = cache.dictionary(space)
        taggers = cache.stored_documents.taggers()
        self._tagger = taggers[0] if len(taggers) == 1 else None
        self.models: TextFeatures | None = None
        """For texts that the cache does not hold; None: they lack vectors or entities."""
        if checkpoints is not None:
            name = self._dictionary.name if self._dictionary is not None else None
            self.models = open_models(checkpoints, cache, name, self._tagger)
        self._encode = encode
        if encode is None and self.models is not None and self.models.has_encoder:
            self._encode = self.models.vectors_of

    @property
    def name(self) -> str:
        """Space and tagger, on which results depend."""
        return f"{self._dictionary.name if self._dictionary else ''}+{self._tagger or ''}"

    def close(self) -> None:
        """Stop the models."""
        if self.models is not None:
            self.models.close()

    # ---- documents

    def page_of(self, given: Given) -> tuple[PageFeatures, bool]:
        """A document made ready, and whether the cache did not hold it.

        Raises:
            DocumentError: it cannot be read.

        """
        if isinstance(given, Inline):
            self._cache.refresh()  # as finding a document does
            return self.page_of_text(given.text, given.name), True
        found = self.find(given)
        if isinstance(found, Document):
            return self.page_of_document(found), True
        features, label = self.page_of_cached(found), self._label(given, found)
        if features.page.id != label:
            # Another file with the same bytes; or an id that two places of the cache share.
            features = PageFeatures(replace(features.page, id=label))
        return features, False

    def label_of_given(self, given: Given) -> str:
        """The name of a document's results, before it is read."""
        known = self._cache.find_document(given.name) if isinstance(given, Stored) else None
        return self.label_of(known) if known is not None else name_of(given)

    def _label(self, given: Given, found: CachedDocument) -> str:
        if isinstance(given, Stored):
            return self.label_of(found)
        if isinstance(given, OnDisk) and not given.name:
            return self.label_at(given.path, given.path)
        return name_of(given)

    def label_of(self, document: CachedDocument) -> str:
        """The id of a stored document; its path where a document at another place has this id."""
        named = self._cache.find_document(document.id)
        return document.id if named is None or named.path == document.path else document.path

    def label_at(self, path: str, otherwise: str) -> str:
        """The label of the document that the cache has at a path, else ``otherwise``."""
        known = self._cache.find_document(path) or self._cache.find_document(realpath(path))
        return self.label_of(known) if known is not None else otherwise

    def find(
        self, given: Stored | Upload | OnDisk | FromSource | Loaded
    ) -> CachedDocument | Document:
        """As the cache holds it, by its name or by its content; else read now.

        Raises:
            DocumentError: it cannot be read.

        """
        if isinstance(given, Loaded):
            known = self._cache.find_content(given.document.bytes_hash, given.document.media_type)
            # Offsets count in the text that was handed in, which another version may have read.
            is_same = known is not None and known.text == given.document.text
            return known if known is not None and is_same else given.document
        if isinstance(given, OnDisk):
            source = Source(given.name or given.path, Path(given.path))
            return self._read(read_source(source, self._limits), source.id)
        if isinstance(given, FromSource):
            data = read_source(given.source, self._limits)
            return self._read(data, given.name, given.source.media_type)
        if isinstance(given, Upload):
            return self._read(given.data, given.name, given.media_type)
        try:
            known = self._cache.stored_documents.find_only(given.name)
        except MissingDocuments as error:
            raise UnreadableDocument(f"{error.message}; {error.hint}") from error
        if known is None:
            raise UnreadableDocument(f"{given.name}: no such document in the cache")
        return known

    def _read(
        self, data: bytes, name: str, media_type: str | None = None
    ) -> CachedDocument | Document:
        return stored_or_read(self._cache, data, name, media_type, self._limits)

    # ---- pages

    @cachedmethod(
        lambda self: self._kept,
        key=lambda self, document: self._state_of(document),
        lock=lambda self: self._lock,
    )
    def page_of_cached(self, document: CachedDocument) -> PageFeatures:
        """A stored document. The last ones are kept in memory."""
        return PageFeatures(self._make_page(document))

    def page_of_document(self, document: Document) -> PageFeatures:
        """A loaded document that is not in the cache."""
        return self._complete(page_of_document(document))

    def page_of_text(self, text: str, name: str = "") -> PageFeatures:
        """A bare text."""
        return self._complete(page_of_text(text, name=name))

    def _complete(self, page: Page) -> PageFeatures:
        """Entities and vectors: as stored, else by the models at hand."""
        if self._tagger is not None:
            texts = [page.text[a:b] for a, b in page.paragraphs.tolist()]
            found = self._entities_of(self._tagger, texts)
            page = replace(page, entities=_place_entities(page.paragraphs, found))
        return PageFeatures(self._with_vectors(page, self._encode))

    def _state_of(self, document: CachedDocument) -> tuple[object, ...]:
        """Content, name, and sizes of the tables read: a running build may add to them."""
        reader = self._cache.reader
        return (
            document.key,
            document.id,
            *(reader.table(table).n_rows for _, table in self._tables),
        )

    def _make_page(self, document: CachedDocument) -> Page:
        meta: dict[str, Any] = document.meta  # JSON
        text = document.text
        spans = _spans_of(document)
        page = Page(
            document.id,
            text,
            spans["sentence"],
            spans["paragraph"],
            spans["word"],
            self._cached_entities(document, spans["paragraph"]),
            table_headers(text, meta.get("tables") or ()),
            tuple((int(p[0]), int(p[1]), int(p[2])) for p in meta.get("pages") or ()),
        )
        return self._with_vectors(page, None)

    # ---- vectors

    def _with_vectors(self, page: Page, encode: Encode | None) -> Page:
        """Vectors of the sentences; those that the cache lacks by ``encode``, or zeros."""
        if self._dictionary is None or not len(page.sentences):
            return page
        texts = [page.text[a:b] for a, b in page.sentences.tolist()]
        stored, found = self._dictionary.lookup(texts)
        vectors = np.asarray(stored, np.float32)
        if encode is not None and not found.all():
            missing = [text for text, known in zip(texts, found.tolist(), strict=True) if not known]
            vectors[~found] = np.asarray(encode(missing), np.float32)
            self.n_encoded += len(missing)
        return with_vectors(page, vectors)

    # ---- entities

    def _entities_of(self, tagger: str, texts: Sequence[str]) -> list[list[Entity] | None]:
        """Entities of each paragraph: as stored, else by the model at hand."""
        found = self._stored_entities(tagger, keys_of(texts))
        unknown = [number for number, entities in enumerate(found) if entities is None]
        if unknown and self.models is not None and self.models.has_tagger:
            tagged = self.models.entities_of([texts[number] for number in unknown])
            for number, entities in zip(unknown, tagged, strict=True):
                found[number] = entities
        return found

    def _cached_entities(
        self, document: CachedDocument, paragraphs: NDArray[np.int64]
    ) -> tuple[LabelledSpan, ...]:
        if self._tagger is None:
            return ()
        stored = self._stored_entities(self._tagger, document.keys("paragraph"))
        return _place_entities(paragraphs, stored)

    def _stored_entities(self, tagger: str, keys: NDArray[np.uint8]) -> list[list[Entity] | None]:
        """Entities of each paragraph (n, 16), None where the tagger never saw it."""
        found: list[list[Entity] | None] = [None] * len(keys)
        table = self._cache.reader.table(f"entities/{tagger}")
        rows = table.find(keys)
        known = rows >= 0
        if not known.any():
            return found
        whole, lengths = _read_entities(table, rows[known])
        end = 0
        for number, n in zip(np.flatnonzero(known).tolist(), lengths.tolist(), strict=True):
            found[number] = whole[end : end + n]
            end += n
        return found

    # ---- missing inputs

    def missing_inputs_of_documents(self, documents: Sequence[CachedDocument]) -> list[str]:
        """Which vectors and entities each stored document lacks; "" for none."""
        rows = [document.row for document in documents]
        stored = self._cache.stored_documents.table
        return missing_of_rows(self._cache.reader, stored, rows, self._tables)

    def missing_inputs_of_text(self, text: str) -> str:
        """Which vectors and entities a text will lack, because no model at hand gives them."""
        segments = segment(text)
        spans = {"sentence": segments.sentences, "paragraph": segments.paragraphs}
        can_tag = self.models is not None and self.models.has_tagger
        can_give = {"sentence": self._encode is not None, "paragraph": can_tag}
        parts = []
        for level, table in self._tables:
            keys = keys_of([text[a:b] for a, b in spans[level].tolist()])
            parts.append(
                b"" if can_give[level] else missing_of_keys(self._cache.reader, table, keys)
            )
        return join_missing(parts)

    @property
    def _tables(self) -> list[tuple[str, str]]:
        """(level, table): vectors by sentence, entities by paragraph."""
        tables = [("sentence", f"embeddings/{self._dictionary.name}")] if self._dictionary else []
        return tables + ([("paragraph", f"entities/{self._tagger}")] if self._tagger else [])


def _spans_of(document: CachedDocument) -> dict[str, NDArray[np.int64]]:
    """Spans (n, 2) by level; the text is cut again where the cache lacks sentences or words."""
    spans = {
        level: document.spans(level).astype(np.int64).reshape(-1, 2)
        for level in ("sentence", "paragraph", "word")
    }
    if len(spans["sentence"]) and len(spans["word"]):
        return spans
    cut = page_of_text(document.text)
    return {"sentence": cut.sentences, "paragraph": cut.paragraphs, "word": cut.words}


def _read_entities(
    table: TableReader, rows: NDArray[np.int64]
) -> tuple[list[Entity], NDArray[np.int64]]:
    """The entities of some rows, end to end, and their number in each row."""
    labels = json.loads(table.attributes["types"])
    spans, lengths = table.ragged_many("spans", rows)
    kinds, _ = table.ragged_many("labels", rows)
    scores, _ = table.ragged_many("scores", rows)
    columns = (
        np.asarray(spans).reshape(-1, 2).tolist(),
        np.asarray(kinds).tolist(),
        np.asarray(scores).tolist(),
    )
    whole = [(a, b, labels[kind], score) for (a, b), kind, score in zip(*columns, strict=True)]
    return whole, lengths


def _place_entities(
    paragraphs: NDArray[np.int64], found: Sequence[list[Entity] | None]
) -> tuple[LabelledSpan, ...]:
    """Entities of the paragraphs (n, 2) with offsets in the document."""
    return tuple(
        LabelledSpan(first + a, first + b, label, score)
        for first, entities in zip(paragraphs[:, 0].tolist(), found, strict=True)
        for a, b, label, score in entities or ()
    )
