"""The open tasks: each is concluded once, whatever happens, in the queue that its sender named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.pool.outcomes import Completions, Ended
from featpipe.pool.task import Family, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from featpipe.errors import PoolError
    from featpipe.pool.cargo import Cargo


class OpenTasks:
    """Tasks that were accepted and have not ended. Lives in the hub's thread.

    Args:
        roles: their names.
        cargo: to release what a task carried.
        halve: cuts a task in two, or says that it cannot be cut. Called with the task and with the
            cargo that its pieces are to travel in.
    """

    def __init__(
        self,
        roles: Iterable[str],
        cargo: Cargo,
        halve: Callable[[Task, Cargo], Sequence[Task] | None],
    ) -> None:
        self._cargo, self._halve = cargo, halve
        self._tasks: dict[int, Task] = {}
        self._ended: dict[Completions, list[Ended]] = {}
        self.n_ended = dict.fromkeys(roles, 0)
        self.weight_ended = dict.fromkeys(self.n_ended, 0)

    def add(self, task: Task) -> None:
        """A task was accepted."""
        self._tasks[task.number] = task

    def conclude(self, ended: Ended) -> None:
        """A task, or a piece of one, has ended."""
        task, family = ended.task, ended.task.family
        self._tasks.pop(task.number, None)
        self._cargo.release(task)
        if family is None:
            self.put(task, ended)
            return
        family.ended.append(ended)
        family.n_open -= 1
        if not family.n_open:
            self._tasks.pop(family.whole.number, None)
            pieces = sorted(family.ended, key=lambda piece: piece.task.place)
            self.put(family.whole, Ended(family.whole, pieces=tuple(pieces)))

    def cut(self, task: Task) -> Sequence[Task] | None:
        """The pieces that take the place of a task; None when it cannot be cut."""
        pieces = self._halve(task, self._cargo)
        if pieces is None:
            return None
        family = task.family = task.family or Family(task, 1, [])
        if task is not family.whole:
            del self._tasks[task.number]
        self._cargo.release(task)
        family.n_open += len(pieces) - 1
        for piece in pieces:
            piece.family = family
            self._tasks[piece.number] = piece
        return pieces

    def end_all(self, error: PoolError) -> None:
        """Every task that is open ends with this error."""
        wholes = [task for task in self._tasks.values() if not task.place]
        self._tasks.clear()
        for task in wholes:
            self._cargo.release(task)
            self.put(task, Ended(task, error=error))

    def put(self, task: Task, ended: Ended) -> None:
        """Note the end of a whole task, to be handed over with the others of this turn."""
        self.n_ended[task.role] += 1
        self.weight_ended[task.role] += task.weight
        if task.into is not None:
            self._ended.setdefault(task.into, []).append(ended)

    def hand_over(self) -> None:
        """What was noted, in one go: one wake of another thread instead of many."""
        while self._ended:
            into, ended = self._ended.popitem()
            into.put(ended)
