"""What statements are made of: patterns with named values, and the words that several share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.names.name_patterns import GAP, ORGANISATION, PERSON

if TYPE_CHECKING:
    import re


class Phrase(NamedTuple):
    """A place, in characters (half-open), and what a label would call it."""

    start: int
    end: int
    words: str
    may_be_part: bool = False
    """Of a longer value: a date that begins a period."""


class Statement(NamedTuple):
    """A pattern whose named groups are values, what a label would call each, and a word it has."""

    word: str
    pattern: re.Pattern[str]
    labels: dict[str, str]


def span_of(found: re.Match[str]) -> tuple[int, int]:
    """Of the first named group of a match that is there."""
    return next(found.span(name) for name, value in found.groupdict().items() if value)


def behind_last(marks: str, folded: str, end: int, most: int) -> int:
    """The place behind the last of some marks before another place, so many characters at most."""
    low = max(end - most, 0)
    return max(low, *(folded.rfind(mark, low, end) + 1 for mark in marks))


NUMERAL = r"[〇零○o一二三四五六七八九十\d]"
DATE = rf"(?:\d{{4}}|{NUMERAL}{{4}}){GAP}年{GAP}{NUMERAL}{{1,3}}{GAP}月{GAP}{NUMERAL}{{1,3}}{GAP}日"
#: So, or in digits parted by marks, as tables have it.
DAY = rf"(?:{DATE}|(?<!\d)\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?!\d))"
SHARES = rf"\d[\d,.]*{GAP}(?:万|亿)?{GAP}股"
PERCENT = r"\d[\d.]*%"
MONEY = (
    rf"(?:(?:人民币|港币|美元){GAP})?(?:¥?\d[\d,.]*{GAP}(?:万|亿)?(?:[美欧日港]?元|圆)整?"
    r"|[壹贰叁肆伍陆柒捌玖拾佰仟万亿零]+[元圆]整?)"
)
#: Of years, months and days.
LENGTH = r"(?:\d{1,3}|[一二两三四五六七八九十壹贰叁肆伍陆柒捌玖拾]{1,3})"
COUNT = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
NTH = r"[一二三四五六七八九十百\d]{1,4}"
NAME = rf"(?:{ORGANISATION}|{PERSON})"
POLITE = "(?:先生|女士|同志)?"
#: Remarks between a name and its verb.
REMARK = rf"(?:{GAP}\([^()\n]{{1,60}}\))?{POLITE}"
ON_A_DAY = rf"(?:已|将|近日|日前)?(?:于{DATE})?"
#: Between what a value is called and the value.
IS = rf"(?:分别)?(?:为|是|:)?{GAP}"
OF_COMPANY = r"(?:本|上市|该)?公司"
OWNED = r"将(?:其)?(?:本人)?(?:所|直接)?持有?的?"
#: Of shares, which they are.
KINDS = r"(?:无限售|有限售|限售|流通|条件|的|普通|a股|首发后|高管锁定|非公开|社会公众|公众)*"
OF_SHARES = (
    rf"(?:{OF_COMPANY})?{KINDS}(?:股份|股票|股)?(?:总数|数量)?(?:分别|总计|共计|合计|共|为|有)*"
)
