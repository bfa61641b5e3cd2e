"""Dates: found in Chinese and English text, and read into a canonical spelling.

Keys: ``2017-05-03``, ``2017-05`` or ``2017`` for dates, ``--05-03`` for one whose year only its
document tells (as XML Schema spells a gMonthDay), ``去年-05-03`` where a word does, ``2017-Q3`` for
a quarter, ``2017-H1`` for a half, ``2017-05 end`` and ``2017-05 early`` (上旬) for a part, ``..``
between the ends of a range. A year of the Republic of China is that of the common era.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.extraction.values.numbers import read_number
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
MONTH_NAMES = "|".join(sorted(_MONTHS, key=len, reverse=True))
_CN = "零〇一二三四五六七八九十壹贰貳叁參叄肆伍陆陸柒捌玖拾廿卅"
#: 13月 and 32日 are kept, to be remarked: 2023年2月32日 is not all of February.
_MONTH = (
    rf"(?P<m>1\s?[0-2]|0?\s?[1-9]|[{_CN}]{{1,3}}|\d\d(?=\s?月\s?\d{{1,2}}\s?[日号號]))"
    r"\s?月(?P<s>\s?份)?"
)
_DAY = rf"\s?(?P<d>[12]\s?\d|3\s?[01]|0?\s?[1-9]|[{_CN}]{{1,3}}|\d\d)\s?[日号號]"
_MOST_WRITTEN = 99
_QUARTER = r"(?<!前)第?\s?(?P<q>[一二三四1-4])\s?季度"
_HALVES = {"上": 1, "下": 2}
_HALF = r"(?P<h>[上下])半年(?:度(?!报告))?"
#: A part of a year, a month or a quarter; 初步 is a word.
_PART = r"(?P<e>底|末|初(?!步|始|次|级|[一二三四五六七八九十])|[上中下]旬)"
#: 民国113年 is 2024, 民国元年 1912.
_REPUBLIC = "(?:中[华華])?民[国國]"
_BEFORE_REPUBLIC = 1911
_YEAR = (
    rf"(?:1\s?[89]|2\s?0)\s?\d\s?\d|[{_CN}][{_CN}o0]{{3}}"
    rf"|{_REPUBLIC}\s?(?:\d{{1,3}}|[{_CN}百]{{1,6}}|元)"
)
_chinese = re.compile(
    rf"(?=[\d{_CN}中民])(?P<y>{_YEAR}|(?<!\d)\d\d(?=\s?年\s?\d{{1,2}}\s?月))\s?年"
    rf"(?:\s?度?\s?(?:{_MONTH}(?:{_DAY})?|{_QUARTER}|{_HALF}|q(?P<q1>[1-4])(?!\d)|h(?P<h1>[12])(?!\d)))?"
    rf"(?:[年度]?{_PART})?"
)
#: Words for a year, and what they are counted from: the same year, the one before, the one after.
_YEARS = {
    word: key
    for key, words in {
        "-": "今年 本年 当年 當年 同年", "去年": "去年 上年", "前年": "前年",
        "明年": "明年 次年 翌年",
    }.items()
    for word in words.split()
}  # fmt: skip
#: 10-5月3日 is none, 1月1日-5月3日 has two.
_ALONE = rf"(?<![\d{_CN}/个個])(?:(?<!-)|(?<=[日号號]-)|(?<=[日号號]--))(?<!\d[.,])(?<![\d{_CN}]年)"
_yearless = re.compile(
    rf"(?:(?P<w>{'|'.join(_YEARS)})\s?)?{_ALONE}(?:{_MONTH}(?:{_DAY})?|{_QUARTER}|(?(w){_HALF}|(?!))){_PART}?"
)
#: 2023年1-3月 and 5月3日至5日: the second end has neither the year nor the month of its own.
_TO = r"\s?(?:-+|~|至|到)\s?"
_MONTH_ALONE = rf"1[0-2]|0?[1-9]|[{_CN}]{{1,2}}"
_DAY_ALONE = rf"[12]\d|3[01]|0?[1-9]|[{_CN}]{{1,3}}"
_months = re.compile(
    rf"(?P<y>{_YEAR})\s?年度?\s?(?P<m>{_MONTH_ALONE})\s?(?:月份?)?{_TO}"
    rf"(?P<last>(?P<m2>{_MONTH_ALONE})\s?月份?)(?!\s?[\d{_CN}]{{1,3}}\s?[日号號])"
)
_days = re.compile(
    rf"(?:(?P<y>{_YEAR})\s?年\s?|{_ALONE})(?P<m>{_MONTH_ALONE})\s?月\s?(?P<d>{_DAY_ALONE})\s?[日号號]?{_TO}"
    rf"(?P<last>(?P<d2>{_DAY_ALONE})\s?[日号號])"
)
#: Where it may begin: at a run of digits, with a word before it or without.
_begins_yearless = re.compile(
    rf"(?=[\d{_CN}今本当當同去上前明次翌第中民])"
    rf"(?:[今本当當同去上前明次翌]年|第?[\d{_CN}]+|{_REPUBLIC}\s?[\d{_CN}]+)"
)
_of_republic = re.compile(rf"{_REPUBLIC}\s?")
_of_moon = re.compile(r"初[一二三四五六七八九十]")
_PARTS = {
    "底": "end", "末": "end", "初": "begin", "上旬": "early", "中旬": "middle", "下旬": "late",
}  # fmt: skip
#: What is written around a date and is no part of it: 截至2024年6月30日止.
_around = re.compile(
    r"\A截[至止]\s?|\A自(?=.*起\Z)|(?<=[日号號\d时時点點分])\s?[止起]\Z|(?<=年)度\Z"
)
#: Of a day: 9时30分, 二十四时, 9:30.
_HOUR = (
    rf"(?:(?:\d{{1,2}}|[{_CN}]{{1,3}})\s?[时時点點](?:\s?(?:\d{{1,2}}\s?分|整|半))?"
    r"|\d{1,2}:\d\d(?::\d\d)?\s?[时時]?)"
)
#: Hours that a date may be written with.
_hours = re.compile(
    r"(?:(?<=[日号號])\s?(?:\((?:周|星期|礼拜)[一二三四五六日天]\)\s?)?"
    r"(?:[当當]?(?:晚[上间間]?|夜[间間]?|凌晨|早上|早[间間]|上午|中午|午[间間]|下午|傍晚)\s?)?"
    rf"{_HOUR}?"
    # As databases and spreadsheets write a date: 2023-02-28 00:00:00.
    r"|(?:(?<=[日号號])|(?<=\d)[t ]) ?\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)\Z"
)
_ordered = re.compile(
    r"(?:(?<![\d/-])(?<!\d[.,])|(?<=\d[./]\d-)|(?<=\d[./]\d\d-)"
    r"|(?<=\d{4}-\d\d-\d\d-)|(?<=\d[-./]\d--)|(?<=\d[-./]\d\d--))"
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
    rf"(?<![a-z\d])(?=[adfjmnos\d])(?:(?P<m>{MONTH_NAMES})\.?\s+(?P<d>\d{{1,2}})(?:\s?(?:st|nd|rd|th))?\s*,?\s+(?P<y>(?:1[89]|20)\d\d)(?![a-z\d])"
    rf"|(?P<d2>\d{{1,2}})(?:\s?(?:st|nd|rd|th))?(?:\s+day)?(?:\s+of)?[\s-]+(?P<m2>{MONTH_NAMES})\.?\s*[,-]?\s*"
    rf"(?P<y2>(?:1[89]|20)\d\d|\d\d)(?![a-z\d])"
    rf"|(?P<m3>{MONTH_NAMES})\.?\s*,?\s+(?P<y3>(?:1[89]|20)\d\d)(?![a-z\d]))"
)
_digits = re.compile(r"\d+")
#: Every name of a month begins with one of them.
_MONTH_STEMS = tuple(sorted({name[:3] for name in _MONTHS}))
_DAY_DIGITS, _YEAR_DIGITS, _PACKED_DIGITS = 2, 4, 8
_PARTED = frozenset("-/.")
#: Signs of a quarter or a half, and what may stand between a year and one.
_SIGNS = frozenset("qh")
_BEHIND_YEAR = _SIGNS | frozenset("- \n\t上下")
#: January 1 of January 1 to December 31, 2023.
_UNTIL = r"\s?(?:-|to|through|until)\s?"
_english_first = re.compile(
    rf"(?<![a-z\d])(?:(?P<m>{MONTH_NAMES})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"(?={_UNTIL}(?P<m4>{MONTH_NAMES})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\s*,?\s+(?P<y>(?:19|20)\d\d)(?![a-z\d]))"
    rf"|(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<m2>{MONTH_NAMES})\.?"
    rf"(?={_UNTIL}\d{{1,2}}(?:st|nd|rd|th)?\s+(?P<m5>{MONTH_NAMES})\.?\s*,?\s+(?P<y2>(?:19|20)\d\d)(?![a-z\d])))"
)
#: 2024Q1, Q1 2024 and 1Q2024, the same of halves, and 2024上半年.
_parts_of_year = re.compile(
    r"(?<![\da-z])(?:(?P<y>(?:19|20)\d\d)(?:[\s-]?(?:q(?P<q>[1-4])|h(?P<h1>[12]))(?![\da-z])|(?P<h>[上下])半年)"
    r"|(?:q(?P<q2>[1-4])|h(?P<h2>[12]))[\s,]\s?(?P<y2>(?:19|20)\d\d)(?![\da-z])"
    r"|(?:(?P<q3>[1-4])q|(?P<h3>[12])h)\s?(?P<y3>(?:19|20)\d\d)(?![\da-z]))"
)
_between = re.compile(
    rf"\s?{_HOUR}?\s?(?:\(不?含[^()]{{0,4}}\))?\s?(?:起)?\s?(?:-+|~|至|到|to|through|until)\s?(?:于)?\s?"
)

#: A quarter, a half and a part of a year or a month, as keys spell them.
_key = re.compile(
    rf"(?:\d{{4}}|-|[去前明]年)-(?:q[1-4]|h[12]|\d\d)(?: (?:{'|'.join(_PARTS.values())}))?"
    r"|\d{4} (?:end|begin)"
)


@dataclass(frozen=True, slots=True)
class When:
    """A date, a range of dates, or a period; ``key`` is its canonical spelling."""

    start: int
    end: int
    key: str


def is_no_day(key: str) -> bool:
    """Whether a key, or an end of its range, is a day that no calendar has: 2023-02-30."""
    days = [
        re.fullmatch(r"(\d{4}(?=-)|.*(?=-..-))-(\d\d)(?:-(\d\d))?", part)
        for part in key.split("..")
    ]
    return any(_is_beyond_month(day) for day in days if day)


def _is_beyond_month(day: re.Match[str]) -> bool:
    # Without a year: a leap year may be meant.
    year, month = int(day[1]) if day[1].isdecimal() else 2000, int(day[2])
    return not 1 <= month <= 12 or int(day[3] or 1) > monthrange(year, month)[1]


def find_dates(folded: str) -> Iterator[When]:
    """Every date, longest reading first, then in order; two dates joined by 至 are two dates.

    The second of two has the year of the first if it has none. What needs the first, as the days of
    5月3-5日, is a range with its ends.
    """
    dates: list[When] = []
    is_taken = bytearray(len(folded))

    def is_free(found: When) -> bool:
        if any(is_taken[found.start : found.end]):
            return False
        is_taken[found.start : found.end] = b"\1" * (found.end - found.start)
        return True

    for match in _short_ranges(folded):
        ends = _read_short_range(match)
        if ends and is_free(ends[0]):
            dates += ends
    for match in _matches(folded):
        found = _read_date(match)
        if found and is_free(found):
            dates.append(found)
    yield from _with_years(folded, sorted(dates, key=lambda found: (found.start, -found.end)))


def _with_years(folded: str, dates: list[When]) -> Iterator[When]:
    """The last date of 2023年1月1日至12月31日, or of one to 次年3月31日, with its year."""
    before: When | None = None
    for date in dates:
        key = date.key
        if before is not None and _between.fullmatch(folded, before.end, date.start):
            key = _year_after(before.key, key, folded[date.start : date.start + 2])
        before = When(date.start, date.end, key)
        yield before


def _year_after(first: str, key: str, word: str) -> str:
    """A key with the year of the range that it ends, as far as that is told."""
    if not re.fullmatch(r"\d{4}-(?:\d\d(?:-\d\d)?|[QH]\d)", first):
        return key
    year, month_day = int(first[:4]), first[4:]
    is_next = word in {"次年", "翌年"} and key.startswith("明年-")
    if is_next:
        return f"{year + 1}{key.removeprefix('明年')}"
    is_same = key.startswith("--") and word not in {"今年", "本年"}
    is_same &= key[2:3].isdigit() == month_day[1:2].isdigit()
    return f"{year}{key[1:]}" if is_same and key[1:] >= month_day else key


def _short_ranges(folded: str) -> Iterator[re.Match[str]]:
    if "月" in folded:
        places = [match.start() for match in _begins_yearless.finditer(folded)]
        yield from matches_at(_months, folded, places)
        yield from matches_at(_days, folded, places)


def _read_short_range(match: re.Match[str]) -> list[When]:
    """The range and its two ends; nothing where it would run backwards."""
    parts = match.groupdict()
    first = [_key_of_year(parts["y"], None)]
    numbers = [_number(parts[name]) for name in ("m", "d") if name in parts]
    last = _number(parts["d2"] if "d2" in parts else parts["m2"])
    if first[0] is None or last is None or None in numbers or _is_of_moon(match):
        return []
    written = [n for n in numbers if n is not None]
    if not written[-1] < last <= (31 if "d2" in parts else 12) or written[0] > 12:
        return []
    low, high = ("-".join([first[0], *(f"{n:02d}" for n in ns)])
                 for ns in (written, [*written[:-1], last]))  # fmt: skip
    start, end, middle = match.start(), match.end(), match.start("last")
    first_end = start + len(re.sub(rf"{_TO}\Z", "", match.string[start:middle]))
    return [
        When(start, end, f"{low}..{high}"),
        When(start, first_end, low),
        When(middle, end, high),
    ]


def _matches(folded: str) -> Iterator[re.Match[str]]:
    """What the patterns match, one after another.

    Each pattern is tried only where it can match: at a number of so many digits, or at a month.
    """
    if "年" in folded:
        yield from _chinese.finditer(folded)
    if any(word in folded for word in ("月", "季度", "半年")):
        places = [match.start() for match in _begins_yearless.finditer(folded)]
        yield from matches_at(_yearless, folded, places)
    numbers = [match.span() for match in _digits.finditer(folded)]
    yield from matches_at(_parts_of_year, folded, _places_of_parts(folded, numbers))
    parted = [(a, b) for a, b in numbers if folded[b : b + 1] in _PARTED]
    days = [a for a, b in numbers if b - a <= _DAY_DIGITS]
    yield from matches_at(_ordered, folded, [a for a, b in parted if b - a == _YEAR_DIGITS])
    in_english = sorted([*days, *places_of(_MONTH_STEMS, folded)])
    yield from matches_at(_english, folded, in_english)
    yield from matches_at(_english_first, folded, in_english)
    yield from matches_at(_day_first, folded, [a for a, b in parted if b - a <= _DAY_DIGITS])
    yield from matches_at(_packed, folded, [a for a, b in numbers if b - a == _PACKED_DIGITS])


def _places_of_parts(folded: str, numbers: list[tuple[int, int]]) -> list[int]:
    """Where 2024Q1, Q1 2024, 1Q2024 or 2024上半年 may begin."""
    years = [a for a, b in numbers if b - a == _YEAR_DIGITS and folded[b : b + 1] in _BEHIND_YEAR]
    signs = [
        a if folded[b : b + 1] in _SIGNS else a - 1
        for a, b in numbers
        if b - a == 1 and (folded[b : b + 1] in _SIGNS or folded[a - 1 : a] in _SIGNS)
    ]
    return sorted([*years, *signs])


def read_date(folded: str) -> When | None:
    """A whole text as a date, with the hours of a day or without, or a range of dates."""
    text = _hours.sub("", _around.sub("", folded.strip(" ,.")))
    if _key.fullmatch(text):
        return When(0, len(folded), text.replace("q", "Q").replace("h", "H"))
    found = list(find_dates(text))
    if found and (found[0].start, found[0].end) == (0, len(text)):
        return When(0, len(folded), found[0].key)
    if len(found) == 2:
        middle = text[found[0].end : found[1].start]
        around = (text[: found[0].start].strip("自从由 "), text[found[1].end :].strip("止 "))
        if _between.fullmatch(middle) and around == ("", ""):
            return When(0, len(folded), f"{found[0].key}..{found[1].key}")
    return None


def _read_date(match: re.Match[str]) -> When | None:
    parts = match.groupdict()
    month, day = _month_and_day(parts)
    if "w" in parts and not any(parts[name] for name in "wdesqh"):
        return None  # 9月 may be nine months
    if _is_of_year_before(parts, month) or _is_of_moon(match):
        return None
    year = _key_of_year(parts.get("y") or parts.get("y2") or parts.get("y3"), parts.get("w"))
    given = [year, *_part_of_year(parts)]
    for part, most in ((month, 12), (day, 31)):
        number = _number(part)
        # Chinese ones are kept, to be remarked.
        if part is not None and not 1 <= (number or 0) <= (_MOST_WRITTEN if "e" in parts else most):
            return None
        given += [] if number is None else [f"{number:02d}"]
    if year is None:
        return None
    end = match.end()
    key = "-".join(filter(None, given))
    if parts.get("e"):
        # 5月3日初 is no part of a day.
        key, end = (key, match.start("e")) if day else (f"{key} {_PARTS[parts['e']]}", end)
    return When(match.start(), end, key)


_Parts = dict[str, str | None]


def _month_and_day(parts: _Parts) -> tuple[str | None, str | None]:
    one, other = parts.get("a"), parts.get("b")
    if one and other:
        # Written with the day first unless that cannot be: 05/31/2017.
        return (other, one) if int(other) <= 12 else (one, other)
    month = parts.get("m") or parts.get("m2") or parts.get("m3")
    return month, parts.get("d") or parts.get("d2")


def _part_of_year(parts: _Parts) -> list[str]:
    """Its quarter or half, if one is written."""
    for sign in "QH":
        names = (sign.lower(), *(f"{sign.lower()}{n}" for n in (1, 2, 3)))
        part = next(filter(None, map(parts.get, names)), None)
        if part:
            return [f"{sign}{_HALVES.get(part) or _number(part)}"]
    return []


def _is_of_year_before(parts: _Parts, month: str | None) -> bool:
    """November 1 to February 28, 2024."""
    until = parts.get("m4") or parts.get("m5")
    return bool(until and month and _MONTHS[month] > _MONTHS[until])


def _is_of_moon(match: re.Match[str]) -> bool:
    """农历五月初五 is a day by the moon, which no calendar of the sun names."""
    text, (start, end) = match.string, match.span()
    is_named = text[max(0, start - 2) : start] in {"农历", "阴历", "旧历", "農曆", "陰曆", "舊曆"}
    return is_named or bool(text[start:end].endswith("月") and _of_moon.match(text, end))


def _key_of_year(year: str | None, word: str | None) -> str | None:
    """Of a year as it is written, of a word for one, or of none; None if it is no number."""
    if year is None:
        return _YEARS[word] if word else "-"
    republic = _of_republic.match(year)
    if republic:
        number = _number(year[republic.end() :].replace("元", "一"))
        return f"{number + _BEFORE_REPUBLIC:04d}" if number else None
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
