"""The patrol: workers that say nothing, at work or at the close, are looked for and ended.

Whoever has to act is who is looked at: for a worker that a template has not forked yet, or whose
end only its template can tell, that is the template.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from featpipe.pool.loss import Cause, Loss
from featpipe.pool.vigil import LOOK_S, Vigil, Watched

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from featpipe.pool.nursery import Nursery
    from featpipe.pool.role import Role
    from featpipe.pool.roster import Roster
    from featpipe.pool.scheduler import Scheduler
    from featpipe.pool.worker import Worker


class Patrol:
    """Kills what does not go on. That it ended is then told as of any other. In the hub's thread.

    Args:
        roles: by name.
        scheduler: who has something to do.
        roster: the workers.
        nursery: their templates.
    """

    def __init__(
        self, roles: Mapping[str, Role], scheduler: Scheduler, roster: Roster, nursery: Nursery
    ) -> None:
        self._roles, self._scheduler = roles, scheduler
        self._roster, self._nursery = roster, nursery
        self._vigil = Vigil(min(LOOK_S, *(role.stopped_deadline_s for role in roles.values())))

    def wake_at(self, now: float) -> float | None:
        """When to look next; None while nobody has anything to do."""
        return self._vigil.wake_at(now, is_busy=self._scheduler.is_busy)

    def look(self, now: float) -> None:
        """Give up who was stopped for too long, if it is time to look."""
        if self._vigil.is_due(now):
            for number in self._vigil.look(self._at_work(), now):
                self._give_up(self._roster[number])

    def end_due(self, now: float) -> None:
        """At a close: kill those whose time to stop by themselves is over."""
        for worker in self._roster.take_due(now):
            worker.signal(signal.SIGKILL)
            template = self._idle_template(worker)
            if template is not None:
                self._nursery.give_up(template)

    def _at_work(self) -> Iterator[Watched]:
        for number, role, task in self._scheduler.at_work():
            worker = self._roster[number]
            acting = self._idle_template(worker) or worker
            yield Watched(
                number,
                worker.name if acting is worker else f"the template of {worker.name}",
                acting.pid or 0,
                self._roles[role].stopped_deadline_s,
                task.number if task is not None else 0,
                task is None or task.deadline_s is not None,
            )

    def _give_up(self, worker: Worker) -> None:
        """It has been stopped for too long."""
        template = self._idle_template(worker)
        if template is not None:  # its workers are then started, or their ends learnt, without it
            self._nursery.give_up(template)
            return
        words = f"({worker.name}, pid {worker.pid}) was stopped (SIGSTOP) and did not go on"
        worker.reason = Loss(Cause.STOPPED, words)
        worker.signal(signal.SIGKILL)

    def _idle_template(self, worker: Worker) -> Worker | None:
        """The template that we wait for, to fork this worker or to tell that it has ended."""
        if worker.pid is not None and not worker.is_silent:
            return None
        return self._nursery.template_of(worker.number)
