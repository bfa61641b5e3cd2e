"""Roles for the tests: what a child can do, and what can go wrong in one."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from featpipe.errors import CheckpointError


class Echo:
    """Gives back what it gets."""

    def run(self, payload: object) -> object:
        return payload


class Square:
    def run(self, number: int) -> int:
        return number * number


class About:
    """Tells what it was made with."""

    def __init__(self, device: str, threads: int, worker_name: str, more: str = "") -> None:
        self.told = {"device": device, "threads": threads, "worker_name": worker_name, "more": more}

    def run(self, name: str) -> object:
        if name == "environment":
            return dict(os.environ)
        if name == "parent":
            return os.getppid()
        if name == "folder":
            return str(Path.cwd())
        if name == "modules":
            return sorted(sys.modules)
        return self.told


class ConstructorWants(Exception):
    """Unpickles only with what its constructor wants, which pickling does not keep."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def hold_the_interpreter_lock(seconds: int) -> None:
    """Sleep in C without letting any other thread of this process run Python."""
    ctypes.PyDLL(None).sleep(seconds)


class Trouble:
    """Does what the payload says; ``(what, argument)`` or only what."""

    def run(self, payload: Any) -> object:  # noqa: ANN401  # a name, or a pair
        what, argument = payload if isinstance(payload, tuple) else (payload, None)
        return getattr(self, what)(argument)

    def fine(self, argument: object) -> object:
        return argument

    def raises(self, _: object) -> None:
        raise ValueError("this one is bad")

    def raises_oddly(self, _: object) -> None:
        raise ConstructorWants(1, 2)

    def raises_unpicklable(self, _: object) -> None:
        error = ValueError("holds a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    def gives_a_lock(self, _: object) -> object:
        return {"deep": [threading.Lock()]}

    def exits_with_system_exit(self, _: object) -> None:
        raise SystemExit(7)

    def dies(self, _: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def dies_once(self, marker: str) -> str:
        try:
            Path(marker).touch(exist_ok=False)
        except FileExistsError:
            return "second try"
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    def segfaults(self, _: object) -> None:
        faulthandler._sigsegv()

    def exits(self, code: int) -> None:
        os._exit(code or 0)

    def writes_and_exits(self, text: str) -> None:
        os.write(2, text.encode())
        os._exit(9)

    def stops(self, _: object) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def stops_once(self, marker: str) -> str:
        try:
            Path(marker).write_text(str(os.getpid()))
        finally:
            os.kill(os.getpid(), signal.SIGSTOP)
        return "went on"

    def sleeps(self, seconds: float | None) -> float:
        time.sleep(seconds or 3600)
        return seconds or 3600

    def notes_and_sleeps(self, note: str) -> None:
        Path(note).touch()
        time.sleep(3600)

    def notes_and_hangs_in_c(self, note: str) -> None:
        Path(note).touch()
        hold_the_interpreter_lock(3600)

    def waits_for(self, path: str) -> str:
        while not Path(path).exists():
            time.sleep(0.005)
        return "it came"

    def spins(self, _: object) -> None:
        while True:
            pass

    def hangs_in_c(self, _: object) -> None:
        hold_the_interpreter_lock(3600)

    def eats_memory(self, n_bytes: int) -> int:
        return len(bytearray(n_bytes))

    def closes_everything(self, _: object) -> None:
        os.closerange(3, 256)
        time.sleep(3600)

    def logs(self, text: str) -> None:
        logging.getLogger("some.library").warning("%s", text)
        warnings.warn("old " + text, UserWarning, stacklevel=1)
        sys.stdout.write(f"printed {text}\n")

    def pid(self, _: object) -> int:
        return os.getpid()


class BatchTrouble:
    """Squares a list; a poisonous member kills it, ``None`` hangs it.

    Args:
        hung: a folder in which each process that hangs leaves a file.
    """

    def __init__(self, hung: str = "") -> None:
        self.hung = hung

    def run(self, batch: list[Any]) -> list[int]:
        if "poison" in batch:
            os.kill(os.getpid(), signal.SIGKILL)
        if None in batch:
            (Path(self.hung) / str(os.getpid())).touch()
            time.sleep(3600)
        return [number * number for number in batch]


class NeverStarts:
    def __init__(self) -> None:
        raise RuntimeError("the weights are missing")


class Refuses:
    """Says in our own words why it will not start, and leaves a mark for every attempt."""

    def __init__(self, marks: str) -> None:
        (Path(marks) / f"{os.getpid()}").touch()
        raise CheckpointError("no model at this path", hint="name another")


class DiesAtStart:
    def __init__(self) -> None:
        os._exit(5)


class HangsAtStart:
    def __init__(self) -> None:
        time.sleep(3600)


class Closer:
    """Leaves a note when it is closed."""

    def __init__(self, note: str) -> None:
        self.note = Path(note)

    def run(self, payload: object) -> object:
        return payload

    def close(self) -> None:
        self.note.write_text("closed")
