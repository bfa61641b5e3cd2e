"""What a service keeps on disk for its workers goes with it, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from service_watch import environment

from featpipe.store.owned_folder import OwnedFolder

if TYPE_CHECKING:
    import pytest

PROGRAM = """
import sys
import tempfile
from pathlib import Path
from featpipe.store.owned_folder import OwnedFolder
folder = OwnedFolder(Path(tempfile.gettempdir()), "featpipe-serve-")
(folder.path / "model").write_bytes(b"fitted")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_killed_service_is_removed_by_the_next_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "featpipe-serve-of-somebody").mkdir()  # no lock in it
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**environment(), "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        first = OwnedFolder(tmp_path, "featpipe-serve-")
        assert (theirs / "model").read_bytes() == b"fitted", "its service lives"
        other.send_signal(signal.SIGKILL)
        other.wait()
    second = OwnedFolder(tmp_path, "featpipe-serve-")
    assert second.removed == [theirs.name]
    assert not theirs.exists()
    assert first.path.is_dir()
    first.close()
    second.close()
    assert [path.name for path in tmp_path.iterdir()] == ["featpipe-serve-of-somebody"]
