"""Where a file system is read-only, every command says so, and how to go on."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from featpipe.cache.forget import forget_places
from featpipe.cache.repair import repair_cache
from featpipe.cache.repair_folder import repair_folder
from featpipe.errors import WriteFailed
from featpipe.store import Writer
from featpipe.store.backup import back_up_dictionary


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder cache of one empty shard, as on a mount that is read-only.

    A test that root runs may write to folders of any mode.
    """
    (tmp_path / "shards").mkdir()
    (tmp_path / "cache.json").write_text(json.dumps({"format": 1, "bits": 0}), "utf-8")
    Writer.open(tmp_path / "shards" / "0.h5").close()
    opened = os.open

    def refuse(path: str | Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def open_to_read(path: str | Path, flags: int, *rest: int, **options: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            refuse(path)
        return opened(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", open_to_read)
    for name in ("mkdir", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    return tmp_path


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: forget_places(folder, {"/docs/a.txt": "docs/a.txt"}),
        lambda folder: back_up_dictionary(folder / "shards/0.h5", folder / "copy.h5"),
        lambda folder: repair_cache(folder / "shards/0.h5"),
        repair_folder,
    ],
    ids=["forget", "backup", "repair", "repair a folder"],
)
def test_a_read_only_file_system_is_named(folder: Path, act: Callable[[Path], object]) -> None:
    with pytest.raises(WriteFailed, match="cannot be written: Read-only") as refused:
        act(folder)
    assert refused.value.hint == "the file system is read-only"
