"""The document as scoring sees it: text, spans, entities, table headers and sentence vectors.

A page holds data only. :mod:`featpipe.extraction.scoring.features` derives the rest from it.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from featpipe.documents import segment
from featpipe.extraction.tables.table_headers import table_headers
from featpipe.lexical.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.documents import Document
    from featpipe.extraction.tables.labelled_span import LabelledSpan
    from featpipe.extraction.tables.table_headers import Table

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One document, however many pages it has in print.

    Shapes: ``sentences``, ``paragraphs``, ``words`` (n, 2) character spans; ``vectors``
    (n sentences, dim) float32 unit vectors, zero where unknown, or None without a cache.
    """

    id: str
    text: str
    sentences: Ints
    paragraphs: Ints
    words: Ints
    entities: tuple[LabelledSpan, ...] = ()
    headers: tuple[LabelledSpan, ...] = ()
    """Body cells of tables (:mod:`featpipe.extraction.tables.table_headers`)."""
    printed_pages: tuple[tuple[int, int, int], ...] = ()
    """(number, start, end) of each printed page."""
    vectors: NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        return f"Page({self.id!r}, {len(self.text)} characters, {len(self.sentences)} sentences)"

    def printed_page_at(self, start: int) -> int | None:
        """Number of the printed page that holds a character, None without printed pages."""
        for number, first, last in self.printed_pages:
            if first <= start < last:
                return number
        return None

    def sentence_of(self, start: int) -> int:
        """Number of the sentence that holds a character, or of the one before it."""
        at = int(np.searchsorted(self.sentences[:, 0], start, side="right")) - 1
        return max(at, 0)


def page_of_text(text: str, *, name: str = "", tables: Sequence[Table] = ()) -> Page:
    """A text that is in no cache, segmented here; it has neither vectors nor entities."""
    segments = segment(text)
    return Page(
        name,
        text,
        segments.sentences.astype(np.int64),
        segments.paragraphs.astype(np.int64),
        _words().spans(text).astype(np.int64).reshape(-1, 2),
        headers=table_headers(text, tables),
    )


def page_of_document(document: Document) -> Page:
    """A loaded document that is in no cache, likewise, with its tables and printed pages."""
    tables = [astuple(table) for table in document.tables]
    page = page_of_text(document.text, name=document.source, tables=tables)
    return replace(page, printed_pages=tuple((p.number, p.start, p.end) for p in document.pages))


@cache
def _words() -> Words:
    return Words()


def with_vectors(page: Page, vectors: NDArray[np.generic]) -> Page:
    """The page with the vectors of its sentences (n sentences, dim), scaled to unit length."""
    whole = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(whole, axis=1, keepdims=True)
    return replace(page, vectors=whole / np.maximum(norms, 1e-9))
