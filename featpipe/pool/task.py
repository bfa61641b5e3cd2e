"""A task on its way through the pool, and how it ended."""

from __future__ import annotations

import pickle
import signal
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from featpipe.interpreter import EXIT_CARD_LOST

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Hashable

    from featpipe.errors import PoolError
    from featpipe.pool.payloads import PackedPayload
    from featpipe.pool.shared_memory import Reference


class Cause(Enum):
    """What ended a worker's process."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    KILLED = "killed"
    """SIGKILL from outside: the task need not be to blame."""
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    UNSEEN = "unseen"
    """A forked worker ended after its fork server, which alone could collect its exit code."""
    STOPPED = "stopped"
    """By SIGSTOP, for too long: as a rule a signal from outside."""
    BROKEN = "broken"
    """It sent what no worker sends: the role forked and answered twice, or wrote to its socket."""
    NOT_STARTED = "not started"
    """The machine refused another process for now: too many of them, or too little memory."""
    START_FAILED = "start failed"
    REFUSED = "refused"
    """The start failed with a FeatpipeError: another attempt would fail in the same way."""


#: Ends that are as a rule caused from outside and tell little about a role or its task.
FOREIGN = frozenset({Cause.KILLED, Cause.STOPPED, Cause.UNSEEN})


class Loss(NamedTuple):
    """The end of a process in words: ``story`` is its stack or the tail of its stderr."""

    cause: Cause
    summary: str
    story: str = ""
    pickled: bytes | None = None
    """The exception that ended it, as its process pickled it."""
    hint: str | None = None


class Failure(NamedTuple):
    """An error that the hub made. Exceptions of children are foreign code: callers load them."""

    error: PoolError
    pickled: bytes | None = None
    """Its cause."""

    def raised(self) -> PoolError:
        """A copy to raise: frames that raise an error, and all they refer to, live on with it."""
        copy = type(self.error)(self.error.message, hint=self.error.hint)
        copy.__cause__ = load_exception(self.pickled)
        return copy


def load_exception(pickled: bytes | None) -> BaseException | None:
    """An exception of a child; None when its class cannot be loaded in this process."""
    if pickled is None:
        return None
    try:
        found = pickle.loads(pickled)
    except Exception:  # its text is in the error all the same
        return None
    return found if isinstance(found, BaseException) else None


def cause_of(exit_code: int | None, *, is_out_of_memory: bool) -> tuple[Cause, str]:
    """The cause and the words for an exit code as subprocess gives it (-signal, or None)."""
    if is_out_of_memory:
        return Cause.OUT_OF_MEMORY, "ran out of memory"
    if exit_code is None:
        return Cause.UNSEEN, "ended after its fork server, which alone could collect its exit code"
    if exit_code == EXIT_CARD_LOST:
        return Cause.EXITED, "gave up: its card computes no more for that process"
    if exit_code >= 0:
        return Cause.EXITED, f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return (Cause.KILLED if name == "SIGKILL" else Cause.SIGNALLED), f"was ended by {name}"


class EndQueue(Protocol):
    """Where the ends of tasks are put; `Completions` is one. Called in the hub's thread."""

    arriving: deque[Task]
    """Submitted tasks that the hub has not seen yet."""
    is_full: bool
    """Whether its tasks wait: too many bytes of results are to be taken from it, or are on their
    way from one role to the next."""

    def accept(self) -> None:
        """The hub has seen the first of the arriving tasks: it will be put."""

    def put(self, ended: list[Ended]) -> None:
        """These have ended."""

    def hand_on(self, n_bytes: int) -> None:
        """So many more bytes are on their way from one role to the next."""

    def has_drained(self) -> bool:
        """Whether it was full, and is not any more."""

    def wake(self) -> None:
        """Have waiting threads look again."""


@dataclass(slots=True, eq=False)
class Task:
    """One payload for one role, as the parent keeps it."""

    number: int
    role: str
    deadline_s: float | None = None
    can_halve: bool = False
    n_losses: int = 0
    """Workers that died on it."""
    n_foreign: int = 0
    """Of these, the FOREIGN ones."""
    cut_for: Loss | None = None
    """Why it is to be cut: its next worker cuts it instead of running it."""
    n_sent: int = 0
    avoid: int = -1
    """Slot whose worker died on it last: another slot is preferred for the next attempt."""

    tag: Hashable = None
    index: int = 0
    payload: object = None
    """Kept only where it may have to be halved; not for a piece."""
    pickled: bytes | None = None
    """The payload of a piece, as the worker that cut it pickled it."""
    packed: PackedPayload | None = None
    """None once the task has ended."""
    n_bytes: int = 0
    """Of the payload."""
    into: EndQueue | None = None
    origin: Task | None = None
    """The submitted task whose value, handed on by `Role.then`, is the payload of this one."""
    family: Family | None = None
    place: tuple[int, ...] = ()
    """Place of a piece in its family: () for a whole task, (0, 1) for a quarter."""


@dataclass(slots=True, eq=False)
class Family:
    """The pieces of a halved task, until the last of them has ended."""

    whole: Task
    n_open: int
    ended: list[Ended]


@dataclass(slots=True, eq=False)
class Ended:
    """The end of a task as the hub saw it; its value or error is not yet unpickled.

    Exactly one of ``body`` (the worker answered), ``loss`` (its worker did not), ``failure`` (the
    pool ended, or could not take the answer) and ``pieces`` (it was halved) is set.
    """

    task: Task
    worker: str = ""
    seconds: float = 0.0
    body: bytes | None = None
    flags: int = 0
    is_error: bool = False
    reference: Reference | None = None
    loss: Loss | None = None
    failure: Failure | None = None
    pieces: tuple[Ended, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Size of the result, as long as nobody has taken it."""
        own = len(self.body) if self.body is not None else 0
        held = self.reference.segment.size if self.reference is not None else 0
        parts = sum(piece.n_bytes for piece in self.pieces) if self.pieces else 0
        return own + held + parts
