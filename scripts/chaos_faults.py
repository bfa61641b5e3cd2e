"""Faults for chaos.py: signals, a failing disk, a jumping clock, little memory, no space."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent

#: Seconds after the end of a parent in which all that it started must be gone.
GONE_WITHIN_S = 15.0


@dataclass
class Disturbance:
    """What is done to a process and its descendants while it runs.

    Args:
        every_s: mean seconds between two blows.
        kills, stops: whether children are killed, or stopped for a while.
        ends_parent: whether the process itself is killed at some time.
        environment: variables it runs with.
        memory_bytes: limit of address space; 0: none.
    """

    every_s: float = 2.0
    kills: bool = False
    stops: bool = False
    ends_parent: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    memory_bytes: int = 0


@dataclass
class Ended:
    """How a disturbed process ended: exit code (None: it hung), blows, last lines of its errors."""

    code: int | None
    n_blows: int
    errors: str
    n_left: int = 0


def run_disturbed(
    command: list[str], how: Disturbance, dice: random.Random, limit_s: float
) -> Ended:
    """Run a command to its end under blows."""
    limit = how.memory_bytes

    def set_limit() -> None:
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | how.environment,
        preexec_fn=set_limit,  # noqa: PLW1509  # this program has one thread
    ) as process:
        n_blows, left = _strike(process, how, dice, limit_s)
        errors = process.communicate()[1][-1500:].decode(errors="replace")
        code = None if n_blows < 0 else process.returncode
        return Ended(code, abs(n_blows), errors, left)


def _strike(
    process: subprocess.Popen[bytes], how: Disturbance, dice: random.Random, limit_s: float
) -> tuple[int, int]:
    """(blows, children left over); the blows are negative when the process had to be ended."""
    ends_at = time.monotonic() + limit_s
    dies_at = time.monotonic() + dice.uniform(0.5, 6 * how.every_s)
    parent = psutil.Process(process.pid)
    n_blows = 0
    family: list[psutil.Process] = []
    while process.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(dice.uniform(0.5, 1.5) * how.every_s)
            break
        with suppress(psutil.NoSuchProcess):
            family = parent.children(recursive=True)
        if time.monotonic() > ends_at:
            _show_stacks([parent, *family])
            end_all([parent, *family])
            return -n_blows - 1, 0
        if how.ends_parent and time.monotonic() > dies_at:
            process.kill()
            n_blows += 1
            break
        if how.kills or how.stops:
            n_blows += hit(family, dice, p_stop=how.stops / (how.stops + how.kills))
    process.wait()
    return n_blows, _count_left(family)


def hit(family: list[psutil.Process], dice: random.Random, *, p_stop: float) -> int:
    """Kill one of these processes, or stop it for a while; how many blows that was."""
    if not family:
        return 0
    with suppress(psutil.NoSuchProcess):
        victim = dice.choice(family)
        if dice.random() < p_stop:
            victim.suspend()
            time.sleep(dice.uniform(0.1, 2.0))
            victim.resume()
        else:
            victim.kill()
        return 1
    return 0


def _show_stacks(family: list[psutil.Process]) -> None:
    for each in family:
        with suppress(psutil.NoSuchProcess):
            print(f"hung: {each.pid} {each.status()} {' '.join(each.cmdline())[:150]}", flush=True)


def end_all(family: list[psutil.Process]) -> None:
    """Kill what is left of a family."""
    for each in family:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _count_left(family: list[psutil.Process]) -> int:
    """Descendants that outlived their parent."""
    _, alive = psutil.wait_procs(family, timeout=GONE_WITHIN_S)
    for each in alive:
        with suppress(psutil.NoSuchProcess):
            print(f"left: {each.pid} {each.status()} {' '.join(each.cmdline())[:150]}", flush=True)
    end_all(alive)
    return len(alive)


def build_shim(folder: Path) -> Path | None:
    """Compile the preloaded library; None without a compiler."""
    shim = folder / "shim.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(HERE / "chaos_shim.c"), "-ldl"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return shim


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Callable[[int], None] | None]:
    """A tmpfs of this size at ``folder``, and a function that changes it; None if not allowed."""
    options = ["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(["mount", *options], capture_output=True, check=False)
    if done.returncode:
        yield None
        return

    def resize(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def flip_bits(path: Path, dice: random.Random, count: int) -> list[int]:
    """Flip so many random bits of a file; returns the offsets."""
    size = path.stat().st_size
    offsets = sorted(dice.sample(range(size), count))
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1 << dice.randrange(8)]))
    return offsets


def end_politely(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """SIGTERM, and whether it ended within the limit; its children are ended in any case."""
    family = [psutil.Process(process.pid)]
    with suppress(psutil.NoSuchProcess):
        family += family[0].children(recursive=True)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        _show_stacks(family)
        end_all(family)
        process.wait()
        return False
    return _count_left(family[1:]) == 0
