"""The open tasks: each ends exactly once, in the queue that its submitter named."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from featpipe.pool.frames import FOLLOWED, OUT_OF_BAND
from featpipe.pool.payloads import PackedPayload
from featpipe.pool.task import Ended, EndQueue, Failure, Family, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.pool.payload_store import PayloadStore
    from featpipe.pool.role import Role


class OpenTasks:
    """Tasks that were accepted and have not ended. Used in the hub's thread."""

    def __init__(
        self, roles: Mapping[str, Role], payloads: PayloadStore, numbers: Iterator[int]
    ) -> None:
        self._payloads, self._numbers = payloads, numbers
        self._tasks: dict[int, Task] = {}
        #: The ends of this turn, for `hand_over`.
        self.ended: dict[EndQueue, list[Ended]] = {}
        #: Role -> submitted tasks that the hub has not seen yet; appended to by any thread.
        self.arriving: dict[str, deque[Task]] = {role: deque() for role in roles}
        self._n_accepted = dict.fromkeys(roles, 0)
        self._n_ended = dict.fromkeys(roles, 0)

    def n_unfinished(self, role: str) -> int:
        """Tasks of the role that have not ended; in any thread."""
        return self._n_accepted[role] + len(self.arriving[role]) - self._n_ended[role]

    def add(self, task: Task) -> None:
        """A task was accepted."""
        self._tasks[task.number] = task
        # Counted first: another thread may count one too many for an instant, never one too few.
        self._n_accepted[task.role] += 1
        self.arriving[task.role].popleft()
        if task.into is not None:
            task.into.accept()

    def conclude(self, ended: Ended) -> None:
        """A task, or a piece of one, has ended."""
        task, family = ended.task, ended.task.family
        self._tasks.pop(task.number, None)
        if family is None:
            self._n_ended[task.role] += 1
            if task.into is not None:
                self.ended.setdefault(task.into, []).append(ended)
        else:
            family.ended.append(ended)
            family.n_open -= 1
            if not family.n_open:
                self._tasks.pop(family.whole.number, None)
                pieces = sorted(family.ended, key=lambda piece: piece.task.place)
                self.put(family.whole, Ended(family.whole, pieces=tuple(pieces)))
        packed, task.packed = task.packed, None
        if packed is not None and packed.own is not None:
            self._payloads.give_back(packed)

    def hand_on(self, ended: Ended, to: Role) -> Task:
        """The task that gets the value of one that has ended: its one outcome is that of the new.

        The value is neither unpickled nor copied.
        """
        task, reference = ended.task, ended.reference
        segments = (reference.segment,) if reference is not None else ()
        flags = ended.flags & (OUT_OF_BAND | FOLLOWED)
        successor = Task(
            next(self._numbers),
            to.name,
            deadline_s=to.deadline_s,
            tag=task.tag,
            packed=PackedPayload(ended.body or b"", flags, None, segments, (), reference),
            into=task.into,
            origin=task.origin or task,
            n_bytes=ended.n_bytes,
        )
        if task.into is not None:
            before = 0 if task.origin is None else task.n_bytes
            task.into.hand_on(successor.n_bytes - before)
        del self._tasks[task.number]
        self._tasks[successor.number] = successor
        self._n_accepted[to.name] += 1
        self._n_ended[task.role] += 1
        self._payloads.release(task)
        return successor

    def replace(self, task: Task, payloads: Sequence[bytes]) -> Sequence[Task]:
        """The pieces that take the place of a task, from their pickled payloads."""
        pieces = [self._piece(task, place, data) for place, data in enumerate(payloads)]
        family = task.family = task.family or Family(task, 1, [])
        if task is not family.whole:
            del self._tasks[task.number]
        self._payloads.release(task)
        family.n_open += len(pieces) - 1
        for piece in pieces:
            piece.family = family
            self._tasks[piece.number] = piece
        return pieces

    def _piece(self, whole: Task, place: int, data: bytes) -> Task:
        return Task(
            next(self._numbers),
            whole.role,
            deadline_s=whole.deadline_s,
            can_halve=True,
            n_foreign=whole.n_foreign,
            tag=whole.tag,
            index=whole.index,
            pickled=data,
            packed=self._payloads.pack_pickled(data),
            place=(*whole.place, place),
        )

    def end_all(self, failure: Failure) -> None:
        """Every open task ends with this error."""
        wholes = [task for task in self._tasks.values() if not task.place]
        self._tasks.clear()
        for task in wholes:
            self.put(task, Ended(task, failure=failure))
        for task in wholes:
            self._payloads.release(task)

    def wake_the_late(self) -> None:
        """Tasks that arrived after the end are seen by their callers alone: have them look."""
        for tasks in self.arriving.values():
            for task in list(tasks):
                if task.into is not None:
                    task.into.wake()

    def put(self, task: Task, ended: Ended) -> None:
        """Note the end of a whole task, to be handed over with the others of this turn."""
        self._n_ended[task.role] += 1
        if task.into is not None:
            self.ended.setdefault(task.into, []).append(ended)

    def hand_over(self) -> bool:
        """Put the noted ends into their queues: one wake-up of a waiting thread for many tasks.

        Whether tasks that waited for a queue to have room may go on.
        """
        have_drained = False
        while self.ended:
            into, ended = self.ended.popitem()
            into.put(ended)
            if into.is_full and into.has_drained():
                have_drained = True
        return have_drained
