"""Dates and periods: found in Chinese and English text, and read into a canonical spelling.

Keys: ``2017-05-03``, ``2017-05`` or ``2017`` for dates, ``--05-03`` for one whose year only its
document tells (as XML Schema spells a gMonthDay), ``去年-05-03`` where a word does, ``2017-Q3`` for
a quarter, ``2017-05 end`` for a part, ``..`` between the ends of a range; ``12 months`` or
``90 days`` for periods (years are months, weeks are days).
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from featpipe.extraction.values.numbers import CHINESE, CHINESE_DIGIT, is_vague, plain, read_number
from featpipe.extraction.values.text import matches_at, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_NAME = "|".join(sorted(_MONTHS, key=len, reverse=True))
_CN = "零〇一二三四五六七八九十壹贰叁肆伍陆柒捌玖拾廿卅"
_MONTH = rf"(?P<m>1\s?[0-2]|0?\s?[1-9]|[{_CN}]{{1,3}})\s?月(?P<s>\s?份)?"
_DAY = rf"\s?(?P<d>[12]\s?\d|3\s?[01]|0?\s?[1-9]|[{_CN}]{{1,3}})\s?[日号]"
_QUARTER = r"(?<!前)第?\s?(?P<q>[一二三四1-4])\s?季度"
#: The beginning or the end of a year, a month or a quarter; 初步 is a word.
_PART = r"(?P<e>底|末|初(?!步|始|次|级|[一二三四五六七八九十]))"
_chinese = re.compile(
    rf"(?P<y>(?:1\s?[89]|2\s?0)\s?\d\s?\d|[{_CN}][{_CN}o0]{{3}}|(?<!\d)\d\d(?=\s?年\s?\d{{1,2}}\s?月))\s?年"
    rf"(?:\s?度?\s?(?:{_MONTH}(?:{_DAY})?|{_QUARTER}))?{_PART}?"
)
#: Words for a year, and what they are counted from: the same year, the one before, the one after.
_YEARS = {
    word: key
    for key, words in {
        "-": "今年 本年 当年 同年", "去年": "去年 上年", "前年": "前年", "明年": "明年 次年 翌年",
    }.items()
    for word in words.split()
}  # fmt: skip
_yearless = re.compile(
    rf"(?:(?P<w>{'|'.join(_YEARS)})\s?)?(?<![\d{_CN}/个-])(?<!\d[.,])(?<![\d{_CN}]年)(?:{_MONTH}(?:{_DAY})?|{_QUARTER}){_PART}?"
)
#: Where it may begin: at a run of digits, with a word before it or without.
_begins_yearless = re.compile(rf"[今本当同去上前明次翌]年|第?[\d{_CN}]+")
_of_moon = re.compile(r"初[一二三四五六七八九十]")
_PARTS = {"底": "end", "末": "end", "初": "begin"}
#: Hours that a date may be written with.
_hours = re.compile(
    r"(?:(?<=[日号])\s?当?(?:晚间?|夜间?|凌晨|早间|上午|中午|午间|下午|傍晚)"
    # As databases and spreadsheets write a date: 2023-02-28 00:00:00.
    r"|(?:(?<=[日号])|(?<=\d)[t ]) ?\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)\Z"
)
_ordered = re.compile(
    r"(?:(?<![\d/-])(?<!\d[.,])|(?<=\d[./]\d-)|(?<=\d[./]\d\d-))"
    r"(?P<y>(?:1[89]|20)\d\d)(?P<s>[-/.])\s?(?P<m>1[0-2]|0?[1-9])(?P=s)\s?"
    r"(?P<d>3[01]|[12]\d|0?[1-9])(?![\d])"
)
_packed = re.compile(
    r"(?<!\d)(?P<y>(?:19|20)\d\d)(?P<m>1[0-2]|0[1-9])(?P<d>3[01]|[12]\d|0[1-9])(?!\d)"
)
_day_first = re.compile(
    r"(?<![\d/-])(?<!\d[.,])(?P<a>\d{1,2})(?P<s>[-/.])\s?(?P<b>\d{1,2})(?P=s)\s?(?P<y>(?:19|20)\d\d|\d\d)(?![\d])"
)
_english = re.compile(
    rf"\b(?=[adfjmnos\d])(?:(?P<m>{_NAME})\.?\s+(?P<d>\d{{1,2}})(?:\s?(?:st|nd|rd|th))?\s*,?\s+(?P<y>(?:1[89]|20)\d\d)\b"
    rf"|(?P<d2>\d{{1,2}})(?:\s?(?:st|nd|rd|th))?(?:\s+day)?(?:\s+of)?[\s-]+(?P<m2>{_NAME})\.?\s*[,-]?\s*"
    rf"(?P<y2>(?:1[89]|20)\d\d|\d\d)\b"
    rf"|(?P<m3>{_NAME})\.?\s*,?\s+(?P<y3>(?:1[89]|20)\d\d)\b)"
)
_digits = re.compile(r"\d+")
#: Every name of a month begins with one of them.
_MONTH_STEMS = tuple(sorted({name[:3] for name in _MONTHS}))
_DAY_DIGITS, _YEAR_DIGITS, _PACKED_DIGITS = 2, 4, 8
_PARTED = frozenset("-/.")
_between = re.compile(r"\s?(?:起)?\s?(?:-+|~|至|到|to|through|until)\s?(?:于)?\s?")

_UNITS = {
    word: (unit, size)
    for unit, size, words in (
        ("months", 12, ("年", "周年", "年度", "个年度", "years", "year")),
        ("months", 1, ("个月", "月", "months", "month")),
        ("months", 3, ("个季度", "季度")),
        ("days", 1, (
            "日", "天", "日历天", "个日历天", "日历日", "个日历日",
            "个自然日", "自然日", "days", "day", "calendar days",
        )),
        ("workdays", 1, ("个工作日", "工作日", "个交易日", "business days")),
        ("days", 7, ("周", "个星期", "星期", "weeks", "week")),
        ("hours", 1, ("小时", "个小时", "hours", "hour")),
    )
    for word in words
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
    rf"\b(?:(?:one|two|three)\s+hundred(?:(?:\s+and)?\s+(?:{_BELOW_HUNDRED}))?"
    rf"|{_BELOW_HUNDRED})\b"
)
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_period = re.compile(
    rf"(?P<n>(?<!\d)\d{{1,3}}(?:,\d{{3}}){{1,5}}(?!\d)|(?<!\d)\d+(?:\.\d+)?"
    rf"|(?<![{CHINESE_DIGIT}])(?<![{CHINESE_DIGIT}万萬亿億][万萬亿億]){CHINESE}|半|{_IN_WORDS})"
    rf"\s?(?:\(\s?(?P<n2>\w+)\s?\)\s?)?"
    rf"(?P<more>个半(?=月|小时))?(?P<u>{_UNIT})"
    rf"(?:(?P<half>半)|(?<=[年度]) ?[零又]? ?(?P<m>\d+|{CHINESE})\s?个月)?(?![a-z])"
)
_begins_day = re.compile(r"\s?\d{1,2}\s?[日号]")
_begins_part = re.compile(r"\s?(?:份|底|初|末|中旬)")
_ends_month = re.compile(r"\d\s?月\s?\Z")
#: Characters of its match at most.
_LONGEST_END = 4


@dataclass(frozen=True, slots=True)
class When:
    """A date, a range of dates, or a period; ``key`` is its canonical spelling."""

    start: int
    end: int
    key: str


def is_no_day(key: str) -> bool:
    """Whether a key, or an end of its range, is a day that no calendar has: 2023-02-30."""
    days = [re.fullmatch(r"(\d{4}|.*)-(\d\d)-(\d\d)", part) for part in key.split("..")]
    return any(_is_beyond_month(day) for day in days if day)


def _is_beyond_month(day: re.Match[str]) -> bool:
    # Without a year: a leap year may be meant.
    year, month = int(day[1]) if day[1].isdecimal() else 2000, int(day[2])
    return not 1 <= month <= 12 or int(day[3]) > monthrange(year, month)[1]


def find_dates(folded: str) -> Iterator[When]:
    """Every date, longest reading first, then in order; two dates joined by 至 are two dates."""
    dates: list[When] = []
    is_taken = bytearray(len(folded))
    for match in _matches(folded):
        found = _read_date(match)
        if found and not any(is_taken[found.start : found.end]):
            is_taken[found.start : found.end] = b"\1" * (found.end - found.start)
            dates.append(found)
    yield from sorted(dates, key=lambda found: found.start)


def _matches(folded: str) -> Iterator[re.Match[str]]:
    """What the patterns match, one after another.

    Each pattern is tried only where it can match: at a number of so many digits, or at a month.
    """
    if "年" in folded:
        yield from _chinese.finditer(folded)
    if "月" in folded or "季度" in folded:
        places = [match.start() for match in _begins_yearless.finditer(folded)]
        yield from matches_at(_yearless, folded, places)
    numbers = [match.span() for match in _digits.finditer(folded)]
    parted = [(a, b) for a, b in numbers if folded[b : b + 1] in _PARTED]
    days = [a for a, b in numbers if b - a <= _DAY_DIGITS]
    yield from matches_at(_ordered, folded, [a for a, b in parted if b - a == _YEAR_DIGITS])
    yield from matches_at(_english, folded, sorted([*days, *places_of(_MONTH_STEMS, folded)]))
    yield from matches_at(_day_first, folded, [a for a, b in parted if b - a <= _DAY_DIGITS])
    yield from matches_at(_packed, folded, [a for a, b in numbers if b - a == _PACKED_DIGITS])


def read_date(folded: str) -> When | None:
    """A whole text as a date, with the hours of a day or without, or a range of dates."""
    text = _hours.sub("", folded.strip(" ,."))
    found = list(find_dates(text))
    if len(found) == 1 and (found[0].start, found[0].end) == (0, len(text)):
        return When(0, len(folded), found[0].key)
    if len(found) == 2:
        middle = text[found[0].end : found[1].start]
        around = (text[: found[0].start].strip("自从由 "), text[found[1].end :].strip("止 "))
        if _between.fullmatch(middle) and around == ("", ""):
            return When(0, len(folded), f"{found[0].key}..{found[1].key}")
    return None


def _read_date(match: re.Match[str]) -> When | None:
    parts = match.groupdict()
    year = parts.get("y") or parts.get("y2") or parts.get("y3")
    month = parts.get("m") or parts.get("m2") or parts.get("m3")
    day = parts.get("d") or parts.get("d2")
    if "a" in parts:
        # Written with the day first unless that cannot be: 05/31/2017.
        day, month = (parts["a"], parts["b"]) if int(parts["b"]) <= 12 else (parts["b"], parts["a"])
    if "w" in parts and not any(parts[name] for name in "wdesq"):
        return None  # 9月 may be nine months
    given = [_key_of_year(year, parts.get("w"))]
    for part, most in ((month, 12), (day, 31)):
        number = _number(part)
        if part is not None and (number is None or not 1 <= number <= most):
            return None
        given += [] if number is None else [f"{number:02d}"]
    if _is_of_moon(match.string, match.start(), match.end()):
        return None
    if parts.get("q"):
        given.append(f"Q{_number(parts['q'])}")
    if given[0] is None:
        return None
    end = match.end()
    key = "-".join(filter(None, given))
    if parts.get("e"):
        # 5月3日初 is no part of a day.
        key, end = (key, match.start("e")) if day else (f"{key} {_PARTS[parts['e']]}", end)
    return When(match.start(), end, key)


def _is_of_moon(text: str, start: int, end: int) -> bool:
    """农历五月初五 is a day by the moon, which no calendar of the sun names."""
    is_named = text[max(0, start - 2) : start] in {"农历", "阴历", "旧历"}
    return is_named or bool(text[start:end].endswith("月") and _of_moon.match(text, end))


def _key_of_year(year: str | None, word: str | None) -> str | None:
    """Of a year as it is written, of a word for one, or of none; None if it is no number."""
    if year is None:
        return _YEARS[word] if word else "-"
    # 二O二三年: a letter or a zero as 〇, the only digits that such a year is written with.
    digits = re.sub("[o0]", "〇", year) if any(char in _CN for char in year) else year
    number = _number(digits)
    if number is None:
        return None
    return f"{number + (2000 if number < 70 else 1900) * (number < 100):04d}"


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    text = re.sub(r"\s", "", text)
    if text in _MONTHS:
        return _MONTHS[text]
    number = read_number(text)
    return None if number is None else int(number)


def find_periods(folded: str) -> Iterator[When]:
    """Every length of time; units that are part of a date are left out."""
    is_date = bytearray(len(folded))
    for date in find_dates(folded):
        is_date[date.start : date.end] = b"\1" * (date.end - date.start)
    for match in _period.finditer(folded):
        before = folded[match.start() - 1] if match.start() else " "
        is_ordinal = before in "第." or (before.isascii() and before.isalnum())
        in_date = any(is_date[match.start() : match.end()])
        is_calendar = match["u"] in {"月", "日"} and match["n"].isdigit() and len(match["n"]) <= 2
        if in_date or is_ordinal or (is_calendar and _is_calendar(folded, match)):
            continue
        found = _read_period(match)
        if found is not None:
            yield found


def _is_calendar(folded: str, match: re.Match[str]) -> bool:
    """``5月13日`` without a year is a date, not thirteen days."""
    return bool(
        _begins_day.match(folded, match.end())
        or _ends_month.search(folded, max(0, match.start() - _LONGEST_END), match.start())
        or (match["u"] == "月" and _begins_part.match(folded, match.end()))
    )


def read_period(folded: str) -> When | None:
    """A whole text as a length of time, or as the dates it runs between."""
    text = folded.strip(" ,.")
    match = _period.fullmatch(re.sub(r"^(?:为期|不超过|共计|共)", "", text))
    found = _read_period(match) if match else None
    if found:
        return When(0, len(folded), found.key)
    dates = read_date(folded)
    return dates if dates and ".." in dates.key else None


def _read_period(match: re.Match[str]) -> When | None:
    unit, size = _UNITS[match["u"]]
    text = match["n"]
    if text == "半":
        total = size * 0.5
    else:
        number = _of_words(text) if text[0].isascii() and text[0].isalpha() else read_number(text)
        if number is None or is_vague(text):
            return None
        total = float(number) * size
    if match["half"] or match["more"]:
        total += size * 0.5
    if match["m"]:
        extra = read_number(match["m"])
        total += float(extra or 0)
    return When(match.start(), match.end(), f"{plain(Decimal(str(total)))} {unit}")


def _of_words(text: str) -> Decimal:
    total = 0
    for word in re.findall(r"[a-z]+", text):
        total = total * 100 if word == "hundred" else total + _WORDS.get(word, 0)
    return Decimal(total)
