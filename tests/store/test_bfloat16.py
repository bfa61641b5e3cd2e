"""bfloat16 columns: rounded as IEEE has it, stored as 16 bits, read back as numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from featpipe.store import Column, Reader, TableSpec, Writer, keys_of
from featpipe.store.schema import from_bfloat16, to_bfloat16

SPEC = TableSpec((Column("vectors", "bfloat16", (4,)),))


def test_every_bfloat16_comes_back_as_itself() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = from_bfloat16(bits)
    is_number = ~np.isnan(numbers)
    assert np.array_equal(to_bfloat16(numbers)[is_number], bits[is_number])
    assert np.isnan(from_bfloat16(to_bfloat16(numbers)[~is_number])).all()


def test_numbers_become_the_nearest_and_of_two_the_even_one() -> None:
    source = np.random.default_rng(0)
    low = source.integers(0, 0x7F7F, 2000).astype(np.uint16)  # positive and finite, with a next one
    below, above = from_bfloat16(low), from_bfloat16(low + np.uint16(1))
    gap = above.astype(np.float64) - below
    for share in (0.25, 0.49, 0.5, 0.51, 0.75):
        middle = (below + share * gap).astype(np.float32)
        exact = (middle.astype(np.float64) - below) / gap
        up = (exact > 0.5) | ((exact == 0.5) & (low & 1 == 1))
        assert np.array_equal(to_bfloat16(middle), low + up)
        assert np.array_equal(to_bfloat16(-middle), (low + up) | np.uint16(0x8000))


def test_a_column_takes_floats_or_bits_and_gives_floats(path: Path) -> None:
    floats = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
    keys = keys_of(str(i) for i in range(100))
    with Writer.open(path) as writer:
        table = writer.table("t", SPEC)
        table.append({"keys": keys[:50], "vectors": floats})
        table.append({"keys": keys[50:], "vectors": to_bfloat16(floats)})
    expected = from_bfloat16(to_bfloat16(floats))
    with Reader(path) as reader:
        seen = reader.table("t")
        for start in (0, 50):
            rows = np.arange(start, start + 50)
            out = np.empty((50, 4), np.float32)
            assert np.array_equal(seen.gather("vectors", rows, out), expected)
            assert seen.gather("vectors", rows).dtype == np.float32
            assert np.array_equal(seen.gather_bits("vectors", rows), to_bfloat16(floats))
        found, is_there = seen.look_up("vectors", keys[40:60])
        assert is_there.all()
        assert np.array_equal(found, expected.take(range(40, 60), axis=0, mode="wrap"))
