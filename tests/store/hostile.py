"""Damaged and hostile dictionaries, and what must hold of each: an answer or a clear refusal."""

from __future__ import annotations

import random
import resource
import struct
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.store import Reader, Writer, keys_of
from featpipe.store.verify import verify_dictionary
from tests.store.samples import DOCUMENTS, RUNS, TEXTS, VECTORS, ragged_text, vectors_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXTS_IN_FILE = [f"t{i}" for i in range(60)]


def make_victim(path: Path) -> None:
    """A small dictionary with every kind of table, dense with structure."""
    keys = keys_of(TEXTS_IN_FILE)
    with Writer.open(path) as writer:
        vectors = {"keys": keys, "vectors": vectors_of(TEXTS_IN_FILE)}
        writer.table("embeddings/a", VECTORS).append(vectors)
        data = {"keys": keys, "text": ragged_text(TEXTS_IN_FILE)}
        writer.table("texts", TEXTS).append(data)
        writer.table("runs", RUNS).append({"record": ragged_text(["{}"])})
        writer.table("documents", DOCUMENTS).append(
            {
                "keys": keys[:2],
                "text": ragged_text(["a", "bc"]),
                "spans": (np.ones((3, 2), np.uint32), [1, 2]),
                "weights": (np.ones(1, np.float32), [0, 1]),
                "n_pages": np.array([1, 2], np.int32),
                "mean": np.ones((2, 3), np.float32),
            }
        )


def damaged_copies(folder: Path, source: random.Random, n: int) -> Iterator[Path]:
    """``n`` times the victim, each time with something else wrong with it."""
    victim = folder / "victim.h5"
    make_victim(victim)
    whole = victim.read_bytes()
    used = [i for i in range(0, len(whole), 8) if any(whole[i : i + 8])]
    path = folder / "damaged.h5"
    for _ in range(n):
        path.write_bytes(damage(bytearray(whole), used, source))
        yield path


def damage(data: bytearray, used: list[int], source: random.Random) -> bytes:
    """Flip bits, overwrite words with numbers that mean something, or cut off the end."""
    kind = source.choice(["bits", "bits", "word", "word", "words", "zeros", "cut", "copy"])
    if kind == "cut":
        return bytes(data[: source.randrange(len(data))])
    for _ in range(source.randint(1, 4) if kind in {"bits", "words"} else 1):
        at = source.choice(used)
        if kind == "bits":
            data[at + source.randrange(8)] ^= 1 << source.randrange(8)
        elif kind == "zeros":
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        elif kind == "copy":
            other = source.choice(used)
            data[at : at + 8] = data[other : other + 8].ljust(8, b"\0")
        else:
            data[at : at + 8] = struct.pack("<Q", word(len(data), source))
    return bytes(data)


def word(size: int, source: random.Random) -> int:
    """A number that a careless reader may believe."""
    edges = [0, 1, 7, 96, 4096, size - 1, size, size + 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63]
    return source.choice([*edges, (1 << 64) - 1, (1 << 64) - 8, source.randrange(size)])


def check_hostile(path: Path) -> None:
    """Reading everything in it, and verifying it, ends in answers or in our own errors."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with Reader(path) as reader:
            for name in reader.tables():
                read_table(reader, name)
    except DictionaryError as error:
        assert str(path) in error.message  # noqa: PT017 - both ways are good ends
    verify_dictionary(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1 << 20, "KiB: more memory than any of these files deserves"


def read_table(reader: Reader, name: str) -> None:
    try:
        table = reader.table(name)
    except DictionaryError:
        return
    if table.n_rows > 10_000_000:
        raise AssertionError(f"{name} claims {table.n_rows} rows in a small file")
    if table.spec.keyed:
        rows = table.find(keys_of(TEXTS_IN_FILE))
        rows = rows[rows >= 0]
        table.find_one(keys_of(["absent"]).tobytes())
    else:
        rows = np.arange(table.n_rows)
    for column in table.spec.columns:
        try:
            if column.name in table.now.view.values:
                table.ragged_many(column.name, rows)
                table.ragged_many(column.name, rows[::-1])
            else:
                table.gather(column.name, rows)
                table.column(column.name)
        except DictionaryError:
            continue
