"""Candidates: every span of a document that might be a value of a field, as token numbers.

Four sources, all of them generic: shapes (money, dates ...), boundaries (marks, closed-class words,
and the neighbours of sample values), units (sentences, paragraphs, table cells) and entities. What
is learned from the samples is which boundaries they have and how long they are; nothing is written
for one template.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.edges import (
    CLOSING_BRACKET,
    OPENING_BRACKET,
    edges_of,
    token_spans,
)
from featpipe.extraction.scoring.hashing import is_in, pair_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import Level
    from featpipe.extraction.values.values import FieldType

    Ints = NDArray[np.int64]

#: Bits of ``Candidates.origin``.
SHAPE, GRID, UNIT, ENTITY, KNOWN, CELL, CLAUSE = (1 << n for n in range(7))
ORIGINS = ("shape", "boundaries", "unit", "entity", "known value", "cell", "clause")

#: Types whose values have a shape that can be found without any sample.
SHAPED: frozenset[str] = frozenset(
    ("money", "number", "percent", "date", "period", "phone", "email", "id")
)

_MAX_PAIRS_PER_START = 32
_MAX_PAIRS_PER_END = 40
_MAX_CLAUSES_PER_START = 16

#: In a document this short every word may begin or end a value; in longer ones that is too many.
_SHORT_DOCUMENT = 400

#: Beyond this many tokens only so many sentences are searched by boundaries.
_LONG_DOCUMENT = 8000
_OPEN_SENTENCES = 60
_OPEN_SENTENCES_FIRST = 20


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Shapes: (n,) each. ``first``/``last`` are token numbers, half-open; ``origin`` bits."""

    first: Ints
    last: Ints
    origin: Ints

    def __len__(self) -> int:
        return len(self.first)

    @property
    def codes(self) -> Ints:
        """One number per span, ascending."""
        return self.first << 32 | self.last

    def take(self, number: int) -> Candidates:
        """One of them alone."""
        one = slice(number, number + 1)
        return Candidates(self.first[one], self.last[one], self.origin[one])

    @classmethod
    def gathered(cls, parts: Iterable[tuple[Ints, Ints, int]]) -> Candidates:
        """Each distinct span once, with the bits of all its sources; ordered by place."""
        parts = [part for part in parts if len(part[0])]
        if not parts:
            none = np.empty(0, np.int64)
            return cls(none, none, none)
        spans = np.concatenate([first << 32 | last for first, last, _ in parts])
        bits = np.concatenate([np.full(len(first), bit) for first, _, bit in parts])
        distinct, inverse = np.unique(spans, return_inverse=True)
        origin = np.zeros(len(distinct), np.int64)
        np.bitwise_or.at(origin, inverse, bits)
        return cls(distinct >> 32, distinct & 0xFFFFFFFF, origin)


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """What the samples show of a field's values: neighbours, first and last words, lengths."""

    kind: FieldType
    before: Ints = field(default_factory=_nothing)
    """Hashes of the token before a value, and of the pair before it; all of these ascending."""
    behind: Ints = field(default_factory=_nothing)
    starts: Ints = field(default_factory=_nothing)
    ends: Ints = field(default_factory=_nothing)
    """Hashes of the last pair of tokens of a value."""
    strong_ends: Ints = field(default_factory=_nothing)
    """Those of ``ends`` that end a good part of the values: any word before may begin one."""
    shortest: int = 1
    longest: int = 40
    most_marks: int = 2
    most_breaks: int = 0
    """Line breaks inside a value."""
    known: frozenset[str] = field(default_factory=frozenset)
    """Folded sample values: the same value may well be met again."""
    uses_grid: bool = True
    uses_units: bool = False
    pattern: str | None = None
    """Regular expression that says what the values look like, instead of all the rest."""
    level: Level | None = None

    def propose(self, page: Page, likeness: NDArray[np.float64] | None = None) -> Candidates:
        """Every candidate of one document.

        Args:
            page: the document.
            likeness: (n_sentences,) of its sentences to those of the samples; in a long document
                only the likest are searched by boundaries, the others by shape and entity alone.

        """
        if not len(page.tokens):
            return Candidates.gathered([])
        if self.pattern is not None:
            spans = [m.span() for m in re.finditer(self.pattern, page.text) if m[0].strip()]
            return Candidates.gathered([(*token_spans(page, spans), SHAPE)])
        if self.level in {"sentence", "paragraph"}:
            whole = page.sentences if self.level == "sentence" else page.paragraphs
            return Candidates.gathered([(*token_spans(page, whole), UNIT)])
        return self._from_all_sources(page, _open_tokens(page, likeness))

    def _from_all_sources(self, page: Page, is_open: NDArray[np.bool_]) -> Candidates:
        parts: list[tuple[Ints, Ints, int]] = []
        if self.kind in SHAPED:
            spans = [(f.start, f.end) for f in page.find(self.kind)]
            parts.append((*token_spans(page, spans), SHAPE))
        if self.uses_grid:
            parts.append((*self._grid(page, is_open), GRID))
        if self.uses_units or self.kind == "clause":
            parts.append((*_units(page), UNIT))
            parts.append((*self._clauses(page, is_open), CLAUSE))
        edges = edges_of(page)
        parts.append((*edges.entities, ENTITY))
        if self.kind not in SHAPED:
            parts.append((*edges.cells, CELL))
        spans = [span for known in self.known for span in page.compact.find_all(known, 8)]
        parts.append((*token_spans(page, spans), KNOWN))
        return Candidates.gathered(parts)

    def _clauses(self, page: Page, is_open: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Runs of clauses: from behind a stop or number to a stop, one sentence or several."""
        edges = edges_of(page)
        starts, ends = edges.clause_starts, edges.clause_ends
        first, last = self._pairs(starts[is_open[starts]], ends, _MAX_CLAUSES_PER_START)
        n_breaks = page.tokens.line[last - 1] - page.tokens.line[first]
        keep = n_breaks <= self.most_breaks
        return first[keep], last[keep]

    def _grid(self, page: Page, is_open: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Pairs of a likely beginning and a likely end within the lengths of the samples."""
        starts, ends = self._starts(page) & is_open, self._ends(page) & is_open
        first, last = self._pairs(np.flatnonzero(starts), np.flatnonzero(ends) + 1)
        strong = np.flatnonzero(self._strong_ends(page) & ends) + 1
        words = edges_of(page).words
        more = self._pairs_before(words, strong)
        return self._plausible(
            page, np.concatenate((first, more[0])), np.concatenate((last, more[1]))
        )

    def _pairs(
        self, starts: Ints, ends: Ints, most: int = _MAX_PAIRS_PER_START
    ) -> tuple[Ints, Ints]:
        """Every beginning with the next ends behind it."""
        low = np.searchsorted(ends, starts + self.shortest)
        high = np.searchsorted(ends, starts + self.longest, side="right")
        high = np.minimum(high, low + most)
        counts = np.maximum(high - low, 0)
        offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(starts, counts), ends[np.repeat(low, counts) + offset]

    def _pairs_before(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Every strong end with the beginnings of words before it."""
        low = np.searchsorted(starts, ends - self.longest)
        high = np.searchsorted(starts, ends - self.shortest, side="right")
        low = np.maximum(low, high - _MAX_PAIRS_PER_END)
        counts = np.maximum(high - low, 0)
        offset = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return starts[np.repeat(low, counts) + offset], np.repeat(ends, counts)

    def _plausible(self, page: Page, first: Ints, last: Ints) -> tuple[Ints, Ints]:
        tokens, marks = page.tokens, edges_of(page).marks_before
        n_breaks = tokens.line[last - 1] - tokens.line[first]
        n_marks = marks[last] - marks[first] - n_breaks
        keep = (n_breaks <= self.most_breaks) & (n_marks <= self.most_marks)
        return first[keep], last[keep]

    def _starts(self, page: Page) -> NDArray[np.bool_]:
        tokens, edges = page.tokens, edges_of(page)
        # No mark, but for brackets and marks that sample values begin with.
        startable = edges.startable | is_in(tokens.code, self.starts)
        if len(tokens) <= _SHORT_DOCUMENT:
            return np.asarray(tokens.is_word_start & startable)
        opens = edges.opens | is_in(edges.before, self.before)
        opens |= is_in(edges.pair_before, self.before)
        return np.asarray(opens & startable)

    def _ends(self, page: Page) -> NDArray[np.bool_]:
        tokens, edges = page.tokens, edges_of(page)
        code = tokens.code
        if len(tokens) <= _SHORT_DOCUMENT:
            closes = edges.is_word_end
        else:
            closes = edges.closes | is_in(edges.behind, self.behind)
        closes = closes | self._strong_ends(page) | is_in(edges.last_pairs, self.ends)
        closes |= code == CLOSING_BRACKET
        return np.asarray(closes & (edges.endable | is_in(code, self.ends)))

    def _strong_ends(self, page: Page) -> NDArray[np.bool_]:
        edges = edges_of(page)
        strong = is_in(edges.last_pairs, self.strong_ends)
        if self.kind == "organisation":
            strong |= edges.is_organisation_end
        return strong


def _open_tokens(page: Page, likeness: NDArray[np.float64] | None) -> NDArray[np.bool_]:
    """Whether boundaries are looked for at each token, (n_tokens,).

    Everywhere in a document of some pages; in a longer one in its likest and its first sentences.
    """
    tokens = page.tokens
    if likeness is None or len(tokens) <= _LONG_DOCUMENT:
        return np.ones(len(tokens), bool)
    is_open = np.zeros(len(likeness), bool)
    is_open[np.argsort(-likeness, kind="stable")[:_OPEN_SENTENCES]] = True
    is_open[:_OPEN_SENTENCES_FIRST] = True
    return np.asarray(is_open[tokens.sentence])


def learn_boundaries(
    kind: FieldType, samples: Sequence[tuple[Page, Sequence[tuple[int, int]]]], known: set[str]
) -> Boundaries:
    """What located sample values (character spans per page) teach about boundaries.

    ``known`` are their folded texts, each once.
    """
    n_values = len(known)
    before: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    starts: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    lengths, marks, breaks, n_shaped, n_units = [], [0], [0], 0, 0
    for page, spans in samples:
        tokens = page.tokens
        pairs = pair_codes(tokens.code)
        shaped = _shaped_spans(page, kind)
        units = set(map(tuple, np.concatenate((page.sentences, page.paragraphs)).tolist()))
        firsts, lasts = token_spans(page, spans)
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            before.update([int(tokens.code[first - 1])] if first else [])
            before.update([int(pairs[first - 2])] if first > 1 else [])
            behind.update([int(tokens.code[last])] if last < len(tokens) else [])
            starts.update([int(tokens.code[first])] if tokens.is_mark[first] else [])
            ends.update([int(pairs[last - 2])] if last > 1 else [])
            ends.update([int(tokens.code[last - 1])] if tokens.is_mark[last - 1] else [])
            lengths.append(last - first)
            breaks.append(int(tokens.line[last - 1] - tokens.line[first]))
            inside = tokens.code[first:last]
            counted = tokens.is_mark[first:last]
            counted = counted & (inside != OPENING_BRACKET) & (inside != CLOSING_BRACKET)
            marks.append(int(counted.sum()) - breaks[-1])
            span = (int(tokens.start[first]), int(tokens.end[last - 1]))
            n_shaped += span in shaped
            n_units += span in units
    n = max(len(lengths), 1)
    # What few samples have not shown may still be: the fewer, the more room beyond them.
    room = 1.0 + 1.6 / max(n_values, 1) ** 0.5
    return Boundaries(
        kind=kind,
        before=_usual(before, n / 100),
        behind=_usual(behind, n / 100),
        starts=_usual(starts, n / 100),
        ends=_usual(ends, n / 100),
        strong_ends=_usual(ends, n / 20),
        shortest=max(1, int(min(lengths, default=2) / room)),
        longest=min(int(max(lengths, default=30) * room) + 2, 400),
        most_marks=int(max(marks) * room) + 1,
        most_breaks=max(breaks) + (1 if max(breaks) else 0),
        known=frozenset(known) if kind not in SHAPED else frozenset(),
        uses_grid=kind != "clause" and (kind not in SHAPED or _is_unusual(n_shaped, lengths)),
        uses_units=n_units > 0.2 * n,
    )


def _is_unusual(n_shaped: int, lengths: Sequence[int]) -> bool:
    """Sample values of a shaped type stand in spellings that no pattern knows."""
    return bool(lengths) and n_shaped < 0.85 * len(lengths)


def _usual(counts: Counter[int], least: float) -> Ints:
    """Those seen more often than that: one odd sample of a hundred must not open every door."""
    usual = sorted(code for code, count in counts.items() if count > least)
    return np.array(usual, np.int64)


def _shaped_spans(page: Page, kind: FieldType) -> set[tuple[int, int]]:
    return {(f.start, f.end) for f in page.find(kind)} if kind in SHAPED else set()


def _units(page: Page) -> tuple[Ints, Ints]:
    return token_spans(page, np.concatenate((page.sentences, page.paragraphs)))
