"""Candidates: every span of a document that might be a value of a field, as token numbers.

The sources hold for every template: shapes (money, dates ...), boundaries (marks, function words,
and the neighbours of sample values), units (sentences, paragraphs, table cells), entities, runs of
whole lines where lines are short, what stands behind the field's own name, and the values of
samples. The samples teach which boundaries a field has and how long its values are.

No candidate begins or ends inside a code, none is a word for "none" in the place of a value, and
none of a field of amounts is a date, a period, a share, a telephone number or a code, unless
samples have such values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.synonyms import heads_of, names_same, synonyms_of
from featpipe.extraction.scoring.context import CLOSING_BRACKET
from featpipe.extraction.scoring.labels import (
    NOTHING,
    are_of_clauses,
    conditions,
    exact_places,
    has_form_marks,
    labelled_values,
)
from featpipe.extraction.scoring.party_details import labelled_in_blocks
from featpipe.extraction.values.codes import covered_before
from featpipe.extraction.values.text import fold, fold_width
from featpipe.extraction.values.values import is_readable
from featpipe.store.sorted_values import distinct, is_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.template import Level
    from featpipe.extraction.values.values import FieldType

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Spans = tuple[Ints, Ints]

#: Bits of ``Candidates.origin``.
SHAPE, GRID, UNIT, ENTITY, KNOWN, CELL, CLAUSE, LABELLED, LINES = (1 << n for n in range(9))
ORIGINS = (
    "shape", "boundaries", "unit", "entity", "known value", "cell", "clause", "label", "lines",
)  # fmt: skip

#: Types whose values have a shape that can be found without any sample.
SHAPED: frozenset[str] = frozenset(
    ("money", "number", "percent", "date", "period", "phone", "email", "id")
)

#: Headers of columns of shares, and of rates.
_of_shares = re.compile(r"[%率比占]|百分|股权|rate|percent|share|tax|vat|gst|interest|discount")
#: Numbers of more than a hundred.
_above_hundred = re.compile(r"(?:[\d,]+,\d{3}|\d{4,}|[2-9]\d\d|1(?:[1-9]\d|0[1-9]))(?:\.\d*)?")
#: Those of amounts.
AMOUNTS: frozenset[str] = frozenset(("money", "number", "percent"))

_MAX_PAIRS_PER_START = 32
_MAX_PAIRS_PER_END = 40
_MAX_CLAUSES_PER_START = 8

#: In a document of at most this many tokens every word may begin or end a value.
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

    def where(self, keep: Bools) -> Candidates:
        """Some of them."""
        return Candidates(self.first[keep], self.last[keep], self.origin[keep])

    @classmethod
    def gathered(cls, parts: Iterable[tuple[Ints, Ints, int]]) -> Candidates:
        """Each distinct span once, with the bits of all its sources; ordered by place."""
        parts = [part for part in parts if len(part[0])]
        if not parts:
            none = np.empty(0, np.int64)
            return cls(none, none, none)
        spans = np.concatenate([first << 32 | last for first, last, _ in parts])
        bits = np.concatenate([np.full(len(first), bit) for first, _, bit in parts])
        order = np.argsort(spans)
        spans = spans[order]
        starts = np.flatnonzero(np.diff(spans, prepend=-1))
        codes = spans[starts]
        return cls(codes >> 32, codes & 0xFFFFFFFF, np.bitwise_or.reduceat(bits[order], starts))


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Boundaries:
    """What the samples show of a field's values: neighbours, first and last words, lengths.

    The arrays hold hashes of tokens and of pairs of tokens, ascending.
    """

    kind: FieldType
    before: Ints = field(default_factory=_nothing)
    """The token, and the pair, before a value."""
    behind: Ints = field(default_factory=_nothing)
    starts: Ints = field(default_factory=_nothing)
    """Marks that values begin with."""
    ends: Ints = field(default_factory=_nothing)
    """Last pairs of tokens of a value, and marks that values end with."""
    strong_ends: Ints = field(default_factory=_nothing)
    """Those of ``ends`` that many values have: any word before one may begin a value."""
    shortest: int = 1
    longest: int = 40
    most_marks: int = 2
    most_breaks: int = 0
    """Line breaks inside a value."""
    most_lines: int = 0
    """Lines of a value that is made of whole lines, of any length; 0 where lines are paragraphs."""
    known: frozenset[str] = field(default_factory=frozenset)
    """Folded sample values: a new document may hold the same value."""
    uses_grid: bool = True
    uses_units: bool = False
    pattern: str | None = None
    """Regular expression of the values; no other source is used then."""
    level: Level | None = None
    parties: Ints = field(default_factory=_nothing)
    """Labels of the parties in whose blocks the values of all samples stand, if they do."""
    roles: Ints = field(default_factory=_nothing)
    """Labels of the role that the field's names ask for, if they do."""
    names: tuple[str, ...] = ()
    """Of the field, folded: what stands behind one of them is a candidate."""
    may_cut_codes: bool = False
    """Sample values begin or end inside codes."""
    may_be_no_amount: bool = False
    """Sample values of a field of amounts are, or are part of, dates, codes ..."""
    may_span_cells: bool = False
    """Sample values go on from one cell of a table to the next."""
    may_part_cells: bool = False
    """Sample values are a part of an English cell of one piece."""
    is_taught: bool = False
    """A sample has a value."""

    def propose(
        self, features: PageFeatures, similarity: NDArray[np.float64] | None = None
    ) -> Candidates:
        """Every candidate of one document.

        Args:
            features: of the document.
            similarity: (n_sentences,) of its sentences to those of the samples. Of a long document
                only the most similar ones are searched by boundaries, the others by the other
                sources alone.

        """
        page, tokens = features.page, features.tokens
        if not len(tokens):
            return Candidates.gathered([])
        if self.pattern is not None:
            spans = [m.span() for m in re.finditer(self.pattern, page.text) if m[0].strip()]
            return Candidates.gathered([(*tokens.spans(spans), SHAPE)])
        if self.level in {"sentence", "paragraph"}:
            whole = page.sentences if self.level == "sentence" else page.paragraphs
            return Candidates.gathered([(*tokens.spans(whole), UNIT)])
        return self._from_all_sources(features, _open_tokens(features, similarity))

    def _from_all_sources(self, features: PageFeatures, is_open: Bools) -> Candidates:
        page, tokens, boundaries = features.page, features.tokens, features.boundaries
        parts: list[tuple[Ints, Ints, int]] = []
        if self.kind in SHAPED:
            spans = [(f.start, f.end) for f in features.find(self.kind)]
            parts.append((*tokens.spans(spans), SHAPE))
        if self.uses_grid:
            parts.append((*self._grid(features, is_open), GRID))
        if self.uses_units or self.kind == "clause":
            parts.append((*tokens.spans(units_of(features)), UNIT))
            parts.append((*self._clauses(features, is_open), CLAUSE))
        if self.most_lines:
            parts.append((*features.lines.runs(self.most_lines), LINES))
        parts.append((*boundaries.entities, ENTITY))
        if self.kind not in SHAPED:
            parts.append((*boundaries.cells, CELL))
            parts.append((*tokens.spans(exact_places(features.folded)), CELL))
        spans = [span for known in self.known for span in features.compact.find_all(known, 8)]
        parts.append((*tokens.spans(spans), KNOWN))
        labelled = _labelled(features, self.names) + labelled_in_blocks(features, self.names)
        if not labelled:
            labelled = _labelled(features, self._synonyms_in(features))
        if self.kind in SHAPED and self.kind != "id":
            # Without a unit, which a header or a label may have, nothing has the shape: 数量：500.
            cells = [
                (cell.start, cell.end)
                for cell in page.headers
                if self.kind != "percent" or _of_shares.search(fold_width(cell.label + cell.unit))
            ]
            parts.append((*tokens.spans(self._readable(features, cells)), CELL))
            labelled = self._readable(features, labelled)
        parts.append((*tokens.spans(labelled), LABELLED))
        return self._whole(features, Candidates.gathered(parts))

    def _synonyms_in(self, features: PageFeatures) -> list[str]:
        """Other names of the thing that the document has as labels."""
        known = {*features.tokens.label_text.values()}
        # English ones need no colon: a wide gap may be behind them.
        found = [
            name
            for name in synonyms_of(tuple(self.names))
            if (folded := fold(name)) in known or (name.isascii() and features.mentions(folded))
        ]
        return found + heads_of(self.names, known)

    def _readable(
        self, features: PageFeatures, spans: Sequence[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Those of which the type makes a value, but no parts of what has its shape."""
        if not spans:
            return []
        text, shapes = features.folded, {(f.start, f.end) for f in features.find(self.kind)}
        covered = covered_before(shapes, len(text))
        return [
            (start, end)
            for start, end in spans
            if (start, end) in shapes
            or (covered[start] == covered[end] and self._reads(text[start:end]))
        ]

    def _reads(self, text: str) -> bool:
        """Whether the type makes a value of a text; 410.00 without its sign is no share."""
        is_share = self.kind == "percent"
        return is_readable(text, self.kind) and not (is_share and _above_hundred.fullmatch(text))

    def _whole(self, features: PageFeatures, found: Candidates) -> Candidates:
        """Without words for "none", headers, parts of codes, boxes, several cells, and dates."""
        start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
        is_shape = (found.origin & SHAPE) > 0
        # The shape of an amount may hold digits that are joined to a code's: 3-5.
        is_checked = ~is_shape if self.kind in SHAPED - {"id"} else np.ones(len(found), bool)
        keep = np.ones(len(found), bool)
        if self.known.isdisjoint(NOTHING):
            keep &= ~is_in(start, features.nothing)
        if not self.may_span_cells and self.kind != "clause":
            # 2024年\t3月 has the shape of a date, tabs or not.
            keep &= is_shape | ~features.boundaries.span_cells(found.first, found.last)
        if not self.may_cut_codes:
            keep &= ~(is_checked & (features.cuts[start] | features.cuts[end]))
        if self.known.isdisjoint(features.header_labels):
            keep &= ~features.is_header[found.first]
        if not any(map(has_form_marks, self.known)):
            keep &= features.form_marks[start] == features.form_marks[end]
        if not (self.is_taught or self.kind == "clause" or are_of_clauses(self.names)):
            keep &= is_shape | ~self._is_beyond(features, found)
            keep &= ~conditions(features.folded)[start]
        if self.kind in AMOUNTS and not self.may_be_no_amount:
            keep &= ~is_no_amount(features, self.kind, start, end, is_shape)
        return found.where(keep)

    def _is_beyond(self, features: PageFeatures, found: Candidates) -> Bools:
        """Spans (n,) that go on to another label, or beyond the one end that a place has."""
        number = features.tokens.label_number
        inside = number[found.first] != number[found.last - 1]
        places = exact_places(features.folded, are_whole=True)
        if self.kind in SHAPED or not places:
            return np.asarray(inside)
        first, last = features.tokens.spans(places)
        exact: Ints = first << 32 | last
        is_other = is_in(found.first, distinct(first)) & ~is_in(found.codes, distinct(exact))
        return np.asarray(inside | is_other)

    def _clauses(self, features: PageFeatures, is_open: Bools) -> Spans:
        """Runs of clauses: from behind a stop or number to a stop, one sentence or several."""
        tokens, boundaries = features.tokens, features.boundaries
        starts, ends = boundaries.clause_starts, boundaries.clause_ends
        if self.kind == "clause":
            starts, ends = features.clause_edges
        first, last = self._pairs(starts[is_open[starts]], ends, _MAX_CLAUSES_PER_START)
        keep = tokens.line[last - 1] - tokens.line[first] <= self.most_breaks
        return first[keep], last[keep]

    def _grid(self, features: PageFeatures, is_open: Bools) -> Spans:
        """Pairs of a likely beginning and a likely end within the lengths of the samples."""
        at = np.flatnonzero(is_open)
        is_strong = self._strong_ends(features, at)
        is_end = self._ends(features, at, is_strong)
        first, last = self._pairs(at[self._starts(features, at)], at[is_end] + 1)
        more = self._pairs_before(features.boundaries.words, at[is_strong & is_end] + 1)
        return self._plausible(
            features, np.concatenate((first, more[0])), np.concatenate((last, more[1]))
        )

    def _pairs(self, starts: Ints, ends: Ints, most: int = _MAX_PAIRS_PER_START) -> Spans:
        """Every beginning with the next ends behind it."""
        low = np.searchsorted(ends, starts + self.shortest)
        high = np.searchsorted(ends, starts + self.longest, side="right")
        counts = np.maximum(np.minimum(high, low + most) - low, 0)
        return np.repeat(starts, counts), ends[np.repeat(low, counts) + _counting(counts)]

    def _pairs_before(self, starts: Ints, ends: Ints) -> Spans:
        """Every end with the last beginnings before it."""
        low = np.searchsorted(starts, ends - self.longest)
        high = np.searchsorted(starts, ends - self.shortest, side="right")
        low = np.maximum(low, high - _MAX_PAIRS_PER_END)
        counts = np.maximum(high - low, 0)
        return starts[np.repeat(low, counts) + _counting(counts)], np.repeat(ends, counts)

    def _plausible(self, features: PageFeatures, first: Ints, last: Ints) -> Spans:
        """Spans with no more line breaks and marks than the values of the samples."""
        tokens, marks = features.tokens, features.boundaries.marks_before
        n_breaks = tokens.line[last - 1] - tokens.line[first]
        n_marks = marks[last] - marks[first] - n_breaks
        keep = (n_breaks <= self.most_breaks) & (n_marks <= self.most_marks)
        return first[keep], last[keep]

    def _starts(self, features: PageFeatures, at: Ints) -> Bools:
        """Whether values may begin at some tokens."""
        tokens, boundaries = features.tokens, features.boundaries
        # Marks begin no value, except brackets and those that begin sample values.
        startable = boundaries.startable[at] | is_in(tokens.code[at], self.starts)
        if len(tokens) <= _SHORT_DOCUMENT:
            return np.asarray(tokens.is_word_start[at] & startable)
        opens = boundaries.opens[at] | is_in(boundaries.before[at], self.before)
        opens |= is_in(boundaries.pair_before[at], self.before)
        return np.asarray(opens & startable)

    def _ends(self, features: PageFeatures, at: Ints, is_strong: Bools) -> Bools:
        """Whether values may end with some tokens."""
        tokens, boundaries = features.tokens, features.boundaries
        code = tokens.code[at]
        if len(tokens) <= _SHORT_DOCUMENT:
            closes = boundaries.is_word_end[at]
        else:
            closes = boundaries.closes[at] | is_in(boundaries.behind[at], self.behind)
        closes = closes | is_strong | is_in(boundaries.last_pairs[at], self.ends)
        closes |= code == CLOSING_BRACKET
        return np.asarray(closes & (boundaries.endable[at] | is_in(code, self.ends)))

    def _strong_ends(self, features: PageFeatures, at: Ints) -> Bools:
        strong = is_in(features.boundaries.last_pairs[at], self.strong_ends)
        if self.kind == "organisation":
            strong |= features.boundaries.is_organisation_end[at]
        return strong


def _labelled(features: PageFeatures, names: Sequence[str]) -> list[tuple[int, int]]:
    """What stands behind names, but for what a table has below them as another column's cell."""
    tokens, spans = features.tokens, labelled_values(features.folded, names)
    first = np.searchsorted(tokens.start, [start for start, _ in spans])
    headers = [tokens.label_text.get(code, "") for code in tokens.label[first].tolist()]
    folded = [fold(name) for name in names]
    return [
        span
        for span, header, is_headed in zip(
            spans, headers, features.is_headed[first].tolist(), strict=True
        )
        if not is_headed or any(names_same(header, name) for name in folded)
    ]


def is_no_amount(
    features: PageFeatures, kind: FieldType, start: Ints, end: Ints, is_shape: Bools
) -> Bools:
    """Spans that are dates, periods, shares, telephone numbers or codes, or part of one.

    An amount by its shape is none only if such a thing goes on where it ends: 12个 of 12个月.
    """
    inside, covered = features.no_amounts(kind)
    is_part = inside[start] | inside[end]
    return np.asarray(np.where(is_shape, is_part, covered[end] > covered[start]))


def _counting(counts: Ints) -> Ints:
    """0, 1, 2 ... for each count, one after another: (counts.sum(),)."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _open_tokens(features: PageFeatures, similarity: NDArray[np.float64] | None) -> Bools:
    """Tokens (n_tokens,) at which boundaries are looked for.

    All of a document of some pages; those of the most similar and of the first sentences of a
    longer one.
    """
    tokens = features.tokens
    if similarity is None or len(tokens) <= _LONG_DOCUMENT:
        return np.ones(len(tokens), bool)
    is_open = np.zeros(len(similarity), bool)
    is_open[np.argsort(-similarity, kind="stable")[:_OPEN_SENTENCES]] = True
    is_open[:_OPEN_SENTENCES_FIRST] = True
    return np.asarray(is_open[tokens.sentence])


def units_of(features: PageFeatures) -> Ints:
    """Character spans (n, 2) of sentences and paragraphs."""
    return np.concatenate((features.page.sentences, features.page.paragraphs))
