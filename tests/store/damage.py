"""Flips and cuts of a dictionary, and what must hold after each: the steps of a sweep.

A victim is a file in one of three states: ``closed``; ``open``, as a writer holds it after a commit
with more rows under way; ``unclean``, as a killed one leaves it. A byte is *hit* when it takes part
in what a reader can ask for or another HDF5 program needs: superblock, headers, trees, rows that
are visible, entries of the index. The rest is dead: space that nothing leads to, empty slots of the
index, and the owner's record.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np

from featpipe.errors import DamagedRows, DictionaryError, UnreadableDictionary
from featpipe.store import Reader, Writer, keys_of
from featpipe.store import hdf5_format as hdf5
from featpipe.store.lock import RECORD_ADDRESS, RECORD_BYTES
from featpipe.store.repair import repair_dictionary
from featpipe.store.schema import END_SUFFIX
from featpipe.store.verify import verify_dictionary
from tests.store.samples import DOCUMENTS, RUNS, TEXTS, VECTORS, ragged_text, vectors_of

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from featpipe.store.table_reader import TableReader
    from featpipe.store.table_view import TableView

STATES = ("closed", "open", "unclean")
N_ROWS = 75
TEXTS_IN_FILE = [f"第 {i} 条: {'x' * (i % 7)}" for i in range(N_ROWS)]
SPECS = {"embeddings/a": VECTORS, "texts": TEXTS, "runs": RUNS, "documents": DOCUMENTS}

#: The key of a row that an unclean victim's writer appended and did not commit.
UNACKNOWLEDGED = keys_of(["never acknowledged"]).tobytes()

Content = dict[str, dict[bytes, tuple[bytes, ...]]]


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Write into a file until its time of change shows it: such times advance in steps."""
    before = path.stat().st_ctime_ns
    with path.open("r+b", buffering=0) as file:
        while path.stat().st_ctime_ns == before:
            file.seek(offset)
            file.write(data)


def write_rows(writer: Writer, start: int, stop: int) -> None:
    some = TEXTS_IN_FILE[start:stop]
    keys, numbers = keys_of(some), np.arange(start, stop)
    data = {"keys": keys, "vectors": vectors_of(some)}
    writer.table("embeddings/a", VECTORS).append(data)
    writer.table("texts", TEXTS).append({"keys": keys, "text": ragged_text(some)})
    writer.table("documents", DOCUMENTS).append(
        {
            "keys": keys,
            "text": ragged_text(some),
            "spans": (np.repeat(numbers[:, None], 2, 1).astype("u4"), [1] * len(some)),
            "weights": (numbers.astype("f4"), [1] * len(some)),
            "n_pages": numbers.astype("i4"),
            "mean": np.repeat(numbers[:, None], 3, 1).astype("f4"),
        }
    )


def write_victim(path: Path, state: str) -> None:
    """Several sessions and changes of structure, then the state asked for.

    The file grows in small steps ahead of its use, so that it is soon copied.
    """
    with patch("featpipe.store.allocator.STEP", 1 << 16):
        _write_victim(path, state)


def _write_victim(path: Path, state: str) -> None:
    for start, stop in ((0, 7), (7, 60)):
        with Writer.open(path) as writer:
            write_rows(writer, start, stop)
            writer.table("runs", RUNS).append({"record": ragged_text([f"{start}"])})
            writer.commit()
    writer = Writer.open(path)
    write_rows(writer, 60, N_ROWS)
    writer.commit()
    if state == "closed":
        writer.close()
        return
    if state == "open":
        aside = path.with_suffix(".copy")
        shutil.copy(path, aside)
        writer.abandon()
        aside.replace(path)
        return
    rows = {"keys": keys_of(["never acknowledged"]), "vectors": vectors_of(["x"])}
    writer.table("embeddings/a", VECTORS).append(rows)
    writer.abandon()


def read_table(table: TableReader) -> dict[bytes, tuple[bytes, ...]]:
    """Every row by key (of a log by number), read in several ways that must agree."""
    rows = np.arange(table.n_rows)
    columns = []
    for column in table.spec.columns:
        if column.name in table.now.view.values:
            columns.append([table.ragged(column.name, row).tobytes() for row in rows.tolist()])
            whole = b"".join(columns[-1])
            assert table.ragged_many(column.name, rows)[0].tobytes() == whole
            backwards = table.ragged_many(column.name, rows[::-1])[0].tobytes()
            assert backwards == b"".join(columns[-1][::-1])
        else:
            columns.append([part.tobytes() for part in table.gather_bits(column.name, rows)])
            assert table.column(column.name).tobytes() == b"".join(columns[-1])
    names = rows.tolist()
    keys = [str(row).encode() for row in names]
    if table.spec.keyed:
        keys = [part.tobytes() for part in table.gather("keys", rows)]
    return dict(zip(keys, zip(*columns, strict=True), strict=True))


def content_of(path: Path) -> Content:
    with Reader(path) as reader:
        return {name: read_table(reader.table(name)) for name in reader.tables()}


@dataclass
class Outcome:
    """What a step found; the counts of a sweep are sums of these."""

    wrong: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        for name, found in vars(self).items():
            found.extend(getattr(other, name))

    @property
    def n_bad(self) -> int:
        return sum(len(found) for found in vars(self).values())


class Victim:
    """An undamaged file, its content, and which of its bytes take part in what."""

    def __init__(self, folder: Path, state: str) -> None:
        self.state = state
        self.whole = folder / f"{state}.h5"
        self.path = folder / f"{state}-damaged.h5"
        write_victim(self.whole, state)
        self.content = content_of(self.whole)
        assert len(self.content["embeddings/a"]) == N_ROWS
        self.regions = regions_of(self.whole)
        self.size = self.whole.stat().st_size
        self.end = max(start + size for start, size in chain(*self.regions.values()))

    def draw(self, source: random.Random) -> tuple[str, int]:
        """A region, each as likely as the others, and a bit in it."""
        name = source.choice(sorted(self.regions))
        pieces = self.regions[name]
        start, size = source.choices(pieces, [size for _, size in pieces])[0]
        return name, start * 8 + source.randrange(size * 8)

    def restore(self) -> None:
        self.path.unlink(missing_ok=True)
        for file in self.path.parent.glob(f"*{self.path.name}.damaged*"):
            file.unlink()
        shutil.copy(self.whole, self.path)

    def flip(self, bit: int) -> None:
        self.restore()
        with self.path.open("r+b") as file:
            file.seek(bit // 8)
            byte = file.read(1)[0]
            file.seek(bit // 8)
            file.write(bytes([byte ^ 1 << bit % 8]))

    def check_flip(self, region: str, bit: int, *, repairs: bool = True) -> Outcome:
        self.flip(bit)
        what = f"{self.state} {region} byte {bit // 8} bit {bit % 8}"
        outcome = self.check_reading(what)
        # Columns ahead of the others or behind, and any announced end beyond what is used, are what
        # a commit under way looks like.
        is_dead = region == "dead" or (region == "lengths" and self.state != "closed")
        if not is_dead and is_good(self.path):
            outcome.unnamed.append(what)
        if repairs:
            self.check_repair(what, region, outcome)
        return outcome

    def check_cut(self, size: int) -> Outcome:
        self.restore()
        os.truncate(self.path, size)
        what = f"{self.state} cut at {size}"
        outcome = self.check_reading(what)
        if size < self.end and is_good(self.path):
            outcome.unnamed.append(what)
        self.check_repair(what, "cut", outcome)
        return outcome

    def check_reading(self, what: str) -> Outcome:
        """Every answer is right, or an error of ours that names the file."""
        outcome = Outcome()
        try:
            with Reader(self.path) as reader:
                names = reader.tables()
                if names != sorted(self.content):
                    outcome.wrong.append(f"{what}: tables {names}")
                for name in self.content:
                    self._check_table(reader, name, what, outcome)
        except DictionaryError as error:
            self._check_error(error, what, outcome)
        except Exception as error:  # whatever it is, it should have been one of ours
            outcome.raw.append(f"{what}: {error!r}")
        return outcome

    def _check_table(self, reader: Reader, name: str, what: str, outcome: Outcome) -> None:
        expected = self.content[name]
        try:
            table = reader.table(name)
            if table.spec.keyed:
                keys = np.frombuffer(b"".join(expected), np.uint8).reshape(-1, 16)
                rows = table.find(keys)
                if rows.tolist() != list(range(len(expected))):
                    outcome.wrong.append(f"{what}: {name} has rows {rows.tolist()[:9]} ...")
                if table.find_one(keys_of(["absent"]).tobytes()) != -1:
                    outcome.wrong.append(f"{what}: {name} has what it has not")
            for row, (key, values) in enumerate(expected.items()):
                self._check_row(table, row, key, values, f"{what}: {name}", outcome)
            found = read_table(table)
            if name == "embeddings/a" and self.state == "unclean":
                # A whole row is no wrong answer: recovery would publish it.
                found.pop(UNACKNOWLEDGED, None)
            if found != expected:
                outcome.wrong.append(f"{what}: {name} as a whole")
        except AssertionError as error:
            outcome.wrong.append(f"{what}: {name}: {error}")
        except DictionaryError as error:
            self._check_error(error, what, outcome)

    def _check_row(
        self,
        table: TableReader,
        row: int,
        key: bytes,
        values: tuple[bytes, ...],
        what: str,
        outcome: Outcome,
    ) -> None:
        for column, value in zip(table.spec.columns, values, strict=True):
            try:
                if column.name in table.now.view.values:
                    found = table.ragged(column.name, row).tobytes()
                else:
                    found = table.row(column.name, row).tobytes()
                    if table.spec.keyed:
                        one = table.get(column.name, key)
                        found = found if one is None or one.tobytes() == found else b"?"
            except DamagedRows as error:
                self._check_error(error, what, outcome)
                continue
            if found != value:
                outcome.wrong.append(f"{what} row {row} column {column.name}")

    def _check_error(self, error: DictionaryError, what: str, outcome: Outcome) -> None:
        if str(self.path) not in error.message:
            outcome.raw.append(f"{what}: {error}")
        if isinstance(error, DamagedRows) and not (error.table and error.rows and error.hint):
            outcome.raw.append(f"{what}: names no row: {error}")

    def check_repair(self, what: str, region: str, outcome: Outcome) -> None:
        """Only what was hit is lost, and a build after it ends with everything."""
        try:
            repair_dictionary(self.path, asks_libhdf5=False)
            self._check_what_was_kept(what, region, outcome)
        except UnreadableDictionary as error:
            if region != "cut":
                outcome.lost.append(f"{what}: everything: {error.message}")
            self.path.unlink()  # what the message asks for: begin anew
        except Exception as error:
            outcome.raw.append(f"{what}: repair: {error!r}")
            return
        try:
            build_again(self.path)
            if not same(content_of(self.path), self.content):
                outcome.unequal.append(what)
            elif not is_good(self.path):
                outcome.unequal.append(f"{what}: still damaged")
        except Exception as error:
            outcome.unequal.append(f"{what}: {error!r}")

    def _check_what_was_kept(self, what: str, region: str, outcome: Outcome) -> None:
        kept = content_of(self.path)
        for name, expected in self.content.items():
            rows = kept.get(name, {})
            if name != "runs" and any(expected.get(key, rows[key]) != rows[key] for key in rows):
                outcome.wrong.append(f"{what}: {name} after repair")
            n_lost = len(expected) - len(rows)
            # An end offset belongs to its row and to the next.
            most = {"rows": 1, "values": 1, "ends": 2}.get(region, 0)
            if region != "cut" and n_lost > most:
                outcome.lost.append(f"{what}: {n_lost} rows of {name}")


def same(found: Content, expected: Content) -> bool:
    """Keyed tables alike; of the log of runs no other records."""
    logs = [set(content["runs"].values()) for content in (found, expected)]
    tables = [{k: v for k, v in content.items() if k != "runs"} for content in (found, expected)]
    for content in tables:
        content["embeddings/a"].pop(UNACKNOWLEDGED, None)
    return logs[0] <= logs[1] and tables[0] == tables[1]


def build_again(path: Path) -> None:
    with Writer.open(path) as writer:
        writer.table("runs", RUNS)
        for start in range(0, N_ROWS, 25):
            write_rows(writer, start, start + 25)
            writer.commit()


def is_good(path: Path) -> bool:
    return verify_dictionary(path, is_deep=True, asks_libhdf5=False).is_good


def regions_of(path: Path) -> dict[str, list[tuple[int, int]]]:
    """(start, size) of the pieces of each kind; ``dead`` is a sample of the rest."""
    found: dict[str, list[tuple[int, int]]] = {
        name: [] for name in ("headers", "lengths", "trees", "rows", "ends", "values", "index")
    }
    at = hdf5.EOF_ADDRESS
    found["superblock"] = [(0, at), (at + 8, hdf5.SUPERBLOCK_BYTES - at - 8)]
    found["superblock"].append((hdf5.ROOT_COPY_ADDRESS, 8))
    found["lengths"].append((at, 8))
    with Reader(path) as reader:
        structure = reader._structure
        groups = [reader._root, structure.header(reader._root).links["embeddings"]]
        for name in reader.tables():
            view = reader.table(name).now.view
            groups.append(view.group.address)
            for label, column in (view.fixed | view.values).items():
                header = view.headers[label]
                start, size = header_piece(path, header.address)
                at = header.dims_address
                found["headers"] += [(start, at - start), (at + 8, start + size - at - 8)]
                found["lengths"].append((at, 8))
                if header.data_address != hdf5.UNDEFINED:
                    size = hdf5.BTREE_HEADER + (8 * (len(header.shape) + 2) + 8) * (
                        len(column.offsets) + 1
                    )
                    found["trees"].append((header.data_address, size - 8))
                n = view.n_rows if label in view.fixed else header.shape[0]
                kind = "ends" if label.endswith(END_SUFFIX) else "rows"
                kind = kind if label in view.fixed else "values"
                found[kind] += [(column.offset_of(row), column.row_bytes) for row in range(n)]
            add_index(found, path, view)
    found["headers"] += [header_piece(path, address) for address in groups]
    found["dead"] = [(RECORD_ADDRESS, RECORD_BYTES), (RECORD_ADDRESS + RECORD_BYTES + 8, 3400)]
    return found


def header_piece(path: Path, address: int) -> tuple[int, int]:
    with path.open("rb") as file:
        file.seek(address + 8)
        return address, 16 + int.from_bytes(file.read(4), "little")


def add_index(found: dict[str, list[tuple[int, int]]], path: Path, view: TableView) -> None:
    if view.index is None:
        return
    start, data = view.index.address, path.read_bytes()
    stop = start + view.index.capacity * 4
    found["index"] += [(at, 4) for at in range(start, stop, 4) if any(data[at : at + 4])]
    for label in ("index", "indexed"):
        found["headers"].append(header_piece(path, view.headers[label].address))
