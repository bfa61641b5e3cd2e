"""Amounts of tables that a conversion made plain lines of, and whose unit stands above them.

::

    单位：人民币万元
    中标主体项目名称中标金额工期（日历天）
    公司六奉公路新建工程 41,688.5188 450
    小计 41,688.5188

Nothing parts the cells of these lines. What is sure is the unit, said once for all of them or
behind the header of an amount (``合同总价（万元）``); of the numbers of a line those with groups of
thousands or decimals are amounts, or the only one that it has. Their header is what the unit stands
behind, or the first known name of an amount in a line of headers. A sentence's end, or a fourth
line without a number, ends such a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import is_known
from featpipe.extraction.values.text import placed_lines
from featpipe.extraction.values.values import Value, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class LineAmount:
    """``text[start:end]`` is a number with this value, unit included."""

    start: int
    end: int
    value: Value
    label: str
    """What heads it."""
    is_sum: bool
    """Whether its line holds sums."""


#: All patterns are for folded text.
_UNIT = r"(?:人民币)?(?P<unit>(?:[十百千]?万|[千百亿])?(?:元|人民币|美元|欧元|港元|港币|日元|英镑))"
#: The end of a line that says the unit of what follows, and a header.
_stated = re.compile(rf"(?<!\S)\(?(?:金额)?单位\s?:\s?{_UNIT}\)?\s?:?\s*\Z")
_header = re.compile(rf"(?P<label>[^\s()]{{0,14}}[额价款费资入值])\s?\((?:单位\s?:\s?)?{_UNIT}\)")
_LONGEST_HEADER = 120
_not_in_header = re.compile(r"[\d。;:]")
_name = re.compile(r"(?=([^\s()]{2,8}[额价款费]))")
_number = re.compile(
    r"(?<![\d.,%a-z/-])(?:\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,8})?"
    r"|(?!(?:19|20)\d\d\.[01]?\d(?!\d))\d{1,12}\.\d{1,8})"
    r"(?![\d,.%]|\s?(?:[元万亿千百年月日天米吨个台套]|公里|平方|k[mwv]|mw|㎡))"
)
_alone = re.compile(r"(?<=\s)\d{2,9}\s*\Z")
_digit = re.compile(r"\d")
_sum = re.compile(r"\s*[合总小共]\s?计(?!\S*[:。])")
#: Lines without a number that a row may go on for.
_MOST_BETWEEN = 3
_SOME_AMOUNT = "金额"


@lru_cache(maxsize=8)
def amounts_of_lines(folded: str) -> tuple[LineAmount, ...]:
    """Each amount of such a table, in order."""
    return tuple(_find_amounts(folded))


def _find_amounts(folded: str) -> Iterator[LineAmount]:
    if "单位" not in folded and "元)" not in folded:
        return
    unit, label, n_between = "", "", 0
    for start, line in placed_lines(folded):
        stated = _unit_of(line)
        if stated:
            (unit, label), n_between = stated, 0
        elif unit:
            numbers = [] if _has_cells(line) else list(_numbers_in(line))
            for first, last in numbers:
                value = read_value(line[first:last] + unit, "money")
                if value.unit:
                    heads = label or _SOME_AMOUNT
                    is_sum = _sum.match(line) is not None
                    yield LineAmount(start + first, start + last, value, heads, is_sum)
            if not label and _may_head(line):
                label = next((name for name in map(_known_end, _name.findall(line)) if name), "")
            n_between = 0 if numbers else n_between + 1
            if "。" in line or n_between > _MOST_BETWEEN:
                unit = ""


def _unit_of(line: str) -> tuple[str, str] | None:
    """What a line says of the amounts below it, and their header if it says that as well."""
    stated = _stated.search(line[-40:])
    if stated is not None:
        return stated["unit"], ""
    header = _header.search(line) if _may_head(line) else None
    if header is None:
        return None
    return header["unit"], _known_end(header["label"]) or header["label"][-4:]


def _may_head(line: str) -> bool:
    return len(line) <= _LONGEST_HEADER and not _not_in_header.search(line)


def _known_end(words: str) -> str:
    """The longest known name that words end with; the 金额 of 预估金额 says too little."""
    ends = (words[at:] for at in range(max(len(words) - 8, 0), max(len(words) - 2, 1)))
    return next(filter(is_known, ends), "")


def _has_cells(line: str) -> bool:
    """Whether tabs, gaps or bars part the line's cells, whose headers tell what they are."""
    return "\t" in line or "|" in line or "  " in line.strip()


def _numbers_in(line: str) -> Iterator[tuple[int, int]]:
    found = [match.span() for match in _number.finditer(line)]
    alone = None if found else _alone.search(line)
    if alone is not None and not _digit.search(line[: alone.start()]):
        found = [(alone.start(), alone.start() + len(alone[0].rstrip()))]
    yield from found
