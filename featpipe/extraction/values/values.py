"""Values: what a span of text means under a field type, so that two spellings compare as one.

Guarantees: ``read_value`` never raises on any text; ``found.text == text[start:end]`` for every
found value; equality is by value (1.978亿元 equals 197,800,000), and by folded spelling where a
type has no value of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from featpipe.extraction.values import amounts, dates
from featpipe.extraction.values.text import fold, fold_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FieldType = Literal[
    "text", "organisation", "person", "money", "number", "percent", "date", "period", "id",
    "phone", "email", "enum", "clause", "pattern",
]  # fmt: skip
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)


@dataclass(frozen=True, slots=True)
class Value:
    """``key`` is the one spelling of what is meant; ``unit`` a currency or unit, "" if unsaid.

    ``bound`` is ``<=`` or ``>=`` for 不超过 and 不低于: kept, and left out of comparison.
    """

    kind: FieldType
    key: str
    unit: str = ""
    bound: str = ""

    def means(self, other: Value) -> bool:
        """Equal by value; a unit that one of the two leaves out does not part them."""
        same_unit = not self.unit or not other.unit or self.unit == other.unit
        return self.key == other.key and same_unit


@dataclass(frozen=True, slots=True)
class Found:
    """``text[start:end]`` of the searched text has this value."""

    start: int
    end: int
    value: Value


_phone = re.compile(
    r"(?<![\d.])(?:(?:\+|00)\s?(?P<country>\d{1,3})[\s-]?)?(?:\(0?\d{2,4}\)[\s-]?|0\d{2,3}[\s-])?"
    r"(?:1[3-9]\d[\s-]?\d{4}[\s-]?\d{4}|\d{3,4}[\s-]?\d{4})(?:\s?(?:转|-|ext\.?)\s?\d{1,6})?(?![\d.])"
)
_email = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_id = re.compile(
    r"(?<![a-z0-9])(?=[a-z0-9()\[\]/_.-]*\d)[a-z0-9](?:[a-z0-9]|[/_.-](?=[a-z0-9])|[(\[]\d{2,4}[)\]]){3,}"
)
_case_number = re.compile(
    r"\(\s?(?:19|20)\d\d\s?\)\s?[\u4e00-\u9fff]{1,6}\s?\d{0,6}[\u4e00-\u9fff]{0,6}?\s?(?:第\s?)?\d+\s?号"
    r"|[\u4e00-\u9fff]{1,4}[(\[]\s?(?:19|20)\d\d\s?[)\]]\s?第?\s?\d+\s?号?"
)
_company = (
    ("有限责任公司", "有限公司"),
    ("companylimited", "coltd"),
    ("corporation", "corp"),
    ("incorporated", "inc"),
    ("limited", "ltd"),
)
_titles = re.compile(r"(?:先生|女士|小姐|董事长|总经理|律师|教授|博士)\Z")


def _read_text(text: str) -> Value | None:
    key = fold(text).strip(".。;；:、\"'《》<>")
    return Value("text", key) if key else None


def _read_organisation(text: str) -> Value | None:
    key = fold(text).strip(".。;；:、\"'《》")
    key = re.sub(r"\((?:以下|下称|简称|or|the\").*\)\Z", "", key)
    if key.isascii():
        key = re.sub(r"[.\s]", "", key)
    for long, short in _company:
        if key.endswith(long):
            key = key.removesuffix(long) + short
    return Value("organisation", key) if key else None


def _read_person(text: str) -> Value | None:
    key = _titles.sub("", fold(text).strip(".。;:、"))
    key = re.sub(r"^(?:mr|mrs|ms|dr)\.", "", key)
    return Value("person", key.replace("·", "").replace("•", "")) if key else None


def _read_money(text: str) -> Value | None:
    amount = amounts.read_money(fold_width(text))
    return Value("money", amount.key, amount.unit, amount.bound) if amount else None


def _read_count(text: str) -> Value | None:
    amount = amounts.read_count(fold_width(text))
    return Value("number", amount.key, amount.unit, amount.bound) if amount else None


def _read_percent(text: str) -> Value | None:
    amount = amounts.read_percent(fold_width(text))
    return Value("percent", amount.key, "", amount.bound) if amount else None


def _read_date(text: str) -> Value | None:
    when = dates.read_date(fold_width(text))
    return Value("date", when.key) if when else None


def _read_period(text: str) -> Value | None:
    when = dates.read_period(fold_width(text))
    return Value("period", when.key) if when else None


def _read_id(text: str) -> Value | None:
    key = re.sub(r"[\s:]", "", fold(text)).strip(".。;,、")
    return Value("id", key.replace("[", "(").replace("]", ")")) if key else None


def _read_phone(text: str) -> Value | None:
    folded = fold_width(text)
    match = _phone.fullmatch(folded.strip())
    digits = re.sub(r"\D", "", folded)
    if not match or not 7 <= len(digits) <= 20:
        return None
    country = match["country"]
    if country == "86":
        digits = digits.removeprefix("00").removeprefix("86")
    return Value("phone", digits)


def _read_email(text: str) -> Value | None:
    key = fold(text)
    return Value("email", key) if _email.fullmatch(key) else None


_READERS: dict[FieldType, Callable[[str], Value | None]] = {
    "text": _read_text,
    "organisation": _read_organisation,
    "person": _read_person,
    "money": _read_money,
    "number": _read_count,
    "percent": _read_percent,
    "date": _read_date,
    "period": _read_period,
    "id": _read_id,
    "phone": _read_phone,
    "email": _read_email,
    "enum": _read_text,
    "clause": _read_text,
    "pattern": _read_text,
}


@lru_cache(maxsize=65536)
def read_value(text: str, kind: FieldType) -> Value:
    """What a text means as a value of this type.

    A text that cannot be read under its type keeps its folded spelling, so that it still equals
    itself: an annotator's 面议 in a money field is a value too.
    """
    value = _READERS[kind](text)
    return value or Value(kind, fold(text))


def is_readable(text: str, kind: FieldType) -> bool:
    """True where the type gives this text a meaning beyond its spelling."""
    return _READERS[kind](text) is not None


def find_values(folded: str, kind: FieldType) -> Iterator[Found]:
    """Values with a shape of their own (money, dates, ids ...) in folded text, in order.

    Args:
        folded: of :func:`fold_width`, so that offsets are those of the original.
        kind: types without a shape (text, organisation ...) yield nothing here.

    """
    finder = _FINDERS.get(kind)
    if finder is not None:
        yield from finder(folded)


def _find_money(folded: str) -> Iterator[Found]:
    for a in amounts.find_money(folded):
        yield Found(a.start, a.end, Value("money", a.key, a.unit, a.bound))


def _find_numbers(folded: str) -> Iterator[Found]:
    for a in amounts.find_numbers(folded):
        yield Found(a.start, a.end, Value("number", a.key, a.unit))


def _find_percents(folded: str) -> Iterator[Found]:
    for a in amounts.find_percents(folded):
        yield Found(a.start, a.end, Value("percent", a.key))


def _find_dates(folded: str) -> Iterator[Found]:
    for when in dates.find_dates(folded):
        yield Found(when.start, when.end, Value("date", when.key))


def _find_periods(folded: str) -> Iterator[Found]:
    for when in dates.find_periods(folded):
        yield Found(when.start, when.end, Value("period", when.key))


def _finder(kind: FieldType, *patterns: re.Pattern[str]) -> Callable[[str], Iterator[Found]]:
    def find(folded: str) -> Iterator[Found]:
        for pattern in patterns:
            for match in pattern.finditer(folded):
                yield Found(match.start(), match.end(), read_value(match[0], kind))

    return find


_FINDERS: dict[FieldType, Callable[[str], Iterator[Found]]] = {
    "money": _find_money,
    "number": _find_numbers,
    "percent": _find_percents,
    "date": _find_dates,
    "period": _find_periods,
    "id": _finder("id", _case_number, _id),
    "phone": _finder("phone", _phone),
    "email": _finder("email", _email),
}
