"""Contradictions: values of one document that cannot all be right.

They follow from the names of the fields and the canonical values alone, so that they are found in
the results of any template, whichever run wrote them:

- ``same``: two parties have one value (as :mod:`featpipe.extraction.parties` remarks);
- ``order``: an end before its begin (质押到期日 before 质押起始日);
- ``sum``: a total that its parts do not add up to (合计金额 and 金额; 含税, 不含税 and 税额);
- ``spelling``: an amount in words that is not the one in figures (大写, 小写).

A rule is silent where it is not sure which fields belong together, or where a value is no plain
date or number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.extraction.results import ExtractedValue, FieldResult

    Fields = Mapping[str, FieldResult]

#: Amounts that differ by less are equal: each may be rounded to a hundredth.
_TOLERANCE = Decimal("0.01")
_same = re.compile(r"the same as (.+)", re.DOTALL)
_date = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_begin = re.compile(
    r"起始|开始|起租|起息|起日|起$|生效|开工|start|begin|effective|from", re.IGNORECASE
)
_end = re.compile(
    r"终止|截止|结束|到期|届满|止日|止$|至$|竣工|完工|\bend|expir|terminat|until", re.IGNORECASE
)
_of_dates = re.compile(r"日期|时间|[日_\s-]|\bdate\b", re.IGNORECASE)
_total = re.compile(r"价税合计|合计|总计|共计|总金额|总额|总价|\btotal\b", re.IGNORECASE)
_no_part = re.compile(rf"{_total.pattern}|单价|均价|\bunit price\b", re.IGNORECASE)
_gross = re.compile(r"(?<!不)含税|价税合计")
_words = re.compile(r"[（(]?([大小])[写寫][）)]?")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Values that cannot all be right.

    Attributes:
        kind: the rule.
        fields: the fields concerned, the one that should follow from the others first.
        expected: the value that follows from the others, "" where there is none.

    """

    kind: Literal["same", "order", "sum", "spelling"]
    fields: tuple[str, ...]
    expected: str = ""


def find_contradictions(fields: Fields) -> list[Contradiction]:
    """The contradictions between the values of one document, in the order of the rules."""
    single = {name: one.values[0] for name, one in fields.items() if len(one.values) == 1}
    found = [*_same_parties(fields), *_wrong_order(single)]
    amounts = {name: n for name, one in single.items() if (n := _amount(one)) is not None}
    found += _wrong_spelling(amounts)
    taxed = _wrong_tax(amounts)
    return found + (taxed or list(_wrong_totals(fields, single)))


def _same_parties(fields: Fields) -> Iterator[Contradiction]:
    seen: set[frozenset[str]] = set()
    for name, result in fields.items():
        for value in result.values:
            match = _same.fullmatch(value.remark)
            pair = frozenset((name, match[1])) if match else frozenset()
            if match and match[1] in fields and pair not in seen:
                seen.add(pair)
                yield Contradiction("same", (name, match[1]))


def _wrong_order(single: Mapping[str, ExtractedValue]) -> list[Contradiction]:
    dates = {name: one.value for name, one in single.items() if _date.fullmatch(one.value)}
    begins = {name: _stem(name, _begin) for name in dates if _is_only(name, _begin, _end)}
    ends = {name: _stem(name, _end) for name in dates if _is_only(name, _end, _begin)}
    pairs = [(a, b) for a, stem in begins.items() for b in ends if ends[b] == stem]
    if not pairs and len(begins) == len(ends) == 1:
        pairs = [(next(iter(begins)), next(iter(ends)))]
    return [Contradiction("order", (b, a)) for a, b in pairs if _is_before(dates[b], dates[a])]


def _is_only(name: str, one: re.Pattern[str], other: re.Pattern[str]) -> bool:
    return bool(one.search(name)) and not other.search(name)


def _stem(name: str, role: re.Pattern[str]) -> str:
    return _of_dates.sub("", role.sub("", name)).lower()


def _is_before(one: str, other: str) -> bool:
    """As far as both are known: a month is not before a day in it."""
    known = min(len(one), len(other))
    return one[:known] < other[:known]


def _amount(value: ExtractedValue) -> Decimal | None:
    """A plain number without a bound."""
    if value.bound:
        return None
    try:
        number = Decimal(value.value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _differ(one: Decimal, other: Decimal, n_parts: int = 1) -> bool:
    return abs(one - other) >= _TOLERANCE * n_parts


def _wrong_spelling(amounts: Mapping[str, Decimal]) -> list[Contradiction]:
    spelled = {name: match[1] for name in amounts if (match := _words.search(name))}
    return [
        Contradiction("spelling", (one, other), f"{amounts[other]:f}")
        for one, how in spelled.items()
        for other, its_how in spelled.items()
        if (how, its_how) == ("大", "小")
        and _words.sub("", one) == _words.sub("", other)
        and _differ(amounts[one], amounts[other])
    ]


def _wrong_tax(amounts: Mapping[str, Decimal]) -> list[Contradiction]:
    """含税 = 不含税 + 税额, where there is one of each."""
    gross = [name for name in amounts if _gross.search(name)]
    net = [name for name in amounts if "不含税" in name]
    tax = [name for name in amounts if "税额" in name and name not in gross]
    if not len(gross) == len(net) == len(tax) == 1:
        return []
    names = (gross[0], net[0], tax[0])
    whole = amounts[names[1]] + amounts[names[2]]
    is_wrong = _differ(amounts[names[0]], whole, 2)
    return [Contradiction("sum", names, f"{whole:f}")] if is_wrong else []


def _wrong_totals(fields: Fields, single: Mapping[str, ExtractedValue]) -> Iterator[Contradiction]:
    for name, value in single.items():
        total = _amount(value) if _total.search(name) else None
        part = _part_of(name, value, fields) if total is not None else None
        if total is None or part is None:
            continue
        values = fields[part].values
        once = sum((_amount(one) or Decimal() for one in values), Decimal())
        # An amount that stands in several places may be that of several rows.
        often = sum(((_amount(v) or Decimal()) * (1 + len(v.places)) for v in values), Decimal())
        if _differ(total, once, len(values)) and _differ(total, often, len(values)):
            yield Contradiction("sum", (name, part), f"{once:f}")


def _part_of(total: str, value: ExtractedValue, fields: Fields) -> str | None:
    """The field of several amounts that a total is of, None if there is none or if any may be."""
    stem = _total.sub("", total)
    listed = [
        name
        for name, result in fields.items()
        if name != total and not _no_part.search(name) and _are_amounts(result.values, value.unit)
    ]
    # 合计 alone may be of any amounts, but not of quantities, which have no currency.
    chosen = [name for name in listed if (stem in name or name in stem if stem else value.unit)]
    return chosen[0] if len(chosen) == 1 else None


def _are_amounts(values: Sequence[ExtractedValue], unit: str) -> bool:
    return len(values) > 1 and all(one.unit == unit and _amount(one) is not None for one in values)
