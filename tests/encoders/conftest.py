"""Fixtures shared by the tests of encoders."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tiny_checkpoints import CHINESE


@pytest.fixture(scope="session")
def write_text() -> Callable[[int, int], str]:
    """text(seed, n): `n` characters of contract-like Chinese with some Latin and digits."""

    def text(seed: int, length: int) -> str:
        chance = random.Random(seed)  # noqa: S311 - texts, not secrets
        pool = CHINESE * 4 + "abcdefghij 0123456789 the contract.\n"
        return "".join(chance.choice(pool) for _ in range(length))

    return text
