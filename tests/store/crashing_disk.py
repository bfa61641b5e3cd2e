"""Disks that go wrong on purpose: every write-like call of a writer is a numbered point."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from featpipe.store.disk import Disk


class CountingDisk(Disk):
    """Calls ``before(point, kind)`` ahead of each write-like call, with a running number."""

    def __init__(self) -> None:
        self.n_points = 0

    def before(self, kind: str) -> None:  # noqa: ARG002 - for those that override it
        self.n_points += 1

    def create(self, path: Path, mode: int = 0o666) -> int:
        self.before("create")
        return super().create(path, mode)

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        self.before("write")
        super().write(descriptor, offset, data)

    def resize(self, descriptor: int, size: int) -> None:
        self.before("resize")
        super().resize(descriptor, size)

    def sync(self, descriptor: int) -> None:
        self.before("sync")
        super().sync(descriptor)

    def link(self, source: Path, target: Path) -> None:
        self.before("link")
        super().link(source, target)

    def replace(self, source: Path, target: Path) -> None:
        self.before("replace")
        super().replace(source, target)

    def sync_directory(self, path: Path) -> None:
        self.before("sync_directory")
        super().sync_directory(path)


class KillingDisk(CountingDisk):
    """SIGKILLs its own process at the n-th point; torn: after half of a write got through."""

    def __init__(self, kill_at: int, *, is_torn: bool) -> None:
        super().__init__()
        self.kill_at = kill_at
        self.is_torn = is_torn

    def before(self, kind: str) -> None:
        super().before(kind)
        if self.n_points == self.kill_at and not (self.is_torn and kind == "write"):
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        self.before("write")
        if self.n_points == self.kill_at:
            half = memoryview(data).cast("B")
            # Eight aligned bytes are one store: they are there or they are not.
            whole = len(half) // 2 if len(half) > 8 else 0
            os.pwrite(descriptor, half[:whole], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        Disk.write(self, descriptor, offset, data)


class FailingDisk(CountingDisk):
    """Raises ``OSError(code)`` at ``n_times`` points from ``fail_at`` on; a write fails half
    done."""

    def __init__(self, code: int, fail_at: int, n_times: int = 1) -> None:
        super().__init__()
        self.code = code
        self.failing = range(fail_at, fail_at + n_times)

    def before(self, kind: str) -> None:
        super().before(kind)
        if self.n_points in self.failing and kind != "write":
            raise OSError(self.code, os.strerror(self.code))

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        self.before("write")
        if self.n_points in self.failing:
            half = memoryview(data).cast("B")
            os.pwrite(descriptor, half[: len(half) // 2 if len(half) > 8 else 0], offset)
            raise OSError(self.code, os.strerror(self.code))
        Disk.write(self, descriptor, offset, data)
