"""A seat on a Ray cluster: one actor with cores, cards and memory of its node, and warm workers.

Ray counts cores and gives none: an actor of one core sees every core of its node, and would start
eight workers beside each other actor's eight. So a seat takes cores for itself (through locks that
end with its process), and tells the jobs which cards and how much memory are theirs.

A SIGTERM (a preemption notice, a node that is drained, the driver that stops) makes the job at hand
commit and publish what it has.
"""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from featpipe.errors import FeatpipeError
from featpipe.pool.devices import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from featpipe.build.jobs import Job, JobReport, Seat

#: More CPU workers than this share one memory bus without getting faster.
_MOST_CPU_WORKERS = 8


class Worker(Protocol):
    """Does jobs one after the other, and keeps what it started for the next one."""

    def run(self, job: Job) -> JobReport:
        """Do a job. Raises FeatpipeError."""

    def stop_after_current(self) -> object:
        """Have the job at hand commit and publish what it has. Safe in a signal handler."""

    def close(self) -> None:
        """Stop what was started."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Driver -> seat: what it is to have of its node."""

    n_cpus: int
    n_gpus: int
    seat: Seat

    @classmethod
    def of(cls, jobs: Sequence[Job], seat: Seat) -> Demand:
        """Of jobs of one kind, on seats as an engine is asked for them: reading needs no card."""
        n_cpus = max(1, seat.threads or 1)
        n_gpus = sum(device.startswith("cuda") for device in seat.devices)
        if n_gpus and jobs and jobs[0].kind == "prepare":
            return cls(n_cpus, 0, replace(seat, devices=("cpu",) * n_cpus))
        return cls(n_cpus, n_gpus, seat)

    def __str__(self) -> str:
        return f"{self.n_cpus} CPU" + (f" and {self.n_gpus} GPU" if self.n_gpus else "")


@dataclass(frozen=True, slots=True)
class Place:
    """Seat -> driver: where it is."""

    node: str
    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seat -> driver: what came of a job."""

    report: JobReport | None
    error: FeatpipeError | None
    took_s: float
    is_leaving: bool
    """It was told to end: it gets no further job where it is."""


class FeatpipeSeat:
    """The actor.

    Args:
        open_worker: makes what does the jobs, of this process's own share.
        demand: what is the seat's.

    """

    def __init__(self, open_worker: Callable[[Seat], Worker], demand: Demand) -> None:
        # Nothing that may fail: Ray does not restart an actor whose constructor raised.
        self._open_worker, self._demand = open_worker, demand
        self._worker: Worker | None = None
        self._is_leaving = False
        self._locks: list[int] = []

    def sit(self) -> Place:
        """Take cores of this node; what is asked before jobs."""
        import ray

        self._take_cores()
        signal.signal(signal.SIGTERM, self._leave)
        return Place(ray.get_runtime_context().get_node_id(), os.uname().nodename, os.getpid())

    def do(self, job: Job) -> Outcome:
        """Do one job. An error of ours is part of the outcome."""
        begun = monotonic()
        report, error = None, None
        try:
            if not self._is_leaving:
                report = self._open().run(job)
        except FeatpipeError as raised:
            error = raised
            self._close()  # its workers may be what failed
        if self._is_leaving:
            self._close()
        return Outcome(report, error, monotonic() - begun, self._is_leaving)

    def _open(self) -> Worker:
        if self._worker is None:
            self._worker = self._open_worker(self._seat())
            if self._is_leaving:  # told while it opened
                self._worker.stop_after_current()
        return self._worker

    def _close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _leave(self, _: int, __: FrameType | None) -> None:
        self._is_leaving = True
        if self._worker is not None:
            self._worker.stop_after_current()

    def _seat(self) -> Seat:
        demand, asked = self._demand, self._demand.seat
        devices = asked.devices or ("cpu",) * min(demand.n_cpus, _MOST_CPU_WORKERS)
        memory = asked.memory or _memory_of(demand)
        return replace(asked, devices=devices, threads=demand.n_cpus, memory=memory)

    def _take_cores(self) -> None:
        """Run on cores that no other seat of this machine runs on.

        Where the control group has a quota, its share of time is limited already, and other
        containers, whose locks cannot be seen, may use any core: then nothing is taken.
        """
        n_cores = self._demand.n_cpus
        every = sorted(os.sched_getaffinity(0))
        if self._locks or usable_cores() < len(every):
            return
        folder = Path(tempfile.gettempdir()) / f"featpipe-cores-{os.getuid()}"
        taken: list[int] = []
        with suppress(OSError):  # without a place for locks, the system shares the cores out
            folder.mkdir(mode=0o700, exist_ok=True)
            for core in every:
                if len(taken) < n_cores and self._has_locked(folder / str(core)):
                    taken.append(core)
        if len(taken) == n_cores:
            os.sched_setaffinity(0, taken)
            return
        for descriptor in self._locks:  # more seats than cores
            os.close(descriptor)
        self._locks.clear()

    def _has_locked(self, file: Path) -> bool:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._locks.append(descriptor)
        return True


def _memory_of(demand: Demand) -> int | None:
    """Bytes of the node's memory in proportion to its cores, or to its cards if that is more."""
    import ray

    own = ray.get_runtime_context().get_node_id()
    nodes = {node["NodeID"]: node["Resources"] for node in ray.nodes()}
    node: dict[str, float] = nodes.get(own, {})
    asked = (("CPU", demand.n_cpus), ("GPU", demand.n_gpus))
    parts = [n / node[name] for name, n in asked if n and node.get(name)]
    return int(node["memory"] * min(1.0, max(parts))) if parts and node.get("memory") else None
