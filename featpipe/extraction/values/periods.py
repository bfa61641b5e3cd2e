"""Periods: lengths of time, found in Chinese and English text, and read into a canonical spelling.

Keys: ``12 months`` or ``90 days`` (years are months, weeks are days), ``36..60 months`` of a range,
``27 months 10 days`` where days are added to months, hours to days, or minutes to hours. A period
that is told by its first and last day, 2024年3月1日至2027年2月28日, has the key of these dates:
``2024-03-01..2027-02-28``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

from featpipe.extraction.values.begins import numeral_places
from featpipe.extraction.values.dates import When, find_dates, read_date
from featpipe.extraction.values.numbers import (
    CHINESE,
    CHINESE_DIGIT,
    TRADITIONAL,
    is_vague,
    plain,
    read_number,
)
from featpipe.extraction.values.text import matches_at, places_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_UNITS = {
    spelling: (unit, size)
    for unit, size, words in (
        ("months", 12, (
            "年", "周年", "年度", "个年度", "个自然年", "个会计年度", "个完整会计年度",
            "years", "year",
        )),
        ("months", 1, ("个月", "月", "个自然月", "自然月", "个公历月", "months", "month")),
        ("months", 3, ("个季度", "季度", "quarters", "quarter")),
        ("days", 1, (
            "日", "天", "日历天", "个日历天", "日历日", "个日历日",
            "个自然日", "自然日", "days", "day", "calendar days",
        )),
        ("workdays", 1, (
            "个工作日", "工作日", "个工作天", "工作天", "个交易日", "个营业日",
            "business days", "business day", "working days", "working day",
        )),
        ("days", 7, ("周", "个星期", "星期", "weeks", "week")),
        ("hours", 1, ("小时", "个小时", "hours", "hour")),
        ("minutes", 1, ("分钟", "minutes", "minute")),
    )
    for word in words
    for spelling in (word, word.translate(TRADITIONAL))
}  # fmt: skip
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_WORDS = {word: number for number, word in enumerate(_SMALL.split())}
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS |= {word: 10 * number for number, word in enumerate(_ROUND.split(), start=2)}
_BELOW_HUNDRED = (
    rf"(?:{'|'.join(_ROUND.split())})[-\s](?:{'|'.join(_SMALL.split()[1:10])})|{'|'.join(_WORDS)}"
)
#: thirty-six, one hundred and twenty.
_IN_WORDS = (
    rf"(?<![a-z])(?:(?:one|two|three)\s+hundred(?:(?:\s+and)?\s+(?:{_BELOW_HUNDRED}))?"
    rf"|{_BELOW_HUNDRED})(?![a-z])"
)
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_CN_NUMBER = rf"(?<![{CHINESE_DIGIT}])(?<![{CHINESE_DIGIT}万萬亿億][万萬亿億]){CHINESE}"
_period = re.compile(
    rf"(?P<n>(?<!\d)\d{{1,3}}(?:,\d{{3}}){{1,5}}(?!\d)|(?<!\d)\d+(?:\.\d+)?"
    rf"|{_CN_NUMBER}|半|{_IN_WORDS})"
    rf"(?:-(?=[a-z])|\s?)(?:\(\s?(?P<n2>\w+)\s?\)\s?)?[余餘多]?"
    rf"(?P<more>[个個]半(?=月|小[时時]))?(?P<u>{_UNIT})"
    rf"(?:(?P<half>半)|(?<=[年度]) ?[零又]? ?(?P<m>\d+|{CHINESE})\s?[个個]月"
    rf"|(?<=year|ears)\s(?:and\s)?(?P<m2>\d+|{_IN_WORDS})(?:\s?\(\w+\))?\smonths?)?(?![a-z]|代(?!理))"
)
#: What a period is the high end of: 3 of 3-5年, 6个月 of 6个月至1年.
_low = re.compile(
    rf"(?P<n>(?<![\d.,])\d+(?:\.\d+)?|{_CN_NUMBER}|{_IN_WORDS})(?:\s?\(\w+\))?\s?(?P<u>{_UNIT})?"
    r"\s?(?:-|~|至|到|to)\s?\Z"
)
#: Characters of it at most, and what it may end with.
_LONGEST_LOW = 32
_ENDS_LOW = frozenset("-~至到 o")
_NUMBER = r"\d+(?:\.\d+)?"
_key = re.compile(
    rf"{_NUMBER}(?:\.\.{_NUMBER})? (?:months|workdays|days|hours|minutes)"
    rf"(?: {_NUMBER} (?:days|hours|minutes))*"
)
#: What may stand between two parts of one period, each of which is of the next smaller unit.
_between = re.compile(r"| ?[零又] ?|(?<=[a-z]) (?:and )?")
_SMALLER = {"months": "days", "days": "hours", "hours": "minutes"}
_begins_day = re.compile(r"\s?\d{1,2}\s?[日号]")
_begins_part = re.compile(r"\s?(?:份|底|初|末|[上中下]旬)")
_ends_month = re.compile(r"\d\s?月\s?\Z")
#: Characters of its match at most.
_LONGEST_END = 4
#: Most characters between the two dates of one: （含）起至.
_LONGEST_JOINT = 16


def find_periods(folded: str, dates: Iterable[tuple[int, int]] | None = None) -> Iterator[When]:
    """Every length of time, a range before its ends, and every two dates that one runs between.

    Units of a date are left out. ``dates`` are the spans of those of the text, if they are known.
    """
    if dates is None:
        dates = ((date.start, date.end) for date in find_dates(folded))
    spans = sorted(dates)
    found = [*_found_in(folded, spans), *_between_dates(folded, spans)]
    yield from sorted(found, key=lambda found: (found.start, -found.end))


def _between_dates(folded: str, dates: Sequence[tuple[int, int]]) -> Iterator[When]:
    """From each date to the next one, where words join them."""
    for (start, until), (since, end) in pairwise(dates):
        if until <= since <= until + _LONGEST_JOINT:
            found = read_date(folded[start:end])
            if found and ".." in found.key:
                yield When(start, end, found.key)


def _found_in(folded: str, dates: Iterable[tuple[int, int]]) -> Iterator[When]:
    before: When | None = None
    for low, match, found in _matches(folded, dates):
        if low is None and before is not None and _goes_on(folded, before, found):
            before = When(before.start, found.end, f"{before.key} {found.key}")
            continue
        if before is not None:
            yield before
        before = found
        if low is not None:
            yield from _range_of(low, match, found)
    if before is not None:
        yield before


def _matches(
    folded: str, dates: Iterable[tuple[int, int]]
) -> Iterator[tuple[re.Match[str] | None, re.Match[str], When]]:
    """Each length of time, with what it is the high end of."""
    is_date = bytearray(len(folded))
    for start, end in dates:
        is_date[start:end] = b"\1" * (end - start)
    places = sorted({*numeral_places(folded), *places_of(_WORDS, folded)})
    for match in matches_at(_period, folded, places):
        low = _low_of(folded, match)
        in_date = any(is_date[match.start() : match.end()])
        is_calendar = match["u"] in {"月", "日"} and match["n"].isdigit() and len(match["n"]) <= 2
        if in_date or _is_ordinal(folded, low or match):
            continue
        if is_calendar and _is_calendar(folded, match):
            continue
        found = _read_period(match)
        if found is not None:
            yield low, match, found


def _goes_on(folded: str, before: When, found: When) -> bool:
    """Whether a period is a part of the one before it: 10天 of 2年零3个月10天."""
    units = (before.key.rpartition(" ")[2], found.key.rpartition(" ")[2])
    is_smaller = _SMALLER.get(units[0]) == units[1]
    return is_smaller and bool(_between.fullmatch(folded, before.end, found.start))


def _low_of(folded: str, match: re.Match[str]) -> re.Match[str] | None:
    if folded[match.start() - 1 : match.start()] not in _ENDS_LOW:
        return None
    return _low.search(folded, max(0, match.start() - _LONGEST_LOW), match.start())


def _is_ordinal(folded: str, match: re.Match[str]) -> bool:
    before = folded[match.start() - 1] if match.start() else " "
    return (
        folded[max(0, match.start() - 2) : match.start()] == "第 "
        or before in "第."
        # 3+2年 is none of two years.
        or (before == "+" and folded[match.start() - 2 : match.start() - 1].isdigit())
        or (before.isascii() and before.isalnum())
    )


def _range_of(low: re.Match[str], match: re.Match[str], high: When) -> Iterator[When]:
    """The range, and its low end if that has no unit of its own: a period with one is found."""
    number, unit = _number_of(low["n"]), high.key.partition(" ")[2]
    own_unit, size = _UNITS[low["u"] or match["u"]]
    if number is None or own_unit != unit:
        return
    key = plain(Decimal(str(float(number) * size)))
    if float(key) < float(high.key.partition(" ")[0]):
        yield When(low.start(), high.end, f"{key}..{high.key}")
        if not low["u"]:
            yield When(low.start(), low.end("n"), f"{key} {unit}")


def _is_calendar(folded: str, match: re.Match[str]) -> bool:
    """``5月13日`` without a year is a date, not thirteen days."""
    return bool(
        _begins_day.match(folded, match.end())
        or _ends_month.search(folded, max(0, match.start() - _LONGEST_END), match.start())
        or (match["u"] == "月" and _begins_part.match(folded, match.end()))
    )


def read_period(folded: str) -> When | None:
    """A whole text as a length of time or a range of them, or as the dates it runs between."""
    text = folded.strip(" ,.")
    if _key.fullmatch(text):
        return When(0, len(folded), text)
    whole = re.sub(r"^(?:[为為]期|共[计計]?)|(?<=[年月日天周週])[期内內]$", "", text)
    match = _period.fullmatch(whole)
    found = _read_period(match) if match else next(find_periods(whole), None)
    if found and len(whole) == found.end - found.start:
        return When(0, len(folded), found.key)
    dates = read_date(folded)
    return dates if dates and ".." in dates.key else None


def _read_period(match: re.Match[str]) -> When | None:
    unit, size = _UNITS[match["u"]]
    number = _number_of(match["n"])
    if number is None:
        return None
    total = float(number) * size
    if match["half"] or match["more"]:
        total += size * 0.5
    more = match["m"] or match["m2"]
    if more:
        total += float(_number_of(more) or 0)
    return When(match.start(), match.end(), f"{plain(Decimal(str(total)))} {unit}")


def _number_of(text: str) -> Decimal | None:
    if text == "半":
        return Decimal("0.5")
    if text[0].isascii() and text[0].isalpha():
        return _of_words(text)
    return None if is_vague(text) else read_number(text)


def _of_words(text: str) -> Decimal:
    total = 0
    for word in re.findall(r"[a-z]+", text):
        total = total * 100 if word == "hundred" else total + _WORDS.get(word, 0)
    return Decimal(total)
