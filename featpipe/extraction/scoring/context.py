"""Surroundings: what stands at and around each token, ready to be gathered for any span.

A span's evidence is mostly that of the place where it begins and of the place where it ends, so it
is worked out once for every place of a document, whatever the number of fields and candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.edges import CLOSING, OPENING
from featpipe.extraction.scoring.hashing import hash_of, mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.scoring.tokens import Tokens

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

#: Columns of the hashed space.
N_HASHED = 1 << 18
#: Tokens looked at before and behind the document: they stand for its ends.
_PAD = 12
_OPEN = [hash_of(mark) for mark in "([<《"]
_CLOSE = [hash_of(mark) for mark in ")]>》"]
_QUOTE = hash_of('"')
_COLON = hash_of(":")
_STOPS = np.sort([hash_of(mark) for mark in "。;,\n\t:!?、"])
_OPENERS = np.sort([hash_of(mark) for mark in '([<《":\n\t'])
_FUNCTION_WORDS = np.unique(
    [
        hash_of(word)
        for word in (
            *"的了在是将被把与和及或为对向从由以已不也都就而并但其该此等于因若如则",
            "of", "the", "and", "to", "in", "is", "are", "was", "for", "by", "with", "shall",
            "that", "which",
        )
    ]
)  # fmt: skip
_SURNAMES = np.unique(
    [
        hash_of(char)
        for char in "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾"
        "肖田董潘袁蔡蒋余于杜叶"
        "程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾"
        "龚邵万覃武钱戴严莫孔向常汤康易乔赖文施洪季辛管祝左童翁柯欧舒纪项瞿诸葛司马欧阳上官"
    ]
)
_DIGITS = np.sort([hash_of(f"digits {n}") for n in range(10)])
_stop_code = hash_of("\n")
_line_codes = np.sort([hash_of("\n"), hash_of("\t")])
#: Sets of codes that places are asked for; a code's bits say which of them it is in, so that a
#: document is searched once for all of them.
_SETS = (_DIGITS, _FUNCTION_WORDS, _SURNAMES, _STOPS, _OPENERS, _line_codes, OPENING, CLOSING)
_DIGIT, _FUNCTION_WORD, _SURNAME, _STOP, _OPENER, _LINE, _OPENING_WORD, _CLOSING_WORD = (
    1 << n for n in range(len(_SETS))
)
_special = np.unique(np.concatenate(_SETS))
_special_bits = np.array(
    [sum(1 << n for n, one in enumerate(_SETS) if code in one) for code in _special.tolist()],
    np.uint8,
)

#: Numbers of the hashed columns: each is mixed with its own, so that equal words in two columns
#: are two things. Those of pairs farther away have none: there the order does not matter.
AT_START = (1, 2, 3, 4, 8, 9, 17, 18, 19, 21)
AT_END = (5, 6, 7, 10, 11, 12, 15)
N_BEFORE, N_BEHIND = 8, 5

#: What is counted from the beginning of a document; a span's count is a difference.
COUNTED = (
    "marks", "function words", "word starts", "digits", "latin", "capitalised",
    *(f"depth of {mark}" for mark in "([<《"), "quotes",
)  # fmt: skip
#: What holds of the place a span begins at, and of the place it ends before.
BEFORE = ("colon", "opener", "line start", "clean start", "word start", "early", "surname")
BEHIND = ("stop", "line end", "clean end", "word start", "organisation")


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """Row i is the place before token i; ``n`` tokens have n + 1 places."""

    at_start: NDArray[np.int32]
    """Hashed columns (n, ...): :data:`AT_START`, then pairs before."""
    at_end: NDArray[np.int32]
    """Hashed columns (n + 1, ...): :data:`AT_END`, then pairs behind."""
    left: Ints
    """Codes (n + 1,): of the token before a place; ``pair_left`` of the two before it."""
    pair_left: Ints
    right: Ints
    sums: Ints
    """(n + 1,) running sums of mixed codes: equal differences for equal words. Any digit is alike
    in ``sums``, only digits of one length are in ``exact_sums``."""
    exact_sums: Ints
    counts: NDArray[np.int32]
    """(n + 1, len(COUNTED)), likewise ``before`` and ``behind``."""
    before: Bools
    behind: Bools


def make_surroundings(page: Page) -> Surroundings:
    """For :attr:`Page.surroundings`."""
    tokens = page.tokens
    n = len(tokens)
    code = np.concatenate((np.full(_PAD, 7, np.int64), tokens.code, np.full(_PAD, 11, np.int64)))
    pairs = mix(code[:-1], code[1:])
    bits = _bits_of(tokens.code)
    plain = np.where((bits & _DIGIT) > 0, _DIGITS[0], tokens.code)
    places = slice(_PAD - 1, _PAD + n)
    return Surroundings(
        at_start=_at_start(tokens, code, pairs),
        at_end=_at_end(n, code, pairs),
        left=code[places],
        pair_left=pairs[_PAD - 2 : _PAD - 1 + n],
        right=code[_PAD : _PAD + n + 1],
        sums=_running(mix(plain, 3)),
        exact_sums=_running(mix(tokens.code, 3)),
        counts=_counts(tokens, bits),
        before=_before(tokens, bits),
        behind=_behind(page, bits),
    )


def _bits_of(code: Ints) -> NDArray[np.uint8]:
    at = np.searchsorted(_special, code)
    at[at == len(_special)] = 0
    return np.where(_special[at] == code, _special_bits[at], np.uint8(0))


def number_columns(columns: list[Ints], numbers: tuple[int, ...]) -> Ints:
    """Each column mixed with its number: (len(columns), n)."""
    return mix(np.stack(columns), np.array(numbers, np.int64)[:, None])


def _places(columns: Ints) -> NDArray[np.int32]:
    """Places in the hashed space, a row for each place of the document."""
    return np.ascontiguousarray((columns & (N_HASHED - 1)).T, np.int32)


def _at_start(tokens: Tokens, code: Ints, pairs: Ints) -> NDArray[np.int32]:
    n = len(tokens)

    def shifted(values: Ints, by: int) -> Ints:
        return values[_PAD + by : _PAD + by + n]

    pair, third = shifted(pairs, -2), shifted(code, -3)
    triple = mix(third, pair)
    columns = [
        shifted(code, -1),
        pair,
        triple,
        mix(shifted(code, -4), triple),
        shifted(code, 0),
        shifted(pairs, 0),
        tokens.label,
        mix(tokens.label, shifted(code, -1)),
        tokens.heading,
        np.minimum(tokens.sentence, 6),
    ]
    near = mix(pairs, 101)
    window = [shifted(near, -step) for step in range(3, 3 + N_BEFORE)]
    return _places(np.concatenate((number_columns(columns, AT_START), np.stack(window))))


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
    return _places(np.concatenate((number_columns(columns, AT_END), np.stack(window))))


def _running(values: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(values)))


def _counts(tokens: Tokens, bits: NDArray[np.uint8]) -> NDArray[np.int32]:
    code = tokens.code
    steps = np.zeros((len(code) + 1, len(COUNTED)), np.int32)
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
        steps[1:, number] = column
    return np.cumsum(steps, axis=0, dtype=np.int32)


def _before(tokens: Tokens, bits: NDArray[np.uint8]) -> Bools:
    n = len(tokens)
    before = np.concatenate((_bits_of(np.array([_stop_code])), bits))
    after_mark = np.concatenate(([True], tokens.is_mark))
    columns = [
        np.concatenate(([False], tokens.code == _COLON)),
        (before & _OPENER) > 0,
        (before & _LINE) > 0,
        ((before & _OPENING_WORD) > 0) | after_mark,
        np.concatenate((tokens.is_word_start, [True])),
        np.concatenate((tokens.line <= 1, [False])),
        np.concatenate(((bits & _SURNAME) > 0, [False])),
    ]
    return np.stack(columns, axis=1).reshape(n + 1, len(BEFORE))


def _behind(page: Page, bits: NDArray[np.uint8]) -> Bools:
    tokens = page.tokens
    n = len(tokens)
    behind = np.concatenate((bits, _bits_of(np.array([_stop_code]))))
    columns = [
        (behind & _STOP) > 0,
        (behind & _LINE) > 0,
        ((behind & _CLOSING_WORD) > 0) | np.concatenate((tokens.is_mark, [True])),
        np.concatenate((tokens.is_word_start, [True])),
        np.concatenate(([False], page.edges.is_organisation_end)),
    ]
    return np.stack(columns, axis=1).reshape(n + 1, len(BEHIND))
