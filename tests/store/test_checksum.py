"""The sum that makes a row real, against its definition and every single flipped bit."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from featpipe.store.checksum import as_bytes, multipliers, row_checksums

MASK = (1 << 64) - 1


def by_definition(salt: int, row: int, columns: list[bytes | int]) -> int:
    """As the documentation has it, in plain integers."""
    m = [int(value) for value in multipliers(200)]
    total, n = row * m[0] + salt * m[1], 2
    for column in columns:
        data = column.to_bytes(8, "little") if isinstance(column, int) else column
        data += bytes(-len(data) % 8)
        for at in range(0, len(data), 8):
            total += int.from_bytes(data[at : at + 8], "little") * m[n]
            n += 1
    return (total & MASK) >> 32


def test_the_sum_is_what_the_documentation_says() -> None:
    source = np.random.default_rng(0)
    keys = source.integers(0, 256, (5, 16), np.uint8)
    odd = source.integers(0, 256, (5, 7), np.uint8)
    halves = source.standard_normal((5, 3)).astype(np.float16)
    texts = [b"", b"a", "甲乙".encode(), b"x" * 100, b""]
    bounds = np.cumsum([0, *map(len, texts)]).tolist()
    text = memoryview(b"".join(texts))
    found = row_checksums(12345, 7, 5, [keys, odd, halves, (text, bounds)])
    expected = [
        by_definition(
            12345,
            7 + i,
            [keys[i].tobytes(), odd[i].tobytes(), halves[i].tobytes(), crc32(texts[i])],
        )
        for i in range(5)
    ]
    assert found.tolist() == expected
    assert row_checksums(1, 0, 0, [keys[:0], (text[:0], [0])]).tolist() == []


def test_multipliers_do_not_depend_on_how_many_are_asked_for() -> None:
    assert multipliers(5000)[:7].tolist() == multipliers(7).tolist()
    assert int(multipliers(1)[0]) == 0xE220A8397B1DCDAF  # splitmix64's first for seed 0


def test_every_flipped_bit_of_a_wide_row_changes_the_sum() -> None:
    """No multiplier, shifted by any bit, may vanish from the upper half, or with a carry."""
    upper = multipliers(70_000)[:, None] << np.arange(64, dtype=np.uint64)
    upper >>= np.uint64(32)
    assert (upper != 0).all()
    assert (upper != 0xFFFF_FFFF).all()


def test_rows_swapped_or_cut_short_do_not_pass() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (50, 24), np.uint8)
    sums = row_checksums(9, 0, 50, [rows])
    assert len(set(sums.tolist())) == 50
    assert (row_checksums(9, 1, 50, [rows]) != sums).all()
    assert (row_checksums(8, 0, 50, [rows]) != sums).all()
    for cut in (0, 8, 20):
        torn = rows.copy()
        torn[:, cut:] = 0
        assert (row_checksums(9, 0, 50, [torn]) != sums).all()
    assert as_bytes(rows[:0]).nbytes == 0
