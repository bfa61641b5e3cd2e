"""Page source: documents made ready for extraction, with the vectors and entities of one cache.

Guarantees: a cached document is read back, and no model is ever asked about it; of any other text
only what the cache lacks is computed, by the models that filled the cache.
"""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.documents import hash_bytes, segment
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import (
    LabelledSpan,
    Page,
    page_of_text,
    table_headers,
    with_vectors,
)
from featpipe.lru import LRU
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.documents import Document
    from featpipe.on_demand.messages import Entity, TextFeatures
    from featpipe.on_demand.space import Checkpoints
    from featpipe.store import Reader, TableReader

    #: Texts -> vectors (n, dim).
    Encode = Callable[[Sequence[str]], NDArray[np.generic]]
    #: (checkpoints, cache, space, tagger) -> the models: in a worker process, or in this one.
    OpenModels = Callable[[Checkpoints, Cache, str | None, str | None], TextFeatures]

#: Characters of the pages that are kept: some hundred MB at the most.
_MOST_KEPT = 2_000_000
#: Documents looked at together: their keys take some MB.
_BLOCK = 1024


class PageSource:
    """Makes pages. Any thread may call.

    Args:
        cache: opened.
        space: name of the space; may be left out when there is at most one.
        encode: texts -> vectors (n, dim) of the same space, for texts the cache does not hold.
        checkpoints: models for the same, loaded at the first such text, entities included.
        open_models: where the models are loaded.

    """

    def __init__(
        self,
        cache: Cache,
        space: str | None,
        encode: Encode | None,
        checkpoints: Checkpoints | None,
        open_models: OpenModels,
    ) -> None:
        self._cache = cache
        self.n_encoded = 0
        """Sentences that were given to an encoder."""
        self._kept: LRU[tuple[object, ...], PageFeatures] = LRU(
            _MOST_KEPT, lambda features: len(features.page.text)
        )
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

    # ---- pages

    def page_of_cached(self, document: CachedDocument) -> PageFeatures:
        """A stored document. The last ones are kept in memory."""
        state = self._state_of(document)
        features = self._kept.get(state)
        if features is None:
            features = PageFeatures(self._make_page(document))
            self._kept.put(state, features)
        return features

    def page_of_document(self, document: Document) -> PageFeatures:
        """A loaded document that is not in the cache."""
        cut = page_of_text(document.text, name=document.source)
        page = replace(
            cut,
            headers=table_headers(document.text, [astuple(table) for table in document.tables]),
            printed_pages=tuple((p.number, p.start, p.end) for p in document.pages),
        )
        return self._complete(page)

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
        spans = {
            level: document.spans(level).astype(np.int64).reshape(-1, 2)
            for level in ("sentence", "paragraph", "word")
        }
        if not len(spans["sentence"]) or not len(spans["word"]):
            cut = page_of_text(text)
            spans = {"sentence": cut.sentences, "paragraph": cut.paragraphs, "word": cut.words}
        entities: tuple[LabelledSpan, ...] = ()
        if self._tagger is not None:
            stored = self._stored_entities(self._tagger, document.keys("paragraph"))
            entities = _place_entities(spans["paragraph"], stored)
        page = Page(
            document.id,
            text,
            spans["sentence"],
            spans["paragraph"],
            spans["word"],
            entities,
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

    def _stored_entities(self, tagger: str, keys: NDArray[np.uint8]) -> list[list[Entity] | None]:
        """Entities of each paragraph (n, 16), None where the tagger never saw it."""
        found: list[list[Entity] | None] = [None] * len(keys)
        table = self._cache.reader.table(f"entities/{tagger}")
        labels = json.loads(table.attributes["types"])
        rows = table.find(keys)
        known = rows >= 0
        if not known.any():
            return found
        spans, lengths = table.ragged_many("spans", rows[known])
        kinds, _ = table.ragged_many("labels", rows[known])
        scores, _ = table.ragged_many("scores", rows[known])
        whole = [
            (a, b, labels[kind], score)
            for (a, b), kind, score in zip(
                np.asarray(spans).reshape(-1, 2).tolist(),
                np.asarray(kinds).tolist(),
                np.asarray(scores).tolist(),
                strict=True,
            )
        ]
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
        return missing_inputs_of_rows(self._cache.reader, stored, rows, self._tables)

    def missing_inputs_of_text(self, text: str) -> str:
        """Which vectors and entities a text will lack, because no model at hand gives them."""
        segments = segment(text)
        spans = {"sentence": segments.sentences, "paragraph": segments.paragraphs}
        can_tag = self.models is not None and self.models.has_tagger
        can_give = {"sentence": self._encode is not None, "paragraph": can_tag}
        parts = []
        for level, table in self._tables:
            keys = keys_of([text[a:b] for a, b in spans[level].tolist()])
            parts.append(b"" if can_give[level] else _missing(self._cache.reader, table, keys))
        return _joined(parts)

    @property
    def _tables(self) -> list[tuple[str, str]]:
        """(level, table): vectors by sentence, entities by paragraph."""
        tables = [("sentence", f"embeddings/{self._dictionary.name}")] if self._dictionary else []
        return tables + ([("paragraph", f"entities/{self._tagger}")] if self._tagger else [])


def _place_entities(
    paragraphs: NDArray[np.int64], found: Sequence[list[Entity] | None]
) -> tuple[LabelledSpan, ...]:
    """Entities of the paragraphs (n, 2) with offsets in the document."""
    return tuple(
        LabelledSpan(first + a, first + b, label, score)
        for first, entities in zip(paragraphs[:, 0].tolist(), found, strict=True)
        for a, b, label, score in entities or ()
    )


# Missing inputs: which sentences of a document have no vector yet, and which paragraphs no
# entities. An unfinished build leaves some out, and the next one fills them in. Results and fitted
# fields are also known by what was missing, so that they are never taken for those of all inputs.


def missing_inputs_of_rows(
    reader: Reader, documents: TableReader, rows: Sequence[int], tables: Sequence[tuple[str, str]]
) -> list[str]:
    """One string for each stored document; "" where nothing is missing.

    Args:
        reader: of the cache.
        documents: its table of documents.
        rows: of the documents in it.
        tables: (level, table) of the inputs that belong to the units of a level.

    """
    found: list[str] = []
    for start in range(0, len(rows), _BLOCK):
        some = np.asarray(rows[start : start + _BLOCK], np.int64)
        whole = [list(_of_level(reader, documents, some, *one)) for one in tables]
        found.extend(_joined(parts) for parts in zip(*whole, strict=True))
    return found or [""] * len(rows)


def _of_level(
    reader: Reader, documents: TableReader, rows: NDArray[np.int64], level: str, table: str
) -> Iterator[bytes]:
    keys, lengths = documents.ragged_many(f"{level}_keys", rows)
    is_there = reader.table(table).find(keys) >= 0
    ends = np.cumsum(lengths).tolist()
    for end, n in zip(ends, lengths.tolist(), strict=True):
        yield _spelled(is_there[end - n : end])


def _missing(reader: Reader, table: str, keys: NDArray[np.uint8]) -> bytes:
    """Which of some units (n, 16) a table lacks; empty when it has them all."""
    return _spelled(reader.table(table).find(keys) >= 0)


def _spelled(is_there: NDArray[np.bool_]) -> bytes:
    if is_there.all():
        return b""
    return len(is_there).to_bytes(8, "little") + np.packbits(is_there).tobytes()


def _joined(parts: Sequence[bytes]) -> str:
    """What several tables lack as one short string."""
    if not any(parts):
        return ""
    return hash_bytes(b"".join(len(part).to_bytes(8, "little") + part for part in parts))
