"""Context: the neighbourhood of each token, computed once per page for all fields and templates.

:class:`BoundaryContext` gives the places where values may begin and end; candidates are made of it.
:class:`ColumnContext` gives the features of both ends of any span; columns are gathered from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.name_patterns import FREQUENT
from featpipe.extraction.scoring.tokens import hash_of, hashes_of, mix, pair_codes
from featpipe.extraction.values.text import matches_at, places_of
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]


# Places where values may begin and end.

#: Function words after which a name may begin.
_OPENING = hashes_of((
    *"与和及为由是向对在于将到从被的系以即让给同并等了之后称第",
    "of", "by", "between", "and", "the", "to", "with", "in", "is", "for", "from", "a", "an",
))  # fmt: skip
#: Function words before which a name may end.
_CLOSING = hashes_of((
    *"的与和及为于在中等发之将是由以已对向签关近就成拟共所持及均系",
    "and", "of", "or", "to", "in", "is", "has", "for", "by", "with", "shall",
))  # fmt: skip
#: Blanks between the columns of a print-out. What begins with its own blanks is looked for sooner.
_column_gap = re.compile(r"   (?<=\S   )(?: +(?=\S)|(?<=[!-~]   )(?=[!-~]))")
_organisation_end = re.compile(
    r"公司|集团|银行|分行|支行|政府|委员会|管委会|大学|学院|医院|研究院|设计院|研究所|中心|指挥部|联合体"
    r"|合伙企业|(?:有限合伙)\)?|管理局|管理处|办公室|法院|事务所|协会|基金会|总队|支队|总公司|厂|局|厅|署|院|所|部|处|社"
)
_COMPANY_WORDS = (
    "inc", "ltd", "llc", "corp", "corporation", "company", "limited", "l.p", "plc", "gmbh", "bhd",
    "co",
)  # fmt: skip
_company_end = re.compile(rf"\b(?:{'|'.join(map(re.escape, _COMPANY_WORDS))})\b\.?")
#: Marks that end a clause; a full point does so only before a blank.
_CLAUSE_STOPS = hashes_of("。;!?:")
_POINT, _BREAK, _TAB = hash_of("."), hash_of("\n"), hash_of("\t")
_NUMBERING = hashes_of((
    *(f"digits {n}" for n in range(1, 4)), *"abcdefghijklmnopqrstuvwxyz", "ii", "iii", "iv", "vi",
    "vii", *"第条款章节一二三四五六七八九十",
))  # fmt: skip
_LONGEST_NUMBER = 8
#: Many names hold brackets: they are not counted as marks; an unbalanced one costs later.
OPENING_BRACKET, CLOSING_BRACKET = hash_of("("), hash_of(")")


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryContext:
    """Where values may begin and end. Shapes: (n_tokens,) unless noted."""

    before: Ints
    """Code of the token before, 0 at the start."""
    pair_before: Ints
    """Hash of the two tokens before."""
    behind: Ints
    last_pairs: Ints
    """Hash of each token with the one before it."""
    opens: Bools
    """Behind a mark, an opening word, or the number of a clause."""
    closes: Bools
    """Before a mark or a closing word."""
    startable: Bools
    endable: Bools
    is_word_end: Bools
    is_organisation_end: Bools
    marks_before: Ints
    """(n_tokens + 1,) running count of marks other than brackets and those inside codes."""
    cells_before: Ints
    """(n_tokens + 1,) running count of the tabs that part the cells of a table."""
    cell_number: Ints
    """(n_tokens,) how many cells with headers, or behind wide gaps, begin at or before a token."""
    words: Ints
    """(n,) tokens that begin a word and are no mark."""
    entities: tuple[Ints, Ints]
    """(n,) first and last (half-open) token of each entity."""
    cells: tuple[Ints, Ints]
    clause_starts: Ints
    """(n,) tokens behind a stop, a line break, or the number or name of a clause."""
    clause_ends: Ints
    """(n,) tokens (half-open) at a stop or a line break, with its mark."""

    def span_cells(self, first: Ints, last: Ints) -> Bools:
        """Whether spans of tokens (n,), half-open, go on from one cell to the next."""
        tabs, number = self.cells_before, self.cell_number
        is_parted = tabs[first] != tabs[last]
        return np.asarray(is_parted | (number[first] != number[last - 1]))


def make_boundary_context(page: Page, folded: str, tokens: Tokens, cuts: Bools) -> BoundaryContext:
    """The boundary context of a page.

    Args:
        page: the document.
        folded: its folded text.
        tokens: its tokens.
        cuts: (len(text) + 1,) places inside codes.

    """
    code, is_mark = tokens.code, tokens.is_mark
    n = len(code)
    cells = tokens.spans([(span.start, span.end) for span in page.headers])
    none = np.zeros(min(n, 1), np.int64)
    is_bracket = (code == OPENING_BRACKET) | (code == CLOSING_BRACKET)
    pairs = pair_codes(code)
    before, behind = np.concatenate((none, code[:-1])), np.concatenate((code[1:], none))
    is_stop = _is_clause_stop(tokens)
    in_code = cuts[tokens.start] | cuts[tokens.end]
    clause_starts = _clause_starts(tokens, is_stop)
    opens = np.concatenate((none == 0, is_mark[:-1])) | is_in(before, _OPENING)
    opens[clause_starts] = True  # 1.1 某某工程
    return BoundaryContext(
        before=before,
        pair_before=np.concatenate((np.zeros(2, np.int64), pairs))[:n],
        behind=behind,
        last_pairs=np.concatenate((none, pairs[:-1])),
        opens=opens,
        closes=np.concatenate((is_mark[1:], none == 0)) | is_in(behind, _CLOSING),
        startable=~is_mark | (code == OPENING_BRACKET),
        endable=~is_mark | (code == CLOSING_BRACKET),
        is_word_end=np.concatenate((tokens.is_word_start[1:], none == 0)),
        is_organisation_end=is_in(tokens.end, _organisation_ends(folded)),
        marks_before=np.concatenate(([0], np.cumsum(is_mark & ~is_bracket & ~in_code))),
        cells_before=np.concatenate(([0], np.cumsum(code == _TAB))),
        cell_number=np.cumsum(
            np.isin(np.arange(n), np.concatenate((cells[0], _behind_gaps(folded, tokens))))
        ),
        words=np.flatnonzero(tokens.is_word_start & ~is_mark),
        entities=tokens.spans([(span.start, span.end) for span in page.entities]),
        cells=cells,
        clause_starts=clause_starts,
        clause_ends=_clause_ends(tokens, is_stop),
    )


def _organisation_ends(folded: str) -> Ints:
    """Where words end that names of organisations end with, ascending."""
    ends = [match.end() for match in _organisation_end.finditer(folded)]
    places = places_of(_COMPANY_WORDS, folded)
    ends += [match.end() for match in matches_at(_company_end, folded, places)]
    return np.array(sorted(ends), np.int64)


def _is_clause_stop(tokens: Tokens) -> Bools:
    """Stops; full points only where no further text is joined to them."""
    joined = np.append(tokens.end[:-1] == tokens.start[1:], False)
    is_break = tokens.code == _BREAK
    joined &= ~np.append(is_break[1:], False)
    return np.asarray(is_in(tokens.code, _CLAUSE_STOPS) | ((tokens.code == _POINT) & ~joined))


def _behind_gaps(folded: str, tokens: Tokens) -> Ints:
    """Tokens (n_gaps,) behind gaps that part two columns: 甲　　方 is one word."""
    ends = [gap.end() for gap in _column_gap.finditer(folded)]
    return tokens.start.searchsorted(np.array(ends, np.int64))


def _clause_starts(tokens: Tokens, is_stop: Bools) -> Ints:
    n = len(tokens)
    is_break = tokens.code == _BREAK
    behind = np.concatenate((np.zeros(min(n, 1), bool) == 0, (is_stop | is_break)[:-1]))
    # A clause is numbered by digits, marks and single letters: (a), 6.2, 第3条.
    numbering = tokens.is_mark | is_in(tokens.code, _NUMBERING)
    starts = behind & ~numbering
    text = np.flatnonzero(~numbering)
    numbered = np.flatnonzero(behind & numbering)
    next_text = np.append(text, n + _LONGEST_NUMBER)[np.searchsorted(text, numbered)]
    starts[next_text[next_text < np.minimum(numbered + _LONGEST_NUMBER, n)]] = True
    return np.flatnonzero(starts | (behind & ~is_break))


def _clause_ends(tokens: Tokens, is_stop: Bools) -> Ints:
    is_break = tokens.code == _BREAK
    before_break = np.append(is_break[1:], True)[: len(tokens)]
    ends = (is_stop | before_break) & ~is_break
    return np.flatnonzero(ends) + 1


# Features of both ends of any span.

#: Columns of the hashed space.
N_HASHED = 1 << 18
#: Placeholder tokens before and behind the document, so that every token has neighbours.
_PAD = 12
_OPEN = [hash_of(mark) for mark in "([<《"]
_CLOSE = [hash_of(mark) for mark in ")]>》"]
_QUOTE = hash_of('"')
_COLON = hash_of(":")
_STOPS = hashes_of("。;,\n\t:!?、")
_OPENERS = hashes_of('([<《":\n\t')
_FUNCTION_WORDS = hashes_of((
    *"的了在是将被把与和及或为对向从由以已不也都就而并但其该此等于因若如则",
    "of", "the", "and", "to", "in", "is", "are", "was", "for", "by", "with", "shall",
    "that", "which",
))  # fmt: skip
_SURNAMES = hashes_of(FREQUENT)
_DIGITS = hashes_of(f"digits {n}" for n in range(10))
_LINE_MARKS = hashes_of("\n\t")
#: Sets of codes that tokens are tested for; a code's bits name the sets it is in, so that a page
#: is searched once for all of them.
_SETS = (_DIGITS, _FUNCTION_WORDS, _SURNAMES, _STOPS, _OPENERS, _LINE_MARKS, _OPENING, _CLOSING)
_DIGIT, _FUNCTION_WORD, _SURNAME, _STOP, _OPENER, _LINE_MARK, _OPENING_WORD, _CLOSING_WORD = (
    1 << n for n in range(len(_SETS))
)
_special = np.unique(np.concatenate(_SETS))
_special_bits = np.array(
    [sum(1 << n for n, one in enumerate(_SETS) if code in one) for code in _special.tolist()],
    np.uint8,
)

#: Numbers of the hashed columns: each is mixed with its own, so that equal words in two columns
#: are two features. Columns of pairs farther away have none: their order does not matter.
AT_START = (1, 2, 3, 4, 8, 9, 17, 18, 19, 21)
AT_END = (5, 6, 7, 10, 11, 12, 15)
N_BEFORE, N_BEHIND = 8, 5
#: Number of the column of a token as part of a value.
INSIDE_COLUMN = 29

#: Counts from the beginning of a document; a span's count is a difference.
COUNTED = (
    "marks", "function words", "word starts", "digits", "latin", "capitalised",
    *(f"depth of {mark}" for mark in "([<《"), "quotes",
)  # fmt: skip
#: Properties of the place that a span begins at, and of the place that it ends before.
BEFORE = ("colon", "opener", "line start", "clean start", "word start", "early", "surname")
BEHIND = ("stop", "line end", "clean end", "word start", "organisation")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnContext:
    """Place i is the one before token i; ``n`` tokens have n + 1 places.

    A column lies in one piece: most are looked up, and added to others, one by one.
    """

    at_start: NDArray[np.int32]
    """Hashed columns (..., n): :data:`AT_START`, then pairs before."""
    at_end: NDArray[np.int32]
    """Hashed columns (..., n + 1): :data:`AT_END`, then pairs behind."""
    left: Ints
    """Codes (n + 1,): of the token before a place; ``pair_left`` of the two before it."""
    pair_left: Ints
    right: Ints
    sums: Ints
    """(n + 1,) running sums of mixed codes: equal differences for equal words. All digits are
    alike in ``sums``, only runs of digits of one length in ``exact_sums``."""
    exact_sums: Ints
    counts: NDArray[np.int32]
    """(len(COUNTED), n + 1) running counts; ``before`` and ``behind`` likewise."""
    before: Bools
    behind: Bools


def make_column_context(tokens: Tokens, is_organisation_end: Bools) -> ColumnContext:
    """The column context of a page; ``is_organisation_end`` as in its :class:`BoundaryContext`."""
    n = len(tokens)
    code = np.concatenate((np.full(_PAD, 7, np.int64), tokens.code, np.full(_PAD, 11, np.int64)))
    pairs = mix(code[:-1], code[1:])
    bits = _bits_of(tokens.code)
    digits_alike = np.where((bits & _DIGIT) > 0, _DIGITS[0], tokens.code)
    places = slice(_PAD - 1, _PAD + n)
    return ColumnContext(
        at_start=_at_start(tokens, code, pairs),
        at_end=_at_end(n, code, pairs),
        left=code[places],
        pair_left=pairs[_PAD - 2 : _PAD - 1 + n],
        right=code[_PAD : _PAD + n + 1],
        sums=_running(mix(digits_alike, 3)),
        exact_sums=_running(mix(tokens.code, 3)),
        counts=_counts(tokens, bits),
        before=_before(tokens, bits),
        behind=_behind(tokens, bits, is_organisation_end),
    )


def _bits_of(code: Ints) -> NDArray[np.uint8]:
    at = np.searchsorted(_special, code)
    at[at == len(_special)] = 0
    return np.where(_special[at] == code, _special_bits[at], np.uint8(0))


def number_columns(columns: list[Ints], numbers: tuple[int, ...]) -> Ints:
    """Each column mixed with its number: (len(columns), n)."""
    return mix(np.stack(columns), np.array(numbers, np.int64)[:, None])


def _at_start(tokens: Tokens, code: Ints, pairs: Ints) -> NDArray[np.int32]:
    n = len(tokens)

    def shifted(values: Ints, by: int) -> Ints:
        return values[_PAD + by : _PAD + by + n]

    pair, third = shifted(pairs, -2), shifted(code, -3)
    triple = mix(third, pair)
    pair_label = mix(tokens.label, shifted(code, -1))
    # Its own label tells of a party what its block tells of what is listed there.
    in_block = (tokens.party > 0) & (tokens.party != tokens.label)
    columns = [
        shifted(code, -1),
        pair,
        triple,
        mix(shifted(code, -4), triple),
        shifted(code, 0),
        shifted(pairs, 0),
        tokens.label,
        np.where(in_block, mix(pair_label, tokens.party), pair_label),
        np.where(in_block, tokens.party, tokens.heading),
        np.minimum(tokens.sentence, 6),
    ]
    near = mix(pairs, 101)
    window = [shifted(near, -step) for step in range(3, 3 + N_BEFORE)]
    return _hashed(np.concatenate((number_columns(columns, AT_START), np.stack(window))))


def _at_end(n: int, code: Ints, pairs: Ints) -> NDArray[np.int32]:
    def shifted(values: Ints, by: int) -> Ints:
        return values[_PAD + by : _PAD + by + n + 1]

    right, pair, end = shifted(code, 0), shifted(pairs, 0), shifted(pairs, -2)
    columns = [
        right,
        pair,
        mix(pair, shifted(code, 2)),
        shifted(code, -1),
        end,
        mix(shifted(code, -3), end),
        mix(end, right),
    ]
    near = mix(pairs, 103)
    window = [shifted(near, step) for step in range(1, 1 + N_BEHIND)]
    return _hashed(np.concatenate((number_columns(columns, AT_END), np.stack(window))))


def _hashed(columns: Ints) -> NDArray[np.int32]:
    """Places in the hashed space, for each place of the document."""
    return np.asarray(columns & (N_HASHED - 1), np.int32)


def _running(values: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(values)))


def _counts(tokens: Tokens, bits: NDArray[np.uint8]) -> NDArray[np.int32]:
    code = tokens.code
    steps = np.zeros((len(COUNTED), len(code) + 1), np.int32)
    columns = [
        tokens.is_mark,
        (bits & _FUNCTION_WORD) > 0,
        tokens.is_word_start,
        (bits & _DIGIT) > 0,
        tokens.is_latin,
        tokens.is_latin & tokens.is_capital,
        *(
            (code == opening) * 1 - (code == closing) * 1
            for opening, closing in zip(_OPEN, _CLOSE, strict=True)
        ),
        code == _QUOTE,
    ]
    for number, column in enumerate(columns):
        steps[number, 1:] = column
    return np.cumsum(steps, axis=1, dtype=np.int32)


def _before(tokens: Tokens, bits: NDArray[np.uint8]) -> Bools:
    # The document begins as behind a line break.
    before = np.concatenate((_bits_of(np.array([_BREAK])), bits))
    after_mark = np.concatenate(([True], tokens.is_mark))
    columns = [
        np.concatenate(([False], tokens.code == _COLON)),
        (before & _OPENER) > 0,
        (before & _LINE_MARK) > 0,
        ((before & _OPENING_WORD) > 0) | after_mark,
        np.concatenate((tokens.is_word_start, [True])),
        np.concatenate((tokens.line <= 1, [False])),
        np.concatenate(((bits & _SURNAME) > 0, [False])),
    ]
    return np.stack(columns)


def _behind(tokens: Tokens, bits: NDArray[np.uint8], is_organisation_end: Bools) -> Bools:
    # The document ends as before a line break.
    behind = np.concatenate((bits, _bits_of(np.array([_BREAK]))))
    columns = [
        (behind & _STOP) > 0,
        (behind & _LINE_MARK) > 0,
        ((behind & _CLOSING_WORD) > 0) | np.concatenate((tokens.is_mark, [True])),
        np.concatenate((tokens.is_word_start, [True])),
        np.concatenate(([False], is_organisation_end)),
    ]
    return np.stack(columns)
