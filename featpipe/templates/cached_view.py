"""Views of cached documents: units, vectors, entities and tables read back, nothing computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import UnknownSpace
from featpipe.templates.view import Mark, View, table_headers, view_text, with_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from featpipe.documents import Document
    from featpipe.pipeline.corpus import CachedDocument
    from featpipe.pipeline.lookup import Cache, Dictionary

    Encode = Callable[[Sequence[str]], NDArray[np.generic]]


class Evidence:
    """Vectors and entities of one cache, as far as it has them.

    Args:
        cache: opened.
        space: name of the space; may be left out when there is at most one.
        encode: texts -> vectors (n, dim) of the same space, for texts the cache does not hold;
            without it such texts have no vector. ``n_encoded`` counts the texts it was given.

    """

    def __init__(
        self, cache: Cache, space: str | None = None, encode: Encode | None = None
    ) -> None:
        self._cache = cache
        self._encode = encode
        self.n_encoded = 0
        self._dictionary: Dictionary | None = None
        if space is not None or cache.spaces():
            self._dictionary = cache.dictionary(space)
        taggers = cache.corpus.taggers()
        self._tagger = taggers[0] if len(taggers) == 1 else None

    @property
    def name(self) -> str:
        """What results depend on: space and tagger."""
        return f"{self._dictionary.name if self._dictionary else ''}+{self._tagger or ''}"

    def view_cached(self, document: CachedDocument) -> View:
        """A stored document; no encoder is ever called for it."""
        meta: dict[str, Any] = document.meta
        text = document.text
        spans = {
            level: document.spans(level).astype(np.int64).reshape(-1, 2)
            for level in ("sentence", "paragraph", "word")
        }
        if not len(spans["sentence"]) or not len(spans["word"]):
            cut = view_text(text)
            spans = {"sentence": cut.sentences, "paragraph": cut.paragraphs, "word": cut.words}
        view = View(
            document.id,
            text,
            spans["sentence"],
            spans["paragraph"],
            spans["word"],
            self._entities_of(document),
            table_headers(text, meta.get("tables") or ()),
            tuple((int(p[0]), int(p[1]), int(p[2])) for p in meta.get("pages") or ()),
        )
        return self._with_vectors(view, may_encode=False)

    def view_document(self, document: Document) -> View:
        """A loaded document that is not in the cache."""
        from dataclasses import astuple, replace

        view = replace(
            view_text(document.text, name=document.source),
            headers=table_headers(document.text, [astuple(table) for table in document.tables]),
            pages=tuple((page.number, page.start, page.end) for page in document.pages),
        )
        return self._with_vectors(view, may_encode=True)

    def view_text(self, text: str, name: str = "") -> View:
        """A bare text."""
        return self._with_vectors(view_text(text, name=name), may_encode=True)

    def _entities_of(self, document: CachedDocument) -> tuple[Mark, ...]:
        if self._tagger is None:
            return ()
        try:
            found = document.entities(self._tagger)
        except UnknownSpace:
            return ()
        return tuple(Mark(e.start, e.end, e.label, e.score) for e in found)

    def _with_vectors(self, view: View, *, may_encode: bool) -> View:
        if self._dictionary is None or not len(view.sentences):
            return view
        texts = [view.text[a:b] for a, b in view.sentences.tolist()]
        vectors, found = self._dictionary.lookup(texts)
        vectors = np.asarray(vectors, np.float32)
        if may_encode and self._encode is not None and not found.all():
            missing = [text for text, known in zip(texts, found.tolist(), strict=True) if not known]
            vectors[~found] = np.asarray(self._encode(missing), np.float32)
            self.n_encoded += len(missing)
        return with_vectors(view, vectors)
