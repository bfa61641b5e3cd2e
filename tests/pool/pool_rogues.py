"""Roles that break the pool's protocol, flood it, or need what the parent does not have."""

from __future__ import annotations

import logging
import os
import socket
import time
from pathlib import Path

from featpipe.pool import frames


def own_socket() -> int:
    """The descriptor of this worker's connection to the pool."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and entry.readlink().name.startswith("socket:"):
            return int(entry.name)
    raise AssertionError("a worker has a socket")


def write_to_socket(data: bytes) -> None:
    with socket.socket(fileno=os.dup(own_socket())) as sock:
        sock.sendall(data)


def a_mark() -> bytes:
    return frames.frame(frames.STOP)[:4]


class Rogue:
    """Does what the payload says: ``(what, argument)``."""

    def run(self, payload: tuple[str, object]) -> object:
        what, argument = payload
        return getattr(self, what)(argument)

    def fine(self, argument: object) -> object:
        return argument

    def sleeps(self, seconds: float) -> None:
        time.sleep(seconds)

    def forks_and_returns_twice(self, _: object) -> int:
        return os.fork()

    def writes_junk(self, _: object) -> None:
        write_to_socket(b"Epoch 3/10, loss 0.25, accuracy 0.9, learning rate 1e-5\n")
        time.sleep(3600)

    def announces_too_much(self, _: object) -> None:
        write_to_socket(frames.HEADER.pack(a_mark(), frames.DONE, 0, 0, 1 << 60, 1, 0.0))
        time.sleep(3600)

    def answers_out_of_turn(self, _: object) -> None:
        write_to_socket(frames.frame(frames.DONE, 1 << 40))
        time.sleep(3600)

    def names_no_segment(self, number: int) -> None:
        body = (77).to_bytes(8, "little")
        write_to_socket(frames.frame(frames.DROP, 77) + frames.frame(frames.DONE, number, body, 1))
        time.sleep(3600)

    def sends_a_wrong_error(self, _: object) -> None:
        write_to_socket(frames.frame(frames.START_ERROR, body=b"no pickle"))
        time.sleep(3600)

    def forges_an_error(self, _: object) -> None:
        write_to_socket(frames.frame(frames.ERROR, 1, b"no pickle"))
        os._exit(0)

    def floods(self, n_bytes: int) -> None:
        """Write to descriptor 2 without an end, ``n_bytes`` at a time."""
        data = b"y\n" * (n_bytes // 2)
        while True:
            os.write(2, data)

    def floods_one_line(self, n_bytes: int) -> int:
        """One line without an end of line, then an answer."""
        piece = b"x" * (1 << 16)
        for _ in range(n_bytes >> 16):
            os.write(2, piece)
        return n_bytes

    def floods_the_log(self, _: object) -> None:
        while True:
            logging.getLogger("some.library").warning("again and again %s", "x" * 200)

    def logs_one_long_record(self, n_bytes: int) -> int:
        logging.getLogger("some.library").warning("%s", "x" * n_bytes)
        return n_bytes

    def makes(self, n_bytes: int) -> bytes:
        return b"x" * n_bytes


class Batch:
    """Ends its process where the batch holds "poison"."""

    def run(self, batch: list[object]) -> list[object]:
        if "poison" in batch:
            os._exit(9)
        return batch


def halve_slowly(_: list[object]) -> None:
    time.sleep(3600)


def halve_and_die(_: list[object]) -> None:
    os._exit(9)


def halve_wrongly(_: list[object]) -> None:
    raise ValueError("it cannot be cut")


def pid_and_halves(batch: list[object]) -> list[list[object]] | None:
    """Notes, in a file that the batch names first, the process that cuts."""
    with Path(str(batch[0])).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return [[batch[0], part] for part in batch[1:]] if len(batch) > 2 else None
