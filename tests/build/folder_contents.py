"""What the files of a folder cache hold, row by row, against one file of one machine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from cache_contents import contents
from compare_folder import compare_folder, gather

__all__ = ["contents", "folder_differences", "gather"]


def folder_differences(folder: Path, one: Path) -> list[str]:
    """Where a folder is not what one machine makes, in words; empty when every byte is equal."""
    return compare_folder(folder, one).words
