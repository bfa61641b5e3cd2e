"""Power cuts, replayed: every file that a disk may hold after losing power at some instant.

A :class:`TracingDisk` records what a writer did. What was written before the last completed sync is
there; of what came after, any part may be, in any order, torn at sector boundaries, and the file's
size may be that of before or after a change. :func:`states` draws such files at random.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.store.disk import Disk

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

PAGE = 4096


@dataclass(frozen=True)
class Call:
    """One call: write, resize (offset is the size), sync, link, or an acknowledgement."""

    kind: str
    offset: int = 0
    data: bytes = b""


class TracingDisk(Disk):
    """Does what it is told, and writes it down."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def write(self, descriptor: int, offset: int, data: bytes | memoryview) -> None:
        super().write(descriptor, offset, data)
        self.calls.append(Call("write", offset, bytes(data)))

    def resize(self, descriptor: int, size: int) -> None:
        super().resize(descriptor, size)
        self.calls.append(Call("resize", size))

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self.calls.append(Call("sync"))

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self.calls.append(Call("link"))

    def acknowledge(self, _: int) -> None:
        self.calls.append(Call("acknowledge"))


class Image:
    """A sparse file in memory."""

    def __init__(self) -> None:
        self.pages: dict[int, bytearray] = {}
        self.size = 0

    def copy(self) -> Image:
        other = Image()
        other.pages = {number: bytearray(page) for number, page in self.pages.items()}
        other.size = self.size
        return other

    @classmethod
    def of(cls, path: Path) -> Image:
        image = cls()
        data = path.read_bytes()
        image.resize(len(data))
        for offset in range(0, len(data), PAGE):
            if any(part := data[offset : offset + PAGE]):
                image.write(offset, part)
        return image

    def resize(self, size: int) -> None:
        if size < self.size:
            self.pages = {n: page for n, page in self.pages.items() if n * PAGE < size}
            last = self.pages.get(size // PAGE)
            if last is not None:
                last[size % PAGE :] = bytes(PAGE - size % PAGE)
        self.size = size

    def write(self, offset: int, data: bytes) -> None:
        """Bytes beyond the size are lost: the size that would show them is."""
        data = data[: max(0, self.size - offset)]
        while data:
            number, within = divmod(offset, PAGE)
            n = min(len(data), PAGE - within)
            page = self.pages.setdefault(number, bytearray(PAGE))
            page[within : within + n] = data[:n]
            offset, data = offset + n, data[n:]

    def save(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            for number, page in self.pages.items():
                os.pwrite(descriptor, page, number * PAGE)
            os.ftruncate(descriptor, self.size)
        finally:
            os.close(descriptor)


def apply(image: Image, call: Call) -> None:
    if call.kind == "write":
        # A write at the end makes a file longer; only a size set by resize can be lost by itself.
        image.size = max(image.size, call.offset + len(call.data))
        image.write(call.offset, call.data)
    elif call.kind == "resize":
        image.resize(call.offset)


def apply_partly(image: Image, pending: list[Call], random: random.Random) -> None:
    """Some of the pending calls, in some order, some of them torn."""
    mode = random.choice(["none", "all", "prefix", "subset", "torn", "shuffled", "but one"])
    calls = drawn([call for call in pending if call.kind in {"write", "resize"}], mode, random)
    # Sizes first: which one the file ends with is drawn by which of them were kept.
    for call in sorted(calls, key=lambda call: call.kind != "resize"):
        if call.kind == "resize":
            image.resize(call.offset)
        elif mode == "torn":
            for piece in sectors(call, random.choice([512, 4096])):
                if random.random() < 0.5:
                    image.write(piece.offset, piece.data)
        else:
            image.write(call.offset, call.data)


def drawn(calls: list[Call], mode: str, random: random.Random) -> list[Call]:
    """Those of the calls that reached the disk."""
    share = {"none": 0.0, "all": 1.0, "but one": 1.0, "prefix": 1.0}.get(mode)
    share = random.choice([0.1, 0.5, 0.9]) if share is None else share
    kept = [call for call in calls if random.random() < share]
    if mode == "prefix":
        return kept[: random.randint(0, len(kept))]
    if mode == "but one" and kept:
        kept.pop(random.randrange(len(kept)))
    if mode == "shuffled":
        random.shuffle(kept)
    return kept


def sectors(call: Call, size: int) -> Iterator[Call]:
    """The parts of a write that are atomic by themselves."""
    offset, data = call.offset, call.data
    while data:
        n = min(len(data), size - offset % size)
        yield Call("write", offset, data[:n])
        offset, data = offset + n, data[n:]


def states(
    calls: list[Call], start: Image, random: random.Random, n_states: int
) -> Iterator[tuple[Image, int]]:
    """(image, batches acknowledged by then), at ``n_states`` instants in the order of the trace."""
    # Before it was linked, a new file had no name to be found by.
    first = next((i for i, call in enumerate(calls) if call.kind == "link"), 0) + 1
    instants = sorted(random.randint(first, len(calls)) for _ in range(n_states))
    durable, pending = start.copy(), list[Call]()
    n_acknowledged = done = 0
    for instant in instants:
        for call in calls[done:instant]:
            if call.kind == "sync":
                for settled in pending:
                    apply(durable, settled)
                pending = []
            elif call.kind == "acknowledge":
                n_acknowledged += 1
            else:
                pending.append(call)
        done = instant
        image = durable.copy()
        apply_partly(image, pending, random)
        yield image, n_acknowledged
