"""The sum that makes a row real, against its definition, its bound and pairs of flipped bits."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest

from featpipe.store.checksum import (
    MULTILINEAR,
    ODD_64,
    RowHash,
    as_bytes,
    crcs_of,
    odd_multipliers,
)

MASK = (1 << 64) - 1
SALT = 12345


def splitmix(seed: int, number: int) -> int:
    """The ``number``-th output (from 0) of splitmix64, as published by S. Vigna."""
    z = (seed + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def words_of(columns: list[bytes]) -> list[int]:
    padded = b"".join(data + bytes(-len(data) % 8) for data in columns)
    return [int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)]


def by_definition(salt: int, row: int, columns: list[bytes]) -> int:
    """Characters of 32 bits, each with a multiplier of its own, as the documentation has it."""
    total, at = splitmix(salt << 32, 0), 1
    for word in [row, *words_of(columns)]:
        low, high = splitmix(salt << 32, at), splitmix(salt << 32, at + 1)
        total += (word & 0xFFFF_FFFF) * low + (word >> 32) * (high + (low << 32))
        at += 2
    return (total & MASK) >> 32


def by_definition_of_layout_1(salt: int, row: int, columns: list[bytes]) -> int:
    m = [splitmix(0, number) | 1 for number in range(200)]
    words = [row, salt, *words_of(columns)]
    total = sum(word * multiplier for word, multiplier in zip(words, m, strict=False))
    return (total & MASK) >> 32


@pytest.mark.parametrize("size", [1, 3, 8, 16, 64, 65])
@pytest.mark.parametrize("n", [1, 16, 1040, 5000])
def test_crcs_of_pieces_are_those_of_zlib_at_any_length_and_number(size: int, n: int) -> None:
    source = np.random.default_rng(n * size)
    data = source.integers(0, 256, 7 + n * size + 1, np.uint8).data
    equal = 7 + np.arange(n + 1) * size
    uneven = np.sort(source.integers(0, len(data) + 1, n + 1))
    almost = np.append(equal[:-1], equal[-1] + 1)
    for bounds in (equal, uneven, almost):
        expected = [crc32(data[a:b]) for a, b in pairwise(bounds.tolist())]
        assert crcs_of(data, bounds).tolist() == expected


def test_no_pieces_have_no_crcs() -> None:
    assert len(crcs_of(memoryview(b"abc"), np.zeros(1, np.int64))) == 0


@pytest.mark.parametrize("name", [MULTILINEAR, ODD_64])
def test_the_sum_is_what_the_documentation_says(name: str) -> None:
    source = np.random.default_rng(0)
    keys = source.integers(0, 256, (5, 16), np.uint8)
    odd = source.integers(0, 256, (5, 7), np.uint8)
    halves = source.standard_normal((5, 3)).astype(np.float16)
    texts = [b"", b"a", "甲乙".encode(), b"x" * 100, b""]
    bounds = np.cumsum([0, *map(len, texts)])
    crcs = crcs_of(memoryview(b"".join(texts)), bounds)
    assert crcs.tolist() == [crc32(text) for text in texts]
    rows, hashed = np.array([7, 8, 1 << 32, 3, 3]), RowHash(SALT, name)
    parts = [keys, odd, halves, crcs.astype(np.uint64)]
    found = hashed.sums(rows, parts)
    definition = by_definition if name == MULTILINEAR else by_definition_of_layout_1
    for i, row in enumerate(rows.tolist()):
        columns = [part[i].tobytes() for part in parts]
        assert found[i] == definition(SALT, row, columns)
        if name == MULTILINEAR:
            assert found[i] == hashed.sum_one(row, columns)
    assert hashed.sums(rows[:0], [keys[:0]]).tolist() == []


def test_multipliers_do_not_depend_on_how_many_are_asked_for() -> None:
    assert odd_multipliers(5000)[:7].tolist() == odd_multipliers(7).tolist()
    assert int(odd_multipliers(1)[0]) == 0xE220A8397B1DCDAF  # splitmix64's first for seed 0
    few, many = (
        RowHash(SALT, MULTILINEAR).multipliers(3),
        RowHash(SALT, MULTILINEAR).multipliers(9999),
    )
    assert few[0][:3].tolist() == many[0][:3].tolist()
    assert few[1][:3].tolist() == many[1][:3].tolist()


def test_every_pair_of_flipped_bits_changes_the_sum() -> None:
    """Pairs of sign bits cancelled each other in the sum of layout 1."""
    row = np.random.default_rng(2).integers(0, 256, (1, 48), np.uint8)
    pairs = [(a, b) for a in range(48 * 8) for b in range(a)]
    flipped = np.repeat(row, len(pairs), 0)
    numbers = np.arange(len(pairs))
    for side in (0, 1):
        bit = np.array([pair[side] for pair in pairs])
        flipped[numbers, bit // 8] ^= (1 << (bit % 8)).astype(np.uint8)
    same_row = np.zeros(len(pairs), np.int64)
    for salt in (1, SALT, 0xFFFF_FFFF):
        hashed = RowHash(salt, MULTILINEAR)
        assert (hashed.sums(same_row, [flipped]) != hashed.sums(same_row[:1], [row])).all()
    signs = row.copy()
    signs[0, [7, 15]] ^= 0x80
    old = RowHash(SALT, ODD_64)
    assert old.sums(same_row[:1], [signs]) == old.sums(same_row[:1], [row])


def test_damage_passes_as_often_as_its_bound_says() -> None:
    """Of the upper 12 bits of the sum, over many salts: 2^-12 of the cases, whatever the damage."""
    damages = [b"\0" * 7 + b"\x80", b"\1" + b"\0" * 7, b"\xff" * 8, b"\0" * 4 + b"\1\0\0\0"]
    n_salts, n_passed = 4000, 0
    for salt in range(n_salts):
        hashed = RowHash(salt | 1 << 20, MULTILINEAR)
        whole = hashed.sum_one(0, [bytes(16)])
        n_passed += sum(hashed.sum_one(0, [two * 2]) >> 20 == whole >> 20 for two in damages)
    assert n_passed < 5 + 4 * len(damages) * n_salts / 4096


def test_rows_swapped_or_cut_short_do_not_pass() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (50, 24), np.uint8)
    numbers, hashed = np.arange(50), RowHash(9, MULTILINEAR)
    sums = hashed.sums(numbers, [rows])
    assert len(set(sums.tolist())) == 50
    assert (hashed.sums(numbers + 1, [rows]) != sums).all()
    assert (RowHash(8, MULTILINEAR).sums(numbers, [rows]) != sums).all()
    for cut in (0, 8, 20):
        torn = rows.copy()
        torn[:, cut:] = 0
        assert (hashed.sums(numbers, [torn]) != sums).all()
    assert as_bytes(rows[:0]).nbytes == 0
