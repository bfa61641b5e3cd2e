"""Values: the meaning of a text under a field type, so that two spellings compare as equal.

Guarantees: ``read_value`` raises for no text; values are equal by meaning (1.978亿元 equals
197,800,000), and by folded spelling under a type without a meaning of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context
from functools import lru_cache
from typing import Literal

from featpipe.extraction.values import amounts, counts, dates, periods
from featpipe.extraction.values.begins import phone_places
from featpipe.extraction.values.bounds import bound_at, split_bound
from featpipe.extraction.values.codes import HAN_PREFIX, cut_places, find_codes, plate
from featpipe.extraction.values.text import fold, fold_width, matches_at

FieldType = Literal[
    "text", "organisation", "person", "money", "number", "percent", "date", "period", "id",
    "phone", "email", "enum", "clause", "pattern",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """The meaning of a text.

    Attributes:
        kind: the type it was read under.
        key: canonical spelling: a plain decimal, an ISO date, a folded name.
        unit: currency or unit, "" if none is written.
        bound: ``<=`` or ``>=`` (不超过, 不低于), else "". Comparison ignores it.

    """

    kind: FieldType
    key: str
    unit: str = ""
    bound: str = ""

    def means(self, other: Value) -> bool:
        """Equal by key; a unit that one of the two omits, or spells as ㎡, makes no difference.

        Large amounts are equal that agree in ten digits: tables of values are kept as such.
        """
        own, its = (counts.SAME_UNITS.get(one.unit, one.unit) for one in (self, other))
        if own and its and own != its:
            return False
        return self.key == other.key or (self.kind in _AMOUNTS and _agree(self.key, other.key))


_AMOUNTS: frozenset[FieldType] = frozenset(("money", "number"))
#: Digits that a large amount is compared by: those that many spreadsheets and exports keep.
_DIGITS = 10
_ROUNDED = Context(prec=_DIGITS, rounding=ROUND_HALF_UP)
_decimal = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)


def _agree(one: str, other: str) -> bool:
    """Plain decimals that are the same number when rounded to so many digits."""
    if one[:6] != other[:6] or max(len(one), len(other)) <= _DIGITS:
        return False
    if not _decimal.fullmatch(one) or not _decimal.fullmatch(other):
        return False
    return _ROUNDED.create_decimal(one) == _ROUNDED.create_decimal(other)


@dataclass(frozen=True, slots=True)
class Found:
    """``text[start:end]`` of the searched text has this value."""

    start: int
    end: int
    value: Value


_MOBILE = r"1[3-9]\d[\s-]?\d{4}[\s-]?\d{4}"
_FREE = r"[48]00[\s-]?(?:\d{3}[\s-]?\d{4}|\d{4}[\s-]?\d{3})"
_AMERICAN = r"[2-9]\d\d-\d{3}-\d{4}"
_COUNTRY = r"(?:(?:\+|00)\s?(?P<country>\d{1,3})[\s-]?|(?P<china>86-|\((?:\+|00)?86\)[\s-]?))"
#: 138****5678 and 010-8888****: of which a part is hidden.
_MASKED = r"(?P<masked>(?:1[3-9]|0\d{2,3}-)(?=\d*[*×x]{2})[\d*×x]{7,9})"
_phone = re.compile(
    r"(?<![\d.])(?<!\d[*×-])(?<!\d[*×]{2})(?<![*×]{3})"
    rf"(?:{_MASKED}|{_FREE}|{_AMERICAN}|{_COUNTRY}?"
    r"(?:(?P<bracket>\(0?\d{2,4}\))[\s-]?|0\d{2,3}[\s-]?|0\d[\s-]"
    rf"|(?(country)(?P<area>(?!{_MOBILE})[1-9]\d{{1,2}}[\s-])"
    rf"|(?(china)(?P<city>(?!{_MOBILE})[1-9]\d{{1,2}}[\s-])|(?!))))?"
    rf"(?:{_MOBILE}|\d{{3,4}}[\s-]?\d{{4}}))(?:\s?(?:转|-|ext\.?)\s?\d{{1,6}})?"
    r"(?![\d.]|[*×]{3}|[*×]+\d)"
)
_email = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_id = re.compile(
    rf"{HAN_PREFIX}?(?<![a-z0-9])"
    r"(?P<body>[a-z0-9](?:[a-z0-9]|[/_.-](?=[a-z0-9])|[(\[]\d{2,4}[)\]]){3,})"
)
#: Signs that an id is made of, digits aside, and a run of them.
_ID_SIGNS = "abcdefghijklmnopqrstuvwxyz()[]/_.-"
_id_run = re.compile(rf"[\d{re.escape(_ID_SIGNS)}]+")
_company = (
    ("有限责任公司", "有限公司"),
    ("companylimited", "coltd"),
    ("corporation", "corp"),
    ("incorporated", "inc"),
    ("limited", "ltd"),
)
#: What the document calls it behind its name; (有限合伙) and (上海) belong to a name.
_role = re.compile(
    r"\((?:(?:以下|下称|简称|统称|or|the\"|hereinafter|\").*|[甲乙丙丁]方|party[a-d])\)\Z"
)
_titles = re.compile(r"(?:先生|女士|小姐|董事长|总经理|律师|教授|博士)\Z")


def _read_text(text: str) -> Value | None:
    key = fold(text).strip(".。;；:、\"'《》<>")
    return Value("text", key) if key else None


def _read_organisation(text: str) -> Value | None:
    key = fold(text).strip(".。;；:、\"'《》")
    key = _role.sub("", key)
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


def _read_id(text: str) -> Value | None:
    key = re.sub(r"[\s:]", "", fold(text)).strip(".。;,、")
    if plate.fullmatch(key):
        key = re.sub("[·•-]", "", key)
    return Value("id", key.replace("[", "(").replace("]", ")")) if key else None


def _read_phone(text: str) -> Value | None:
    folded = fold_width(text)
    match = _phone.fullmatch(folded.strip())
    if match and match["masked"]:
        return Value("phone", re.sub("[×x]", "*", match["masked"]).replace("-", ""))
    digits = re.sub(r"\D", "", folded)
    if not match or not 7 <= len(digits) <= 20:
        return None
    if match["country"] == "86" or match["china"]:
        digits = digits.removeprefix("00").removeprefix("86")
        if (match["area"] or match["city"] or match["bracket"]) and not digits.startswith(
            ("0", "400", "800")
        ):
            digits = f"0{digits}"  # +86 10 8888 6666 is 010-88886666
    return Value("phone", digits)


def _read_email(text: str) -> Value | None:
    key = fold(text)
    return Value("email", key) if _email.fullmatch(key) else None


def _amount_reader(
    kind: FieldType, read: Callable[[str], amounts.Amount | None]
) -> Callable[[str], Value | None]:
    def read_amount(text: str) -> Value | None:
        amount = read(fold_width(text))
        return Value(kind, amount.key, amount.unit, amount.bound) if amount else None

    return read_amount


def _read_date(text: str) -> Value | None:
    when = dates.read_date(fold_width(text))
    return Value("date", when.key) if when else None


def _read_period(text: str) -> Value | None:
    bound, body = split_bound(fold_width(text))
    when = periods.read_period(body)
    return Value("period", when.key, "", bound) if when else None


_READERS: dict[FieldType, Callable[[str], Value | None]] = {
    "text": _read_text,
    "organisation": _read_organisation,
    "person": _read_person,
    "money": _amount_reader("money", amounts.read_money),
    # $8.20 among 8.20 and 9.00: a currency is a unit as well.
    "number": _amount_reader("number", lambda t: counts.read_count(t) or amounts.read_money(t)),
    "percent": _amount_reader("percent", counts.read_percent),
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
    """The value of a text under a type.

    A text that cannot be read under its type has its folded spelling as key, so that it equals
    itself: 面议 in a money field is a value too.
    """
    value = _READERS[kind](text)
    return value or Value(kind, fold(text))


def remark_on(value: Value) -> str:
    """What speaks against a value by itself, "" for nothing: it is kept as it is written."""
    if value.kind in {"date", "period"} and dates.is_no_day(value.key):
        return "no day of the calendar"
    return ""


def is_readable(text: str, kind: FieldType) -> bool:
    """Whether the type gives the text a meaning beyond its spelling."""
    return _READERS[kind](text) is not None


def has_shape(text: str, kind: FieldType) -> bool:
    """Whether a whole text is written as values of the type are; any text may be read as an id."""
    if kind != "id":
        return is_readable(text, kind)
    folded = fold_width(text).strip()
    return any((found.start, found.end) == (0, len(folded)) for found in find_values(folded, kind))


def find_values(folded: str, kind: FieldType) -> Iterator[Found]:
    """Values with a shape of their own (money, dates, ids ...) in folded text, in order.

    Args:
        folded: of :func:`fold_width`, so that offsets are those of the original.
        kind: types without a shape (text, organisation ...) yield nothing here.

    """
    finder = _FINDERS.get(kind)
    if finder is not None:
        yield from finder(folded)


Finder = Callable[[str], Iterator[Found]]


def _amount_finder(kind: FieldType, find: Callable[[str], Iterator[amounts.Amount]]) -> Finder:
    def find_amounts(folded: str) -> Iterator[Found]:
        for a in find(folded):
            yield Found(a.start, a.end, Value(kind, a.key, a.unit, a.bound))

    return find_amounts


def _find_dates(folded: str) -> Iterator[Found]:
    for when in dates.find_dates(folded):
        yield Found(when.start, when.end, Value("date", when.key))


def find_periods(
    folded: str, found_dates: Iterable[tuple[int, int]] | None = None
) -> Iterator[Found]:
    """As :func:`find_values` does, beside the dates of the text where their spans are known."""
    for when in periods.find_periods(folded, found_dates):
        bound = bound_at(folded, when.start, when.end)
        yield Found(when.start, when.end, Value("period", when.key, "", bound))


def _pattern_finder(
    kind: FieldType, pattern: re.Pattern[str], places: Callable[[str], list[int]] | None = None
) -> Finder:
    """Every match of a pattern, which begins at some places alone."""

    def find(folded: str) -> Iterator[Found]:
        if places is None:
            matches = pattern.finditer(folded)
        else:
            matches = matches_at(pattern, folded, places(folded))
        for match in matches:
            yield Found(match.start(), match.end(), read_value(match[0], kind))

    return find


def _find_ids(folded: str) -> Iterator[Found]:
    """Codes, and runs of digits and letters that are no part of one."""
    codes = list(find_codes(folded))
    is_cut = cut_places(folded, codes)
    spans = {span for span in codes if _is_long(folded[slice(*span)])}
    spans |= {span for span in _ids_with_digits(folded) if not is_cut[list(span)].any()}
    reached = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > reached:  # A12345 lies in 沪A12345
            reached = end
            yield Found(start, end, read_value(folded[start:end], "id"))


def _ids_with_digits(folded: str) -> Iterator[tuple[int, int]]:
    """Runs of digits and letters that hold a digit, or have one behind them in the same signs."""
    end = last = 0
    for match in _id.finditer(folded):
        if match.end() > end and (run := _id_run.match(folded, match.start("body"))):
            end, last = run.end(), run.start() + len(run[0].rstrip(_ID_SIGNS))
        if match.start("body") < last:
            yield match.span()


def _is_long(code: str) -> bool:
    return len(code) >= 4 and not re.fullmatch(r"[\d.]+", code)


_FINDERS: dict[FieldType, Finder] = {
    "money": _amount_finder("money", amounts.find_money),
    "number": _amount_finder("number", counts.find_numbers),
    "percent": _amount_finder("percent", counts.find_percents),
    "date": _find_dates,
    "period": find_periods,
    "id": _find_ids,
    "phone": _pattern_finder("phone", _phone, phone_places),
    "email": _pattern_finder("email", _email),
}
