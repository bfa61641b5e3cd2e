"""Rates of interest, as written with their period: ``月息2分``, ``年息一分二厘``, ``月利率8.7‰``.

A 分 is a tenth of a loan by the year and a hundredth by the month, a 厘 a tenth of that. Without a
period they are by the month, as is the custom. Keys are fractions of one, as those of shares are.

All patterns run on text of unchanged length (``fold_width``), so a match is a span of the original.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from featpipe.extraction.values.amounts import Amount
from featpipe.extraction.values.numbers import CHINESE_DIGIT, DIGIT, plain, read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Before a period that is none of a date: 利息 behind 2020年, 5月1日 or 上月 has no period.
_APART = rf"(?<![\d{CHINESE_DIGIT}上下本近半全当末])"
#: What is stated, and for how long: 年利率, 月息.
_WITH_PERIOD = rf"{_APART}(?P<by>[年月日])(?:化?(?:利率|收益率)|利息?|息)"
#: Between what is stated and how much.
_IS = r"[^\S\n\t]?(?:[为為是按:][^\S\n\t]?)?"
_SMALL = rf"(?:\d(?:\.\d{{1,3}})?|[{DIGIT}]|[{DIGIT}][点點][{DIGIT}])"
#: A last digit without a word, as in 月息2分5; none of 2分5次付清.
_SPOKEN = rf"[\d{DIGIT}](?![\d.%‰{CHINESE_DIGIT}年月日天号个次期笔起至])"
_rate = re.compile(
    rf"(?:{_APART}(?P<by>[年月])(?:利率|利息?|息)|(?<![年月日])(?:利率|利息)){_IS}"
    rf"(?:(?P<tenths>{_SMALL})[^\S\n\t]?分(?:(?P<half>半)"
    rf"|(?P<more>{_SMALL})[^\S\n\t]?[厘釐](?P<third>{_SPOKEN})?|(?P<spoken>{_SPOKEN}))?"
    rf"|(?P<hundredths>{_SMALL})[^\S\n\t]?[厘釐])(?![期钟鐘别別成之米克])"
)
_prefix = re.compile(rf"(?:{_WITH_PERIOD}|利率|利息){_IS}")
#: Behind a colon a value is told apart from its label.
_before = re.compile(rf"{_WITH_PERIOD}[^\S\n\t]?\Z")
#: Characters of the words before a rate at most.
_MOST_BEFORE = 6
_UNITS = {"年": "year", "月": "month", "日": "day"}
#: What a 分 is of a loan.
_OF_YEAR, _OF_MONTH = Decimal("0.1"), Decimal("0.01")


def find_rates(folded: str) -> Iterator[Amount]:
    """Every rate in 分 and 厘, with its period, in order."""
    if "分" in folded or "厘" in folded or "釐" in folded:
        for match in _rate.finditer(folded):
            yield _read(match)


def read_rate(folded: str) -> Amount | None:
    """A whole text as a rate in 分 and 厘."""
    match = _rate.fullmatch(folded)
    return _read(match) if match else None


def with_period(folded: str, shares: Iterable[Amount]) -> Iterator[Amount]:
    """Those shares that a rate and its period are named before, with them: ``年利率6.5%``."""
    if "利" in folded or "息" in folded or "收益率" in folded:
        for share in shares:
            low = max(share.start - _MOST_BEFORE, 0)
            if match := _before.search(folded, low, share.start):
                yield replace(share, start=match.start(), unit=_UNITS[match["by"]])


def split_period(folded: str) -> tuple[str, str]:
    """The unit of a whole text that begins with a rate and its period, and the rest of it."""
    match = _prefix.match(folded)
    return (_UNITS.get(match["by"], ""), folded[match.end() :]) if match else ("", folded)


def _read(match: re.Match[str]) -> Amount:
    hundredths = match["more"] or match["spoken"] or match["hundredths"]
    tenths = _number(match["tenths"]) + _number(hundredths) / 10 + _number(match["third"]) / 100
    if match["half"]:
        tenths += Decimal("0.5")
    key = plain(tenths * (_OF_YEAR if match["by"] == "年" else _OF_MONTH))
    unit = _UNITS.get(match["by"], "")
    return Amount(match.start(), match.end(), key, unit)


def _number(text: str | None) -> Decimal:
    return (read_number(text) if text else None) or Decimal()
