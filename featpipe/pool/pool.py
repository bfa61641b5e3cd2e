"""The pool: the public interface of the engine."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NoReturn, Self

from featpipe.errors import PoolClosed, PoolFull, UsageError
from featpipe.pool import pickling
from featpipe.pool.hub import Hub
from featpipe.pool.outcomes import MOST_PAYLOAD_BYTES, MOST_WAITING_BYTES, Completions
from featpipe.pool.scheduler import State
from featpipe.pool.task import Task

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from featpipe.pool.outcomes import Outcome
    from featpipe.pool.role import Role

#: Time for idle workers to close their instances, in `close` and at the program's end.
_CLOSE_S = 10.0
_EXIT_S = 1.0
#: Time for log handlers to take what was logged before the end of the pool.
_LOGS_S = 2.0


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker at this moment."""

    name: str
    role: str
    device: str
    state: str
    """starting, ready (no task), busy, or dying."""
    pid: int | None
    """None before its process has been started, and once it has been collected."""


class Pool:
    """Children of several roles, and tasks for them.

    A task goes in by `submit`, its outcome comes out of `completed`, in the order of ends: one loop
    in one thread can feed any number of roles. All methods may be called from any thread; threads
    that share a pool give each its own `Completions`.

    Raises:
        UsageError: a role that cannot work.
        CannotTravel: an argument of a role that cannot be sent; it names the path to it.
        PoolBroken: this process may start no thread.
    """

    def __init__(self, roles: Sequence[Role]) -> None:
        self._roles = {role.name: role for role in roles}
        if len(self._roles) != len(roles):
            raise UsageError(f"two roles share a name: {[role.name for role in roles]}")
        _refuse_bad_chains(self._roles)
        arguments = {
            role.name: pickling.dumps(dict(role.arguments), f"{role.name}.arguments")
            for role in roles
        }
        self._numbers = count(1)
        self._owner = os.getpid()
        self._is_stopping = self._is_closed = False
        self._hub = Hub(self._roles, arguments, self._numbers)
        self._completions = self.completions()
        self._hub.start()
        _HUBS.add(self._hub)
        # The hub has no reference to this object: a pool without references is closed.
        self._finalizer = weakref.finalize(self, _shut, self._hub, self._owner, _EXIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # tasks

    def submit(
        self,
        role: str,
        payload: object,
        *,
        tag: Hashable = None,
        deadline_s: float | None = None,
        into: Completions | None = None,
    ) -> Task:
        """Accept a task; its outcome comes out of ``into``, by default out of `completed`.

        Never blocks: `has_room` tells whether more tasks keep the workers busier. Arrays that came
        in an outcome are sent on by reference; others are copied once, here.

        Bytes are bounded at both ends. While payloads of 1 GiB of the same queue have not ended,
        this refuses. While results of 256 MiB wait in it, its tasks wait, too: a caller that only
        submits, and waits for their end without taking outcomes, waits for ever.

        ``tag`` is handed back in the outcome; ``deadline_s`` overrides the role's.

        Where a signal handler raises in here (Ctrl-C), the task was accepted or it was not; if it
        was, its outcome comes out as any other.

        Raises:
            CannotTravel: the payload cannot be pickled; the path to the culprit is named.
            PoolFull: take outcomes first.
            PoolBroken, PoolClosed: the pool has ended.
        """
        if self._hub.ended_by is not None or self._is_closed:
            self._refuse()
        kind = self._roles.get(role)
        if kind is None:
            raise UsageError(f"no role {role!r} in this pool", hint=f"roles: {list(self._roles)}")
        into = into or self._completions
        if into.n_bytes_submitted - into.n_bytes_ended > MOST_PAYLOAD_BYTES:
            _refuse_more(role)
        packed = self._hub.payloads.pack(payload)
        number = next(self._numbers)
        task = Task(
            number,
            role,
            deadline_s=kind.deadline_s if deadline_s is None else deadline_s,
            can_halve=kind.bisect is not None,
            tag=tag,
            index=number,
            payload=payload if kind.bisect is not None else None,
            packed=packed,
            n_bytes=packed.n_bytes if packed.segments else len(packed.body),
            into=into,
        )
        self._hub.submit(task, into)
        # Afterwards: an interrupt in between makes the count too low, never too high.
        into.n_bytes_submitted += task.n_bytes
        return task

    def completed(self, timeout: float | None = None) -> list[Outcome]:
        """Outcomes of tasks submitted without ``into``, at least one, in the order of their ends.

        Empty after ``timeout`` seconds without any, and at once when no task is open.

        Raises:
            PoolBroken: the workers of a role cannot be started; the cause is named.
        """
        return self._completions.get(timeout)

    def completions(self) -> Completions:
        """A queue of its own for ``submit(..., into=)``."""
        return Completions(self._hub.payloads, self._hub)

    def call(self, role: str, payload: object, *, timeout: float | None = None) -> object:
        """Submit one task, wait for it, return its value or raise its error.

        Raises:
            TimeoutError: it has not ended after ``timeout`` seconds; it goes on nevertheless.
        """
        into = self.completions()
        self.submit(role, payload, into=into)
        outcomes = into.get(timeout)
        if not outcomes:
            raise TimeoutError(f"{role} has not answered within {timeout} s")
        if outcomes[0].error is not None:
            raise outcomes[0].error
        return outcomes[0].value

    def map(
        self,
        role: str,
        payloads: Iterable[object],
        *,
        ordered: bool = False,
        window: int | None = None,
    ) -> Iterator[Outcome]:
        """Outcomes of ``payloads``; ``index`` is the place of each in the input.

        At most ``window`` payloads are between the input and the caller at any time, also when one
        of them is slow and the order is to be kept. After `stop_after_current` no more are pulled.
        """
        into = self.completions()
        source = enumerate(payloads)
        waiting: dict[int, Outcome] = {}
        n_given = 0
        while True:
            most = window or self._hub.window(role)
            while into.n_open + len(waiting) < most and not self._is_stopping:
                index, payload = next(source, (-1, None))
                if index < 0:
                    break
                # Only this thread reads the index, when it takes the outcome.
                self.submit(role, payload, into=into).index = index
            if not into.n_open:
                return
            for outcome in into.get():
                if not ordered:
                    yield outcome
                    continue
                waiting[outcome.index] = outcome
                while n_given in waiting:
                    yield waiting.pop(n_given)
                    n_given += 1

    # back-pressure

    def has_room(self, role: str, into: Completions | None = None) -> bool:
        """Whether one more task would help to keep the role's workers busy.

        Not while results of many bytes wait in ``into`` to be taken: they come first.
        """
        if (into or self._completions).n_bytes_waiting > MOST_WAITING_BYTES:
            return False
        then = self._roles[role].then
        if then is not None and not self.has_room(then, into):
            return False
        return self.n_unfinished(role) < self._hub.window(role)

    def n_unfinished(self, role: str) -> int:
        """Tasks of the role that have not ended, with or without a worker."""
        return self._hub.n_unfinished(role)

    def workers(self) -> list[WorkerView]:
        """Every process there is at this moment."""
        views = []
        for worker, role, slot, state, n_tasks in self._hub.worker_states():
            name = "busy" if n_tasks and state is State.READY else state.value
            if worker is None and state is State.READY:  # ended, its tasks not yet given on
                name = State.DYING.value
            device = self._roles[role].devices[slot]
            pid = worker.pid if worker is not None else None
            views.append(WorkerView(f"{role}-{slot}", role, device, name, pid))
        return views

    # ends

    @property
    def is_of_a_parent(self) -> bool:
        """Whether it belongs to the process that forked this one, which makes one of its own."""
        return os.getpid() != self._owner

    @property
    def is_stopping(self) -> bool:
        """Whether no new work is to be begun; for the loop that feeds the pool."""
        return self._is_stopping

    def stop_after_current(self) -> None:
        """Begin nothing new; submitted tasks go on to their ends. Safe in a signal handler."""
        self._is_stopping = True

    def close(self, grace_s: float = _CLOSE_S) -> None:
        """Stop every child: idle ones close their instance, busy ones are cut short.

        Open tasks end with PoolClosed. No child is left when this returns, but for one that cannot
        be killed (frozen, or waiting in the kernel), which a warning names. Repeatable.
        """
        self._is_stopping = self._is_closed = True
        self._finalizer.detach()
        _shut(self._hub, self._owner, grace_s)

    def _refuse(self) -> NoReturn:
        ended_by = self._hub.ended_by
        if ended_by is not None:
            raise ended_by.raised()
        raise PoolClosed("the pool was closed")


def _refuse_more(role: str) -> NoReturn:
    raise PoolFull(
        f"{role}: payloads of more than {MOST_PAYLOAD_BYTES:,} bytes wait for workers",
        hint="take outcomes with completed() before you submit more; has_room() tells when",
    )


def _refuse_bad_chains(roles: Mapping[str, Role]) -> None:
    for role in roles.values():
        met, then = [role.name], role.then
        while then is not None:
            if then not in roles or then in met:
                what = "is not in this pool" if then not in roles else "comes back to itself"
                raise UsageError(f"role {role.name}: then={role.then!r} {what}", hint=str(met))
            met.append(then)
            then = roles[then].then
        if role.then is not None and role.bisect is not None:
            raise UsageError(f"role {role.name}: tasks that are handed on cannot be halved")


#: Hubs of this process, to be prepared for forks.
_HUBS: weakref.WeakSet[Hub] = weakref.WeakSet()


def _shut(hub: Hub, owner: int, grace_s: float) -> None:
    """Close a pool, also one without references, or still open when the program ends."""
    if os.getpid() != owner:
        return
    hub.close(grace_s)
    if threading.current_thread() is not hub.thread:
        hub.thread.join()
        hub.logs.join(_LOGS_S)


def _before_fork() -> None:
    for hub in list(_HUBS):
        hub.payloads.before_fork()


def _after_fork_in_child() -> None:
    for hub in list(_HUBS):
        hub.forget_after_fork()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
