"""Find the files to read: what is named, in an order that does not depend on the file system.

Guarantees: every path given is accounted for (absent ones raise); each file comes once,
however many patterns name it; links that lead in circles are not followed twice; the order is
that of the ids.
"""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents.expansion import expanded, in_list, in_list_file
from featpipe.documents.source import Source
from featpipe.errors import MissingDocuments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: What no document folder means to hand in: version control, editors, office locks, systems.
IGNORED = (".*", "~$*", "*.tmp", "*.swp", "Thumbs.db", "desktop.ini", "__MACOSX", "__pycache__")


def find_sources(
    paths: Sequence[Path | str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    *,
    expand: bool = False,
) -> list[Source]:
    """Every file under the paths, once, sorted by id.

    Args:
        paths: files, folders (searched to the bottom) and globs (``**`` goes down); ``@FILE`` is a
            list of such paths, one on a line, and ``-`` such a list on standard input.
        include: patterns; a file found in a folder must match one (all do when empty).
        exclude: patterns; a file or folder found in a folder must match none. Patterns are those
            of the shell, held against the name and against the path below the folder.
        expand: give the members of zip archives and the records of JSONL files of texts in the
            place of these files. Such sources must be read by ``Source.read``.

    Raises:
        MissingDocuments: a path does not exist, a pattern matches nothing, or nothing is left.
    """
    found: dict[Path, Source] = {}
    for path in _listed(paths):
        for source in _expand(str(path), tuple(include), (*IGNORED, *exclude)):
            found.setdefault(source.path.resolve(), source)
    if not found:
        named = ", ".join(str(path) for path in paths) or "no path"
        raise MissingDocuments(
            f"no documents in {named}", hint="check the patterns of include and exclude"
        )
    whole = _distinct(found.values())
    return sorted(inner for s in whole for inner in expanded(s)) if expand else sorted(whole)


def _listed(paths: Sequence[Path | str]) -> Iterator[Path | str]:
    """The paths, with those of lists in the place of the lists."""
    for path in paths:
        if str(path) == "-":
            yield from in_list(sys.stdin, Path())
        elif str(path).startswith("@") and not Path(path).exists():
            yield from in_list_file(Path(str(path)[1:]))
        else:
            yield path


def _expand(path: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> Iterator[Source]:
    root = Path(path)
    if root.is_dir():
        yield from _walk(root, include, exclude)
    elif root.is_file():
        yield Source(root.name, root)
    elif has_magic(path):
        yield from _globbed(path, include, exclude)
    elif root.exists():
        raise MissingDocuments(f"{path} is neither a file nor a folder")
    else:
        raise MissingDocuments(f"{path} does not exist")


def _globbed(pattern: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> Iterator[Source]:
    names = sorted(glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob refuses absolute ones
    if not names:
        raise MissingDocuments(f"{pattern} matches nothing")
    fixed = Path(*_fixed_parts(pattern))
    for name in names:
        path = Path(name)
        if path.is_file() and not _matches(path.name, path.name, IGNORED):
            yield Source(path.relative_to(fixed).as_posix(), path)
        elif path.is_dir() and "**" not in pattern:
            for inner in _walk(path, include, exclude):
                yield Source(f"{path.relative_to(fixed).as_posix()}/{inner.id}", inner.path)


def _fixed_parts(pattern: str) -> list[str]:
    parts: list[str] = []
    for part in Path(pattern).parts[:-1]:
        if has_magic(part):
            break
        parts.append(part)
    return parts


def _walk(root: Path, include: tuple[str, ...], exclude: tuple[str, ...]) -> Iterator[Source]:
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, followlinks=True, onerror=_raise):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below = Path(folder).relative_to(root)
        folders[:] = sorted(f for f in folders if not _matches(f, (below / f).as_posix(), exclude))
        for name in sorted(names):
            inner = (below / name).as_posix()
            if _matches(name, inner, exclude) or not _is_readable(Path(folder) / name):
                continue
            if not include or _matches(name, inner, include):
                yield Source(inner, Path(folder) / name)


def _is_readable(path: Path) -> bool:
    """Files, and links that lead nowhere (reading says so); pipes and devices could block."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _raise(error: OSError) -> None:
    raise MissingDocuments(f"{error.filename} cannot be listed: {error.strerror}") from error


def _matches(name: str, inner: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, p) or fnmatchcase(inner, p) for p in patterns)


def _distinct(sources: Iterable[Source]) -> Iterator[Source]:
    """Two folders may hold the same relative path: then each is named by its whole path."""
    by_id: dict[str, list[Source]] = {}
    for source in sources:
        by_id.setdefault(source.id, []).append(source)
    for same in by_id.values():
        for source in same:
            yield source if len(same) == 1 else Source(_whole_path(source.path), source.path)


def _whole_path(path: Path) -> str:
    return path.absolute().as_posix().lstrip("/")
