"""Results as a file: JSON Lines, JSON, CSV, TSV, Parquet or a workbook, by the file's suffix.

Guarantees: an earlier file is replaced when the new one is complete and durable, and kept when it
cannot be written; extractions are read one by one, and only a workbook holds all of them in memory;
the same extractions give the same bytes; whatever a format cannot hold as it is, is counted in
`Written.notes`.

**Formulas.** CSV and TSV are opened by spreadsheet programs, which run a cell that begins with
``=``. Documents are not trusted, so such a cell gets an apostrophe in front of it, and is counted;
numbers keep their sign. Cells of a workbook are strings. JSON and Parquet hold every text as it is.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO

from featpipe.atomic_write import check_writable, write_atomically
from featpipe.documents.output import check_free
from featpipe.errors import MissingExtra, UsageError, WriteFailed
from featpipe.extraction.results import COLUMNS, table_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from featpipe.extraction.results import Extraction

    #: Writes extractions to an open file; returns notes.
    Write = Callable[[Iterable[Extraction], BinaryIO], tuple[str, ...]]

#: Suffix -> (package, extra) of formats that need one.
_NEEDED = {".parquet": ("pyarrow", "arrow"), ".xlsx": ("xlsxwriter", "xlsx")}
_ROWS_OF_A_BATCH = 10_000
_CHARACTERS_OF_A_BATCH = 1 << 16

#: What a spreadsheet program may take for a formula, in the signs of China, too.
_FORMULA = re.compile(r"[=+\-@\t\r＝＋－＠].", re.DOTALL)  # full-width on purpose
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?%?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written. ``notes`` say what it could not hold as it is."""

    n_extractions: int
    notes: tuple[str, ...] = ()


def check_output(path: Path) -> None:
    """Check before any work that results can be written to a path.

    Raises:
        UsageError: a folder, a file in none or in one that cannot be written, a suffix that is no
            format, or a file of ours that holds no results, such as the samples of a template.
        MissingExtra: the format needs a package that is not installed.

    """
    check_writable(path)
    suffix = _suffix_of(path)
    package, extra = _NEEDED.get(suffix, ("", ""))
    if package and not _is_installed(package):
        raise MissingExtra(
            f"{path}: {suffix} needs {package}", hint=f"pip install 'featpipe[{extra}]'"
        )
    check_free(path, "results")


def write_extractions(extractions: Iterable[Extraction], path: Path) -> Written:
    """Write by suffix: ``.jsonl``, ``.json``, ``.csv``, ``.tsv``, ``.parquet`` or ``.xlsx``.

    A pipe or a device, such as ``/dev/stdout``, is written to; it may have any suffix.

    Raises:
        UsageError, MissingExtra: as `check_output`.
        WriteFailed: it cannot be written, as on a full disk; an earlier file stays.
        OSError: of a pipe or a device.

    """
    check_output(path)
    counted = _Counted(extractions)
    notes: list[str] = []

    def write(file: BinaryIO) -> None:
        notes.extend(_WRITERS[_suffix_of(path)](counted, file))

    if is_device(path):
        with path.open("wb") as file:
            write(file)
        return Written(counted.n, tuple(notes))
    try:
        write_atomically(path.resolve(), write, is_durable=True)  # the file that a link names
    except OSError as error:
        raise WriteFailed(
            f"{path} cannot be written: {error.strerror or error}",
            hint="make room, or give another file",
        ) from error
    return Written(counted.n, tuple(notes))


def is_device(path: Path) -> bool:
    """Whether a path names a pipe or a device, which cannot be replaced."""
    return path.exists() and not path.is_file()


@dataclass(slots=True)
class _Counted:
    extractions: Iterable[Extraction]
    n: int = 0

    def __iter__(self) -> Iterator[Extraction]:
        for extraction in self.extractions:
            self.n += 1
            yield extraction


@dataclass(slots=True)
class _Rowless:
    """Extractions on their way to a table of a row per value, with what has no place in it."""

    extractions: Iterable[Extraction]
    empty: str = ""
    """The first document without any value."""
    n_empty: int = 0
    n_of_records: int = 0

    def __iter__(self) -> Iterator[Extraction]:
        for extraction in self.extractions:
            if not any(result.values for result in extraction.fields.values()):
                self.n_empty += 1
                self.empty = self.empty or extraction.document
            self.n_of_records += len(extraction.records) > 1
            yield extraction

    def notes(self) -> Iterator[str]:
        """How many extractions have no row, and of how many the records are not told."""
        elsewhere = ".jsonl, .json and .xlsx"
        if self.n_empty:
            yield (
                f"extractions without any value have no row: {self.n_empty}, such as of "
                f"{self.empty}; {elsewhere} hold them"
            )
        if self.n_of_records:
            yield (
                f"extractions with several records, whose rows are not told apart: "
                f"{self.n_of_records}; {elsewhere} hold the records"
            )


def _suffix_of(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in _WRITERS:
        return suffix
    if is_device(path):
        return ".jsonl"
    found = f"{path.suffix} is no format of results" if suffix else "the name has no suffix"
    raise UsageError(
        f"{path}: {found}",
        hint=f"give it one of the suffixes {', '.join(_WRITERS)}",
    )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # imported, and broken
        return False


def _write_jsonl(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    file.writelines(extraction.as_json().encode() + b"\n" for extraction in extractions)
    return ()


def _write_json(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    """One array, one extraction a line."""
    before = b"[\n"
    for extraction in extractions:
        file.write(before + extraction.as_json().encode())
        before = b",\n"
    file.write(b"\n]\n" if before == b",\n" else b"[]\n")
    return ()


def _write_csv(
    extractions: Iterable[Extraction], file: BinaryIO, delimiter: str = ","
) -> tuple[str, ...]:
    cells, seen = _Cells(), _Rowless(extractions)
    text = io.StringIO()
    # By the byte order mark, spreadsheet programs recognise UTF-8.
    text.write("\ufeff")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(COLUMNS)
    for row in table_rows(seen):
        writer.writerow([cells.harmless(row[name]) for name in COLUMNS])
        if text.tell() > _CHARACTERS_OF_A_BATCH:
            _flush(text, file)
    _flush(text, file)
    return (*cells.notes(), *seen.notes())


def _write_tsv(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    return _write_csv(extractions, file, "\t")


def _flush(text: io.StringIO, file: BinaryIO) -> None:
    file.write(text.getvalue().encode())
    text.seek(0)
    text.truncate()


@dataclass(slots=True)
class _Cells:
    """Cells of a table for spreadsheet programs."""

    n_quoted: int = 0
    _first: list[str] = field(default_factory=list)

    def harmless(self, value: object) -> object:
        """The value; a text that could be run as a formula with an apostrophe in front."""
        if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
            return value
        self.n_quoted += 1
        self._first = self._first or [value[:40]]
        return f"'{value}"

    def notes(self) -> tuple[str, ...]:
        """How many cells got an apostrophe."""
        if not self.n_quoted:
            return ()
        note = (
            f"{self.n_quoted} cells that a spreadsheet program could run as formulas begin with an "
            f"apostrophe, such as {self._first[0]!r}; .jsonl, .parquet and .xlsx hold them as they "
            "are"
        )
        return (note,)


def _write_parquet(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {
        "start": pa.int64(),
        "end": pa.int64(),
        "page": pa.int64(),
        "probability": pa.float64(),
    }
    seen = _Rowless(extractions)
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    with parquet.ParquetWriter(file, schema) as writer:
        rows: list[dict[str, object]] = []
        for row in table_rows(seen):
            rows.append(row)
            if len(rows) >= _ROWS_OF_A_BATCH:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return tuple(seen.notes())


def _write_xlsx(extractions: Iterable[Extraction], file: BinaryIO) -> tuple[str, ...]:
    from featpipe.extraction.workbook import write_workbook

    return write_workbook(extractions, file)


_WRITERS: dict[str, Write] = {
    ".jsonl": _write_jsonl,
    ".json": _write_json,
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
    ".xlsx": _write_xlsx,
}
