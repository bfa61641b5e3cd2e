"""Where output may go: never to a file that it is read from, or to one of another kind of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents.own_files import describe_own_file
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


def check_free(path: Path, kind: str) -> None:
    """Check that no other file that featpipe wrote, or reads as its own, is where one is to be.

    Args:
        path: to be written.
        kind: what may be replaced, as `describe_own_file` calls it: an earlier one of the same.

    Raises:
        UsageError: it holds something else, such as the samples of a template.

    """
    what = describe_own_file(path)
    if what not in {None, kind}:
        raise UsageError(f"{path} holds {what}, and would be lost", hint="name another file")
