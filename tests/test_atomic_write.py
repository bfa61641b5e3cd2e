"""A file that replaces another keeps who may read it, and the link that names it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from featpipe import user_cache
from featpipe.atomic_write import write_atomically

NO_ONE_ELSE = 0o600


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_earlier_mode_stays(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"before")
    file.chmod(mode)
    write_atomically(file, b"after")
    assert (file.read_bytes(), mode_of(file)) == (b"after", mode)


def test_at_no_instant_may_others_read_a_confidential_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"before")
    file.chmod(NO_ONE_ELSE)
    seen = []

    def write(out: BinaryIO) -> None:
        out.write(b"after")
        seen.extend(mode_of(each) for each in tmp_path.iterdir())

    write_atomically(file, write)
    assert seen == [NO_ONE_ELSE] * 2


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "any").write_bytes(b"")
    write_atomically(tmp_path / "new", b"")
    assert mode_of(tmp_path / "new") == mode_of(tmp_path / "any")


def test_a_link_stays_and_the_file_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    file = tmp_path / "kept" / "results.jsonl"
    link = tmp_path / "latest"
    link.symlink_to(file)
    write_atomically(link, b"first")
    write_atomically(link, b"second")
    assert link.is_symlink()
    assert file.read_bytes() == b"second"
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_extended_attributes_stay(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"before")
    try:
        os.setxattr(file, "user.origin", b"archive")
    except OSError as error:
        pytest.skip(f"this file system has no extended attributes: {error}")
    write_atomically(file, b"after")
    assert os.getxattr(file, "user.origin") == b"archive"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")
def test_the_earlier_owner_stays(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"before")
    os.chown(file, 12345, 23456)
    write_atomically(file, b"after")
    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


def test_the_users_cache_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "fitted" / "one"
    user_cache.keep(file, b"values of samples")
    assert mode_of(file.parent) == 0o700
