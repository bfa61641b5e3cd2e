"""What type a field has, when nobody says: read off its sample values and where they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.templates.folding import fold, fold_width
from featpipe.templates.values import FieldType, find_values, is_readable, read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.templates.view import View

_organisation = re.compile(
    r"(?:公司|集团|银行|分行|支行|政府|委员会|大学|医院|研究院|中心|指挥部|合伙企业|\(有限合伙\)|局|厅|法院|事务所"
    r"|inc\.?|ltd\.?|llc\.?|corporation|company|limited|sdn bhd|bhd)\Z"
)
_code = re.compile(r"(?=.*\d)[a-z0-9()\[\]/_.-]{3,40}\Z")
_SHARE = 0.7


def infer_type(values: Sequence[tuple[View, str]]) -> FieldType:
    """The narrowest type that most sample values have.

    Args:
        values: each with the document it was taken from.

    """
    if not values:
        return "text"
    n = len(values) * _SHARE
    ordered: tuple[FieldType, ...] = ("email", "percent", "date", "money", "period")
    for kind in ordered:
        if sum(_has_type(view, value, kind) for view, value in values) >= n:
            return kind
    return _infer_unshaped(values)


def _infer_unshaped(values: Sequence[tuple[View, str]]) -> FieldType:
    n = len(values) * _SHARE
    texts = [fold(value) for _, value in values]
    kind: FieldType = "text"
    if sum(bool(_organisation.search(text)) for text in texts) >= n * 0.8:
        kind = "organisation"
    elif _are_codes(texts):
        kind = "id"
    elif sum(_is_number(value) for _, value in values) >= n:
        n_money = sum(_has_type(view, value, "money") for view, value in values)
        kind = "money" if n_money >= n / 2 else "number"
    elif sum(len(text) > 80 for text in texts) > len(texts) / 2:
        kind = "clause"
    elif sum(bool(_code.match(fold_width(value).strip())) for _, value in values) >= n:
        kind = "id"
    return kind


def _are_codes(texts: Sequence[str]) -> bool:
    """Digits that are no quantity: a zero in front, or many of one length (``009990``)."""
    if not all(text.isdigit() for text in texts):
        return False
    same_length = len({len(text) for text in texts}) == 1 and len(texts) > 2
    return any(text[0] == "0" for text in texts) or (same_length and len(texts[0]) >= 5)


def _has_type(view: View, value: str, kind: FieldType) -> bool:
    """Written with this shape, or standing in its document with it."""
    folded = fold_width(value).strip()
    if any((f.start, f.end) == (0, len(folded)) for f in find_values(folded, kind)):
        return True
    if not is_readable(value, kind):
        return False
    wanted = read_value(value, kind)
    return any(found.value.means(wanted) for found in view.find(kind))


def _is_number(value: str) -> bool:
    return is_readable(value, "number") and bool(re.match(r"[\d.,+-]+", fold_width(value).strip()))
