"""Counts and shares: numbers with a unit, and parts of a whole, found in text and read by value.

All patterns run on text of unchanged length (``fold_width``), so a match is a span of the original.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from featpipe.extraction.values.amounts import (
    BEGINS,
    NUMERAL,
    SPACED_BEFORE,
    TO,
    Amount,
    alternatives,
    bracketed,
    end_of,
    stands_alone,
    with_minus,
    with_zero,
    without_row_numbers,
)
from featpipe.extraction.values.begins import numeral_places
from featpipe.extraction.values.bounds import bound_at, split_bound
from featpipe.extraction.values.numbers import (
    ARABIC,
    CHINESE,
    MIXED,
    SCALE,
    SIMPLIFIED,
    TRADITIONAL,
    plain,
    read_number,
    read_scaled,
)
from featpipe.extraction.values.rates import find_rates, read_rate, split_period, with_period
from featpipe.extraction.values.text import matches_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS = (
    "股 份 个 台 套 件 辆 艘 吨 公斤 千克 kg 克 公里 千米 km 米 平方米 平米 ㎡ m2 m² 平方公里 亩 "
    "公顷 立方米 m3 m³ mw kw kwp mwp gw 兆瓦 千瓦 人 名 户 家 次 张 枚 倍 期 批 度 千瓦时 kwh 桶 "
    "只 条 层 间 页 升 shares units"
)
#: The same in traditional characters -> in simplified ones.
_TRADITIONAL = {
    spelling: unit for unit in _UNITS.split() if (spelling := unit.translate(TRADITIONAL)) != unit
}
_UNIT = alternatives((*_UNITS.split(), *_TRADITIONAL))
#: Spelling of a unit -> the one that counts are compared in.
SAME_UNITS = {
    spelling: unit
    for unit, *others in (
        ("平方米", "平米", "㎡", "m2", "m²"),
        ("立方米", "m3", "m³"),
        ("公里", "千米", "km"),
        ("公斤", "千克", "kg"),
        ("兆瓦", "mw"),
        ("千瓦", "kw"),
        ("千瓦时", "kwh"),
    )
    for spelling in others
}
SAME_UNITS |= {spelling: SAME_UNITS.get(unit, unit) for spelling, unit in _TRADITIONAL.items()}
#: 千 of 千瓦 belongs to its unit: 300千瓦 is no 300,000.
_SCALE = rf"(?!千[瓦克米伏安帕焦卡兆])(?:{SCALE})"
#: Between a number and its scale or unit. In the next line or cell a scale alone, or a unit that
#: other words go on from, is the beginning of those: 家 of 家庭住址, 台 of 台式计算机.
_GAP = (
    r"(?:[^\S\n\t]{0,2}"
    rf"|\s(?=(?:{SCALE})[^\S\n\t]?(?:{_UNIT})|(?:{_UNIT})(?![\u4e00-\u9fff])))"
)
_COUNT = rf"{MIXED}|[+-]?{ARABIC}|{CHINESE}"
_number = re.compile(
    rf"{BEGINS}(?:(?P<low>{ARABIC}|{CHINESE})\s?(?P<low_scale>{_SCALE})?\s?(?P<low_unit>{_UNIT})?{TO})?"
    rf"(?P<number>{SPACED_BEFORE}(?=\s?(?:{SCALE}))|{_COUNT})"
    rf"(?:[^\S\n\t]?[余餘多])?(?:{_GAP}(?P<scale>{_SCALE}))?"
    rf"(?:[^\S\n\t]?[余餘多])?(?:{_GAP}(?P<unit>{_UNIT}))?"
)
_PART = r"(?:(?<![十百千])[万萬]|[十百][万萬]|百|千)分之"
#: Behind the second share of 百分之五到八, where it is none of 百分之五至八十天.
_ENDS_SHARE = r"(?=\Z|[^\w. %-]|[的之左范範不以計计])"
_percent = re.compile(
    rf"(?P<word>{_PART})\s?(?:(?P<low_parts>{NUMERAL}){TO}(?:(?P=word)\s?|(?={NUMERAL}{_ENDS_SHARE})))?"
    rf"(?P<parts>{NUMERAL})"
    rf"|(?:(?P<low>[+-]?(?<!\d){ARABIC})\s?%?{TO})?(?P<number>[+-]?(?<!\d)(?:{ARABIC}|\.\d+))"
    r"\s?(?P<sign>%|‰|‱|percent|per cent|[个個]百分[点點]|[个個]基[点點]|bps?(?![a-z\d]))"
)
_alone = re.compile(
    r"(?<![\w.,-])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w-]|[.,]\d|\s?%)", re.ASCII
)
_alone_in_brackets = re.compile(rf"(?<![^\t\n]){bracketed.pattern}(?![^\t\n])")
_bare_number = re.compile(rf"(?<![\d.,]){ARABIC}(?![\d])")

_PARTS = {
    word: Decimal(parts)
    for parts, words in (
        (100, ("百分之", "%", "percent", "per cent", "个百分点")),
        (1000, ("千分之", "‰")),
        (10000, ("万分之", "‱", "个基点", "bp", "bps")),
        (10**5, ("十万分之",)),
        (10**6, ("百万分之",)),
    )
    for word in words
}


def find_numbers(folded: str) -> Iterator[Amount]:
    """Every number with a scale or unit, in order; a range before its two ends."""
    folded = without_row_numbers(folded)
    for match in matches_at(_number, folded, numeral_places(folded)):
        is_bare = not match["scale"] and not match["unit"]
        if not is_bare and stands_alone(folded, match):
            yield from _counts_of(folded, match)


def _counts_of(folded: str, match: re.Match[str]) -> Iterator[Amount]:
    """A number, or a range and its ends."""
    high, low = _read_count(match), _read_low(match)
    # 2016-060 above 台 is no range, and 060 a part of it.
    if high is None or (match["low"] and low is None and folded[match.start("number") - 1] == "-"):
        return
    start, end = match.start("number"), high.end
    if low is not None:
        yield Amount(match.start(), end, f"{low.key}..{high.key}", high.unit)
        yield low
    bound = bound_at(folded, start, end)
    yield Amount(start, end, high.key, high.unit, bound)


def find_plain_numbers(folded: str) -> Iterator[Amount]:
    """Every number in digits that stands alone, as in a table: 1,250.50; no end of a code.

    (1,250.50) alone in a cell is -1250.5, with 1250.5 in it.
    """
    for match in _alone_in_brackets.finditer(folded):
        yield Amount(
            match.start(), match.end(), f"-{plain(read_number(match[0][1:-1]) or Decimal())}"
        )
    for match in _alone.finditer(folded):
        number = read_number(match[0])
        if number is not None:
            yield Amount(match.start(), match.end(), plain(number))


def read_count(folded: str) -> Amount | None:
    """A whole text as a number, with or without unit."""
    bound, body = split_bound(folded)
    match = _number.fullmatch(with_minus(with_zero(body)))
    high = _read_count(match) if match else None
    if match is None or high is None:
        return None
    low = _read_low(match)
    if match["low"] and low is None:
        return None
    key = f"{low.key}..{high.key}" if low else high.key
    return Amount(0, len(folded), key, high.unit, bound)


def _read_count(match: re.Match[str]) -> Amount | None:
    number = read_scaled(match["number"], match["scale"])
    if number is None:
        return None
    return Amount(match.start("number"), end_of(match), plain(number), match["unit"] or "")


def _read_low(match: re.Match[str]) -> Amount | None:
    """The low end of a range, None where 2023-15台 is none."""
    low = read_scaled(match["low"], match["low_scale"]) if match["low"] else None
    high = read_scaled(match["number"], match["scale"])
    if low is None or high is None or "\n" in match[0]:
        return None
    if match["low_unit"] not in {None, match["unit"]}:
        return None
    if match["scale"] and not match["low_scale"] and not match["low_unit"]:
        shared = read_scaled(match["low"], match["scale"])
        low = shared if shared is not None and shared < high else low
    if low >= high:
        return None
    end = max(match.end(part) for part in ("low", "low_scale", "low_unit"))
    return Amount(match.start("low"), end, plain(low), match["unit"] or "")


def find_percents(folded: str) -> Iterator[Amount]:
    """Shares and rates, in order: ``8.50%``, ``百分之八``, ``25个基点``, ``月息2分``.

    Keys are fractions of one.
    """
    shares = list(_find_shares(folded))
    rates = [
        replace(rate, bound=bound_at(folded, rate.start, rate.end) or rate.bound)
        for rate in (*find_rates(folded), *with_period(folded, shares))
    ]
    if not rates:
        return iter(shares)
    # What bounds a rate bounds its share: 不超过年利率6%.
    bounds = {rate.end: rate.bound for rate in rates}
    shares = [replace(share, bound=bounds.get(share.end, share.bound)) for share in shares]
    return iter(sorted([*rates, *shares], key=lambda a: a.start))


def _find_shares(folded: str) -> Iterator[Amount]:
    for match in matches_at(_percent, folded, numeral_places(folded)):
        amount = _read_percent(match)
        if amount is not None:
            bound = bound_at(folded, amount.start, amount.end)
            yield Amount(amount.start, amount.end, amount.key, "", bound)


def read_percent(folded: str) -> Amount | None:
    """A whole text as a share or rate; ``0.085`` without a sign is a fraction of one."""
    outer, body = split_bound(folded)
    if rate := read_rate(body):
        return replace(rate, start=0, end=len(folded), bound=outer)
    unit, body = split_period(body)
    inner, body = split_bound(body)
    bound = outer or inner
    match = _percent.fullmatch(body)
    if match:
        amount = _read_percent(match)
        return Amount(0, len(folded), amount.key, unit, bound) if amount else None
    number = read_number(body) if _bare_number.fullmatch(body) else None
    return None if number is None else Amount(0, len(folded), plain(number), unit, bound)


def _read_percent(match: re.Match[str]) -> Amount | None:
    number = read_number(match["parts"] or match["number"])
    if number is None:
        return None
    parts = _PARTS[(match["word"] or match["sign"]).translate(SIMPLIFIED)]
    key = plain(number / parts)
    written = match["low_parts"] or match["low"]
    low = read_number(written) if written else None
    if low is not None:
        key = f"{plain(low / parts)}..{key}"
    return Amount(match.start(), match.end(), key)
