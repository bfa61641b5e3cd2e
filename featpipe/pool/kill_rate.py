"""Whether the kills a task met are its own doing, or come from outside to all tasks alike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.pool.task import Task

#: Kills are put down to chance while innocent tasks would meet so many with this probability.
_CHANCE = 1e-3


class KillRate:
    """Whether kills from outside explain the workers that one task lost.

    A task that kills its own workers is the only one that loses any. Where others do as well, a
    worker is lost with about the probability ``p`` that the other tasks show; ``k`` kills are put
    down to chance while ``n * p**k``, the number of innocent tasks out of ``n`` with so many, is
    not small.
    """

    def __init__(self) -> None:
        self.n_answers = 0
        self.n_kills = 0
        """Workers killed or stopped from outside, with or without a task."""

    def explains(self, task: Task) -> bool:
        """Whether the task's own kills are like those of the others."""
        n_others = self.n_kills - task.n_foreign
        if n_others <= 0:
            return False
        p = (n_others + 1) / (self.n_answers + n_others + 2)
        return math.log(self.n_answers + 1) + task.n_foreign * math.log(p) > math.log(_CHANCE)
