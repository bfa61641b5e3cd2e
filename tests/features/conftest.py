"""Fixtures shared by the tests of features."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_checkpoints import CHINESE, save_encoder, save_tagger


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def tagger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tagger(tmp_path_factory.mktemp("tagger"))


@pytest.fixture(autouse=True)
def private_memo(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remembered digests and probes stay out of the user's home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "memo"))


@pytest.fixture(scope="session")
def write_text() -> Callable[[int, int], str]:
    """text(seed, n): `n` characters of contract-like Chinese with some Latin and digits."""

    def text(seed: int, length: int) -> str:
        chance = random.Random(seed)  # noqa: S311 - texts, not secrets
        pool = CHINESE * 4 + "abcdefghij 0123456789 the contract.\n"
        return "".join(chance.choice(pool) for _ in range(length))

    return text
