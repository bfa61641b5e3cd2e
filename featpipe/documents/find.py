"""Finds the files to read, in an order that does not depend on the file system.

Guarantees: a path that does not exist raises. Every entry of a folder that is not excluded becomes
a source, also an unreadable one (a pipe, a device, a folder that cannot be listed, a broken or
circular link): reading it raises the reason and opens no pipe. Each file comes once, however many
patterns match it. Sources are sorted by id; ids are printable for any bytes of a file's name.

A link is followed where it was named, or leads to a place inside the folder that was. A link that
leads out of that folder is passed over, and said: no other file of the machine gets into a cache
because somebody put a link to it among the documents.
"""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents.source import Source, expanded, printable
from featpipe.errors import MissingDocuments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Never documents: files of version control, editors, office locks and systems.
IGNORED = (".*", "~$*", "*.tmp", "*.swp", "Thumbs.db", "desktop.ini", "__MACOSX", "__pycache__")


def find_sources(
    paths: Sequence[Path | str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    *,
    expand: bool = False,
    note: Callable[[str], None] | None = None,
) -> list[Source]:
    """Every file under the paths, once, sorted by id.

    Args:
        paths: files, folders (with all folders below) and globs (``**`` for folders below);
            ``@FILE`` is a list of such paths, one per line, ``-`` such a list on standard input.
        include: patterns; a file found in a folder must match one (all do when empty).
        exclude: patterns; a file or folder found in a folder must match none. Patterns are those
            of the shell, compared with the name and with the path below the folder.
        expand: replace zip archives by their members and JSONL files of texts by their records.
            Such sources must be read by ``Source.read``.
        note: called with what was passed over, in words.

    Raises:
        MissingDocuments: a path does not exist, a pattern matches nothing, or nothing is left.
    """
    found: dict[str, Source] = {}
    notes: list[str] = []
    for path in _listed(paths):
        for source in _expand(str(path), tuple(include), (*IGNORED, *exclude), notes):
            found.setdefault(real_path(source.path), source)
    if not found:
        named = ", ".join(str(path) for path in paths) or "no path"
        raise MissingDocuments(
            f"no documents in {named}",
            hint="; ".join(notes) or "check the patterns of include and exclude",
        )
    if note:
        for words in notes:
            note(words)
    whole = _distinct(found.values())
    return sorted(inner for s in whole for inner in expanded(s)) if expand else sorted(whole)


def expand_in_order(groups: Sequence[Sequence[Source]]) -> Iterator[list[Source]]:
    """Each group of sources expanded, in order; ids are those of one search for all of them.

    Args:
        groups: each as ``find_sources`` found it, not expanded; a file may be in several.
    """
    by_path: dict[str, Source] = {}
    for source in chain.from_iterable(groups):
        by_path.setdefault(real_path(source.path), source)
    parts = {real_path(whole.path): expanded(whole) for whole in _distinct(by_path.values())}
    for group in groups:
        yield [part for source in group for part in sorted(parts[real_path(source.path)])]


def _listed(paths: Sequence[Path | str]) -> Iterator[Path | str]:
    """The paths, with lists replaced by their paths."""
    for path in paths:
        if str(path) == "-":
            yield from _in_list(sys.stdin, Path())
        elif str(path).startswith("@") and not Path(path).exists():
            yield from _in_list_file(Path(str(path)[1:]))
        else:
            yield path


def _in_list(lines: Iterable[str], folder: Path) -> Iterator[Path]:
    """Paths from a list, one per line, relative to ``folder``; lines with # are comments."""
    for line in lines:
        name = line.strip()
        if name and not name.startswith("#"):
            yield folder / name


def _in_list_file(path: Path) -> list[Path]:
    """Paths from a list file, relative to its folder."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            found = list(_in_list(lines, path.parent))
    except (OSError, UnicodeDecodeError) as error:
        raise MissingDocuments(f"the list {path} cannot be read: {error}") from error
    if not found:
        raise MissingDocuments(f"the list {path} names no document")
    return found


def _expand(
    path: str, include: tuple[str, ...], exclude: tuple[str, ...], notes: list[str]
) -> Iterator[Source]:
    root = Path(path)
    if root.is_dir():
        yield from _Walk(root, include, exclude, notes)
    elif root.is_file():
        yield Source(printable(root.name), root)
    elif has_magic(path):
        found = _globbed_below if "**" in path else _globbed
        sources = list(found(path, include, exclude, notes))
        if not sources and not notes:
            raise MissingDocuments(f"{path} matches nothing")
        yield from sources
    elif root.exists():
        raise MissingDocuments(f"{path} is neither a file nor a folder")
    else:
        raise MissingDocuments(f"{path} does not exist")


def _globbed(
    pattern: str, include: tuple[str, ...], exclude: tuple[str, ...], notes: list[str]
) -> Iterator[Source]:
    fixed = _fixed_part(pattern)
    for name in sorted(glob(pattern)):  # noqa: PTH207 - Path.glob refuses absolute ones
        path = Path(name)
        below = printable(path.relative_to(fixed).as_posix())
        if path.is_dir():
            for inner in _Walk(path, include, exclude, notes):
                yield Source(f"{below}/{inner.id}", inner.path)
        elif not _matches(path.name, path.name, IGNORED):
            yield Source(below, path)


def _globbed_below(
    pattern: str, _include: tuple[str, ...], _exclude: tuple[str, ...], notes: list[str]
) -> Iterator[Source]:
    """The files that match a pattern with ``**``, each folder once: ``glob`` follows every link."""
    fixed = _fixed_part(pattern)
    wanted = Path(pattern).parts[len(fixed.parts) :]
    if fixed.is_dir():
        walk = _Walk(fixed, (), IGNORED, notes)
        yield from (s for s in walk if _fits(s.path.relative_to(fixed).parts, wanted))


def _fixed_part(pattern: str) -> Path:
    return Path(*takewhile(lambda part: not has_magic(part), Path(pattern).parts[:-1]))


def _fits(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether a path matches a pattern, part by part; ``**`` stands for any number of parts."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_fits(parts[skipped:], wanted[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


class _Walk:
    """The files below a folder, each folder once; then the folders that cannot be listed."""

    def __init__(
        self, root: Path, include: tuple[str, ...], exclude: tuple[str, ...], notes: list[str]
    ) -> None:
        self.root, self.include, self.exclude, self.notes = root, include, exclude, notes
        self.real_root = os.path.join(real_path(root), "")  # noqa: PTH118 - keeps the slash
        self.seen: set[tuple[int, int]] = set()
        self.unlisted: list[Path] = []
        self.left: list[Path] = []
        """Links that lead out of the root."""

    def __iter__(self) -> Iterator[Source]:
        walked = os.walk(self.root, followlinks=True, onerror=self._note_unlisted)
        for folder, folders, names in walked:
            if not self._is_new(Path(folder)):
                folders.clear()
                continue
            below = Path(folder).relative_to(self.root)
            inside = (f for f in sorted(folders) if not self._is_excluded(below / f))
            folders[:] = [f for f in inside if self._stays(below / f)]
            for path in (below / name for name in sorted(names)):
                if self._is_included(path) and not self._is_excluded(path) and self._stays(path):
                    yield Source(printable(path.as_posix()), self.root / path)
        for path in self.unlisted:
            yield Source(printable(path.relative_to(self.root).as_posix()), path)
        if self.left:
            self.notes.append(_describe_left(self.root, self.left))

    def _note_unlisted(self, error: OSError) -> None:
        if Path(error.filename) == self.root:
            raise MissingDocuments(f"{self.root} cannot be listed: {error.strerror}") from error
        self.unlisted.append(Path(error.filename))

    def _is_new(self, folder: Path) -> bool:
        try:
            status = folder.stat()
        except OSError:  # gone since it was listed
            self.unlisted.append(folder)
            return False
        identity = (status.st_dev, status.st_ino)
        is_new = identity not in self.seen  # seen before: through a link
        self.seen.add(identity)
        return is_new

    def _stays(self, path: Path) -> bool:
        """Whether an entry is no link, or one that leads to a place below the root."""
        whole = self.root / path
        if not whole.is_symlink() or real_path(whole).startswith(self.real_root):
            return True
        if real_path(whole) + os.sep != self.real_root:  # the root itself is read already
            self.left.append(whole)
        return False

    def _is_included(self, path: Path) -> bool:
        return not self.include or _matches(path.name, path.as_posix(), self.include)

    def _is_excluded(self, path: Path) -> bool:
        return _matches(path.name, path.as_posix(), self.exclude)


def _describe_left(root: Path, left: list[Path]) -> str:
    first = f"{printable(str(left[0]))} -> {printable(real_path(left[0]))}"
    many = f"{len(left)} links that lead" if len(left) > 1 else "a link that leads"
    return f"passed over {many} out of {root}: {first}; name what is to be read on the command line"


def real_path(path: Path) -> str:
    """A path with links followed; unlike ``Path.resolve`` circular links do not raise."""
    return os.path.realpath(path)


def _matches(name: str, inner: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, p) or fnmatchcase(inner, p) for p in patterns)


def _distinct(sources: Iterable[Source]) -> Iterator[Source]:
    """Sources with distinct ids: the whole path where two folders hold one relative path."""
    by_id: dict[str, list[Source]] = {}
    for source in sources:
        by_id.setdefault(source.id, []).append(source)
    for same in by_id.values():
        for source in same:
            yield source if len(same) == 1 else Source(_whole_path(source.path), source.path)


def _whole_path(path: Path) -> str:
    return printable(path.absolute().as_posix().lstrip("/"))
