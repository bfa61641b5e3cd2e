"""A cache in a folder: where its files are, and which of them a key belongs to.

::

    cache.json                 format, bits, and what the builders of the folder agree on
    parts/RUN-0007.h5          tables documents, sources, runs of one part of a run's documents
    outbox/RUN-0007.h5         the texts of that part, for the builders of the shards only
    shards/0a.h5, 0a.1.h5 ...  texts, levels, embeddings, entities, terms of a shard, and additions
    lists/                     the sources of each part
    reports/*.done             one for each job that has ended
    results.h5                 tables results/* of extraction, with a writer of their own

Guarantees: a key belongs to one shard, whatever the machine; published files appear whole (they are
renamed into their place), and hidden names, which begin with a dot, are files being written.

The number of a shard is the *last* bits of a key. The index of a file begins at the first ones
(`featpipe.store.index`): with those, the keys of a shard would share a few places to begin at, and
finds and appends would be many times slower.
"""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from featpipe.errors import DictionaryError, NewerDictionary, UnreadableDictionary, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The format of ``cache.json`` that this version writes and reads.
FORMAT = 1
#: At most 65,536 shards.
MAX_BITS = 16

DESCRIPTION = "cache.json"
PARTS = "parts"
OUTBOX = "outbox"
SHARDS = "shards"
LISTS = "lists"
REPORTS = "reports"
RESULTS_FILE = "results.h5"
#: Files that jobs write in place; what a job left whose run was dropped stays there.
WORK = ".work"
#: In a folder into which a backup has begun and not ended: the description that it gets.
UNFINISHED = ".cache.json.backup"
#: In a local folder that stands for one in an object store: holds its URL.
FETCHED_FROM = ".fetched-from"

#: A description holds the specs of some models: a longer one is another program's.
_MOST_BYTES = 16 << 20
_SHARD_FILE = re.compile(r"([0-9a-f]+)(?:\.([1-9][0-9]*))?\.h5")
_REPORT = re.compile(r"(?:encode-(?P<shard>[0-9a-f]+)-[0-9]+|prepare-(?P<part>.+))\.done")
_PART_FILE = re.compile(r"(.+)-([0-9]{4,})\.h5")
#: Answers for a name that leads to no file.
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_ATTEMPT = re.compile(r"\.[0-9]+(?=-[0-9]+\Z)")


def shard_of(keys: NDArray[np.uint8], bits: int) -> NDArray[np.int64]:
    """Shard numbers (n,) of keys (n, 16): their last ``bits`` bits, 0 to 16."""
    words = np.ascontiguousarray(keys, np.uint8).reshape(-1, 16)[:, 14:].view(">u2")[:, 0]
    return words.astype(np.int64) & ((1 << bits) - 1)


def shard_of_one(key: bytes, bits: int) -> int:
    """As :func:`shard_of`, of one key of 16 bytes."""
    return int.from_bytes(key[14:], "big") & ((1 << bits) - 1)


def part_of(stem: str) -> str:
    """The part that a file is of, from its name: ``RUN-0007`` of ``RUN.1-0007``, too."""
    return _ATTEMPT.sub("", stem)


@dataclass(frozen=True, slots=True)
class FolderLayout:
    """The files of a folder with ``1 << bits`` shards."""

    path: Path
    bits: int

    @classmethod
    def read(cls, path: str | Path, *, is_fetched: bool = False) -> Self:
        """The layout of an existing folder, from its ``cache.json``.

        Args:
            path: of the folder.
            is_fetched: it may stand for a cache in an object store, and lack files of it.

        Raises:
            UnreadableDictionary: no such folder, or one that is not a cache.
            NewerDictionary: written by a later featpipe.
            UsageError: it stands for a cache in an object store.
        """
        folder = Path(path).absolute()
        url = None if is_fetched else fetched_from(folder)
        if url is not None:
            raise UsageError(
                f"{folder} holds local copies of some files of {url}",
                hint=f"copy {url} as a whole to a local folder, work on that, and copy it back",
            )
        description = read_description(folder)
        bits = description.get("bits")
        if not isinstance(bits, int) or isinstance(bits, bool) or not 0 <= bits <= MAX_BITS:
            raise UnreadableDictionary(
                f"{folder / DESCRIPTION}: bits is {bits!r}, not a number from 0 to {MAX_BITS}"
            )
        return cls(folder, bits)

    @property
    def description(self) -> Path:
        """``cache.json``."""
        return self.path / DESCRIPTION

    @property
    def results_file(self) -> Path:
        """Results of extraction; made by the first of them."""
        return self.path / RESULTS_FILE

    @property
    def n_shards(self) -> int:
        """Shards, whether or not they have a file yet."""
        return 1 << self.bits

    def shard_name(self, number: int) -> str:
        """Such as ``0a``: lower-case hexadecimal, as wide for each shard."""
        if not 0 <= number < self.n_shards:
            raise ValueError(f"shard {number} of {self.n_shards}")
        return f"{number:0{max(1, -(-self.bits // 4))}x}"

    def shard_file(self, number: int, addition: int = 0) -> Path:
        """The file of a shard, or of a later addition to it, counted from 1."""
        suffix = f".{addition}" if addition else ""
        return self.path / SHARDS / f"{self.shard_name(number)}{suffix}.h5"

    def part_file(self, run: str, number: int) -> Path:
        """Documents of one part of a run."""
        return self.path / PARTS / f"{run}-{number:04d}.h5"

    def next_part(self, run: str) -> Path:
        """The name of a part that comes after all others, of this run if its id is late enough."""
        parts = self.part_files()
        match = _PART_FILE.fullmatch(parts[-1].name) if parts else None
        if match is not None and match[1] >= run:
            return self.part_file(match[1], int(match[2]) + 1)
        return self.part_file(run, 0)

    def outbox_file(self, run: str, number: int) -> Path:
        """Texts of that part, sorted by shard."""
        return self.path / OUTBOX / f"{run}-{number:04d}.h5"

    def shard_files(self) -> dict[int, list[Path]]:
        """The published files of each shard that has any, additions in their order.

        Raises:
            UnreadableDictionary: a file of another name; one that additions need is missing.
        """
        return {number: self._in_order(number, files) for number, files in self._shards().items()}

    def misnamed_files(self) -> dict[Path, Path]:
        """Additions to a shard of which earlier files are missing, and the names to give them.

        They are in the order in which they can be renamed. Raises UnreadableDictionary.
        """
        return {
            files[addition]: self.shard_file(number, place)
            for number, files in self._shards().items()
            for place, addition in enumerate(sorted(files))
            if place != addition
        }

    def second_names(self) -> list[Path]:
        """Additions that are an earlier file of their shard, as a repair that was killed left them.

        Raises UnreadableDictionary.
        """
        second = []
        for files in self._shards().values():
            seen: set[tuple[int, int]] = set()
            for addition in sorted(files):
                try:
                    status = files[addition].stat()
                except OSError:  # a link to nothing, or out of reach: whoever opens it is told
                    continue
                identity = (status.st_dev, status.st_ino)
                second += [files[addition]] if identity in seen else []
                seen.add(identity)
        return second

    def _shards(self) -> dict[int, dict[int, Path]]:
        """The files of each shard by addition."""
        found: dict[int, dict[int, Path]] = {}
        for file in self._published(SHARDS):
            number, addition = self._shard_of_file(file)
            found.setdefault(number, {})[addition] = file
        return {number: found[number] for number in sorted(found)}

    def part_files(self) -> list[Path]:
        """The published parts: runs in the order of their ids, which begin with the time.

        Raises:
            UnreadableDictionary: a file of another name.
        """
        found: list[tuple[str, int, Path]] = []
        for file in self._published(PARTS):
            match = _PART_FILE.fullmatch(file.name)
            if match is None:
                raise _foreign(file, "RUN-0000.h5")
            found.append((match[1], int(match[2]), file))
        return [file for _, _, file in sorted(found)]

    def missing_files(self) -> dict[Path, int | None]:
        """First files of jobs whose report says that they made some, and their shard, if of one.

        Reports are read of those jobs only that have no file.
        """
        found: dict[Path, int | None] = {}
        for name in self.names(REPORTS):
            match = _REPORT.fullmatch(name)
            if match is None:
                continue
            shard = int(match["shard"], 16) if match["shard"] else None
            folder, stem = (PARTS, match["part"]) if shard is None else (SHARDS, match["shard"])
            file = self.path / folder / f"{stem}.h5"
            is_there = file in found or self.exists(f"{folder}/{file.name}")
            if not is_there and self._made_files(f"{REPORTS}/{name}"):
                found[file] = shard
        return found

    # ---- what the folder holds

    def names(self, below: str) -> list[str]:
        """Names in one of its folders; none where there is no such folder.

        Raises:
            UnreadableDictionary: it cannot be listed.
        """
        folder = self.path / below
        try:
            return [entry.name for entry in folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableDictionary(f"{folder} cannot be listed: {error.strerror}") from error

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name, relative to the folder.

        Raises:
            UnreadableDictionary: that cannot be told.
        """
        try:
            (self.path / name).stat()
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise UnreadableDictionary(
                f"{self.path / name} cannot be looked for: {error.strerror}"
            ) from error
        return True

    def read_file(self, name: str) -> bytes:
        """All bytes of a small file. Raises OSError."""
        return (self.path / name).read_bytes()

    def _published(self, below: str) -> list[Path]:
        """The files in one of its folders that claim to be of the cache."""
        names = [name for name in self.names(below) if name.endswith(".h5") and name[0] != "."]
        return [self.path / below / name for name in sorted(names)]

    def _made_files(self, report: str) -> bool:
        try:
            return bool(json.loads(self.read_file(report))["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return False  # no report of a job

    def _shard_of_file(self, file: Path) -> tuple[int, int]:
        match = _SHARD_FILE.fullmatch(file.name)
        if match is not None:
            number, addition = int(match[1], 16), int(match[2] or 0)
            if number < self.n_shards and file.name == self.shard_file(number, addition).name:
                return number, addition
        raise _foreign(file, f"{self.shard_name(0)}.h5 to {self.shard_name(self.n_shards - 1)}.h5")

    def _in_order(self, number: int, files: dict[int, Path]) -> list[Path]:
        for addition in range(len(files)):
            if addition not in files:
                raise UnreadableDictionary(
                    f"{self.shard_file(number, addition)} is missing, and "
                    f"{files[max(files)].name} is an addition to it",
                    hint=f"put it back, or featpipe repair {self.path} and build again",
                )
        return [files[addition] for addition in range(len(files))]


def cache_of(file: Path) -> Path:
    """The folder cache that a file belongs to; the file itself where it belongs to none."""
    is_below = file.parent.name in {PARTS, SHARDS}
    folder = file.parent.parent if is_below else file.parent
    if not is_below and file.name != RESULTS_FILE:
        return file
    try:
        read_description(folder)
    except DictionaryError:
        return file
    return folder


def results_file_of(cache: Path) -> Path:
    """The file that results of a cache are written to: the cache itself, or one of the folder.

    Raises:
        UnreadableDictionary, NewerDictionary: a folder that is not a cache.
    """
    return FolderLayout.read(cache, is_fetched=True).results_file if cache.is_dir() else cache


def fetched_from(folder: Path) -> str | None:
    """The URL that a local folder stands for; None for any other folder."""
    try:
        return (folder / FETCHED_FROM).read_text("utf-8")
    except OSError:
        return None


def read_description(folder: Path) -> dict[str, object]:
    """``cache.json`` of a folder, of a format that this version knows.

    Raises:
        UnreadableDictionary: no such folder, or one that is not a cache.
        NewerDictionary: written by a later featpipe.
    """
    path = folder / DESCRIPTION
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if (folder / UNFINISHED).is_file():
            raise unfinished_backup(folder) from None
        raise UnreadableDictionary(
            f"{folder} is a folder without a {DESCRIPTION}, so it is not a cache"
            if folder.is_dir()
            else f"{folder} does not exist",
            hint="name a file, or a folder that featpipe build-cache --shards made",
        ) from None
    except OSError as error:
        raise UnreadableDictionary(f"{path} cannot be read: {error.strerror}") from error
    try:
        description = json.loads(text) if len(text) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        description = None
    if not isinstance(description, dict) or not isinstance(description.get("format"), int):
        raise UnreadableDictionary(f"{path} does not describe a cache")
    if description["format"] > FORMAT:
        raise NewerDictionary(
            f"{path} has format {description['format']}, and this featpipe knows {FORMAT}",
            hint="pip install --upgrade featpipe",
        )
    return description


def unfinished_backup(folder: Path | str) -> UnreadableDictionary:
    """The error of a folder into which a backup was interrupted: it may lack files."""
    return UnreadableDictionary(
        f"{folder} is a backup that was interrupted, and may lack files",
        hint="run the same featpipe backup again; where its source is lost, rename "
        f"{UNFINISHED} there to {DESCRIPTION}, then featpipe repair and build it again",
    )


def _foreign(file: Path, names: str) -> UnreadableDictionary:
    return UnreadableDictionary(
        f"{file} is no file of this cache, whose files there are named {names}",
        hint="move it out of the folder",
    )
