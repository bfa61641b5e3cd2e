"""Where the store's tests put their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a dictionary may be made."""
    return tmp_path / "d.h5"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory when there is one: sweeps need no disk to be slow on."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - a private folder is made in it
        yield tmp_path
        return
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
