"""Headers of table cells: the words that say what stands in each of them, and with which party.

The first row heads the rows below it. A table of two columns holds labels and values, and so does a
form in which every other column has labels: ``甲方 | X公司 | 乙方 | Y公司``, or one whose rows are
numbered. Two labels above two columns of values head them. Where parties head the
columns of labelled rows, or span rows at the left, the label of a cell is the other one; where
ordinals head the columns, ``第一笔 | 第二笔``, it is that of the row. A cell that has a label and
its value is no header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import in_brackets, is_known, is_party
from featpipe.extraction.tables.cell_lines import tables_of_lines
from featpipe.extraction.tables.flat_tables import amounts_of_lines
from featpipe.extraction.tables.grouped_heads import grouped_tables, of_sums
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.labels_above import labels_above
from featpipe.extraction.tables.text_tables import (
    have_labels_at_left,
    may_be_header,
    numbers_rows,
    text_tables,
)
from featpipe.extraction.tables.word_tables import tables_of_words
from featpipe.extraction.tables.wrapped_heads import wrapped_tables
from featpipe.extraction.values.text import fold_page, fold_width
from featpipe.extraction.values.values import find_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.extraction.tables.text_tables import Cell

    #: A table as it is stored: start, end and cells.
    Table = tuple[int, int, Sequence[Cell]]

_labelled = re.compile(r"[^\s\d:]:\s*\S")
_unit = re.compile(
    r"(?:单位|(?<![a-z])unit)\s*:\s*(?P<unit>[^\n\t();。]{1,32})"
    r"|\((?:(?:all )?(?:amounts|figures)\s)?(?:(?:expressed|stated|are) )?(?:in )?"
    r"(?P<english>[^\n\t();。]{0,16}(?:thousand|million|'000)[^\n\t();。]{0,32})\)\s*\Z"
)
_digit = re.compile(r"\d")
#: Digits of a number in a cell that holds a value.
_LEAST_DIGITS = 3
#: Heads of columns that count what they have: 第一笔, 第2期.
_ordinal = re.compile(
    r"(?P<counted>第)?(?:[一二三四五六七八九十]{1,3}|\d{1,2})"
    r"(?(counted)[\u4e00-\u9fff]{0,2}|(?:[期批笔次包月]|季度|标段)?)"
)
#: Heads of columns whose 1, 2, 3 are amounts.
_of_amounts = re.compile(r"[额价款费元值]|amount|price|total|value|fee|cost|usd|rmb|\$")
#: What numbers a row: 3, 1.2, (4), 五.
_numbering = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,2}){0,3}|[一二三四五六七八九十]{1,3})[.)、]?")
#: Rows of a form whose rows are numbered, and known labels among them, at least.
_LEAST_ROWS, _LEAST_KNOWN = 3, 2
#: Characters around the beginning of a table that its unit is looked for in.
_AROUND = 80


def table_headers(text: str, tables: Sequence[Table]) -> tuple[LabelledSpan, ...]:
    """The header of every body cell, of tables that are stored and of those of its lines."""
    known = [(start, end) for start, end, _ in tables]
    headed = [*grouped_tables(text, known)]
    headed += wrapped_tables(text, known + [(start, end) for start, end, _ in headed])
    every = [*tables]
    inside = known + [(start, end) for start, end, _ in headed]
    for find in (text_tables, tables_of_lines, tables_of_words):
        found = [*find(text, inside)]
        every += found
        inside += [(start, end) for start, end, _ in found]
    headed += [(start, end, [*_Grid.of(text, cells).headers()]) for start, end, cells in every]
    spans = [span for table in headed for span in _with_unit(text, *table)]
    spans += labels_above(text, inside)
    spans += [
        LabelledSpan(one.start, one.end, one.label)
        for one in amounts_of_lines(fold_page(text))
        if not any(start <= one.start < end for start, end in inside)
    ]
    return tuple(sorted(spans, key=lambda span: span.start))


def row_numbers(text: str, cells: Sequence[LabelledSpan]) -> Iterator[tuple[int, int]]:
    """Spans of the cells that count a table's rows: 1, 2, 3 below one header, or 1 below 序号."""
    begun: dict[str, list[LabelledSpan]] = {}
    for cell in cells:
        if _of_amounts.search(fold_width(cell.label)):
            continue
        column = begun.setdefault(cell.label, [])
        number = text[cell.start : cell.end].strip().lstrip("0")
        if column and number != str(len(column) + 1):
            yield from _counted(column)
            column.clear()
        if number == str(len(column) + 1):
            column.append(cell)
    for column in begun.values():
        yield from _counted(column)


def _counted(column: Sequence[LabelledSpan]) -> Iterator[tuple[int, int]]:
    if len(column) > 1 or (column and numbers_rows(column[0].label)):
        yield from ((cell.start, cell.end) for cell in column)


def _with_unit(
    text: str, start: int, end: int, spans: Sequence[LabelledSpan]
) -> Iterator[LabelledSpan]:
    """The cells of a table with the unit that is said for all of it."""
    unit = _unit_of_table(text, start, end)
    for span in spans:
        yield replace(span, unit=unit) if unit else span


def _unit_of_table(text: str, start: int, end: int) -> str:
    """What stands behind 单位： above a table, or in its first words; "" for nothing."""
    before = fold_width(text[max(start - _AROUND, 0) : start])
    # Of the line right above, whatever blank lines are between.
    line = before.rstrip().rpartition("\n")[2]
    for place in (line, fold_width(text[start : min(start + _AROUND, end)])):
        found = _unit.search(place)
        if found is not None:
            return found["unit"] or found["english"]
    return ""


def as_label(header: str) -> str:
    """A header as a label before a colon is kept: Unit Price as unitprice, and 甲 方： as 甲方."""
    return "".join(fold_width(header).split()).rstrip(":")[-24:]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The cells of a table, in order, with what they say as headers; ``columns`` are in use."""

    cells: tuple[tuple[Cell, str], ...]
    columns: tuple[int, ...]

    @classmethod
    def of(cls, text: str, cells: Sequence[Cell]) -> _Grid:
        """From the cells of a table of a text."""
        found = tuple((cell, _header(text[cell[2] : cell[3]])) for cell in sorted(cells))
        return cls(found, tuple(sorted({cell[1] for cell in cells})))

    @property
    def first_row(self) -> int:
        """Number of the first row; the cells are in order."""
        return self.cells[0][0][0] if self.cells else 0

    def headers(self) -> Iterator[LabelledSpan]:
        """Of the cells that hold values."""
        of_rows = self._parties_of_rows()
        columns = self.columns[1:] if of_rows else self.columns
        if self._is_numbered(columns):
            yield from self._pairs(columns[1:], of_rows)
        elif not (self._has_parties() or self._has_two_heads(columns)) and (
            len(columns) == 2 or self._is_form(columns)
        ):
            yield from self._pairs(columns, of_rows)
        elif len(columns) > 2 and have_labels_at_left(self._rows()):
            yield from self._by_first_column()
        else:
            yield from self._by_first_row()

    def _has_parties(self) -> bool:
        """Whether each column is one party's: 甲方（盖章） | 乙方（盖章）."""
        heads = [own for cell, own in self.cells if cell[0] == self.first_row]
        return len(heads) > 1 and all(map(party_in, heads))

    def _has_two_heads(self, columns: Sequence[int]) -> bool:
        """Whether the first row of two columns has labels, and no row below one at its left."""
        if len(columns) != 2 or self.cells[-1][0][0] == self.first_row:
            return False
        known = [(cell[0] == self.first_row, cell[1], _is_label(own)) for cell, own in self.cells]
        heads = [is_label for is_first, _, is_label in known if is_first]
        below = [is_label for is_first, at, is_label in known if not is_first and at == columns[0]]
        return len(heads) == 2 and all(heads) and not any(below)

    def _parties_of_rows(self) -> dict[int, str]:
        """Row -> the party at its left, where one spans several rows."""
        parties = [
            (cell[0], cell[4], party_in(own))
            for cell, own in self.cells
            if cell[1] == self.columns[0] and cell[4] > 1
        ]
        return {row: own for at, n, own in parties if own for row in range(at, at + n)}

    def _is_form(self, columns: Sequence[int]) -> bool:
        """Whether every other column has labels: below the first row, where there are further.

        Of labels that are not known, the values beside them in the first row tell.
        """
        if len(columns) < 2 or len(columns) % 2:
            return False
        if self._begins_with_values(columns):
            return True
        rows = {cell[0] for cell, _ in self.cells}
        least = self.first_row + (len(rows) > 1)
        below = [(cell, own) for cell, own in self.cells if own and cell[0] >= least]
        labels, values = (
            [own for cell, own in below if cell[1] in columns[side::2]] for side in (0, 1)
        )
        n_known = sum(map(_is_label, labels))
        return 2 * n_known > len(labels) and 2 * sum(map(_is_label, values)) < len(values)

    def _is_numbered(self, columns: Sequence[int]) -> bool:
        """Whether the first of three columns numbers the rows of a form: 1.2 | Supplier | X Ltd.

        Its labels differ, and have no digits, which only some of its values have.
        """
        if len(columns) != 3:
            return False
        numbers, labels, values = (
            [fold_width(own) for cell, own in self.cells
             if cell[1] == column and cell[0] > self.first_row]
            for column in columns
        )  # fmt: skip
        are_labels = not any(map(_digit.search, labels)) and len({*labels}) == len(labels)
        have_digits = {_digit.search(own) is not None for own in values}
        return (
            len(numbers) >= _LEAST_ROWS
            and all(map(_numbering.fullmatch, numbers))
            and are_labels
            and len(have_digits) > 1
            and sum(map(_is_label, labels)) >= _LEAST_KNOWN
        )

    def _begins_with_values(self, columns: Sequence[int]) -> bool:
        """Whether the first row has values of words without digits: 工单号码 | CI13424.

        Days alone head columns, too.
        """
        words = [own for cell, own in self.cells if cell[1] in columns[::2]]
        if any(map(_digit.search, words)):
            return False
        values = [
            own
            for cell, own in self.cells
            if cell[0] == self.first_row and cell[1] in columns[1::2] and own
        ]
        are_days = [_is_day(own) for own in values]
        return (any(are_days) and not all(are_days)) or any(map(_is_number, values))

    def _pairs(self, columns: Sequence[int], of_rows: dict[int, str]) -> Iterator[LabelledSpan]:
        """Values beside labels; below the label of a party, and beside it, they are of that."""
        party: dict[int, str] = {}
        label: tuple[int, int, str] = (-1, -1, "")
        for (row, column, start, end, *_), own in self.cells:
            if column not in columns:
                continue
            if column in columns[::2]:
                label = row, column, own
                party[column] = party_in(own) or party.get(column, "")
            elif label[0] == row and label[2] and end > start:
                yield LabelledSpan(
                    start, end, label[2], party=of_rows.get(row) or party.get(label[1], "")
                )

    def _by_first_row(self) -> Iterator[LabelledSpan]:
        top = {
            at: own
            for cell, own in self.cells
            if cell[0] == self.first_row
            for at in range(cell[1], cell[1] + cell[5])
        }
        top = _told_apart(top)
        top = dict(zip(top, of_sums(list(top.values())), strict=True))
        left = self._left()
        has_labels = self._has_labels_at_left([top.get(column, "") for column in self.columns[1:]])
        for (row, column, start, end, *_), _own in self.cells:
            head = top.get(column, "")
            if row == self.first_row or end <= start or not head:
                continue
            label = left.get(row, "") if has_labels and column != self.columns[0] else head
            yield LabelledSpan(start, end, label or head, party=party_in(head))

    def _rows(self) -> list[list[str]]:
        """What the cells of each row say."""
        rows: dict[int, list[str]] = {}
        for cell, own in self.cells:
            rows.setdefault(cell[0], []).append(own)
        return [*rows.values()]

    def _left(self) -> dict[int, str]:
        """Row -> what its first cell says."""
        return {cell[0]: own for cell, own in self.cells if cell[1] == self.columns[0]}

    def _by_first_column(self) -> Iterator[LabelledSpan]:
        left = self._left()
        for (row, column, start, end, *_), _own in self.cells:
            if column != self.columns[0] and end > start and left.get(row):
                yield LabelledSpan(start, end, left[row])

    def _has_labels_at_left(self, heads: Sequence[str]) -> bool:
        """Whether the first cell of each row says what the others are; ``heads`` are theirs."""
        if len(heads) > 1 and all(map(_ordinal.fullmatch, heads)):
            return True
        left = [
            own
            for cell, own in self.cells
            if cell[1] == self.columns[0] and cell[0] > self.first_row
        ]
        return len(heads) > 1 and all(map(party_in, heads)) and any(map(_is_label, left))


def _told_apart(top: dict[int, str]) -> dict[int, str]:
    """Heads of columns; those that come again are of the heads before them: 减持后 | 占总股本."""
    heads = [*top.values()]
    again = {head for head in heads if head and heads.count(head) > 1}
    before = {column: top.get(column - 1, "") for column, head in top.items() if head in again}
    if not before or not all(before.values()) or again & {*before.values()}:
        return top
    of = {column: in_brackets.sub("", fold_width(head)) for column, head in before.items()}
    return {column: of.get(column, "") + head for column, head in top.items()}


def _header(words: str) -> str:
    """A cell's words, "" where they are a label with its value."""
    own = words.strip()
    return "" if _labelled.search(in_brackets.sub("", fold_width(own))) else own


def party_in(words: str) -> str:
    """What a party is called in a cell, as in the label before a colon; "" for other cells."""
    label = _name_in(words)
    return label if is_party(label) else ""


def _name_in(words: str) -> str:
    return as_label(in_brackets.sub("", fold_width(words)))


def _is_label(words: str) -> bool:
    label = _name_in(words)
    return words.endswith((":", "：")) or is_known(label)


def _is_day(words: str) -> bool:
    found = next(find_values(fold_width(words), "date"), None)
    return found is not None and found.end - found.start == len(words)


def _is_number(words: str) -> bool:
    """Whether it has a number or a code; a year may be that of a column, and so may a day."""
    is_head = may_be_header(words) or _is_day(words)
    return not is_head and len(_digit.findall(words)) >= _LEAST_DIGITS
