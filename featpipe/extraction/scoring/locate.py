"""Sample values in their documents: where they stand, and the type that they have in common."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.scoring.stated_units import value_with_unit
from featpipe.extraction.values.counts import find_plain_numbers
from featpipe.extraction.values.text import fold, fold_width
from featpipe.extraction.values.values import Value, find_values, is_readable, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.values.values import FieldType

#: Only the first occurrences of a value count; one that is written more often is a common word.
_MOST_PLACES = 40


def locate_value(features: PageFeatures, value: str, kind: FieldType) -> list[tuple[int, int]]:
    """Character spans of every occurrence of a value, in order.

    Shaped values are found by meaning (``68587100`` is at ``6,858.71万元``, ``120`` at ``120.00``);
    others, and shaped ones in a spelling that no pattern knows, by their folded text, however they
    are spaced.
    """
    wanted = read_value(value, kind)
    spans = locate_meaning(features, wanted)
    if (kind == "money" and not spans) or (kind == "number" and not wanted.unit):
        spans += _plain_places(features, wanted, spans)
    if not spans:
        # Written without what stands beside it: 3,000 of 3,000-5,000万元.
        text = features.page.text
        own = [(f, read_value(text[f.start : f.end], kind)) for f in features.find(kind)]
        spans = [(f.start, f.end) for f, value in own if value.means(wanted)]
    if not spans:
        spans += _places_by_unit(features, wanted)
    if not spans:
        folded = fold(value)
        spans = [
            span
            for span in features.compact.find_all(folded)
            if _is_whole(features.folded, span, folded)
        ]
        # Part of a longer code is no place of a value, unless there is no other.
        spans = [span for span in spans if not features.cuts[list(span)].any()] or spans
    return sorted(_as_written(features, spans, value))[:_MOST_PLACES]


def _as_written(
    features: PageFeatures, spans: list[tuple[int, int]], value: str
) -> list[tuple[int, int]]:
    """Without those that lie in or around one that is spelt as the value: 年利率9.5%, not 9.5%."""
    own = fold(value)
    exact = [span for span in spans if fold(features.page.text[slice(*span)]) == own]
    if not exact or len(exact) == len(spans):
        return spans
    return [
        span
        for span in spans
        if span in exact or not any(a < span[1] and span[0] < b for a, b in exact)
    ]


def _plain_places(
    features: PageFeatures, wanted: Value, known: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Numbers without a unit that are equal, whole and apart from the places that are known."""
    inside = {place for start, end in known for place in range(start, end)}
    for one in find_plain_numbers(features.folded):
        is_cut = features.cuts[[one.start, one.end]].any()
        if Value(wanted.kind, one.key).means(wanted) and not is_cut and one.start not in inside:
            yield one.start, one.end


def _places_by_unit(features: PageFeatures, wanted: Value) -> Iterator[tuple[int, int]]:
    """Numbers whose label, header or table states a unit: 642,000元 in 合同金额（万元）：64.2."""
    digits = _digits_of(wanted.key)
    for one in find_plain_numbers(features.folded):
        if _digits_of(one.key) != digits:
            continue
        plain = Value(wanted.kind, one.key)
        value = value_with_unit(features.page, plain, one.start, one.end)
        if value != plain and value.means(wanted):
            yield one.start, one.end


def _digits_of(key: str) -> str:
    """Those that 万 and % leave as they are."""
    return re.sub(r"\D", "", key).strip("0")


def locate_meaning(features: PageFeatures, wanted: Value) -> list[tuple[int, int]]:
    """Character spans of every shaped value with a meaning, in order."""
    spans = [(f.start, f.end) for f in features.find(wanted.kind) if f.value.means(wanted)]
    return spans[:_MOST_PLACES]


def _is_whole(text: str, span: tuple[int, int], folded: str) -> bool:
    """Not the middle of a longer number or Latin word."""
    start, end = span
    before = text[start - 1] if start else " "
    behind = text[end] if end < len(text) else " "
    return not (_joins(before, folded[0]) or _joins(folded[-1], behind))


def _joins(left: str, right: str) -> bool:
    both_digits = left.isdigit() and right.isdigit()
    return both_digits or (
        left.isascii() and right.isascii() and left.isalpha() and right.isalpha()
    )


_organisation = re.compile(
    r"(?:公司|集团|银行|分行|支行|政府|委员会|大学|医院|研究院|中心|指挥部|合伙企业|\(有限合伙\)|局|厅|法院|事务所"
    r"|inc\.?|ltd\.?|llc\.?|corporation|company|limited|sdn bhd|bhd)\Z"
)
_code = re.compile(r"(?=.*\d)[a-z0-9()\[\]/_.-]{3,40}\Z")
_zero = re.compile(r"0\d")
#: Numbers of announcements and telephones: 2023-066, 2024-007号, 0571-83051234.
_joined_code = re.compile(r"\d+(?:-\d+)+号?\Z", re.ASCII)
_long_code = re.compile(r"\d{14,}[a-z]?\Z", re.ASCII)
#: A type holds for a field when this share of its sample values has it.
_SHARE = 0.7
_LONG = 80


def infer_type(values: Sequence[tuple[PageFeatures, str]]) -> FieldType:
    """The narrowest type that most sample values have.

    Args:
        values: each with the document it was taken from.

    """
    if not values:
        return "text"
    n = len(values) * _SHARE
    ordered: tuple[FieldType, ...] = ("email", "percent", "date", "money", "period")
    for kind in ordered:
        if sum(_has_type(features, value, kind) for features, value in values) >= n:
            return kind
    return _infer_unshaped(values)


def _infer_unshaped(values: Sequence[tuple[PageFeatures, str]]) -> FieldType:
    n = len(values) * _SHARE
    texts = [fold(value) for _, value in values]
    kind: FieldType = "text"
    if are_organisations([value for _, value in values]):
        kind = "organisation"
    elif _are_codes(texts):
        kind = "id"
    elif sum(bool(_joined_code.match(text)) for text in texts) >= n and not _are_ranges(texts):
        is_phone = sum(_has_type(features, value, "phone") for features, value in values) >= n
        kind = "phone" if is_phone else "id"
    elif sum(_is_number(value) for _, value in values) >= n:
        n_money = sum(_has_type(features, value, "money") for features, value in values)
        kind = "money" if n_money >= n / 2 else "number"
    elif sum(len(text) > _LONG for text in texts) > len(texts) / 2:
        kind = "clause"
    elif sum(bool(_code.match(fold_width(value).strip())) for _, value in values) >= n:
        kind = "id"
    return kind


def are_organisations(values: Sequence[str]) -> bool:
    """Whether most values end as names of organisations do."""
    n_named = sum(bool(_organisation.search(fold(value))) for value in values)
    return bool(values) and n_named >= len(values) * _SHARE * 0.8


def _are_codes(texts: Sequence[str]) -> bool:
    """Digits that are no quantity: a zero in front, or many of one length (``009990``).

    So many of them as certificates and accounts have are none either, with the sign that may end
    them: ``11010519491231002x``.
    """
    if sum(bool(_long_code.match(text)) for text in texts) >= len(texts) * _SHARE:
        return True
    if not all(text.isdigit() for text in texts):
        return False
    same_length = len({len(text) for text in texts}) == 1 and len(texts) > 2
    return any(text[0] == "0" for text in texts) or (same_length and len(texts[0]) >= 5)


def _are_ranges(texts: Sequence[str]) -> bool:
    """Whether all go from a low number to a higher one: 3-5, but not 2023-066 or 0571-83051234."""
    return all(map(_is_range, texts))


def _is_range(text: str) -> bool:
    pair = text.rstrip("号").split("-")
    if len(pair) != 2 or not all(part.isdecimal() for part in pair):
        return False
    return int(pair[0]) < int(pair[1]) and not any(map(_zero.match, pair))


def _has_type(features: PageFeatures, value: str, kind: FieldType) -> bool:
    """The value, or an equal one in its document, has the shape of the type."""
    folded = fold_width(value).strip()
    if any((f.start, f.end) == (0, len(folded)) for f in find_values(folded, kind)):
        return True
    if not is_readable(value, kind):
        return False
    wanted = read_value(value, kind)
    return any(found.value.means(wanted) for found in features.find(kind))


def _is_number(value: str) -> bool:
    return is_readable(value, "number") and bool(re.match(r"[\d.,+-]+", fold_width(value).strip()))
