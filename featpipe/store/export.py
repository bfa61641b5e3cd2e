"""Exports tables: as NumPy arrays and JSON lines, or as Parquet.

``export_npy`` makes one folder per table with ``<column>.npy`` for every column (for a ragged one
its flat values and ``<column>_end.npy``) and ``rows.jsonl``: one line per row with its key in
hexadecimal, its numbers, and its bytes that are UTF-8 text. ``export_parquet`` makes one file per
table.

Guarantees: nothing is replaced, and a table gets its name when all tables are whole. A failed
export leaves nothing behind; what a killed one leaves, a hidden folder, ``.export-...``, in the
folder given, the next one there removes.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError, MissingExtra
from featpipe.store.disk import Disk, writing
from featpipe.store.open_reader import open_reader
from featpipe.store.owned_folder import OwnedFolder
from featpipe.store.rewrite import sound_blocks
from featpipe.store.schema import END_SUFFIX, KEYS, Column, Ragged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from featpipe.store.checksum import AnyArray
    from featpipe.store.reader import Reader
    from featpipe.store.snapshot import StoredType
    from featpipe.store.table_reader import TableReader


#: Rows of a ragged column whose values are read at a time.
_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Export:
    """The files written, and the number of rows by table; ``n_damaged`` others were left out."""

    files: tuple[Path, ...]
    n_rows: dict[str, int]
    n_damaged: int = 0

    def __str__(self) -> str:
        tables = ", ".join(f"{name} {n:,}" for name, n in self.n_rows.items())
        lost = f"; {self.n_damaged:,} damaged rows left out" if self.n_damaged else ""
        return f"{len(self.files)} files; rows: {tables or 'none'}{lost}"


def export_npy(
    source: str | Path, folder: str | Path, *, tables: Sequence[str] | None = None
) -> Export:
    """Write ``tables`` (all by default) below ``folder``, one folder each.

    The folders of a source that its owner alone may read are for their owner alone.

    Raises UnknownSpace, UnreadableDictionary, WriteFailed, and DictionaryError when a folder
    exists.
    """
    target = Path(folder)
    files: list[Path] = []
    with open_reader(source) as reader:
        exported = _tables(reader, tables)
        names = [table.name for table in exported]
        with _aside(target, names, mode := _folder_mode(source)) as aside:
            for table in exported:
                own = aside / table.name
                own.mkdir(mode, parents=True)
                files += _write_arrays(table, own)
                files.append(_write_lines(table, own / "rows.jsonl"))
    counts = {table.name: table.n_rows for table in exported}
    return Export(tuple(target / file.relative_to(aside) for file in files), counts)


def _tables(reader: Reader, names: Sequence[str] | None) -> list[TableReader]:
    """Those of these names, each once; all by default."""
    return [
        reader.table(name) for name in dict.fromkeys(reader.tables() if names is None else names)
    ]


def _folder_mode(source: str | Path) -> int:
    return 0o777 if Path(source).stat().st_mode & 0o077 else 0o700


@contextmanager
def _aside(folder: Path, names: Sequence[str], mode: int) -> Iterator[Path]:
    """A folder in which these are to be made; at the end they get their names below ``folder``.

    Raises DictionaryError when one of them exists, WriteFailed.
    """
    for name in names:
        if os.path.lexists(folder / name):
            raise _taken(folder / name)
    with writing(folder):
        is_new = not folder.exists()
        folder.mkdir(mode, parents=True, exist_ok=True)
        aside = OwnedFolder(folder, ".export-")
        try:
            yield aside.path
            for name in names:
                (folder / name).parent.mkdir(mode, parents=True, exist_ok=True)
                _move(aside.path / name, folder / name)
        finally:
            aside.close()
            if is_new:
                with suppress(OSError):  # something is in it
                    folder.rmdir()


def _move(made: Path, target: Path) -> None:
    try:
        if made.is_dir():
            made.rename(target)
        else:
            Disk().link(made, target)
    except OSError as error:
        if os.path.lexists(target):  # another export was faster
            raise _taken(target) from error
        raise


def _taken(path: Path) -> DictionaryError:
    return DictionaryError(f"{path} exists already", hint="export into a new folder")


def _write_arrays(table: TableReader, target: Path) -> Iterator[Path]:
    for name, column in table.fixed_columns.items():
        yield _write_blocks(target / f"{name}.npy", table.blocks(name), table.n_rows, column)
    for name, column in table.value_columns.items():
        n_values = table.n_values(name)
        blocks = (
            table.ragged_many(name, np.arange(start, min(start + _ROWS, table.n_rows)))[0]
            for start in range(0, table.n_rows, _ROWS)
        )
        yield _write_blocks(target / f"{name}.npy", blocks, n_values, column)


def _write_blocks(path: Path, blocks: Iterator[AnyArray], n: int, column: StoredType) -> Path:
    header = {"descr": column.dtype.str, "fortran_order": False, "shape": (n, *column.shape)}
    with path.open("xb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block).data)
    return path


def _write_lines(table: TableReader, path: Path) -> Path:
    with path.open("x", encoding="utf-8") as file:
        for row in range(table.n_rows):
            file.write(json.dumps(_line(table, row), ensure_ascii=False) + "\n")
    return path


def _line(table: TableReader, row: int) -> dict[str, object]:
    line: dict[str, object] = {"row": row}
    if table.spec.keyed:
        line["key"] = table.row(KEYS, row).tobytes().hex()
    for column in table.spec.columns:
        if isinstance(column, Column):
            if not column.shape:
                line[column.name] = table.gather(column.name, [row])[0].item()
        elif column.dtype == "|u1" and not column.shape:
            data = table.ragged(column.name, row).tobytes()
            try:
                line[column.name] = data.decode()
            except UnicodeDecodeError:
                line[column.name + END_SUFFIX] = len(data)
    return line


def export_parquet(
    source: str | Path, folder: str | Path, *, tables: Sequence[str] | None = None
) -> Export:
    """Write ``tables`` (all by default) as ``<table>.parquet`` below ``folder``.

    Damaged rows are left out and counted. Raises MissingExtra without pyarrow, and as
    :func:`export_npy`.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow", hint="pip install 'featpipe[arrow]'") from None
    target, n_damaged = Path(folder), 0
    with open_reader(source) as reader:
        exported = _tables(reader, tables)
        counts = {table.name: 0 for table in exported}
        names = [f"{name}.parquet" for name in counts]
        with _aside(target, names, mode := _folder_mode(source)) as aside:
            for table, name in zip(exported, names, strict=True):
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                # The schema is that of no rows, so that an empty table is exported, too.
                none = pa.table(_arrow_columns(table, np.zeros(0, np.int64)))
                with (
                    open(aside / name, "xb", opener=_opener(mode & 0o666)) as file,
                    pq.ParquetWriter(file, none.schema) as writer,
                ):
                    for rows, n_bad in sound_blocks(table):
                        writer.write_table(pa.table(_arrow_columns(table, rows)))
                        counts[table.name] += len(rows)
                        n_damaged += n_bad
    return Export(tuple(target / name for name in names), counts, n_damaged)


def _opener(mode: int) -> Callable[[str, int], int]:
    return lambda path, flags: os.open(path, flags, mode)


def _arrow_columns(table: TableReader, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
    import pyarrow as pa

    columns = {}
    if table.spec.keyed:
        keys = table.gather(KEYS, rows)
        columns["key"] = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(16), len(keys), [None, pa.py_buffer(keys.tobytes())]
        )
    for column in table.spec.columns:
        if isinstance(column, Ragged):
            values, lengths = table.ragged_many(column.name, rows)
            columns[column.name] = _arrow_ragged(column, values, lengths)
        else:
            columns[column.name] = _arrow_nested(table.gather(column.name, rows), column.shape)
    return columns


def _arrow_nested(values: AnyArray, shape: tuple[int, ...]) -> pa.Array:
    import pyarrow as pa

    array = pa.array(np.ascontiguousarray(values).reshape(-1))
    for extent in reversed(shape):
        array = pa.FixedSizeListArray.from_arrays(array, extent)
    return array


def _arrow_ragged(column: Ragged, values: AnyArray, lengths: NDArray[np.int64]) -> pa.Array:
    import pyarrow as pa

    ends = np.concatenate([[0], np.cumsum(lengths)])
    if column.dtype == "|u1" and not column.shape:
        buffers = [None, pa.py_buffer(ends.astype("<i8")), pa.py_buffer(values.tobytes())]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
    return pa.LargeListArray.from_arrays(
        pa.array(ends, pa.int64()), _arrow_nested(values, column.shape)
    )
