"""Pages of cached documents: units, vectors, entities and tables read back, nothing computed."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.documents import hash_bytes, segment
from featpipe.encoders.spec import fingerprint_of
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import (
    LabelledSpan,
    Page,
    page_of_text,
    table_headers,
    with_vectors,
)
from featpipe.on_demand.live import Live
from featpipe.store import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.store import Reader, TableReader

# Gaps: which sentences of a document have no vector yet, and which paragraphs no entities.
#
# An unfinished build leaves gaps, and the next one fills them. What was extracted or learned from a
# document with gaps is therefore known by them too, so that it is never taken for what the whole
# evidence gives.


#: Documents looked at together: their keys take some MB.
_BLOCK = 1024


def gaps_of_rows(
    reader: Reader, documents: TableReader, rows: Sequence[int], evidence: Sequence[tuple[str, str]]
) -> list[str]:
    """One string for each stored document; "" where nothing is missing.

    Args:
        reader: of the cache.
        documents: its table of documents.
        rows: of the documents in it.
        evidence: (level, table) of what belongs to the units of a level.

    """
    found: list[str] = []
    for start in range(0, len(rows), _BLOCK):
        some = np.asarray(rows[start : start + _BLOCK], np.int64)
        whole = [list(_of_level(reader, documents, some, *one)) for one in evidence]
        found.extend(join_gaps(parts) for parts in zip(*whole, strict=True))
    return found or [""] * len(rows)


def gaps_of_keys(reader: Reader, table: str, keys: NDArray[np.uint8]) -> bytes:
    """Which of some units (n, 16) a table lacks; empty when it has them all."""
    return _spell(reader.table(table).find(keys) >= 0)


def join_gaps(parts: Sequence[bytes]) -> str:
    """The gaps of several tables as one short string."""
    if not any(parts):
        return ""
    return hash_bytes(b"".join(len(part).to_bytes(8, "little") + part for part in parts))


def _of_level(
    reader: Reader, documents: TableReader, rows: NDArray[np.int64], level: str, table: str
) -> Iterator[bytes]:
    keys, lengths = documents.ragged_many(f"{level}_keys", rows)
    is_there = reader.table(table).find(keys) >= 0
    ends = np.cumsum(lengths).tolist()
    for end, n in zip(ends, lengths.tolist(), strict=True):
        yield _spell(is_there[end - n : end])


def _spell(is_there: NDArray[np.bool_]) -> bytes:
    if is_there.all():
        return b""
    return len(is_there).to_bytes(8, "little") + np.packbits(is_there).tobytes()


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.documents import Document
    from featpipe.on_demand.live import Checkpoints

    Encode = Callable[[Sequence[str]], NDArray[np.generic]]


#: Characters of the pages that are kept: some hundred MB at the most.
_MOST_KEPT = 2_000_000


class Evidence:
    """Vectors and entities of one cache, as far as it has them.

    Args:
        cache: opened.
        space: name of the space; may be left out when there is at most one.
        encode: texts -> vectors (n, dim) of the same space, for texts the cache does not hold;
            without it such texts have no vector. ``n_encoded`` counts the texts it was given.
        checkpoints: the same by models loaded here when first needed, entities included.

    """

    def __init__(
        self,
        cache: Cache,
        space: str | None = None,
        encode: Encode | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._cache = cache
        self.n_encoded = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], PageFeatures] = OrderedDict()
        self._n_kept = 0
        self._dictionary: Dictionary | None = None
        if space is not None or cache.spaces():
            self._dictionary = cache.dictionary(space)
        taggers = cache.stored_documents.taggers()
        self._tagger = taggers[0] if len(taggers) == 1 else None
        self._live = self._make_live(checkpoints) if checkpoints is not None else None
        self._encode = encode
        if encode is None and self._live is not None and self._live.has_encoder:
            self._encode = self._live.encode

    def _make_live(self, checkpoints: Checkpoints) -> Live:
        """Models that must have the fingerprints of what is stored."""
        space = fingerprint_of(self._dictionary.spec) if self._dictionary is not None else None
        tagger = None
        if self._tagger is not None:
            attributes = self._cache.reader.table(f"entities/{self._tagger}").attributes
            tagger = attributes["fingerprint"]
        return Live(checkpoints, space, tagger)

    @property
    def name(self) -> str:
        """What results depend on: space and tagger."""
        return f"{self._dictionary.name if self._dictionary else ''}+{self._tagger or ''}"

    def page_of_cached(self, document: CachedDocument) -> PageFeatures:
        """A stored document; no encoder is ever called for it. The last ones are kept."""
        state = self._state_of(document)
        with self._lock:
            features = self._kept.get(state)
            if features is not None:
                self._kept.move_to_end(state)
                return features
        features = PageFeatures(self._make_page(document))
        with self._lock:
            if state not in self._kept:
                self._kept[state] = features
                self._n_kept += len(features.page.text)
            while self._n_kept > _MOST_KEPT and len(self._kept) > 1:
                self._n_kept -= len(self._kept.popitem(last=False)[1].page.text)
        return features

    def _state_of(self, document: CachedDocument) -> tuple[object, ...]:
        """Content, name, and how much evidence is stored: a running build may add to it."""
        reader = self._cache.reader
        return (
            document.key,
            document.id,
            *(reader.table(table).n_rows for _, table in self._tables),
        )

    def _make_page(self, document: CachedDocument) -> Page:
        meta: dict[str, Any] = document.meta
        text = document.text
        spans = {
            level: document.spans(level).astype(np.int64).reshape(-1, 2)
            for level in ("sentence", "paragraph", "word")
        }
        if not len(spans["sentence"]) or not len(spans["word"]):
            cut = page_of_text(text)
            spans = {"sentence": cut.sentences, "paragraph": cut.paragraphs, "word": cut.words}
        page = Page(
            document.id,
            text,
            spans["sentence"],
            spans["paragraph"],
            spans["word"],
            self._entities(text, spans["paragraph"], document.keys("paragraph")),
            table_headers(text, meta.get("tables") or ()),
            tuple((int(p[0]), int(p[1]), int(p[2])) for p in meta.get("pages") or ()),
        )
        return self._with_vectors(page, may_encode=False)

    def gaps_of_documents(self, documents: Sequence[CachedDocument]) -> list[str]:
        """What each stored document lacks of the evidence that this cache has; "" for nothing."""
        rows = [document.row for document in documents]
        return gaps_of_rows(
            self._cache.reader, self._cache.stored_documents.table, rows, self._tables
        )

    def gaps_of_text(self, text: str) -> str:
        """What a text that is made ready now will lack: what no model at hand can give it."""
        segments = segment(text)
        spans = {"sentence": segments.sentences, "paragraph": segments.paragraphs}
        can_tag = self._live is not None and self._live.has_tagger
        is_live = {"sentence": self._encode is not None, "paragraph": can_tag}
        parts = []
        for level, table in self._tables:
            keys = keys_of([text[a:b] for a, b in spans[level].tolist()])
            parts.append(b"" if is_live[level] else gaps_of_keys(self._cache.reader, table, keys))
        return join_gaps(parts)

    @property
    def _tables(self) -> list[tuple[str, str]]:
        """(level, table) of the evidence: vectors by sentence, entities by paragraph."""
        tables = [("sentence", f"embeddings/{self._dictionary.name}")] if self._dictionary else []
        return tables + ([("paragraph", f"entities/{self._tagger}")] if self._tagger else [])

    def page_of_document(self, document: Document) -> PageFeatures:
        """A loaded document that is not in the cache."""
        from dataclasses import astuple, replace

        cut = page_of_text(document.text, name=document.source)
        page = replace(
            cut,
            entities=self._entities(document.text, cut.paragraphs),
            headers=table_headers(document.text, [astuple(table) for table in document.tables]),
            printed_pages=tuple((p.number, p.start, p.end) for p in document.pages),
        )
        return PageFeatures(self._with_vectors(page, may_encode=True))

    def page_of_text(self, text: str, name: str = "") -> PageFeatures:
        """A bare text."""
        from dataclasses import replace

        cut = page_of_text(text, name=name)
        page = replace(cut, entities=self._entities(text, cut.paragraphs))
        return PageFeatures(self._with_vectors(page, may_encode=True))

    def _entities(
        self, text: str, paragraphs: NDArray[np.int64], keys: NDArray[np.uint8] | None = None
    ) -> tuple[LabelledSpan, ...]:
        """Entities of every paragraph (n, 2): as stored, else by the tagger at hand.

        ``keys`` (n, 16) of the paragraphs' texts are given for stored documents, of which nothing
        is ever computed.
        """
        if self._tagger is None or not len(paragraphs):
            return ()
        texts = [text[a:b] for a, b in paragraphs.tolist()] if keys is None else []
        stored = self._stored_entities(keys_of(texts) if keys is None else keys)
        unknown = [number for number, found in enumerate(stored) if found is None]
        if keys is None and unknown and self._live is not None and self._live.has_tagger:
            tagged = self._live.tag([texts[number] for number in unknown])
            for number, found in zip(unknown, tagged, strict=True):
                stored[number] = found
        return tuple(
            LabelledSpan(first + a, first + b, label, score)
            for first, found in zip(paragraphs[:, 0].tolist(), stored, strict=True)
            for a, b, label, score in found or ()
        )

    def _stored_entities(
        self, keys: NDArray[np.uint8]
    ) -> list[list[tuple[int, int, str, float]] | None]:
        """Per paragraph its entities, None where the tagger never saw it."""
        table = self._cache.reader.table(f"entities/{self._tagger}")
        labels = json.loads(table.attributes["types"])
        rows = table.find(keys)
        known = rows >= 0
        found: list[list[tuple[int, int, str, float]] | None] = [None] * len(keys)
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

    def _with_vectors(self, page: Page, *, may_encode: bool) -> Page:
        if self._dictionary is None or not len(page.sentences):
            return page
        texts = [page.text[a:b] for a, b in page.sentences.tolist()]
        vectors, found = self._dictionary.lookup(texts)
        vectors = np.asarray(vectors, np.float32)
        if may_encode and self._encode is not None and not found.all():
            missing = [text for text, known in zip(texts, found.tolist(), strict=True) if not known]
            vectors[~found] = np.asarray(self._encode(missing), np.float32)
            self.n_encoded += len(missing)
        return with_vectors(page, vectors)
