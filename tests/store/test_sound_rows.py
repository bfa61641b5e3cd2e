"""A row is checked when it is first read, and again when it may have changed since."""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from flipped_bits import flip, offset_of

from featpipe.errors import DamagedRows
from featpipe.store import Reader, Writer, keys_of, sound_rows
from featpipe.store.sound_rows import HOLDS_S, SETTLED_S
from tests.store.damage import TEXTS_IN_FILE, overwrite, write_victim
from tests.store.samples import VECTORS, vectors_of
from tests.store.test_released_layouts import FIXTURES

if TYPE_CHECKING:
    from featpipe.store.table_reader import TableReader

ROW = 9
KEY = keys_of([TEXTS_IN_FILE[ROW]])
FIXED: dict[str, Callable[[TableReader], object]] = {
    "gather": lambda table: table.gather("vectors", [3, ROW]),
    "slice": lambda table: table.slice("vectors", 5, 12),
    "slices": lambda table: table.slices(["keys", "vectors"], 5, 12),
    "column": lambda table: table.column("vectors"),
    "blocks": lambda table: list(table.blocks("vectors")),
    "row": lambda table: table.row("vectors", ROW),
    "get": lambda table: table.get("vectors", KEY.tobytes()),
    "look_up": lambda table: table.look_up("vectors", KEY),
}
RAGGED: dict[str, Callable[[TableReader], object]] = {
    "ragged": lambda table: table.ragged("text", ROW),
    "ragged_many": lambda table: table.ragged_many("text", [3, ROW]),
}
READS = [("embeddings/a", "vectors", read) for read in FIXED.values()]
READS += [("texts", "text", read) for read in RAGGED.values()]


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(sound_rows, "monotonic", clock)
    return clock


@pytest.fixture
def path(folder: Path) -> Path:
    """In memory: there no page is written back, which would change the time of the last change."""
    path = folder / "d.h5"
    write_victim(path, "closed")
    return path


@pytest.fixture
def rot(path: Path) -> Iterator[Callable[[int], None]]:
    """Changes a byte of the file without a write, as a failing disk does."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = memory[at]  # what the first change of a page leaves a trace of

        def change(offset: int) -> None:
            memory[offset] ^= 1

        yield change


@pytest.mark.parametrize(("name", "column", "read"), READS, ids=[*FIXED, *RAGGED])
def test_what_was_sound_is_checked_again_after_a_write_and_after_a_while(
    path: Path,
    rot: Callable[[int], None],
    clock: Clock,
    name: str,
    column: str,
    read: Callable[[TableReader], object],
) -> None:
    place = offset_of(path, name, column, ROW)
    if name == "texts":
        with Reader(path) as reader:
            view = reader.table(name).now.view
            place = view.values["text"].offset_of(int(view.bounds("text", ROW, ROW + 1)[0]))
    with Reader(path) as reader:
        table = reader.table(name)
        read(table)
        rot(place)
        with pytest.raises(DamagedRows):
            read(table)  # the file was opened just now, and nothing is remembered
        rot(place)
        clock.now += SETTLED_S + 1
        read(table)
        rot(place)
        read(table)  # known, and not checked again
        clock.now += HOLDS_S
        with pytest.raises(DamagedRows, match=str(ROW)):
            read(table)
        rot(place)
        read(table)
        rot(place)
        read(table)  # known again
        rot(place)
        flip(path, place)
        clock.now += 0.002  # single rows notice a write a millisecond late
        with pytest.raises(DamagedRows, match=str(ROW)):
            read(table)


def test_a_file_overwritten_in_place_gives_no_rows_of_the_other(
    path: Path, folder: Path, clock: Clock
) -> None:
    """The same keys at the same places, and other vectors: the table's salt tells them apart."""
    other = folder / "other.h5"
    write_victim(other, "closed")
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        for _ in range(2):
            table.gather("vectors", np.arange(table.n_rows))
            clock.now += SETTLED_S + 1
        overwrite(path, 0, other.read_bytes())
        with pytest.raises(DamagedRows):
            table.gather("vectors", [ROW])


def test_rows_of_layout_1_are_remembered_as_a_whole(folder: Path, clock: Clock) -> None:
    path = folder / "old.h5"
    shutil.copy(FIXTURES / "layout_1.h5", path)
    with Reader(path) as reader:
        table = reader.table("documents")
        before = table.ragged("text", ROW).tobytes()
        clock.now += SETTLED_S + 1
        assert table.ragged("text", ROW).tobytes() == before
        assert table.ragged("text", ROW).tobytes() == before
        flip(path, offset_of(path, "documents", "text", 0))
        with pytest.raises(DamagedRows):
            table.ragged_many("text", np.arange(table.n_rows))


def test_rows_that_are_known_are_not_summed_again(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        table.gather("vectors", [1, 2, 3, 7])
        clock.now += SETTLED_S + 1
        table.gather("vectors", [1, 2, 3])
        checks, summed = table.now.view.checks, []
        real = type(checks).are_bad

        def count(self: object, rows: np.ndarray, *arguments: object) -> np.ndarray:
            summed.extend(rows.tolist())
            return real(self, rows, *arguments)

        monkeypatch.setattr(type(checks), "are_bad", count)
        table.gather("vectors", [3, 1, 7, 2])
        assert summed == [7]


def test_a_table_known_as_a_whole_is_checked_again_after_a_write(path: Path, clock: Clock) -> None:
    place = offset_of(path, "embeddings/a", "vectors", ROW)
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        rows = np.arange(table.n_rows)
        wanted = table.gather("vectors", rows)
        clock.now += SETTLED_S + 1
        for some in (rows[::2], rows[1::2], rows[::-1]):
            assert np.array_equal(table.gather("vectors", some), wanted[some])
        flip(path, place)
        assert np.array_equal(table.gather("vectors", [0, 1]), wanted[:2])
        with pytest.raises(DamagedRows, match=str(ROW)):
            table.gather("vectors", rows)


def test_rows_that_were_written_just_now_are_read_singly(path: Path, clock: Clock) -> None:
    with Reader(path) as reader:
        table = reader.table("embeddings/a")
        table.row("vectors", ROW)
        clock.now += SETTLED_S + 1
        table.row("vectors", ROW)
        with Writer.open(path) as writer:
            rows = {"keys": keys_of(["neu"]), "vectors": vectors_of(["neu"])}
            writer.table("embeddings/a", VECTORS).append(rows)
            writer.commit()
            reader.refresh()
            assert np.array_equal(table.row("vectors", table.n_rows - 1), vectors_of(["neu"])[0])
