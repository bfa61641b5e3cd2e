"""The scheduler's decisions: the hub carries each out, and reports its end as a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from featpipe.pool.task import Loss, Task


class Start(NamedTuple):
    """Start a process for this slot, and call it ``worker``."""

    worker: int
    role: str
    slot: int


class Send(NamedTuple):
    """Send the task to the worker."""

    worker: int
    task: Task


class RequestStack(NamedTuple):
    """Have the worker write its stack; it is about to be killed for taking too long."""

    worker: int


class Kill(NamedTuple):
    """Kill the worker; its end is reported as any other."""

    worker: int


class Finish(NamedTuple):
    """The task has ended: by its worker's answer when ``loss`` is None."""

    task: Task
    loss: Loss | None


class Halve(NamedTuple):
    """A worker has cut the task: answer with `Scheduler.halved` or `cannot_halve`."""

    task: Task
    loss: Loss


class Break(NamedTuple):
    """The role's workers cannot work: the run is over."""

    role: str
    loss: Loss


Action = Start | Send | RequestStack | Kill | Finish | Halve | Break
