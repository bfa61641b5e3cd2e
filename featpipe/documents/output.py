"""Where output may go: never to a file that it is read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_apart(path: Path, places: Iterable[str | Path]) -> None:
    """Check that a file to be written takes the place of none that is read for it.

    Args:
        path: to be written.
        places: files and places of documents; a member of an archive, or a line of a file, stands
            in that file.

    Raises:
        UsageError: it would.
    """
    if not path.is_file():
        return
    names = {path.name, path.resolve().name}
    for place in map(str, places):
        for file in (place, place.rpartition("!")[0], place.rpartition("@")[0]):
            if file.rpartition("/")[2] in names and Path(file).exists() and path.samefile(file):
                raise UsageError(
                    f"{path} is read for what is to be written there, and would be lost",
                    hint="name another file",
                )
