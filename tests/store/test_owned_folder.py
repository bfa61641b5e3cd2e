"""What a process keeps on disk goes with it, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from featpipe.store.owned_folder import OwnedFolder

PREFIX = "featpipe-serve-"
PROGRAM = """
import sys
from pathlib import Path
from featpipe.store.owned_folder import OwnedFolder
folder = OwnedFolder(Path(sys.argv[1]), sys.argv[2])
(folder.path / "model").write_bytes(b"fitted")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_no_other(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}of-somebody").mkdir()  # no lock in it
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path, PREFIX],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        first = OwnedFolder(tmp_path, PREFIX)
        assert (theirs / "model").read_bytes() == b"fitted", "its process lives"
        other.send_signal(signal.SIGKILL)
        other.wait()
    second = OwnedFolder(tmp_path, PREFIX)
    assert second.removed == [theirs.name]
    assert not theirs.exists()
    assert first.path.is_dir()
    first.close()
    second.close()
    assert [path.name for path in tmp_path.iterdir()] == ["featpipe-serve-of-somebody"]
