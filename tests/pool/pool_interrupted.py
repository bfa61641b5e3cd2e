"""A program that is sent SIGINT again and again while it submits tasks and takes outcomes.

The handler raises KeyboardInterrupt wherever it finds the program inside the pool, as Ctrl-C does;
outside of it the program could lose outcomes by itself. It prints what it counted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import cast

sys.path.insert(0, str(Path(__file__).parent))

from featpipe.pool import Outcome, Pool, Role

#: A process of its own: a thread here would raise its signals only while it has its turn.
STORM = """
import os, random, signal, sys, time
random.seed(3)
try:
    while True:
        os.kill(int(sys.argv[1]), signal.SIGINT)
        time.sleep(random.random() * 0.0015)
except ProcessLookupError:
    pass
"""
DOORS = {"submit", "completed"}

n_interrupts: Counter[str] = Counter()


def interrupt(_: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_name in DOORS and "featpipe" in frame.f_code.co_filename:
            n_interrupts[frame.f_code.co_name] += 1
            raise KeyboardInterrupt
        frame = frame.f_back


def value_of(number: int) -> bytes:
    """Small ones are sent in the frame, others in shared memory."""
    return bytes(number % 5 * 20_000)


def has_more(number: int, n: int, n_each: int) -> bool:
    return number < n or min(n_interrupts[door] for door in DOORS) < n_each


def submit_and_take(pool: Pool, n: int, n_each: int) -> tuple[list[int], list[Outcome]]:
    """(tags of the tasks whose submit returned, every outcome that was returned).

    At least ``n`` tasks, and on until each door was interrupted ``n_each`` times.
    """
    acknowledged: list[int] = []
    taken: list[Outcome] = []
    number = 0
    while has_more(number, n, n_each) or pool.n_unfinished("echo") or pool._completions.n_open:
        with suppress(KeyboardInterrupt):
            if has_more(number, n, n_each) and pool.n_unfinished("echo") < 64:
                number += 1
                pool.submit("echo", value_of(number), tag=number)
                acknowledged.append(number)
        with suppress(KeyboardInterrupt):
            taken.extend(pool.completed(0 if number % 3 else 0.01))
    return acknowledged, taken


def main(n: int, n_each: int) -> None:
    with Pool([Role("echo", "pool_roles:Echo", devices=("cpu", "cpu"))]) as pool:
        pool.call("echo", 0)
        signal.signal(signal.SIGINT, interrupt)
        storm = subprocess.Popen([sys.executable, "-c", STORM, str(os.getpid())])
        acknowledged, taken = submit_and_take(pool, n, n_each)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        storm.kill()
        storm.wait()
    tags = Counter(outcome.tag for outcome in taken)
    counted = {
        "acknowledged": len(acknowledged),
        "lost": sorted(set(acknowledged) - tags.keys()),
        "twice": [tag for tag, count in tags.items() if count > 1],
        "wrong": [o.tag for o in taken if o.value != value_of(cast("int", o.tag))],
        "interrupts": n_interrupts,
    }
    sys.stdout.write(json.dumps(counted))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
