"""What became of one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from featpipe.errors import PoolError


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exactly one is made for every task: a value, or the error that says why there is none.

    A batch that was halved because it killed its workers has an error here (that of its first bad
    part) and one entry per part in ``parts``; any other outcome is its own only part. So
    ``for part in outcome.parts`` sees every value that was won.
    """

    role: str
    tag: Hashable
    value: object
    error: PoolError | None
    attempts: int
    """Times the task was handed to a worker."""
    seconds: float
    """Time spent inside the role's ``run``, by the worker's clock."""
    worker: str
    """Name of the worker that ended it, such as ``encode-0``; empty when none did."""
    index: int
    """Place in the input of `Pool.map`; otherwise the number of the task."""
    payload: object = None
    """The payload, kept for roles that halve batches: what the value of a part belongs to."""
    halves: tuple[Outcome, ...] = ()
    is_foreign: bool = False
    """Whether the error is a worker that somebody killed or stopped from outside, as far as that
    can be told: the task need not be to blame, and may be submitted again."""

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """Itself, or the outcomes of the pieces it was cut into, in order."""
        return self.halves or (self,)

    @property
    def has_value(self) -> bool:
        """Whether the role returned."""
        return self.error is None
