"""Why a worker, or a task, was lost."""

from __future__ import annotations

import pickle
import signal
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from featpipe.pool.outcomes import Completions, Ended
    from featpipe.pool.payloads import Parcel


class Cause(Enum):
    """What ended a worker's process."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    KILLED = "killed"
    """SIGKILL from outside: the task need not be to blame."""
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    UNSEEN = "unseen"
    """A fork ended after its template had been lost, and nobody was left to see how."""
    STOPPED = "stopped"
    """By SIGSTOP, for too long: somebody else's doing as a rule."""
    START_FAILED = "start failed"
    REFUSED = "refused"
    """The start failed with an error of ours: a reason that another attempt would only repeat."""
    CANCELLED = "cancelled"
    """No process died: the task was withdrawn before a worker had it."""


class Loss(NamedTuple):
    """The end of a process in words: ``story`` is its stack or the tail of its stderr."""

    cause: Cause
    summary: str
    story: str = ""
    pickled: bytes | None = None
    """The exception that ended it, as its process pickled it."""

    @property
    def original(self) -> BaseException | None:
        """The exception itself, where it can be had here."""
        return original_of(self.pickled)


#: Ends that say little about a role or its task: as a rule somebody else's doing.
FOREIGN = frozenset({Cause.KILLED, Cause.STOPPED, Cause.UNSEEN})


def original_of(pickled: bytes | None) -> BaseException | None:
    """An exception of a child of ours; None when its class cannot be loaded in this process."""
    if pickled is None:
        return None
    try:
        found = pickle.loads(pickled)  # noqa: S301  # from our own child
    except Exception:  # loaded there and not here: the text has to do
        return None
    return found if isinstance(found, BaseException) else None


def cause_of(exit_code: int | None, *, is_out_of_memory: bool) -> tuple[Cause, str]:
    """The cause and the words for an exit code as subprocess gives it (-signal, or None)."""
    if is_out_of_memory:
        return Cause.OUT_OF_MEMORY, "ran out of memory"
    if exit_code is None:
        return Cause.UNSEEN, "ended after its template, which alone could have told how"
    if exit_code >= 0:
        return Cause.EXITED, f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return (Cause.KILLED if name == "SIGKILL" else Cause.SIGNALLED), f"was ended by {name}"


# A task on its way through the pool, as the parent sees it.


@dataclass(slots=True, eq=False)
class Task:
    """One payload for one role. The scheduler counts on it; the hub carries it."""

    number: int
    role: str
    deadline_s: float | None = None
    can_halve: bool = False
    n_losses: int = 0
    """Workers that died on it."""
    n_sent: int = 0
    avoid: int = -1
    """Slot whose worker died on it last: another one shall try next."""

    tag: Hashable = None
    index: int = 0
    weight: int = 1
    payload: object = None
    parcel: Parcel | None = None
    into: Completions | None = None
    family: Family | None = None
    place: tuple[int, ...] = ()
    """Where in its family a piece belongs: () for a whole task, (0, 1) for a quarter."""


@dataclass(slots=True, eq=False)
class Family:
    """The pieces of a halved task, until the last of them has ended."""

    whole: Task
    n_open: int
    ended: list[Ended]
