"""A task on its way through the pool, as the parent sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from featpipe.pool.completions import Completions, Ended
    from featpipe.pool.parcels import Parcel


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
