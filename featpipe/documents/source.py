"""Sources: a file, a member of a zip archive, a record of a JSONL file, or a text at hand.

A source is small, frozen and picklable: it holds where the bytes are and reads them in the process
that needs them. Whatever stops it from being read is a ``DocumentError``.

A file that holds many documents is expanded in the order of the container. Every member and every
line becomes a source; a bad one raises when it is read. Nothing is unpacked to disk.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path, PurePosixPath
from stat import S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from featpipe.documents.limits import MIB, LoadLimits
from featpipe.documents.media_type import DAMAGED_ZIP, GIVEN
from featpipe.errors import DocumentTooLarge, UnreadableDocument, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

#: Added by packers and file managers; not documents.
_LITTER = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")
_UTF8_NAME = 0x800
#: Suffixes of JSON Lines.
LINES = frozenset({".jsonl", ".ndjson"})
#: Of a JSONL file, these tell whether it holds texts.
_FIRST_RECORDS = 10
_OFFICE_MARKS = frozenset({"[Content_Types].xml", "mimetype", "META-INF/container.xml"})


@dataclass(frozen=True, slots=True)
class Source:
    """One document to read.

    Attributes:
        id: stable and readable, such as the path below the folder given; unique in a run.
        path: the file that holds it.
        part: of the file; None for the whole.
    """

    id: str
    path: Path
    part: Part | None = None

    def __lt__(self, other: Source) -> bool:
        """Sources sort by id."""
        return self.id < other.id

    @property
    def media_type(self) -> str | None:
        """Of texts, which are never searched for tags; None where the bytes decide."""
        return GIVEN if isinstance(self.part, JsonLine | GivenText) else None

    @property
    def address(self) -> str:
        """Its location as one string, different for every source."""
        if isinstance(self.part, ZipMember):
            return f"{self.path}!{self.part.number}"
        if isinstance(self.part, JsonLine):
            return f"{self.path}@{self.part.name}"
        return str(self.path)

    def n_bytes(self) -> int:
        """Its size, for planning; of a zip member the size the archive declares.

        Raises:
            UnreadableDocument: it is gone or not permitted.
        """
        if isinstance(self.part, GivenText):
            return len(_encoded(self.part.text))
        if isinstance(self.part, JsonLine):
            return self.part.n_bytes
        try:
            status = self.path.stat()
            if not S_ISREG(status.st_mode):
                raise _special(self, status.st_mode)
            if self.part is None:
                return status.st_size
            return _archive(self.path).infolist()[self.part.number].file_size
        except DAMAGED_ZIP as error:
            raise _unreadable(self, error) from error

    def read(self, limits: LoadLimits | None = None) -> bytes:
        """Its bytes; of a text, its UTF-8.

        Raises:
            DocumentTooLarge: more than ``limits.max_bytes``.
            UnreadableDocument: gone, not permitted, damaged, or locked.
        """
        limits = limits or LoadLimits()
        if isinstance(self.part, GivenText):
            return _encoded(self.part.text)
        try:
            if self.part is None:
                return self._read_file(limits)
            if isinstance(self.part, JsonLine):
                return self._read_line(self.part)
            return self._read_member(self.part, limits)
        except DAMAGED_ZIP as error:
            raise _unreadable(self, error) from error

    def _read_file(self, limits: LoadLimits) -> bytes:
        status = self.path.stat()
        # Checked before opening: a pipe would block for ever, a device may do anything.
        if not S_ISREG(status.st_mode):
            raise _special(self, status.st_mode)
        _bounded(self, status.st_size, limits)
        with self.path.open("rb") as file:
            # Not up to the limit, for which `read` would make a buffer.
            data = file.read(status.st_size + 1)
            if len(data) > status.st_size:  # it has grown since
                data += file.read(limits.max_bytes + 1 - len(data))
        _bounded(self, len(data), limits)
        return data

    def _read_line(self, part: JsonLine) -> bytes:
        with self.path.open("rb") as file:
            file.seek(part.start)
            line = file.read(part.n_bytes)
        if _hash_of_line(line) != part.name.partition(".")[0]:
            raise _changed(self)
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            is_utf8 = not isinstance(error, UnicodeDecodeError) and b"\0" not in line
            raise UnreadableDocument(
                f"{self.id}: the line is no JSON ({error})",
                hint=None if is_utf8 else "convert the file to UTF-8",
            ) from error
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise UnreadableDocument(
                f"{self.id}: the record has no text",
                hint='every line must be an object such as {"id": "a", "text": "..."}',
            )
        return _encoded(text)

    def _read_member(self, part: ZipMember, limits: LoadLimits) -> bytes:
        archive = _archive(self.path)
        members = archive.infolist()
        if part.number >= len(members) or members[part.number].filename != part.name:
            raise _changed(self)
        info = members[part.number]
        self._check_member(info, limits)
        with archive.open(info) as member:
            return member.read(limits.max_bytes + 1)

    def _check_member(self, info: zipfile.ZipInfo, limits: LoadLimits) -> None:
        if info.flag_bits & 0x1:
            raise UnreadableDocument(
                f"{self.id}: the archive is locked by a password",
                hint="unpack it first, or pack it without a password",
            )
        _bounded(self, info.file_size, limits)
        if info.file_size > max(MIB, info.compress_size * limits.max_ratio):
            raise DocumentTooLarge(f"{self.id}: unpacks to many times its packed size")


@dataclass(frozen=True, slots=True, order=True)
class ZipMember:
    """A file in a zip archive, by its number in the archive's directory (names may repeat).

    ``name`` is the one that the directory has there.
    """

    number: int
    name: str


@dataclass(frozen=True, slots=True, order=True)
class JsonLine:
    """A record ``{"id": ..., "text": ...}``: where its line starts, and how long it is.

    ``name`` is its line's hash, with a number from the second of equal lines on: a record keeps it
    wherever it moves in the file.
    """

    start: int
    n_bytes: int
    name: str


@dataclass(frozen=True, slots=True, order=True)
class GivenText:
    """A text that the caller holds."""

    text: str


Part = ZipMember | JsonLine | GivenText


def _encoded(text: str) -> bytes:
    """The text in UTF-8; pairs of surrogates are put together, lone ones become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _bounded(source: Source, n_bytes: int, limits: LoadLimits) -> None:
    if n_bytes > limits.max_bytes:
        raise DocumentTooLarge(f"{source.id}: {n_bytes:,} bytes are more than {limits.max_bytes:,}")


def _special(source: Source, mode: int) -> UnreadableDocument:
    """The error for a path that is not a regular file."""
    if S_ISDIR(mode):
        try:
            with os.scandir(source.path):
                why = "not a file"
        except OSError as error:
            why = f"which cannot be listed ({error.strerror})"
        return UnreadableDocument(f"{source.id}: a folder, {why}")
    names = {S_IFIFO: "a named pipe", S_IFSOCK: "a socket", S_IFCHR: "a device", S_IFBLK: "a disk"}
    name = names.get(S_IFMT(mode), "something that is no file")
    return UnreadableDocument(f"{source.id}: {name}, and never opened")


def _unreadable(source: Source, error: Exception) -> UnreadableDocument:
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return UnreadableDocument(f"{source.id}: cannot be read ({why})")


def _changed(source: Source) -> UnreadableDocument:
    """The error for a part in whose place its file has another one since it was listed."""
    return UnreadableDocument(
        f"{source.id}: {source.path.name} has changed since its parts were listed",
        hint="run the command again when nothing writes to it",
    )


def _hash_of_line(line: bytes) -> str:
    return blake2b(line.strip(), digest_size=8).hexdigest()


def printable(name: str) -> str:
    r"""A name that can be printed and written anywhere.

    Bytes that are not UTF-8 are shown as ``\udcff``, control characters as ``\x0a``.
    """
    if not name.isprintable():
        name = name.encode("utf-8", "backslashreplace").decode()
        name = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", name)
    return name


def expanded(source: Source) -> list[Source]:
    """The documents in a source: members of an archive, lines of a JSONL file, or itself."""
    suffix = source.path.suffix.lower()
    # Pipes and devices are never opened; reading one raises.
    if source.part is None and suffix in {*LINES, ".zip"} and source.path.is_file():
        try:
            if suffix in LINES and holds_texts(source.path):
                return list(in_jsonl(source))
            if suffix == ".zip" and is_archive(source.path):
                return list(in_zip(source))
        except DAMAGED_ZIP:
            pass  # damaged, or changed in between: reading it raises
    return [source]


def in_zip(source: Source, start: int = 0, stop: int | None = None) -> Iterator[Source]:
    """Every file in a zip archive, with the archive's id before its own name.

    ``start`` and ``stop`` are numbers of members.
    """
    with zipfile.ZipFile(source.path) as archive:
        for number, info in enumerate(archive.infolist()[start:stop], start):
            name = _readable_name(info)
            parts = [part for part in PurePosixPath(name).parts if part not in {"/", "..", "."}]
            if info.is_dir() or not parts or any(part in _LITTER for part in parts):
                continue
            name = printable("/".join(parts))
            yield Source(f"{source.id}/{name}", source.path, ZipMember(number, info.filename))


def in_jsonl(
    source: Source, start: int = 0, stop: int | None = None, first: int = 1
) -> Iterator[Source]:
    """Every line that is not blank; its id is the record's, or the line's number.

    ``start`` and ``stop`` are bytes at which lines begin, ``first`` is the number of the first one.
    """
    seen: set[str] = set()
    lines: dict[str, int] = {}
    with source.path.open("rb") as file:
        file.seek(start)
        for number, line in enumerate(file, first):
            if stop is not None and start >= stop:
                break
            if line.strip():
                name = _record_id(line) or f"line {number}"
                name = name if name not in seen else f"{name} (line {number})"
                seen.add(name)
                content = _hash_of_line(line)
                n_equal = lines[content] = lines.get(content, 0) + 1
                address = content + (f".{n_equal}" if n_equal > 1 else "")
                yield Source(
                    f"{source.id}/{name}", source.path, JsonLine(start, len(line), address)
                )
            start += len(line)


def of_texts(texts: Iterable[object]) -> Iterator[Source]:
    """Texts, or (id, text) pairs, as sources.

    Raises:
        UsageError: something else than a text or a pair of them, one text alone, or a mapping.
    """
    if isinstance(texts, str):
        raise UsageError("texts are expected, not one text", hint="give a list: [text]")
    if isinstance(texts, Mapping):
        raise UsageError(
            "texts are expected, not a mapping of them", hint="give (id, text) pairs: its .items()"
        )
    for number, item in enumerate(texts, start=1):
        match item:
            case str():
                yield _given(f"text {number}", item)
            case (str() as name, str() as text):
                yield _given(name, text)
            case _:
                raise UsageError(f"item {number} is neither a text nor a pair (id, text)")


def _given(name: str, text: str) -> Source:
    return Source(name, Path(f"<{name}>"), GivenText(text))


def _archive(path: Path) -> zipfile.ZipFile:
    """An archive, kept open until another is asked for, or it has changed.

    Its directory is read once: for every member, that took the square of their number.
    """
    status = path.stat()
    state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _opened(path, state, os.getpid())


@lru_cache(maxsize=1)
def _opened(path: Path, _state: tuple[int, ...], _process: int) -> zipfile.ZipFile:
    # Not shared with a forked process: both would move one position in the file.
    return zipfile.ZipFile(path)


def is_archive(path: Path) -> bool:
    """Whether a file is a zip that can be listed, and not an Office file with another suffix."""
    try:
        with zipfile.ZipFile(path) as archive:
            return not _OFFICE_MARKS & set(archive.namelist())
    except DAMAGED_ZIP:
        return False


def _readable_name(info: zipfile.ZipInfo) -> str:
    """The member's name; Chinese packers write GBK where the format defines code page 437."""
    if info.flag_bits & _UTF8_NAME or info.filename.isascii():
        return info.filename
    try:
        raw = info.orig_filename.encode("cp437")
    except UnicodeEncodeError:
        return info.filename
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return info.filename


def holds_texts(path: Path) -> bool:
    """Whether one of the first records of a file has a text; any other JSONL is a plain file.

    Not the first alone: a record without a text, or a damaged one, made one document of the file.
    """
    try:
        with path.open("rb") as file:
            lines = islice((line for line in file if line.strip()), _FIRST_RECORDS)
            return any(map(_has_text, lines))
    except OSError:
        return False


def _has_text(line: bytes) -> bool:
    """Whether a line is a record with a text, also in an encoding that is refused later."""
    is_wide = line.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    try:
        record = json.loads(
            line.decode("utf-16" if is_wide else "utf-8-sig", "replace").rstrip("\ufffd")
        )
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("text"), str)


def _record_id(line: bytes) -> str | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    name = record.get("id") if isinstance(record, dict) else None
    return printable(str(name)) if isinstance(name, str | int) and str(name) else None
