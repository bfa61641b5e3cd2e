"""Codes: numbers of contracts, files and cases, whole from their first sign to their last.

``HT-2024-001``, ``借-2023-0148``, ``CG〔2024〕第031号``, ``（2023）京01民初12号之一``, the plate
``沪A12345``, the card ``6222 0212 3456 7890`` and ``138****5678``, of which a part is hidden: none
of them has a part that is a value of its own. All functions expect text folded by
:func:`featpipe.extraction.values.text.fold_width`.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.values.amounts import CURRENCIES
from featpipe.extraction.values.text import DECIMAL, TRAITS, matches_at, points_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

#: Chinese characters that a code may begin with; the others end the words before it (编号为借-1).
_HAN = "(?![为是即的号码])[\u4e00-\u9fff]"
_NOT_BEHIND = "(?<![a-z0-9])(?<!(?![为是即的号码])[\u4e00-\u9fff])"
#: ``借-`` before ``2023-0148``.
HAN_PREFIX = rf"(?:{_NOT_BEHIND}(?:{_HAN}){{1,6}}[-_/])"
_joined = re.compile(
    rf"{HAN_PREFIX}?(?<![a-z0-9])[a-z0-9]+"
    r"(?:[-_/](?:[a-z0-9]+|[\u4e00-\u9fff]{1,4}(?=[-_/][a-z0-9]))|(?<=\d)\.(?=\d)[a-z0-9]+)*"
)
_YEAR = r"[(\[]\s?(?:19|20)\d\d\s?[)\]]\s?"
#: The province before the year of a certificate of real estate: 沪(2023)浦字不动产权第1号.
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_PROVINCE = rf"(?:[{_PROVINCES}](?={_YEAR}\S{{0,12}}不动产))"
_BRANCH = r"(?:之(?:[一二三四五六七八九十]{1,3}|\d{1,3}))?"
#: 沪A12345 and 粤B·F12345: the plate of a car, of which the province is part.
plate = re.compile(
    rf"[{_PROVINCES}][a-hj-z] ?[·•-]?(?=[a-z0-9]{{0,5}}\d)"
    r"[a-z0-9]{4,5}[a-z0-9挂学警港澳领使](?![a-z0-9])"
)
#: 2012借字第0922号 and 京房权证朝字第123456号, from the year or the province on.
_lettered = re.compile(
    rf"(?:(?<![\d.-])(?:19|20)\d\d年?|[{_PROVINCES}])[\u4e00-\u9fff]{{0,8}}?字第\s?\d+\s?号{_BRANCH}"
)
#: 6222 0212 3456 7890 123 and 310101 19900101 1234: digits in the groups of a card.
_grouped = re.compile(
    r"(?<![\da-z.,-])(?<!\d )(?:(?:0\d{3}|\d{4} \d{4})(?: \d{4}){2,3}(?: \d{1,3})?"
    r"|\d{6} (?:19|20)\d{6} \d{3}[\dx])"
    r"(?! ?\d|[a-z.,-]\d)"
)
_years = re.compile(r"(?:(?:19|20)\d\d ?)+")
#: What may be a number of which a part is hidden: 452702199306****25, 粤B***88, AB-2023-***.
_with_mask = re.compile(
    rf"(?:[{_PROVINCES}](?=[a-hj-z]))?(?<![a-z0-9*×])[a-z0-9*×]+(?:[-/_][a-z0-9*×]+)*"
)
#: 6222 **** **** 1234: in the groups of a card.
_grouped_mask = re.compile(
    r"(?<![a-z0-9*×])(?<![\d*×] )(?:[\d*×]{4} ){2,4}[\d*×]{1,4}(?![a-z0-9*×])"
)
#: Hidden signs within it, or at its end, where two may be marks of **bold** text.
_mask = re.compile(r"(?<=[a-z0-9])[*×]{2,}-?(?=[a-z0-9])|[*×]{3,}")
#: Signs of such a number, at least: 2**10 is none.
_LEAST_MASKED = 6
#: A year in brackets, and what belongs to it: a mark before it, or the signs of a court behind it.
of_year = re.compile(
    rf"(?:[a-z0-9]{{1,12}}|(?:{_HAN}){{1,6}}){_YEAR}(?:第\s?)?\d+(?:\s?号{_BRANCH})?"
    rf"|{_PROVINCE}?{_YEAR}"
    rf"[\u4e00-\u9fff]{{1,6}}\s?\d{{0,6}}[\u4e00-\u9fff]{{0,6}}?\s?(?:第\s?)?\d+\s?号{_BRANCH}"
)
#: ``1.`` at the start of a line is no part of ``1.2024年``.
_numbering = re.compile(r"(\n[^\S\n]*\d{1,2})\.(?=\d)")
_amount = re.compile(rf"(?:{'|'.join(w for w in CURRENCIES if w.isascii() and w.isalpha())})[\d.]+")
_thousands = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d]|,\d)")
#: 14:30, but not the share of 股东2:30%.
_clock = re.compile(
    r"(?<![\d:])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\d:]|\s?[%元万亿股份天名])"
)
_mixed = re.compile(r"(?=.*\d)(?=.*[^\d])", re.DOTALL)
_year = re.compile(_YEAR)
#: Signs before the year at most, in ``of_year``.
_MOST_BEFORE_YEAR = 12
#: Signs below 128 that a joined code is made of.
_IS_SIGN = np.array([chr(n) in "abcdefghijklmnopqrstuvwxyz0123456789-_/." for n in range(128)])
#: Those of a code of which a part is hidden, and marks that hide one, at least.
_IS_JOINED = _IS_SIGN & (np.arange(128) != ord("."))
_LEAST_MASKS = 2
#: Digits of a card, of thousands, and of a time of the day, at least.
_CARD_DIGITS, _THOUSANDS_DIGITS, _TIME_DIGITS = 12, 4, 3
#: What ends these patterns reaches so far behind their digits and marks.
_BEHIND_RUN = 3


def find_codes(folded: str) -> Iterator[tuple[int, int]]:
    """Spans of codes: digits joined with letters, dashes, strokes or a year in brackets.

    Digits alone are none, unless in the groups of a card; a decimal number is one, as it has no
    parts either.
    """
    text = _numbering.sub(r"\1 ", f"\n{folded}")[1:]
    yield from _find_joined(text)
    for match in _matches_in_runs(_grouped, text, " ", _CARD_DIGITS):
        if not _years.fullmatch(match[0]):
            yield match.span()
    if "**" in text or "××" in text:
        yield from _find_masked(text)
    for match in (*plate.finditer(text), *(_lettered.finditer(text) if "字第" in text else ())):
        yield match.span()
    near_years = {
        place
        for year in _year.finditer(text)
        for place in range(max(year.start() - _MOST_BEFORE_YEAR, 0), year.start() + 1)
    }
    for match in matches_at(of_year, text, sorted(near_years)):
        yield match.span()


def _find_joined(text: str) -> Iterator[tuple[int, int]]:
    # A run at a time, as most have no digit: words are passed over, not matched.
    for start, end in _runs_with_digits(text):
        for match in _joined.finditer(text, start, end):
            if match[0].isalpha():
                continue
            is_amount = _is_range(match[0]) or _amount.fullmatch(match[0])  # RM35.40
            # 甲方—2024年: a dash of the sentence, folded.
            is_date = not match[0].isascii() and text[match.end() : match.end() + 1] in {"年", "月"}
            if _mixed.match(match[0]) and not is_amount and not is_date:
                yield match.span()


def _find_masked(text: str) -> Iterator[tuple[int, int]]:
    points = points_of(text)
    is_mask = (points == ord("*")) | (points == ord("×"))
    runs = _runs(is_mask | _IS_JOINED[np.minimum(points, 127)], is_mask, _LEAST_MASKS)
    # The sign of a province may be before a run.
    codes = (
        code for start, end in runs for code in _with_mask.finditer(text, max(start - 1, 0), end)
    )
    for match in chain(codes, _grouped_mask.finditer(text)):
        code = match[0]
        inner = code.strip("*×")
        is_marked = code != inner and code[0] == code[-1] and not _mask.search(inner)
        is_long = len(code) >= _LEAST_MASKED and any(map(str.isdigit, code))
        if is_long and _mask.search(code) and not is_marked:  # ***2023-001*** hides nothing
            yield match.span()


def _runs_with_digits(text: str) -> list[tuple[int, int]]:
    """Spans of the runs of signs of joined codes that hold digits and other signs."""
    points = points_of(text)
    is_sign = _IS_SIGN[np.minimum(points, 127)] | ((points >= 0x4E00) & (points <= 0x9FFF))
    is_digit = (points >= ord("0")) & (points <= ord("9"))
    return _runs(is_sign, is_digit, 1)


def _matches_in_runs(
    pattern: re.Pattern[str], text: str, marks: str, n_digits: int
) -> Iterator[re.Match[str]]:
    """Those of a pattern that lie in runs as `_runs_of_digits` has them."""
    for start, end in _runs_of_digits(text, marks, n_digits):
        yield from pattern.finditer(text, start, end + _BEHIND_RUN)


def _runs_of_digits(text: str, marks: str, n_digits: int) -> list[tuple[int, int]]:
    """Spans of the runs of digits and some marks that hold so many digits, and marks."""
    points = points_of(text)
    is_digit = (TRAITS.look_up(points) & DECIMAL) > 0
    is_sign = is_digit.copy()
    for mark in marks:
        is_sign |= points == ord(mark)
    return _runs(is_sign, is_digit, n_digits)


def _runs(is_sign: Bools, is_digit: Bools, at_least: int) -> list[tuple[int, int]]:
    """Spans of the runs of signs with so many digits, and other signs."""
    padded = np.zeros(len(is_sign) + 2, bool)
    padded[1:-1] = is_sign
    edges = np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
    digits = np.flatnonzero(is_digit)
    first, last = np.searchsorted(digits, edges.T)
    keep = (last - first >= at_least) & (last - first < edges[:, 1] - edges[:, 0])
    return [(start, end) for start, end in edges[keep].tolist()]


def _is_range(text: str) -> bool:
    """Two whole numbers, the larger last: ``5-8``, ``2023-2025``, unlike ``2023-001``."""
    low, _, high = text.partition("-")
    is_number = low.isdecimal() and high.isdecimal() and "0" not in (low[0], high[0])
    return is_number and int(low) < int(high)


def cut_places(folded: str, codes: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    """Places (len(folded) + 1,) at which a value that begins or ends is cut.

    Those inside codes, as :func:`find_codes` has them, numbers in groups of thousands, and times of
    the day.
    """
    thousands = _matches_in_runs(_thousands, folded, ",.", _THOUSANDS_DIGITS)
    others = (match.span() for match in chain(thousands, _times_of_day(folded)))
    return places_inside(chain(codes, others), len(folded))


def clock_colons(folded: str) -> list[int]:
    """Places of the colons inside times of the day: 14:30."""
    return [
        place
        for time in _times_of_day(folded)
        for place in range(*time.span())
        if folded[place] == ":"
    ]


def _times_of_day(folded: str) -> Iterator[re.Match[str]]:
    return _matches_in_runs(_clock, folded, ":", _TIME_DIGITS) if ":" in folded else iter(())


def covered_before(spans: Iterable[tuple[int, int]], n: int) -> NDArray[np.int64]:
    """Running count (n + 1,) of the characters of some spans, of a text of n characters."""
    steps = np.zeros(n + 1, np.int64)
    for start, end in spans:
        steps[start] += 1
        steps[end] -= 1
    return np.concatenate(([0], np.cumsum(np.cumsum(steps)[:-1] > 0)))


def places_inside(spans: Iterable[tuple[int, int]], n: int) -> NDArray[np.bool_]:
    """Places (n + 1,) between two characters of one span, of a text of n characters."""
    steps = np.zeros(n + 2, np.int64)
    for start, end in spans:
        if end > start:
            steps[start + 1] += 1
            steps[end] -= 1
    return np.asarray(np.cumsum(steps)[:-1] > 0)
