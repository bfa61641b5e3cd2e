"""Looking at processes and descriptors from the tests."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.pool import Pool


def open_descriptors() -> set[str]:
    return {
        f"{entry.name} {entry.readlink()}"
        for entry in Path("/proc/self/fd").iterdir()
        if entry.is_symlink()
    }


#: Between two kills at least so many tasks end.
_TASKS_PER_KILL = 8


def n_answers(pool: Pool) -> int:
    """Tasks that ended in workers, those that went on to another role included."""
    return sum(queue.kills.n_answers for queue in pool._hub._scheduler._queues.values())


@contextmanager
def killing_workers(pool: Pool, seed: int) -> Iterator[list[int]]:
    """SIGKILL for one worker that works, again and again; the pids of those that were hit.

    By what is done and not by the clock alone: on a busy machine a worker gets less done, and at a
    kill every few milliseconds no scheduler could get anything done. For the same reason none is
    hit that is only starting.
    """
    dice = random.Random(seed)  # noqa: S311  # a test's dice
    is_over = threading.Event()
    killed: list[int] = []

    def kill() -> None:
        n_before = 0
        while not is_over.wait(dice.uniform(0.02, 0.06)):
            views = [view for view in pool.workers() if view.state in {"ready", "busy"}]
            pids = [view.pid for view in views if view.pid is not None]
            if pids and n_answers(pool) >= n_before + _TASKS_PER_KILL:
                n_before = n_answers(pool)
                with suppress(ProcessLookupError):  # it ended since
                    os.kill(pid := dice.choice(pids), signal.SIGKILL)
                    killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        is_over.set()
        killer.join()


def until_killed(payload: object, n: int, killed: list[int], n_kills: int) -> Iterator[object]:
    """The payload so many times, and on until so many workers were killed."""
    n_given = 0
    while n_given < n or len(killed) < n_kills:
        n_given += 1
        yield payload


def pass_time(pool: Pool, seconds: float) -> None:
    """The pool's clock goes on by this; tests whose deadlines must not depend on the machine."""
    pool._hub._clock.missed_s -= seconds
    pool._hub.wake()
