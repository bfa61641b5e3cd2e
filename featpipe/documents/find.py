"""Finds the files to read, in an order that does not depend on the file system.

Guarantees: a path that does not exist raises. Every entry of a folder that is not excluded becomes
a source, also an unreadable one (a pipe, a device, a folder that cannot be listed, a broken or
circular link): reading it raises the reason and opens no pipe. Each file comes once, however many
patterns match it. Sources are sorted by id; ids are printable for any bytes of a file's name.

A link is followed where it was named, or leads to a place inside the folder that was. A link that
leads out of that folder is passed over, and said: no other file of the machine gets into a cache
because somebody put a link to it among the documents.

Files that featpipe wrote (see `featpipe.documents.own_files`) are no documents: those in folders
are passed over, and said; one that is named raises.

**Ids.** An id is the end of the document's path, from the name of the folder that was given on:
``contracts/2024/a.txt`` for ``contracts``, ``./contracts`` or ``/data/contracts``, from any working
folder and through any link, whatever else was given; for a file given by itself, the name of its
folder and its own. Members of archives and records of JSONL files have their own name after it.
Two folders of one name may hold the same path: then the names of the folders above come before it
until the ids differ. A cache keeps the id under which a document first came in (see
`featpipe.build.intake`).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents.own_files import DESCRIPTIONS, describe_own_file
from featpipe.documents.source import GivenText, Source, expanded, printable
from featpipe.errors import MissingDocuments, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Never documents: files of version control, editors, office locks and systems.
IGNORED = (".*", "~$*", "*.tmp", "*.swp", "Thumbs.db", "desktop.ini", "__MACOSX", "__pycache__")


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search.

    Attributes:
        sources: sorted by id.
        notes: what was passed over, in words.
        roots: the folders and files that were given, by absolute path with links followed.
    """

    sources: list[Source]
    notes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


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
        UsageError: featpipe wrote the file that a path names.
    """
    found = search(paths, include, exclude, expand=expand)
    if note:
        for words in found.notes:
            note(words)
    return found.sources


def search(
    paths: Sequence[Path | str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    *,
    expand: bool = False,
    own: Path | None = None,
) -> Found:
    """As `find_sources`, with what was passed over and where was searched.

    ``own`` is the file being written: it may be named among others, and is left out.
    """
    found: dict[str, Source] = {}
    ours: dict[str, str] = {}
    notes: list[str] = []
    roots: list[str] = []
    own_place = real_path(own) if own else None
    for path in _listed(paths):
        if own_place and real_path(Path(path)) == own_place:
            continue
        roots += _roots_of(str(path))
        for source in _expand(str(path), tuple(include), (*IGNORED, *exclude), notes):
            place = real_path(source.path)
            what = "a cache" if place == own_place else describe_own_file(source.path)
            if what is None:
                _keep(found, place, source)
            else:
                _refuse_named(path, what)
                ours[place] = what
    if ours:
        notes.append(_describe_ours(ours))
    if not found:
        named = ", ".join(str(path) for path in paths) or "no path"
        raise MissingDocuments(
            f"no documents in {named}",
            hint="; ".join(notes) or _why_nothing(paths, include, exclude, own_place),
        )
    whole = _distinct(found.values())
    sources = [inner for s in whole for inner in expanded(s)] if expand else list(whole)
    return Found(sorted(sources), tuple(notes), tuple(roots))


def _roots_of(path: str) -> list[str]:
    paths = [path] if Path(path).exists() else glob(path)  # noqa: PTH207 - Path.glob refuses absolute ones
    return [real_path(Path(one)) for one in paths]


def _keep(found: dict[str, Source], place: str, source: Source) -> None:
    """Of two ids for one file that of its own name, not of a link to it; of two such the longer.

    The longer one is that by the widest folder, in whatever order.
    """
    known = found.setdefault(place, source)
    if source is not known and _rank(source, place) > _rank(known, place):
        found[place] = source


def _rank(source: Source, place: str) -> tuple[bool, int]:
    return str(absolute(source.path)) == place, len(source.id)


def _refuse_named(path: Path | str, what: str) -> None:
    if Path(path).is_file():
        raise UsageError(
            f"{path} is {what} that featpipe wrote, and no document",
            hint="leave it out; in a folder such files are passed over",
        )


def _why_nothing(
    paths: Sequence[Path | str],
    include: Sequence[str],
    exclude: Sequence[str],
    own_place: str | None,
) -> str:
    if own_place and any(real_path(Path(path)) == own_place for path in paths):
        return "that is the cache to be written; name the documents for it"
    if include or exclude:
        return "check the patterns of include and exclude"
    return "hidden files and those of editors and version control are no documents"


def _describe_ours(ours: dict[str, str]) -> str:
    kinds = ", ".join(dict.fromkeys(ours.values()))
    n = (
        "1 file that featpipe wrote was"
        if len(ours) == 1
        else (f"{len(ours)} files that featpipe wrote were")
    )
    return f"{n} passed over ({kinds})"


def expand_in_order(groups: Sequence[Sequence[Source]]) -> Iterator[list[Source]]:
    """Each group of sources expanded, in order; ids are those of one search for all of them.

    Args:
        groups: each as ``find_sources`` found it, not expanded; a file may be in several.
    """
    by_path: dict[str, Source] = {}
    for source in chain.from_iterable(groups):
        _keep(by_path, real_path(source.path), source)
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
        yield from _within(root, _Walk(root, include, exclude, notes))
    elif root.is_file():
        yield from _within(root.parent, [Source(printable(root.name), root)])
    elif has_magic(path):
        found = _globbed_below if "**" in path else _globbed
        sources = list(_within(_fixed_part(path), found(path, include, exclude, notes)))
        if not sources and not notes:
            raise MissingDocuments(f"{path} matches nothing")
        yield from sources
    elif root.exists():
        raise MissingDocuments(f"{path} is neither a file nor a folder")
    else:
        raise MissingDocuments(
            f"{path} does not exist",
            hint="check the path" if root.is_absolute() else f"it was looked for in {Path.cwd()}",
        )


def _within(folder: Path, sources: Iterable[Source]) -> Iterator[Source]:
    """Sources found below a folder, with its name before their ids."""
    name = printable(Path(real_path(folder)).name)
    for source in sources:
        yield replace(source, id=f"{name}/{source.id}") if name else source


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
        for folder, folders, names in self._folders():
            if not self._is_new(Path(folder)):
                folders.clear()
                continue
            below = Path(folder).relative_to(self.root)
            if not {*DESCRIPTIONS}.isdisjoint(names) and describe_own_file(Path(folder)):
                folders.clear()
                yield Source(printable(below.as_posix()), Path(folder))  # one, to be passed over
                continue
            inside = (f for f in sorted(folders) if not self._is_excluded(below / f))
            folders[:] = [f for f in inside if self._stays(below / f)]
            for path in (below / name for name in sorted(names)):
                if self._is_included(path) and not self._is_excluded(path) and self._stays(path):
                    yield Source(printable(path.as_posix()), self.root / path)
        for path in self.unlisted:
            yield Source(printable(path.relative_to(self.root).as_posix()), path)
        if self.left:
            self.notes.append(_describe_left(self.root, self.left))

    def _folders(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """As ``os.walk``; links to folders come last, so that none names what is in a real one."""
        roots = [self.root]
        for root in roots:
            for folder, folders, names in os.walk(root, onerror=self._note_unlisted):
                yield folder, folders, names
                links = {name for name in folders if (Path(folder) / name).is_symlink()}
                roots += [Path(folder) / name for name in folders if name in links]
                folders[:] = [name for name in folders if name not in links]

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
    """Sources with distinct ids: longer ones where two folders of one name hold the same path."""
    by_id: dict[str, list[Source]] = {}
    for source in sources:
        by_id.setdefault(source.id, []).append(source)
    for same in by_id.values():
        ids = [[source.id, *longer_ids(source)] for source in same]
        # Paths differ, so their longest ids do.
        for depth in range(max(map(len, ids))):
            chosen = [some[min(depth, len(some) - 1)] for some in ids]
            if len(set(chosen)) == len(same):
                break
        yield from (replace(source, id=id_) for source, id_ in zip(same, chosen, strict=True))


def longer_ids(source: Source) -> Iterator[str]:
    """Ids with the name of one more folder before each, up to the whole path."""
    parts = [printable(part) for part in absolute(source.path).parts[1:]]
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    within = [at for at, end in enumerate(ends) if f"{source.id}/".startswith(f"{end}/")]
    if within:
        rest = source.id[len(ends[within[0]]) :]
        yield from (end + rest for end in reversed(ends[: within[0]]))
    else:  # found through a link below the folder
        yield from (
            f"{'/'.join(parts[at:-1])}/{source.id}" for at in reversed(range(len(parts) - 1))
        )


def at_absolute_paths(sources: Iterable[Source]) -> Iterator[Source]:
    """The same sources by `absolute` paths, texts as they are; each folder is resolved once."""
    folders: dict[Path, str] = {}
    given = whole = Path()
    for source in sources:
        if isinstance(source.part, GivenText):
            yield source
            continue
        if source.path is not given:  # the records of one file share its path
            given = source.path
            if given.parent not in folders:
                folders[given.parent] = real_path(given.parent)
            resolved = Path(folders[given.parent]) / given.name
            whole = given if resolved == given else resolved
        yield source if whole is given else replace(source, path=whole)


def absolute(path: Path) -> Path:
    """The one absolute path of a file by whatever folders it was reached; its own name stays."""
    return Path(real_path(path.parent)) / path.name
