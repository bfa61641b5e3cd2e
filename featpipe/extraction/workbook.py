"""Results as a workbook: a sheet per template, a row per document and record, a column per field.

The less probable a value, the darker its cell; a comment has its probability, meaning and place.
Guarantees: every text is written as a string, so that none of a document's runs as a formula; a
text beyond the 32,767 characters of a cell is cut and counted in the notes; rows beyond the
1,048,576 of a sheet go on in another; values of a record's field that are in no record have a row
of their own; the same extractions give the same bytes.

All cells are held in memory until the end: about 3 kB a value.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

from featpipe.documents.own_files import GENERATOR
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

    from featpipe.extraction.results import ExtractedValue, Extraction

    Values = tuple[ExtractedValue, ...]

#: Limits of the format.
MOST_CHARACTERS = 32_767  # of a cell, in UTF-16
MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
_LONGEST_NAME = 31
#: Values that one comment describes.
_MOST_DESCRIBED = 40
_CUT = "… (cut)"

#: Lone surrogates and the two code points that XML forbids; control characters are escaped.
_FORBIDDEN = re.compile("[\ud800-\udfff\ufffe\uffff]")
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
#: Colours of probability 1 and 0, and the steps between them.
_SURE, _UNSURE, _STEPS = (255, 255, 255), (244, 150, 66), 10
#: The date in the file, so that equal results are equal bytes.
_CREATED = datetime(1980, 1, 1)  # the format has no time zone


def write_workbook(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    """Write a workbook; returns notes on what did not fit.

    Raises:
        UsageError: a template has more fields than a sheet has columns.

    """
    import xlsxwriter

    whole = io.BytesIO()  # a file that is full would be closed before the archive is, with a trace
    book = xlsxwriter.Workbook(whole)
    book.set_properties({"author": GENERATOR, "created": _CREATED})
    pages = _Sheets(book, _Formats(book))
    for extraction in extractions:
        pages.add(extraction)
    pages.finish()
    book.close()
    file.write(whole.getbuffer())
    return tuple(pages.texts.notes())


class _Formats:
    """Formats of cells, each made once."""

    def __init__(self, book: Workbook) -> None:
        plain = {"text_wrap": True, "valign": "top"}
        self.header = book.add_format({"bold": True, "bottom": 1, **plain})
        self.plain = book.add_format(plain)
        edge = {"border": 1, "border_color": "#D9D9D9"}
        self._shades = [
            book.add_format({"bg_color": _shade(step / _STEPS), **edge, **plain})
            for step in range(_STEPS + 1)
        ]

    def of(self, probability: float) -> object:
        """The shade of a probability, rounded down."""
        return self._shades[int(max(0.0, min(probability, 1.0)) * _STEPS)]


def _shade(probability: float) -> str:
    parts = [
        round(low + (high - low) * probability) for low, high in zip(_UNSURE, _SURE, strict=True)
    ]
    return "#" + "".join(f"{part:02X}" for part in parts)


@dataclass(slots=True)
class _Texts:
    """Texts as a cell can hold them, and the number of those that it could not."""

    cut: list[str] = field(default_factory=list)
    n_cut: int = 0
    n_replaced: int = 0

    def fit(self, text: str, place: str) -> str:
        """The text, cut where it is too long; ``place`` names it in a note."""
        text, n = _FORBIDDEN.subn("\ufffd", text)
        self.n_replaced += n
        if len(text.encode("utf-16-le")) // 2 <= MOST_CHARACTERS:
            return text
        self.n_cut += 1
        self.cut = self.cut or [place]
        whole = text.encode("utf-16-le")[: 2 * (MOST_CHARACTERS - len(_CUT))]
        return whole.decode("utf-16-le", "ignore") + _CUT

    def notes(self) -> Iterator[str]:
        """Empty when everything fitted."""
        if self.n_cut:
            yield (
                f"{self.n_cut} cells are cut at {MOST_CHARACTERS:,} characters, the most that a "
                f"cell of a workbook holds: {self.cut[0]} is the first; .jsonl holds them whole"
            )
        if self.n_replaced:
            yield f"{self.n_replaced} characters that no workbook can hold are now U+FFFD"


#: Columns of every sheet, before those of the fields.
_FIXED = ("document", "record")


@dataclass(slots=True)
class _Sheet:
    """A sheet, and the columns of its fields; ``row`` is the next one."""

    sheet: Worksheet
    title: str
    fields: dict[str, int] = field(default_factory=dict)
    row: int = 1

    def column_of(self, name: str) -> int:
        """The column of a field, a new one where it has none."""
        return self.fields.setdefault(name, len(self.fields) + len(_FIXED))


class _Sheets:
    """The sheets of a workbook, by template."""

    def __init__(self, book: Workbook, formats: _Formats) -> None:
        self._book, self._formats = book, formats
        self.texts = _Texts()
        self._sheets: dict[str, _Sheet] = {}
        self._full: list[_Sheet] = []
        self._names: set[str] = set()

    def add(self, extraction: Extraction) -> None:
        """One row per record, or one of all values where there are none."""
        for number, fields in _rows_of(extraction):
            self._add_row(extraction, number, fields)

    def finish(self) -> None:
        """Write the headers."""
        if not self._sheets:
            self._sheets[""] = _Sheet(self._book.add_worksheet("results"), "no results")
        for page in (*self._full, *self._sheets.values()):
            last = len(page.fields) + len(_FIXED) - 1
            for column, name in enumerate((*_FIXED, *page.fields)):
                text = self.texts.fit(name, "a field's name")
                page.sheet.write_string(0, column, text, self._formats.header)
            page.sheet.write_comment(0, 0, page.title, {"x_scale": 3, "y_scale": 1.2})
            page.sheet.freeze_panes(1, 1)
            page.sheet.set_column(0, 0, 36)
            page.sheet.set_column(2, max(last, 2), 24)
            page.sheet.autofilter(0, 0, max(page.row - 1, 1), last)

    def _add_row(
        self, extraction: Extraction, number: int | None, fields: Mapping[str, Values]
    ) -> None:
        page = self._page_for(extraction)
        name = self.texts.fit(extraction.document, "a document's name")
        page.sheet.write_string(page.row, 0, name, self._formats.plain)
        if number is not None:
            page.sheet.write_number(page.row, 1, number, self._formats.plain)
        for field_name, values in fields.items():
            column = page.column_of(field_name)
            if column >= MOST_COLUMNS:
                raise _too_many_fields(extraction)
            if values:
                self._write_cell(page, column, values, f"{field_name} of {extraction.document}")
        page.row += 1

    def _write_cell(self, page: _Sheet, column: int, values: Values, place: str) -> None:
        text = self.texts.fit("\n".join(value.text for value in values), place)
        shade = self._formats.of(min(value.probability for value in values))
        page.sheet.write_string(page.row, column, text, shade)
        about = _FORBIDDEN.sub("\ufffd", _describe(values))
        page.sheet.write_comment(page.row, column, about, {"x_scale": 2})

    def _page_for(self, extraction: Extraction) -> _Sheet:
        template = extraction.provenance.template
        page = self._sheets.get(template)
        if page is None or page.row >= MOST_ROWS:
            if page is not None:
                self._full.append(page)
            page = _Sheet(self._book.add_worksheet(self._free_name(template)), _title(extraction))
            self._sheets[template] = page
        return page

    def _free_name(self, template: str) -> str:
        """A sheet's name: 31 characters, without some signs, different in any case of letters."""
        clean = _FORBIDDEN.sub("_", _NOT_IN_NAMES.sub("_", template)).strip("' ") or "results"
        clean = f"{clean}_" if clean.lower() == "history" else clean
        number = 1
        while True:
            end = "" if number == 1 else f" ({number})"
            name = _first_units(clean, _LONGEST_NAME - len(end)).strip("' ") + end
            if name.lower() not in self._names:
                self._names.add(name.lower())
                return name
            number += 1


def _first_units(text: str, n: int) -> str:
    """At most ``n`` units of UTF-16, whole characters."""
    return text.encode("utf-16-le")[: 2 * n].decode("utf-16-le", "ignore")


def _title(extraction: Extraction) -> str:
    made_by = extraction.provenance
    version = f" {made_by.version}" if made_by.version else ""
    return _FORBIDDEN.sub(
        "\ufffd",
        f"template {made_by.template}{version}, fingerprint {made_by.fingerprint}\n"
        "The darker a cell, the less probable its value; its comment has the figures.",
    )


def _too_many_fields(extraction: Extraction) -> UsageError:
    return UsageError(
        f"template {extraction.provenance.template} has more fields than the {MOST_COLUMNS:,} "
        "columns of a workbook's sheet",
        hint="write .jsonl or .parquet instead",
    )


def _rows_of(extraction: Extraction) -> Iterator[tuple[int | None, Mapping[str, Values]]]:
    """(number of the record, values by field) of each row."""
    fields = {name: result.values for name, result in extraction.fields.items()}
    if not extraction.records:
        yield None, fields
        return
    inside = {name for record in extraction.records for name in record}
    for number, record in enumerate(extraction.records, start=1):
        shared = {name: () if name in inside else values for name, values in fields.items()}
        yield number, shared | {name: (value,) for name, value in record.items()}
    rest = {
        name: tuple(value for value in fields[name] if not _is_in(extraction, name, value))
        for name in fields
        if name in inside
    }
    if any(rest.values()):
        yield None, dict.fromkeys(fields, ()) | rest


def _is_in(extraction: Extraction, name: str, value: ExtractedValue) -> bool:
    return any(record.get(name) == value for record in extraction.records)


def _describe(values: Values) -> str:
    lines = [_describe_one(value) for value in values[:_MOST_DESCRIBED]]
    n_more = len(values) - _MOST_DESCRIBED
    return "\n".join([*lines, *([f"... and {n_more} more values"] if n_more > 0 else [])])


def _describe_one(value: ExtractedValue) -> str:
    meaning = " ".join(part for part in (value.bound, value.value[:200], value.unit) if part)
    page = f", page {value.page}" if value.page is not None else ""
    remark = f"; {value.remark}" if value.remark else ""
    where = f"characters {value.start} to {value.end}"
    return f"p = {value.probability:.2f}: {meaning}{page}, {where}{remark}"
