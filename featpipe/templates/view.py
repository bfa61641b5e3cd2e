"""A document as extraction sees it: tokens, sentences, lines, labels and table headers by number.

Everything here is a function of the document alone, so it is made once per document whatever the
number of templates, and holds arrays instead of objects: candidates are spans of token numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from featpipe.documents import segment
from featpipe.features.words import Words
from featpipe.templates.edges import Edges, make_edges
from featpipe.templates.folding import compact, fold_width
from featpipe.templates.hashing import hash_of
from featpipe.templates.terms import Terms, make_terms
from featpipe.templates.values import find_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.templates.folding import Compact
    from featpipe.templates.values import FieldType, Found

    Ints = NDArray[np.int64]

#: One Chinese character, one Latin word, one run of digits, one mark, one line break: one token.
_token = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\n\t]|\S")
_LABEL_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """``text[start:end]`` was tagged ``label`` (an entity), or stands under it (a table header)."""

    start: int
    end: int
    label: str
    score: float = 1.0


@dataclass(frozen=True, eq=False)
class View:
    """One document, made ready for candidates.

    Shapes: ``sentences``, ``paragraphs``, ``words`` (n, 2) character spans; ``vectors``
    (n sentences, dim) float32 unit vectors, zero where unknown, or None without a cache.
    """

    id: str
    text: str
    sentences: Ints
    paragraphs: Ints
    words: Ints
    entities: tuple[Mark, ...] = ()
    headers: tuple[Mark, ...] = ()
    pages: tuple[tuple[int, int, int], ...] = ()
    """(number, start, end) of each page."""
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
        return _tokenise(self)

    @cached_property
    def edges(self) -> Edges:
        """Where values may begin and end."""
        return make_edges(self)

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

    def page_of(self, start: int) -> int | None:
        """Number of the page that holds a character, None without pages."""
        for number, first, last in self.pages:
            if first <= start < last:
                return number
        return None

    def sentence_of(self, start: int) -> int:
        """Number of the sentence that holds a character, or of the one before it."""
        at = int(np.searchsorted(self.sentences[:, 0], start, side="right")) - 1
        return max(at, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Arrays of length n_tokens; ``start``/``end`` are characters, the rest numbers or hashes."""

    start: Ints
    end: Ints
    code: Ints
    """Hash of the folded token; digits by their count, so that any year looks like a year."""
    is_mark: NDArray[np.bool_]
    """Neither letter nor digit: a place where names begin and end."""
    is_latin: NDArray[np.bool_]
    is_capital: NDArray[np.bool_]
    is_word_start: NDArray[np.bool_]
    label: Ints
    """Hash of what stands before the last colon of the line, or of the table header; 0 if none."""
    label_text: Mapping[int, str]
    """The words of each such hash."""
    line: Ints
    sentence: Ints
    heading: Ints
    """Hash of the last numbered or short line above."""

    def __len__(self) -> int:
        return len(self.start)


def view_text(text: str, *, name: str = "") -> View:
    """A text that is in no cache: cut here, without vectors and entities."""
    segments = segment(text)
    return View(
        name,
        text,
        segments.sentences.astype(np.int64),
        segments.paragraphs.astype(np.int64),
        _words().spans(text).astype(np.int64).reshape(-1, 2),
    )


@cache
def _words() -> Words:
    return Words()


def table_headers(text: str, tables: Sequence[Sequence[object]]) -> tuple[Mark, ...]:
    """The column header of every body cell of the tables as stored (start, end, cells)."""
    marks: list[Mark] = []
    for table in tables:
        cells = [tuple(map(int, cell)) for cell in table[2]]  # type: ignore[attr-defined]
        marks.extend(_headers_of(text, cells))
    return tuple(sorted(marks, key=lambda mark: mark.start))


def _headers_of(text: str, cells: Sequence[tuple[int, ...]]) -> list[Mark]:
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
            marks.append(Mark(start, end, label))
    return marks


def _tokenise(view: View) -> Tokens:
    spans = [(m.start(), m.end()) for m in _token.finditer(view.folded)]
    start = np.array([a for a, _ in spans], np.int64)
    end = np.array([b for _, b in spans], np.int64)
    words = [view.folded[a:b] for a, b in spans]
    code = np.array([_code(word) for word in words], np.int64)
    latin = np.array([word[0].isascii() and word[0].isalpha() for word in words], bool)
    capital = np.array([view.text[a].isupper() for a, _ in spans], bool)
    marks = np.array([not word[0].isalnum() for word in words], bool)
    breaks = np.array([word == "\n" for word in words], bool)
    labels, label_text = _labels(view, words, start)
    sentence = np.searchsorted(view.sentences[:, 0], start, side="right") - 1
    return Tokens(
        start=start,
        end=end,
        code=code,
        is_mark=marks,
        is_latin=latin,
        is_capital=capital,
        is_word_start=_word_starts(view, start, marks | latin),
        label=labels,
        label_text=label_text,
        line=np.cumsum(breaks),
        sentence=np.maximum(sentence, 0),
        heading=_headings(words, breaks),
    )


def _word_starts(view: View, start: Ints, plain: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where words begin: marks, Latin words and what follows them always; else as they are cut."""
    starts = np.isin(start, view.words[:, 0])
    behind = np.concatenate(([True], plain[:-1]))
    return starts | plain | behind


def _code(word: str) -> int:
    return _digits_code[min(len(word), 9)] if word[0].isdigit() else hash_of(word)


_digits_code = [hash_of(f"digits {n}") for n in range(10)]
_label_marks = frozenset("。;!?\n\t:,")


def _labels(view: View, words: Sequence[str], start: Ints) -> tuple[Ints, dict[int, str]]:
    """Per token the label it stands behind: the words before a colon, or a table header."""
    labels = np.zeros(len(words), np.int64)
    texts: dict[int, str] = {}
    current, number, since, first_at = "", 0, 0, 0
    for at, word in enumerate(words):
        if word not in _label_marks:
            continue
        labels[first_at:at] = number
        first_at = at
        if word == ":":
            current = _before_colon("".join(words[max(since, at - _LABEL_TOKENS) : at]))
            number = hash_of(current) if current else 0
            texts[number] = current
        elif word != ",":
            number = 0
        since = at + 1
    labels[first_at:] = number
    for mark in view.headers:
        first, last = np.searchsorted(start, (mark.start, mark.end))
        label = fold_width(mark.label)[-24:]
        own = labels[first:last]
        own[own == 0] = hash_of(label)
        texts[hash_of(label)] = label
    return labels, texts


def _before_colon(words: str) -> str:
    """What of them is the label: nothing before a mark."""
    return re.sub(r".*[,、\]()》\"]", "", words)


def _headings(words: Sequence[str], breaks: NDArray[np.bool_]) -> Ints:
    """Per token a hash of the last line above that is short and ends without a stop."""
    headings = np.zeros(len(words), np.int64)
    current, first = 0, 0
    for at in [*np.flatnonzero(breaks).tolist(), len(words)]:
        headings[first:at] = current
        line = words[first:at]
        if 2 <= len(line) <= 16 and line[-1] not in "。;,:":
            kept = [word for word in line if word.isalpha()][-6:]
            current = hash_of("".join(kept))
        first = at
    return headings


def with_vectors(view: View, vectors: NDArray[np.generic]) -> View:
    """The same view with the vectors of its sentences, made unit length."""
    whole = np.asarray(vectors, np.float32)
    norms = np.linalg.norm(whole, axis=1, keepdims=True)
    return replace(view, vectors=whole / np.maximum(norms, 1e-9))
