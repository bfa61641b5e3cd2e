"""The open tasks: each ends exactly once, in the queue that its submitter named."""

from __future__ import annotations

import logging
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from featpipe.pool.task import Ended, EndQueue, Family, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from featpipe.errors import PoolError
    from featpipe.pool.payload_store import PayloadStore
    from featpipe.pool.role import Role

log = logging.getLogger("featpipe.pool")


class OpenTasks:
    """Tasks that were accepted and have not ended. Used in the hub's thread."""

    def __init__(
        self, roles: Mapping[str, Role], payloads: PayloadStore, numbers: Iterator[int]
    ) -> None:
        self._roles, self._payloads, self._numbers = roles, payloads, numbers
        self._tasks: dict[int, Task] = {}
        self._ended: dict[EndQueue, list[Ended]] = {}
        self.n_ended = dict.fromkeys(roles, 0)

    def add(self, task: Task) -> None:
        """A task was accepted."""
        self._tasks[task.number] = task

    def conclude(self, ended: Ended) -> None:
        """A task, or a piece of one, has ended."""
        task, family = ended.task, ended.task.family
        self._tasks.pop(task.number, None)
        self._payloads.release(task)
        if family is None:
            self.put(task, ended)
            return
        family.ended.append(ended)
        family.n_open -= 1
        if not family.n_open:
            self._tasks.pop(family.whole.number, None)
            pieces = sorted(family.ended, key=lambda piece: piece.task.place)
            self.put(family.whole, Ended(family.whole, pieces=tuple(pieces)))

    def halve(self, task: Task) -> Sequence[Task] | None:
        """The pieces that take the place of a task; None when it cannot be cut."""
        try:
            payloads = self._cut(task)
            pieces = [self._piece(task, place, part) for place, part in enumerate(payloads or ())]
        except Exception as error:  # the role's own function, and pieces that cannot be pickled
            log.warning("a batch of %s cannot be halved: %r", task.role, error)
            return None
        if not pieces:
            return None
        family = task.family = task.family or Family(task, 1, [])
        if task is not family.whole:
            del self._tasks[task.number]
        self._payloads.release(task)
        family.n_open += len(pieces) - 1
        for piece in pieces:
            piece.family = family
            self._tasks[piece.number] = piece
        return pieces

    def _cut(self, task: Task) -> Iterable[object] | None:
        how = self._roles[task.role].bisect or ""
        payloads: Iterable[object] | None = (
            resolve_name(how)(task.payload) if ":" in how else getattr(task.payload, how)()
        )
        return payloads

    def _piece(self, whole: Task, place: int, payload: object) -> Task:
        return Task(
            next(self._numbers),
            whole.role,
            deadline_s=whole.deadline_s,
            can_halve=True,
            tag=whole.tag,
            index=whole.index,
            payload=payload,
            packed=self._payloads.pack(payload),
            place=(*whole.place, place),
        )

    def end_all(self, error: PoolError) -> None:
        """Every open task ends with this error."""
        wholes = [task for task in self._tasks.values() if not task.place]
        self._tasks.clear()
        for task in wholes:
            self._payloads.release(task)
            self.put(task, Ended(task, error=error))

    def put(self, task: Task, ended: Ended) -> None:
        """Note the end of a whole task, to be handed over with the others of this turn."""
        self.n_ended[task.role] += 1
        if task.into is not None:
            self._ended.setdefault(task.into, []).append(ended)

    def hand_over(self) -> None:
        """Put the noted ends into their queues: one wake-up of a waiting thread for many tasks."""
        while self._ended:
            into, ended = self._ended.popitem()
            into.put(ended)
