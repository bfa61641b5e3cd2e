"""A document as extraction sees it: tokens, sentences, lines, labels and table headers by number.

Everything here is a function of the document alone, so it is made once per document whatever the
number of templates, and holds arrays instead of objects: candidates are spans of token numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.documents import segment
from featpipe.extraction.scoring.context import Surroundings, make_surroundings
from featpipe.extraction.scoring.edges import Edges, make_edges
from featpipe.extraction.scoring.similarity import Terms, letter_sums, make_terms
from featpipe.extraction.scoring.tokens import Tokens, make_tokens
from featpipe.extraction.values.text import compact, fold_width
from featpipe.extraction.values.values import find_values
from featpipe.lexical.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.values.text import Compact
    from featpipe.extraction.values.values import FieldType, Found

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LabelledSpan:
    """``text[start:end]`` was tagged ``label`` (an entity), or stands under it (a table header)."""

    start: int
    end: int
    label: str
    score: float = 1.0


@dataclass(frozen=True, eq=False)
class Page:
    """One document, made ready for candidates.

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
    printed_pages: tuple[tuple[int, int, int], ...] = ()
    """(number, start, end) of each printed page."""
    vectors: NDArray[np.float32] | None = field(default=None, repr=False)

    @cached_property
    def folded(self) -> str:
        """As long as ``text``; typed patterns run on it."""
        return fold_width(self.text)

    @cached_property
    def compact(self) -> Compact:
        """Without blanks and separators, for finding names however they are spaced."""
        return compact(self.text)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens with what stands around them."""
        return make_tokens(self)

    @cached_property
    def letters(self) -> tuple[Ints, ...]:
        """Running counts of kinds of characters."""
        return letter_sums(self.text)

    @cached_property
    def edges(self) -> Edges:
        """Where values may begin and end."""
        return make_edges(self)

    @cached_property
    def surroundings(self) -> Surroundings:
        """What stands at and around each token."""
        return make_surroundings(self)

    @cached_property
    def repeats(self) -> dict[str, tuple[float, bool, bool]]:
        """What was found out about how folded texts are repeated; filled as they are met."""
        return {}

    @cached_property
    def _finds(self) -> dict[FieldType, list[Found]]:
        return {}

    def find(self, kind: FieldType) -> list[Found]:
        """Everything with the shape of a type, in order."""
        if kind not in self._finds:
            self._finds[kind] = list(find_values(self.folded, kind))
        return self._finds[kind]

    @cached_property
    def terms(self) -> Terms:
        """Its word pairs by sentence, for BM25."""
        return make_terms(self)

    def printed_page_at(self, start: int) -> int | None:
        """Number of the page that holds a character, None without printed pages."""
        for number, first, last in self.printed_pages:
            if first <= start < last:
                return number
        return None

    def sentence_of(self, start: int) -> int:
        """Number of the sentence that holds a character, or of the one before it."""
        at = int(np.searchsorted(self.sentences[:, 0], start, side="right")) - 1
        return max(at, 0)


def page_of_text(text: str, *, name: str = "") -> Page:
    """A text that is in no cache: cut here, without vectors and entities."""
    segments = segment(text)
    return Page(
        name,
        text,
        segments.sentences.astype(np.int64),
        segments.paragraphs.astype(np.int64),
        _words().spans(text).astype(np.int64).reshape(-1, 2),
    )


@cache
def _words() -> Words:
    return Words()


def table_headers(text: str, tables: Sequence[Sequence[object]]) -> tuple[LabelledSpan, ...]:
    """The column header of every body cell of the tables as stored (start, end, cells)."""
    marks: list[LabelledSpan] = []
    for table in tables:
        cells = [tuple(map(int, cell)) for cell in table[2]]  # type: ignore[attr-defined]
        marks.extend(_headers_of(text, cells))
    return tuple(sorted(marks, key=lambda mark: mark.start))


def _headers_of(text: str, cells: Sequence[tuple[int, ...]]) -> list[LabelledSpan]:
    """First row as header of the rows below; two columns alone are labels and values."""
    rows = {cell[0] for cell in cells}
    columns = {cell[1] for cell in cells}
    top: dict[int, str] = {}
    left: dict[int, str] = {}
    for row, column, start, end, _, wide in cells:
        if row == min(rows, default=0):
            for at in range(column, column + wide):
                top[at] = text[start:end].strip()
        if column == min(columns, default=0):
            left[row] = text[start:end].strip()
    is_pairs = len(columns) == 2
    marks = []
    for row, column, start, end, *_ in cells:
        label = left.get(row, "") if is_pairs else top.get(column, "")
        is_head = column == min(columns) if is_pairs else row == min(rows)
        if end > start and label and not is_head:
            marks.append(LabelledSpan(start, end, label))
    return marks


def with_vectors(page: Page, vectors: NDArray[np.generic]) -> Page:
    """The same page with the vectors of its sentences, made unit length."""
    whole = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(whole, axis=1, keepdims=True)
    return replace(page, vectors=whole / np.maximum(norms, 1e-9))
