"""What the scheduler decides: each action says what is to be done, and its end is a fact again."""

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


class Question(NamedTuple):
    """Ask the worker for its stack; it is about to be killed for taking too long."""

    worker: int


class Kill(NamedTuple):
    """Kill the worker; its end is reported as any other."""

    worker: int


class Finish(NamedTuple):
    """The task has ended: by its worker's answer when ``loss`` is None."""

    task: Task
    loss: Loss | None


class Halve(NamedTuple):
    """The task kills workers, and may be cut: answer with `Scheduler.halved` or `cannot_halve`."""

    task: Task
    loss: Loss


class Break(NamedTuple):
    """The role cannot be worked; the run is over."""

    role: str
    loss: Loss


Action = Start | Send | Question | Kill | Finish | Halve | Break
