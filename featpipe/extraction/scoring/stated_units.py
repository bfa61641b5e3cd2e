"""Units that stand apart from their numbers: in brackets of a label or a header, or above a table.

``合同金额（万元）：100`` is a million yuan, and so is 100 in the column 金额（万元）, or in a table
below 单位：万元. A unit that the number itself is written with goes first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from featpipe.extraction.tables.text_tables import rows_of_cells
from featpipe.extraction.values.text import fold_width
from featpipe.extraction.values.values import Value, is_readable, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.tables.labelled_span import LabelledSpan
    from featpipe.extraction.values.values import FieldType

#: Types whose values have units; of a count what is no money.
_WITH_UNITS: frozenset[FieldType] = frozenset(("money", "number", "percent", "period"))
#: Characters before a value that its label is looked for in.
_BEFORE = 60
_of_label = re.compile(r"\((?P<unit>[^()\n]{1,32})\)[^\S\n]*[::][^\S\n_]*_*[^\S\n]*\Z")
_in_header = re.compile(
    r"\((?P<unit>[^()\n]{1,32})\)\s*:?\s*\Z|/(?P<slash>[^\s/()]{1,4})\Z"
    r"|(?P<thousands>(?<!\S)[^\s\d']{0,4}\s?'000s?)\Z"
)
_parts = re.compile(r"[,、;:或 ]+|(?<=[元股])/")
_prefix = re.compile(r"^(?:单位|人民币(?=.)|币种|in$)")
#: What says a currency and not how many of its units are one.
_currency = re.compile(r"人民币|rmb|cny")
_number = re.compile(r"\d{2}")
#: RMB'000 and in thousands of RMB: how many of a unit are one.
_multiples = (
    (re.compile(r"'000,000s?(?!\d)|(?<![a-z])millions"), " million "),
    (re.compile(r"'000s?(?![\d,])|(?<![a-z])thousands"), " thousand "),
)
#: RMB 10,000 alone; 元 (per 1,000 shares) is a unit of price, and (at least RMB 10,000) none.
_multiple_alone = re.compile(
    r"(?P<before>(?:in |(?:unit|单位) ?:? ?)?(?!per|每)[^\s\d/]{0,4}) ?"
    r"(?P<number>1,000|10,000|1,000,000) ?(?P<behind>[^\s\d]{0,7})"
)
_in_words = {"1,000": "thousand", "10,000": "万", "1,000,000": "million"}
#: Rows of a table in thousands that are not: earnings per share, and numbers of people.
_of_other_unit = re.compile(
    r"每股|比率|率\Z|率\(|占比|比例|%|人数|(?<![a-z])(?:per|ratio|rate|margin|number of)(?![a-z])"
)
_plain = re.compile(r"[-+]?\d[\d,.]*(?:[~-]\d[\d,.]*)?(?:[百千万亿]+)?|[-+]?\d+\.\d+")


def value_with_unit(page: Page, value: Value, start: int, end: int) -> Value:
    """The value at a place, with the unit that its label, its header or its table states."""
    text = fold_width(page.text[start:end]).strip()
    if value.kind not in _WITH_UNITS or value.unit or not _plain.fullmatch(text):
        return value
    sources = list(_units_at(page, start, end, value.kind))
    stated = next((own for own in sources if not all(map(_currency.fullmatch, own))), None)
    for units in filter(None, (stated, *sources[:1])):
        # RMB million, 人民币 万元: the part that multiplies, and the currency of any.
        unit = next((one for one in units if _multiplies(one, value.kind)), units[0])
        if is_readable(text + unit, value.kind):
            read = read_value(text + unit, value.kind)
            named = (read_value(f"1{one}", value.kind).unit for one in units)
            name = read.unit or next(filter(None, named), "")
            return Value(value.kind, read.key, name, value.bound or read.bound)
    return value


def _units_at(page: Page, start: int, end: int, kind: FieldType) -> Iterator[list[str]]:
    """Units of the type that each place states, the nearest place first."""
    stated: list[str] = []
    label = _of_label.search(fold_width(page.text[max(start - _BEFORE, 0) : start]))
    if label is not None:
        stated.append(label["unit"])
    cell = cell_around(page.headers, start, end)
    if cell is not None:
        header = _in_header.search(fold_width(cell.label))
        stated += [] if header is None else filter(None, header.groups())
        row = _first_cell(page.text, cell.start)
        own = _in_header.search(row)
        stated += [] if own is None else filter(None, own.groups())
        if not _of_other_unit.search(row):
            stated.append(cell.unit)
    yield from filter(None, (list(_units_in(words, kind)) for words in stated))


def _first_cell(text: str, start: int) -> str:
    """The words that the row of a cell begins with, folded; "" where it is that cell."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    row = next(rows_of_cells(before), [])
    return fold_width(before[slice(*row[0])]) if row else ""


def cell_around(cells: Sequence[LabelledSpan], start: int, end: int) -> LabelledSpan | None:
    """The cell, of some in order, that a span lies in."""
    at = bisect_right(cells, start, key=lambda cell: cell.start) - 1
    return cells[at] if at >= 0 and end <= cells[at].end else None


def _units_in(words: str, kind: FieldType) -> Iterator[str]:
    alone = _multiple_alone.fullmatch(words.strip())
    if alone is not None:
        words = f"{alone['before']} {_in_words[alone['number']]} {alone['behind']}"
    for written, word in _multiples:
        words = written.sub(word, words)
    # RMB 100,000,000 is a unit that has no name, and other numbers are none.
    for part in () if _number.search(words) else _parts.split(words):
        unit = _prefix.sub("", part).partition("/")[0]
        is_money = bool(read_value(f"1{unit}", "money").unit)
        if _is_unit(unit, kind) and not (kind == "number" and is_money):
            yield unit


def _is_unit(unit: str, kind: FieldType) -> bool:
    """Whether a number with it means another thing, under the type, than one without."""
    if not unit or unit[0].isdigit():
        return False  # the digit of a note, as in 合同金额(2), would join the number's own
    has_name = bool(read_value(f"1{unit}", kind).unit)
    return is_readable(f"1{unit}", kind) and (has_name or _multiplies(unit, kind))


def _multiplies(unit: str, kind: FieldType) -> bool:
    return read_value(f"1{unit}", kind).key != "1"
