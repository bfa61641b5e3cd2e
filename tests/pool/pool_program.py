"""A program with a pool in it, for the tests that kill or interrupt programs.

``python pool_program.py PHASE REPORT``; it writes a line to REPORT for what happens, among them
the pids of its workers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from featpipe.pool import Pool, Role, stopping_in_two_steps

PHASES = {
    "starting": ("pool_roles:HangsAtStart", None),
    "asleep": ("pool_roles:Trouble", ("sleeps", 3600)),
    "in a loop": ("pool_roles:Trouble", ("spins", None)),
    "in C": ("pool_roles:Trouble", ("hangs_in_c", None)),
    "idle": ("pool_roles:Trouble", ("fine", 1)),
    "forked": ("pool_roles:Trouble", ("hangs_in_c", None)),
    "short tasks": ("pool_roles:Trouble", ("sleeps", 0.3)),
}


def wait_for_pids(pool: Pool, phase: str) -> str:
    """The pids of both workers, once each is where the phase says."""
    pids: list[int | None] = []
    while len(pids) < 2 or None in pids:
        pids = [view.pid for view in pool.workers()]
    if phase not in {"starting", "idle"}:
        # In the middle of a task: before that they would notice our end without any lifeline.
        while not all(worker.begun() for worker in pool._hub.workers):
            time.sleep(0.01)
    return " ".join(map(str, pids))


def main(phase: str, report: str) -> None:
    with Path(report).open("a", buffering=1) as lines:
        target, payload = PHASES[phase]
        preload = ("decimal",) if phase == "forked" else ()
        role = Role("worker", target, devices=("cpu", "cpu"), is_lazy=False, preload=preload)
        with Pool([role]) as pool, stopping_in_two_steps(pool.stop_after_current):
            if phase == "idle":
                pool.call("worker", payload)
            else:
                for _ in range(4):
                    pool.submit("worker", payload)
            lines.write(f"pids {wait_for_pids(pool, phase)}\n")
            try:
                while not pool.is_stopping or pool.n_unfinished("worker"):
                    outcomes = pool.completed(timeout=1.0)
                    lines.writelines("done\n" for outcome in outcomes if outcome.has_value)
                    if phase == "short tasks" and not pool.is_stopping:
                        while pool.has_room("worker"):
                            pool.submit("worker", payload)
            except KeyboardInterrupt:
                lines.write("interrupted\n")
                return
        lines.write("stopped\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
