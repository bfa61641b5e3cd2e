"""Halving: a batch that kills its workers is cut until the poison is alone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from featpipe.pool.child import resolve
from featpipe.pool.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from featpipe.pool.cargo import Cargo
    from featpipe.pool.role import Role

log = logging.getLogger("featpipe.pool")


def halve_sequence(payload: Sequence[object]) -> tuple[Sequence[object], Sequence[object]] | None:
    """For ``Role(bisect="featpipe.pool.bisect:halve_sequence")``: the halves of a sequence."""
    middle = len(payload) // 2
    return (payload[:middle], payload[middle:]) if middle else None


class Halver:
    """Cuts tasks as their roles say. Called by the hub, with whatever the roles' functions do."""

    def __init__(self, roles: Mapping[str, Role], numbers: Iterator[int]) -> None:
        self._roles, self._numbers = roles, numbers

    def __call__(self, task: Task, cargo: Cargo) -> list[Task] | None:
        """The pieces of a task; None when it cannot be cut, which is then all that happens."""
        try:
            payloads = self._cut(task)
            if payloads is None:
                return None
            return [
                self._piece(task, place, payload, cargo) for place, payload in enumerate(payloads)
            ] or None
        except Exception as error:  # the role's own function, and unpicklable pieces
            log.warning("a batch of %s cannot be halved: %r", task.role, error)
            return None

    def _cut(self, task: Task) -> Iterable[object] | None:
        how = self._roles[task.role].bisect or ""
        cut: Callable[..., Iterable[object] | None]
        if ":" in how:
            cut = resolve(how)
            return cut(task.payload)
        cut = getattr(task.payload, how)
        return cut()

    def _piece(self, whole: Task, place: int, payload: object, cargo: Cargo) -> Task:
        piece = Task(
            next(self._numbers),
            whole.role,
            deadline_s=whole.deadline_s,
            can_halve=True,
            tag=whole.tag,
            index=whole.index,
            weight=whole.weight,
            payload=payload,
            place=(*whole.place, place),
        )
        piece.parcel = cargo.pack(payload)
        return piece
