"""One thing to read: a file, a member of an archive, a record of a JSONL file, or a text at hand.

A source is small, frozen and picklable; it names where the bytes are and reads them only in the
process that needs them. Whatever stops it from being read is a ``DocumentError``.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from stat import S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFSOCK, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from featpipe.documents.kinds import GIVEN
from featpipe.documents.limits import LoadLimits
from featpipe.errors import DocumentTooLarge, UnreadableDocument

if TYPE_CHECKING:
    from pathlib import Path

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, order=True)
class ZipMember:
    """A file in a zip archive, by its number in the archive's directory (names may repeat)."""

    number: int


@dataclass(frozen=True, slots=True, order=True)
class JsonLine:
    """A record ``{"id": ..., "text": ...}``: where its line starts, and how long it is."""

    start: int
    n_bytes: int


@dataclass(frozen=True, slots=True, order=True)
class GivenText:
    """A text that the caller holds."""

    text: str


Part = ZipMember | JsonLine | GivenText


@dataclass(frozen=True, slots=True)
class Source:
    """One document to read.

    Attributes:
        id: stable and readable, such as the path below the folder that was given; unique in a run.
        path: the file that holds it.
        part: which part of the file it is; None for the whole.
    """

    id: str
    path: Path
    part: Part | None = None

    def __lt__(self, other: Source) -> bool:
        """Sources sort by id."""
        return self.id < other.id

    @property
    def media_type(self) -> str | None:
        """What it is, where that is known without looking: texts are never sniffed for tags."""
        return GIVEN if isinstance(self.part, JsonLine | GivenText) else None

    @property
    def address(self) -> str:
        """Where it is, in one string that tells it from every other."""
        if isinstance(self.part, ZipMember):
            return f"{self.path}!{self.part.number}"
        if isinstance(self.part, JsonLine):
            return f"{self.path}@{self.part.start}"
        return str(self.path)

    def n_bytes(self) -> int:
        """Its size, for planning: of a zip member what the archive says.

        Raises:
            UnreadableDocument: it is gone or cannot be looked at.
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
            with zipfile.ZipFile(self.path) as archive:
                return archive.infolist()[self.part.number].file_size
        except (OSError, zipfile.BadZipFile, IndexError, ValueError) as error:
            raise _unreadable(self, error) from error

    def read(self, limits: LoadLimits | None = None) -> bytes:
        """Its bytes; of a text, the text in UTF-8.

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
        except (OSError, zipfile.BadZipFile, zlib.error, IndexError, EOFError) as error:
            raise _unreadable(self, error) from error

    def _read_file(self, limits: LoadLimits) -> bytes:
        status = self.path.stat()
        # Before it is opened: a pipe would block for ever, a device may do anything.
        if not S_ISREG(status.st_mode):
            raise _special(self, status.st_mode)
        _bounded(self, status.st_size, limits)
        with self.path.open("rb") as file:
            data = file.read(limits.max_bytes + 1)
        _bounded(self, len(data), limits)  # it may have grown since
        return data

    def _read_line(self, part: JsonLine) -> bytes:
        with self.path.open("rb") as file:
            file.seek(part.start)
            line = file.read(part.n_bytes)
        try:
            record = json.loads(line)
        except ValueError as error:
            raise UnreadableDocument(f"{self.id}: the line is no JSON ({error})") from error
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise UnreadableDocument(
                f"{self.id}: the record has no text",
                hint='every line must be an object such as {"id": "a", "text": "..."}',
            )
        return _encoded(text)

    def _read_member(self, part: ZipMember, limits: LoadLimits) -> bytes:
        with zipfile.ZipFile(self.path) as archive:
            info = archive.infolist()[part.number]
            if info.flag_bits & 0x1:
                raise UnreadableDocument(
                    f"{self.id}: the archive is locked by a password",
                    hint="unpack it first, or pack it without a password",
                )
            _bounded(self, info.file_size, limits)
            if info.file_size > max(1 << 20, info.compress_size * limits.max_ratio):
                raise DocumentTooLarge(f"{self.id}: unpacks to many times its packed size")
            try:
                with archive.open(info) as member:
                    return member.read(limits.max_bytes + 1)
            except (NotImplementedError, RuntimeError) as error:
                raise _unreadable(self, error) from error


def printable(name: str) -> str:
    r"""A name that any terminal and any file can hold.

    Bytes that are no UTF-8 are shown as ``\udcff``, control characters as ``\x0a``.
    """
    if not name.isprintable():
        name = name.encode("utf-8", "backslashreplace").decode()
        name = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", name)
    return name


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
    """Why something that is no file is not read."""
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
