"""The file of corrections beside a template: JSON Lines, only ever appended to.

Guarantees: when :meth:`CorrectionsLog.append` returns, the records outlive a kill and a power loss;
a write that fails leaves the file as it was; any number of processes may append, and none of their
records is lost or mixed with another; half a line, left by a kill, costs that line alone, which is
named with its number and never joined with the next one.

The file is locked (``flock``) while it is written. An editor may replace it: the next append goes
to the new file.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.atomic_write import Access
from featpipe.errors import UsageError
from featpipe.extraction.corrections import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.extraction.corrections import Record

SUFFIX = ".corrections.jsonl"


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that holds no record, by its number (from 1), and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Corrections:
    """The records of a file in order, each with the number of its line, and the lines left out."""

    records: tuple[Record, ...] = ()
    lines: tuple[int, ...] = ()
    bad: tuple[BadLine, ...] = ()


def corrections_beside(template: Path) -> Path:
    """The file of corrections of a template's file."""
    return template.with_name(template.stem + SUFFIX)


class CorrectionsLog:
    """The corrections of one template. Any thread of any process may use it.

    Args:
        template: file of the template; the log lies beside it, and who may read the one may read
            the other.

    """

    def __init__(self, template: Path) -> None:
        self.path = corrections_beside(template)
        self._template = template

    def read(self) -> Corrections:
        """All records; none where there is no file.

        Raises:
            UsageError: the file cannot be read.

        """
        return read_corrections(self.path) if self.path.exists() else Corrections()

    def append(self, records: Sequence[Record]) -> None:
        """Add records, and return when they are durable.

        Raises:
            UsageError: they cannot be kept; the file is as it was.

        """
        content = b"".join(record.as_line().encode() + b"\n" for record in records)
        try:
            with self._locked() as descriptor:
                _append(descriptor, content)
        except OSError as error:
            raise UsageError(
                f"{self.path}: corrections cannot be kept: {error.strerror}",
                hint="the folder of the template must be writable, with room on its disk",
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, open and locked, and still the one of its name."""
        while True:
            descriptor = self._open()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_still(descriptor, self.path):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            return os.open(self.path, flags)
        mode = Access.common([self._template]).mode
        descriptor = os.open(self.path, flags | os.O_CREAT, mode)
        _sync_folder(self.path.parent)  # the name outlives a power loss before any record does
        return descriptor


def read_corrections(path: Path) -> Corrections:
    """The records of any file of corrections.

    Raises:
        UsageError: the file cannot be read.

    """
    try:
        with path.open("rb") as file:
            with suppress(OSError):  # a file system without locks: a line may be seen half written
                fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    records, lines, bad = [], [], []
    # Only "\n" ends a line of JSON Lines: texts may hold other line ends, such as U+2028.
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(read_record(line))
            lines.append(number)
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
    return Corrections(tuple(records), tuple(lines), tuple(bad))


def _append(descriptor: int, content: bytes) -> None:
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        content = b"\n" + content  # behind half a line
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), now)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
