"""Features of one page, each computed when it is first needed and kept with the page."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.brackets import BracketMarks
from featpipe.extraction.scoring.context import (
    INSIDE_COLUMN,
    N_HASHED,
    make_boundary_context,
    make_column_context,
    number_columns,
)
from featpipe.extraction.scoring.entities import EntityMarks
from featpipe.extraction.scoring.headings import before_gaps, starts_behind_headings
from featpipe.extraction.scoring.labels import find_nothing, form_marks
from featpipe.extraction.scoring.lines import Lines
from featpipe.extraction.scoring.marks import Marks
from featpipe.extraction.scoring.parallel import ListContext
from featpipe.extraction.scoring.sentence_words import SentenceWords
from featpipe.extraction.scoring.tokens import make_tokens
from featpipe.extraction.scoring.word_kinds import WordKinds
from featpipe.extraction.scoring.word_pairs import make_word_pairs
from featpipe.extraction.tables.flat_tables import amounts_of_lines
from featpipe.extraction.tables.table_headers import row_numbers
from featpipe.extraction.tables.text_tables import rows_of_cells, rows_of_sums
from featpipe.extraction.values.codes import covered_before, cut_places, find_codes, places_inside
from featpipe.extraction.values.text import compact, fold, fold_page, points_of
from featpipe.extraction.values.values import Found, find_periods, find_values, read_value
from featpipe.store.sorted_values import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.context import BoundaryContext, ColumnContext
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.tokens import Tokens
    from featpipe.extraction.scoring.word_pairs import WordPairs
    from featpipe.extraction.values.text import Compact
    from featpipe.extraction.values.values import FieldType, Value

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

#: Characters of a cell that is a value and no text, at most; between pieces of one.
_LONGEST_CELL = 60
_pieces = re.compile(r"[();:\n]")
_pieces_of_names = re.compile(
    rf"{_pieces.pattern}|,(?! ?(?:inc|llc|ltd|limited|l\.?p|n\.a|corp|co)\b)", re.IGNORECASE
)
_MOST_REPEATS = 12
#: Telephone numbers that no amount is written like.
_plain_phone = re.compile(r"(?<![\d.])(?:1[3-9]\d{9}|\(?0\d{2,3}\)?[\s-]\d{7,8})(?![\d.])")

_cell = re.compile(r"[^\t\n]+")
_dashes = re.compile(r"[-—–─/\\]+")


class Repeats(NamedTuple):
    """How a text is repeated in its document."""

    log_count: float
    """``log1p`` of the number of occurrences, halved."""
    is_free: bool
    """At least once it stands between marks."""
    extends: bool
    """The same letter follows, or precedes, every occurrence: it is part of a longer name."""


class NoAmounts(NamedTuple):
    """Dates, periods, shares, telephone numbers and codes, as seen by a field of amounts."""

    inside: Bools
    """Places (len(text) + 1,) inside one of them; codes aside."""
    covered: Ints
    """(len(text) + 1,) running count of characters that belong to any of them."""


class PageFeatures:
    """A page with all that scoring derives from it. Any thread may use it.

    Two threads that need a feature at the same time compute equal ones.

    Args:
        page: the document.

    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self._found: dict[FieldType, list[Found]] = {}
        self._value_at: dict[FieldType, dict[tuple[int, int], Value]] = {}
        self._repeats: dict[str, Repeats] = {}
        self._mentions: dict[str, bool] = {}
        self._no_amounts: dict[FieldType, NoAmounts] = {}

    @cached_property
    def folded(self) -> str:
        """The text in half width and lower case, of the same length; typed patterns run on it."""
        return fold_page(self.page.text)

    @cached_property
    def compact(self) -> Compact:
        """The text without blanks and separators, for finding names however they are spaced."""
        return compact(self.page.text)

    @cached_property
    def gaps(self) -> bytes:
        """(len(compact.text) + 1,) 1 where a character was dropped before one: as good as a mark.

        Commas, blanks and line breaks are dropped.
        """
        gaps = np.zeros(len(self.compact.text) + 1, bool)
        gaps[1:-1] = np.diff(self.compact.places) > 1
        return gaps.tobytes()

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens with their labels and headings."""
        return make_tokens(self.page, self.folded)

    @cached_property
    def boundaries(self) -> BoundaryContext:
        """Where values may begin and end."""
        return make_boundary_context(self.page, self.folded, self.tokens, self.cuts)

    @cached_property
    def clause_edges(self) -> tuple[Ints, Ints]:
        """Tokens that a clause may begin with, and (half-open) end before, headings parted off."""
        boundaries = self.boundaries
        ends = np.flatnonzero(before_gaps(self.tokens))
        return (
            starts_behind_headings(self.tokens, boundaries.clause_starts),
            distinct(np.concatenate((boundaries.clause_ends, ends))),
        )

    @cached_property
    def context(self) -> ColumnContext:
        """The neighbourhood of each token."""
        return make_column_context(self.tokens, self.boundaries.is_organisation_end)

    @cached_property
    def lines(self) -> Lines:
        """The lines by token."""
        return Lines.of(self.tokens)

    @cached_property
    def lists(self) -> ListContext:
        """Where tokens join values into lists."""
        return ListContext.of(
            self.tokens, self._headed_cells, [cell.label for cell in self.page.headers]
        )

    @cached_property
    def entities(self) -> EntityMarks:
        """The entities by token."""
        return EntityMarks.of(self.tokens, self.page.entities)

    @cached_property
    def brackets(self) -> BracketMarks:
        """The brackets that belong to the words before them, by token."""
        return BracketMarks.of(self.folded, self.tokens)

    @cached_property
    def marks(self) -> Marks:
        """The amounts and dates by token."""
        return Marks.of(self.folded, self.tokens, self.find("date"))

    @cached_property
    def words_inside(self) -> NDArray[np.int32]:
        """The place (n_tokens,) in the hashed space of each token as part of a value."""
        columns = number_columns([self.tokens.code], (INSIDE_COLUMN,))[0]
        return np.asarray(columns & (N_HASHED - 1), np.int32)

    @cached_property
    def word_kinds(self) -> WordKinds:
        """The kinds of its words by token."""
        return WordKinds.of(self.page, self.folded, self.tokens)

    @cached_property
    def word_pairs(self) -> WordPairs:
        """Word pairs by sentence, for BM25."""
        return make_word_pairs(self.tokens, max(len(self.page.sentences), 1))

    @cached_property
    def sentence_words(self) -> SentenceWords:
        """Words and pairs of words by sentence."""
        return SentenceWords.of(self.tokens, self.word_pairs)

    @cached_property
    def character_counts(self) -> tuple[Ints, ...]:
        """Running counts (len(text) + 1,): digits, capitals, small and other letters, marks."""
        code = points_of(self.page.text)
        digit = (code >= 48) & (code <= 57)
        capital = (code >= 65) & (code <= 90)
        small = (code >= 97) & (code <= 122)
        # Chinese characters and letters of other scripts, without the blocks of marks.
        other = (code >= 0xC0) & ~((code >= 0x2000) & (code <= 0x303F))
        other &= ~((code >= 0xFF00) & (code <= 0xFF0F))
        mark = ~(digit | capital | small | other) & (code > 32)
        return tuple(
            np.concatenate(([0], np.cumsum(kind))) for kind in (digit, capital, small, other, mark)
        )

    @cached_property
    def codes(self) -> tuple[tuple[int, int], ...]:
        """Spans of codes."""
        return tuple(find_codes(self.folded))

    @cached_property
    def cuts(self) -> Bools:
        """Places (len(text) + 1,) inside codes: a value that begins or ends there is cut."""
        return cut_places(self.folded, self.codes)

    @cached_property
    def form_marks(self) -> Ints:
        """(len(text) + 1,) running count of boxes to tick and of lines to write on."""
        return form_marks(self.folded)

    @cached_property
    def is_headed(self) -> Bools:
        """Tokens (n_tokens,) in cells of tables that have a header."""
        headed = np.zeros(len(self.tokens), bool)
        for first, last in zip(*self._headed_cells, strict=True):
            headed[first:last] = True
        return headed

    @cached_property
    def _headed_cells(self) -> tuple[Ints, Ints]:
        """The tokens (n_headers,) that each such cell begins at, and those that it ends before."""
        edges = [(cell.start, cell.end) for cell in self.page.headers]
        first, last = np.searchsorted(self.tokens.start, np.array(edges).reshape(-1, 2)).T
        return first, last

    @cached_property
    def single_cells(self) -> tuple[Ints, Ints]:
        """Spans of tokens (n,) of the cells with headers that are English, short, and one piece."""
        return self._cells_without(_pieces)

    @cached_property
    def single_names(self) -> tuple[Ints, Ints]:
        """Those of them that no address is in, behind a name."""
        return self._cells_without(_pieces_of_names)

    def _cells_without(self, pieces: re.Pattern[str]) -> tuple[Ints, Ints]:
        text = self.page.text
        return self.tokens.spans(
            [
                (cell.start, cell.end)
                for cell in self.page.headers
                if cell.end - cell.start <= _LONGEST_CELL
                and (words := text[cell.start : cell.end]).isascii()
                and not pieces.search(words)
            ]
        )

    @cached_property
    def cell_codes(self) -> Ints:
        """Codes of the spans that are such a cell, as candidates have them, ascending."""
        first, last = self.boundaries.cells
        return distinct(first << 32 | last)

    @cached_property
    def header_labels(self) -> frozenset[str]:
        """Headers of tables, as folded values."""
        return frozenset(map(fold, {cell.label for cell in self.page.headers}))

    @cached_property
    def is_header(self) -> Bools:
        """Tokens (n_tokens,) in cells that head others."""
        labels = {cell.label.strip() for cell in self.page.headers}
        heads = np.zeros(len(self.tokens), bool)
        for start, end in _cells_of(self.page.text) if labels else ():
            if self.page.text[start:end].strip() in labels:
                first, last = np.searchsorted(self.tokens.start, (start, end))
                heads[first:last] = True
        return heads

    @cached_property
    def is_sum(self) -> Bools:
        """Tokens (n_tokens,) in rows of sums."""
        sums = np.zeros(len(self.tokens), bool)
        flat = [(one.start, one.end) for one in amounts_of_lines(self.folded) if one.is_sum]
        for start, end in (*rows_of_sums(self.page.text), *flat):
            first, last = np.searchsorted(self.tokens.start, (start, end))
            sums[first:last] = True
        return sums

    @cached_property
    def nothing(self) -> Ints:
        """Characters at which a word such as 无, or a dash in a table, fills a value's place."""
        text, cells = self.page.text, self.page.headers
        dashes = [one.start for one in cells if _dashes.fullmatch(text, one.start, one.end)]
        return np.array(find_nothing(self.folded) + dashes, np.int64)

    def no_amounts(self, kind: FieldType) -> NoAmounts:
        """What looks like an amount of a type and is none: dates, telephone numbers, codes ..."""
        if kind not in self._no_amounts:
            others: tuple[FieldType, ...] = ("date", "period", "percent")
            named = [(f.start, f.end) for k in others if k != kind for f in self.find(k)]
            named += [match.span() for match in _plain_phone.finditer(self.folded)]
            named += row_numbers(self.page.text, self.page.headers) if kind == "money" else ()
            # 500kw and 3.5 are amounts, 2024-0731 is none.
            codes = [
                (start, end)
                for start, end in self.codes
                if not self.folded[start].isdigit() or "-" in self.folded[start:end]
            ]
            n = len(self.folded)
            covered = covered_before((*named, *codes), n)
            self._no_amounts[kind] = NoAmounts(places_inside(named, n), covered)
        return self._no_amounts[kind]

    def find(self, kind: FieldType) -> list[Found]:
        """Every text with the shape of a type, in order."""
        if kind not in self._found:
            if kind == "period":
                dates = ((date.start, date.end) for date in self.find("date"))
                self._found[kind] = list(find_periods(self.folded, dates))
            else:
                self._found[kind] = list(find_values(self.folded, kind))
            if kind == "money":
                own = amounts_of_lines(self.folded)
                self._found[kind] += [Found(one.start, one.end, one.value) for one in own]
                self._found[kind].sort(key=lambda one: one.start)
        return self._found[kind]

    def value_at(self, kind: FieldType, start: int, end: int) -> Value:
        """The value of a span: as its type finds it there, else as its text is read by itself.

        What stands beside it belongs to it: 3,000 of 3,000-5,000万元, 300万元 behind 不超过.
        """
        if kind not in self._value_at:
            self._value_at[kind] = {(f.start, f.end): f.value for f in self.find(kind)}
        return self._value_at[kind].get((start, end)) or read_value(self.page.text[start:end], kind)

    def mentions(self, folded: str) -> bool:
        """Whether a name is in the compact text; several fields ask for the same synonyms."""
        known = self._mentions.get(folded)
        if known is None:
            known = self._mentions[folded] = folded in self.compact.text
        return known

    def repeats(self, folded: str) -> Repeats:
        """How often a compact text is written, whether ever between marks, whether always in more.

        A name cut too short continues the same way wherever it stands; a whole one does not.
        """
        known = self._repeats.get(folded)
        if known is None:
            known = self._repeats[folded] = _count_repeats(self.compact.text, self.gaps, folded)
        return known


def _count_repeats(whole: str, gaps: bytes, folded: str) -> Repeats:
    at = whole.find(folded)
    n, is_free, before, behind = 0, False, set(), set()
    while at >= 0 and n < _MOST_REPEATS:
        end = at + len(folded)
        left = "" if gaps[at] else whole[at - 1 : at] or " "
        right = "" if gaps[end] else whole[end : end + 1] or " "
        before.add(left)
        behind.add(right)
        is_free = is_free or not (left.isalnum() or right.isalnum())
        n += 1
        at = whole.find(folded, end)
    extends = n > 1 and (_is_one_letter(before) or _is_one_letter(behind))
    return Repeats(math.log1p(n) / 2, is_free, extends)


def _is_one_letter(neighbours: set[str]) -> bool:
    return len(neighbours) == 1 and next(iter(neighbours)).isalnum()


def _cells_of(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the cells that tabs part, and of those that wide gaps part."""
    yield from (cell.span() for cell in _cell.finditer(text))
    yield from (cell for row in rows_of_cells(text) for cell in row)
