"""Independent HDF5 readers (h5dump, pyfive) that check files written by featpipe."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path

H5DUMP = shutil.which("h5dump")


def check_h5dump(path: Path) -> None:
    """The command-line tool of an older libhdf5 lists every object without complaint."""
    assert H5DUMP is not None
    done = subprocess.run([H5DUMP, "-H", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr


def check_pyfive(path: Path) -> None:
    """A reader in pure Python, which shares no line with libhdf5, reads every table's checksums."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pyfive

        with pyfive.File(str(path)) as file:
            for name in file:
                walk(file[name])


def walk(node: object) -> None:
    if hasattr(node, "shape"):
        assert node[:].shape == node.shape  # type: ignore[index]  # a dataset of an untyped package
    else:
        for name in node:  # type: ignore[attr-defined]  # a group of an untyped package
            walk(node[name])  # type: ignore[index]
