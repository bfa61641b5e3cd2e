"""Who may read a dictionary stays as it was, whatever rewrites it."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from featpipe.errors import DictionaryError, WriteFailed
from featpipe.store import Writer, keys_of
from featpipe.store.disk import Disk
from featpipe.store.export import export_npy, export_parquet
from featpipe.store.opening import new_name
from featpipe.store.rewrite import compact_dictionary, merge_dictionaries
from tests.store.samples import VECTORS, vectors_of

TEXTS = ["甲方", "乙方", "金额"]


def make(path: Path, mode: int) -> Path:
    with Writer.open(path) as writer:
        rows = {"keys": keys_of(TEXTS), "vectors": vectors_of(TEXTS)}
        writer.table("embeddings/a", VECTORS).append(rows)
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_compaction_keeps_the_mode(tmp_path: Path, mode: int) -> None:
    path = make(tmp_path / "c.h5", mode)
    compact_dictionary(path)
    assert mode_of(path) == mode


class WatchingDisk(Disk):
    """Notes the modes of all files of a folder at every write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modes: set[int] = set()

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        super().write(descriptor, offset, data)
        self.modes |= {mode_of(each) for each in self.folder.iterdir()}


def test_at_no_instant_of_a_compaction_may_others_read_it(tmp_path: Path) -> None:
    path = make(tmp_path / "c.h5", 0o600)
    disk = WatchingDisk(tmp_path)
    compact_dictionary(path, disk=disk)
    assert disk.modes == {0o600}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")
def test_compaction_keeps_owner_and_group(tmp_path: Path) -> None:
    path = make(tmp_path / "c.h5", 0o600)
    os.chown(path, 12345, 23456)
    compact_dictionary(path)
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (12345, 23456, 0o600)


def test_compaction_keeps_the_access_control_list(tmp_path: Path) -> None:
    path = make(tmp_path / "c.h5", 0o600)
    # Version 2; then (tag, permissions, id): owner, user 12345 may read, group, mask, others.
    entries = [(1, 6, -1), (2, 4, 12345), (4, 0, -1), (16, 4, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"this file system has no access control lists: {error}")
    compact_dictionary(path)
    assert os.getxattr(path, "system.posix_acl_access") == acl


def test_a_link_to_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    path = make(tmp_path / "store" / "c.h5", 0o600)
    link = tmp_path / "latest.h5"
    link.symlink_to(path)
    compact_dictionary(link)
    assert link.is_symlink()
    assert mode_of(path) == 0o600


def test_a_file_of_two_names_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "c.h5", 0o600)
    (tmp_path / "other.h5").hardlink_to(path)
    with pytest.raises(DictionaryError, match="2 names"):
        compact_dictionary(path)
    assert path.samefile(tmp_path / "other.h5")


def test_a_name_that_a_killed_writer_left_is_removed_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "c.h5", 0o600)
    left = new_name(path)  # killed between the link to the final name and the end of this one
    left.hardlink_to(path)
    assert compact_dictionary(path).n_rows > 0
    assert not left.exists()


def test_a_merge_is_read_by_those_who_may_read_every_source(tmp_path: Path) -> None:
    sources = [make(tmp_path / "a.h5", 0o644), make(tmp_path / "b.h5", 0o600)]
    merge_dictionaries(sources, tmp_path / "both.h5")
    assert mode_of(tmp_path / "both.h5") == 0o600


def test_an_export_of_a_confidential_file_is_confidential(tmp_path: Path) -> None:
    export_npy(make(tmp_path / "c.h5", 0o600), tmp_path / "out")
    assert mode_of(tmp_path / "out" / "embeddings" / "a") == 0o700


def test_parquet_of_a_confidential_file_is_confidential_in_any_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "out").mkdir(0o755)
    done = export_parquet(make(tmp_path / "c.h5", 0o600), tmp_path / "out")
    assert {mode_of(file) for file in done.files} == {0o600}


def test_a_loop_of_links_is_an_error_with_the_path(tmp_path: Path) -> None:
    one, other = tmp_path / "a.h5", tmp_path / "b.h5"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(WriteFailed, match=r"a\.h5 cannot be written: Too many levels"):
        Writer.open(one)
    with pytest.raises(DictionaryError, match=r"a\.h5 cannot be opened: Too many levels"):
        compact_dictionary(one)
