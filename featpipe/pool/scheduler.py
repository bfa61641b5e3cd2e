"""The scheduler: which worker does what, and what becomes of a task whose worker died.

Pure: it is told facts and the time, and answers with actions; it starts nothing, reads no clock
and never blocks. Guarantees, for any order of facts:

- Every accepted task is finished by exactly one `Finish`, or replaced by exactly one `Halve`,
  unless a `Break` ended everything.
- A task is on at most one worker at a time, and a worker holds at most ``prefetch`` tasks.
- A task is charged for a lost worker only if that worker had begun it.
- The number of starts is bounded by the number of finished tasks: nothing respawns for ever.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from featpipe.pool.actions import Action, Break, Finish, Halve, Kill, Question, Send, Start
from featpipe.pool.role import START_ATTEMPTS, Role
from featpipe.pool.task import FOREIGN, Cause, Loss

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from featpipe.pool.task import Task

#: A SIGKILL that was not for want of memory says little about the role: somebody else sent it. So
#: does an end that nobody saw, because the template had been killed before.
KILLS_PER_FAILURE = 100
#: Between a killing stack request and the kill: time for the child to write its stack.
LAST_WORDS_S = 0.05
_BACK_OFF_S = 0.1
#: In the place of a task's number: the worker's start, and the end of its last words.
_START, _LAST_WORDS = -1, -2


class State(Enum):
    """Of one worker."""

    STARTING = "starting"
    READY = "ready"
    DYING = "dying"


#: An enum's member is looked up slowly, and this one for every task.
_READY = State.READY


@dataclass(slots=True, eq=False)
class _Worker:
    number: int
    slot: _Slot
    state: State = State.STARTING
    sent: deque[Task] = field(default_factory=deque)
    condemned_for: int = 0
    """The task, or START, that took too long."""


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of one worker in a role; its worker changes, its record stays."""

    index: int
    crew: _Crew
    worker: _Worker | None = None
    failures: float = 0.0
    may_start_at: float = 0.0


class _Crew:
    """A role's slots and its waiting tasks."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.slots = [_Slot(index, self) for index in range(len(role.devices))]
        self.waiting: deque[Task] = deque()
        self.retries: deque[Task] = deque()
        self.n_sent = 0
        self.n_starting = 0
        self.n_there = 0
        """Slots that have a worker, in whatever state."""
        self.n_free = 0
        """Tasks that the ready workers could be given on top of what they hold."""

    @property
    def n_waiting(self) -> int:
        return len(self.waiting) + len(self.retries)

    def next_for(self, slot: _Slot) -> Task | None:
        """The next task this slot should do: a retry first, if others have not the better claim."""
        has_others = any(
            other is not slot and other.worker is not None and other.worker.state is State.READY
            for other in self.slots
        )
        for place, task in enumerate(self.retries):
            if task.avoid != slot.index or not has_others:
                del self.retries[place]
                return task
        return self.waiting.popleft() if self.waiting else None


class Scheduler:
    """See the module's guarantees. Every method that takes ``now`` returns actions in order."""

    def __init__(self, roles: Iterable[Role]) -> None:
        self._crews = {role.name: _Crew(role) for role in roles}
        self._workers: dict[int, _Worker] = {}
        self._next_worker = 1
        #: (time, worker, what for); a negative worker stands for a crew that waits to start again
        self._alarms: list[tuple[float, int, int]] = []
        self._is_over = False

    # facts

    def open(self, now: float) -> list[Action]:
        """Start the workers of the roles that do not wait for a first task."""
        return [action for crew in self._crews.values() for action in self._fill(crew, now)]

    def submit(self, task: Task, now: float) -> list[Action]:
        """Accept a task."""
        crew = self._crews[task.role]
        crew.waiting.append(task)
        return self._fill(crew, now)

    def ready(self, worker: int, now: float) -> list[Action]:
        """The worker has made its instance."""
        record = self._workers[worker]
        crew = record.slot.crew
        if record.state is State.STARTING:
            record.state = State.READY
            crew.n_starting -= 1
            crew.n_free += crew.role.prefetch
        return self._fill(crew, now)

    def answered(self, worker: int, number: int, now: float) -> list[Action]:
        """The worker has sent a value or an error for the task."""
        record = self._workers[worker]
        task = record.sent.popleft()
        if task.number != number:
            raise AssertionError(f"worker {worker} answered {number}, {task.number} was due")
        crew = record.slot.crew
        crew.n_sent -= 1
        record.slot.failures = 0.0
        if record.state is State.READY:
            crew.n_free += 1
            if record.sent:
                self._watch(record, now)
        return [Finish(task, None), *self._fill(crew, now)]

    def lost(self, worker: int, loss: Loss, begun: int, now: float) -> list[Action]:
        """The worker's process has ended; ``begun`` is the number of the last task it began."""
        record = self._workers.pop(worker)
        slot, crew = record.slot, record.slot.crew
        slot.worker = None
        crew.n_there -= 1
        crew.n_sent -= len(record.sent)
        crew.n_starting -= record.state is State.STARTING or record.condemned_for == _START
        if record.state is State.READY:
            crew.n_free -= crew.role.prefetch - len(record.sent)
        head = record.sent[0] if record.sent else None
        # One that we killed for a task is nobody else's fault, even if the task made it after all.
        blamed = record.condemned_for or begun
        charged = record.sent.popleft() if head is not None and head.number == blamed else None
        # Tasks it had not begun go back to where they came from, at no charge.
        for task in record.sent:
            task.n_sent -= 1
        crew.waiting.extendleft(reversed(record.sent))
        if self._is_over:
            return []
        actions: list[Action] = []
        if charged is not None:
            actions += self._charge(crew, charged, slot.index, loss)
        elif record.condemned_for <= 0:
            actions += self._note_failure(slot, record.state, loss, now)
        return [*actions, *self._fill(crew, now)]

    def halved(self, pieces: Sequence[Task], now: float) -> list[Action]:
        """The two pieces of a task that `Halve` named: next in line, one more loss ends each."""
        crew = self._crews[pieces[0].role]
        for piece in pieces:
            piece.n_losses = 1
        crew.retries.extend(pieces)
        return self._fill(crew, now)

    def cannot_halve(self, task: Task, loss: Loss, now: float) -> list[Action]:
        """The task that `Halve` named is one piece: it is judged like any other."""
        task.can_halve = False
        crew = self._crews[task.role]
        return [*self._judge(crew, task, loss), *self._fill(crew, now)]

    def tick(self, now: float) -> list[Action]:
        """Time has passed."""
        actions: list[Action] = []
        while self._alarms and self._alarms[0][0] <= now:
            _, worker, number = heapq.heappop(self._alarms)
            if worker < 0:
                actions += self._fill(self._crews_in_order()[-1 - worker], now)
            elif self._is_due(worker, number):
                actions += self._interrupt(self._workers[worker], now)
        return actions

    def wake_at(self) -> float | None:
        """When `tick` has something to do next; None: never, unless a fact arrives."""
        while self._alarms:
            at, worker, number = self._alarms[0]
            if worker < 0 or self._is_due(worker, number):
                return at
            heapq.heappop(self._alarms)
        return None

    def cancel_waiting(self, roles: Iterable[str], loss: Loss) -> list[Action]:
        """End the tasks of these roles that no worker has been given."""
        actions: list[Action] = []
        for name in roles:
            crew = self._crews[name]
            actions += [Finish(task, loss) for task in (*crew.retries, *crew.waiting)]
            crew.retries.clear()
            crew.waiting.clear()
        return actions

    # views

    def n_unfinished(self, role: str) -> int:
        """Tasks of the role that are waiting or with a worker."""
        crew = self._crews[role]
        return crew.n_waiting + crew.n_sent

    @property
    def is_busy(self) -> bool:
        """Whether a worker has a task in hand, is starting, or is dying of either."""
        return any(crew.n_sent or crew.n_starting for crew in self._crews.values())

    def at_work(self) -> list[tuple[int, str, Task | None]]:
        """(worker, role, task in hand or None) of those."""
        return [
            (number, w.slot.crew.role.name, w.sent[0] if w.sent else None)
            for number, w in self._workers.items()
            if w.sent or w.state is not State.READY
        ]

    def is_ready(self, worker: int) -> bool:
        """Whether this one has made its instance, whatever became of it since."""
        record = self._workers.get(worker)
        return record is not None and (record.state is State.READY or record.condemned_for > 0)

    def workers(self) -> list[tuple[int, str, int, State, int]]:
        """(worker, role, slot, state, tasks it holds) of every process there should be."""
        return [
            (number, w.slot.crew.role.name, w.slot.index, w.state, len(w.sent))
            for number, w in self._workers.items()
        ]

    # decisions

    def _charge(self, crew: _Crew, task: Task, slot: int, loss: Loss) -> list[Action]:
        """A task outlives a lost worker or two; more is its own doing."""
        task.n_losses += 1
        task.avoid = slot
        return self._judge(crew, task, loss)

    def _judge(self, crew: _Crew, task: Task, loss: Loss) -> list[Action]:
        is_certain = loss.cause in {Cause.TIMED_OUT, Cause.OUT_OF_MEMORY}
        if task.can_halve:
            if is_certain or task.n_losses >= 2:
                return [Halve(task, loss)]
        elif loss.cause is Cause.TIMED_OUT or task.n_losses >= crew.role.max_losses:
            return [Finish(task, loss)]
        crew.retries.append(task)
        return []

    def _note_failure(self, slot: _Slot, state: State, loss: Loss, now: float) -> list[Action]:
        """A death that no task explains: starts that keep failing, or are refused, end the run."""
        slot.failures += 1 / KILLS_PER_FAILURE if loss.cause in FOREIGN else 1.0
        if slot.failures >= START_ATTEMPTS or loss.cause is Cause.REFUSED:
            self._is_over = True
            return [Break(slot.crew.role.name, loss)]
        if state is not State.READY:
            slot.may_start_at = now + _BACK_OFF_S * slot.failures**2
            place = self._crews_in_order().index(slot.crew)
            heapq.heappush(self._alarms, (slot.may_start_at, -1 - place, 0))
        return []

    def _fill(self, crew: _Crew, now: float) -> list[Action]:
        """Hand out what waits, least busy worker first; start workers for what is left."""
        actions: list[Action] = []
        if self._is_over:
            return actions
        if crew.n_free and (crew.waiting or crew.retries):
            self._hand_out(crew, actions, now)
        if crew.n_there == len(crew.slots):
            return actions
        n_wanted = len(crew.slots)
        if crew.role.is_lazy:
            n_wanted = min(n_wanted, crew.n_waiting + crew.n_sent)
        for slot in crew.slots:
            if slot.worker is None and crew.n_there < n_wanted and slot.may_start_at <= now:
                actions.append(self._start(slot, now))  # noqa: PERF401  # each start counts in n_there
        return actions

    def _hand_out(self, crew: _Crew, actions: list[Action], now: float) -> None:
        # Everybody gets a first task before anybody gets a second.
        n_held = [len(s.worker.sent) for s in crew.slots if s.worker and s.worker.state is _READY]
        for depth in range(min(n_held, default=0), crew.role.prefetch):
            for slot in crew.slots:
                worker = slot.worker
                if worker is None or worker.state is not _READY or len(worker.sent) > depth:
                    continue
                task = crew.next_for(slot)
                if task is None:
                    continue
                task.n_sent += 1
                worker.sent.append(task)
                crew.n_sent += 1
                crew.n_free -= 1
                if len(worker.sent) == 1:
                    self._watch(worker, now)
                actions.append(Send(worker.number, task))
            if not (crew.n_free and crew.n_waiting):
                return

    def _start(self, slot: _Slot, now: float) -> Start:
        worker = _Worker(self._next_worker, slot)
        self._next_worker += 1
        slot.worker = worker
        slot.crew.n_there += 1
        slot.crew.n_starting += 1
        self._workers[worker.number] = worker
        role = slot.crew.role
        heapq.heappush(self._alarms, (now + role.start_deadline_s, worker.number, _START))
        return Start(worker.number, role.name, slot.index)

    def _watch(self, worker: _Worker, now: float) -> None:
        """The worker's first task begins about now: from here its deadline counts."""
        head = worker.sent[0]
        if head.deadline_s is not None:
            heapq.heappush(self._alarms, (now + head.deadline_s, worker.number, head.number))

    def _is_due(self, worker: int, number: int) -> bool:
        """Whether an alarm still concerns anything."""
        record = self._workers.get(worker)
        if record is None:
            return False
        if record.state is State.DYING:
            return number == _LAST_WORDS
        if number == _START:
            return record.state is State.STARTING
        return bool(record.sent) and record.sent[0].number == number

    def _interrupt(self, worker: _Worker, now: float) -> list[Action]:
        if worker.state is State.DYING:
            return [Kill(worker.number)]
        is_starting = worker.state is State.STARTING
        worker.condemned_for = _START if is_starting else worker.sent[0].number
        if not is_starting:
            worker.slot.crew.n_free -= worker.slot.crew.role.prefetch - len(worker.sent)
        worker.state = State.DYING
        heapq.heappush(self._alarms, (now + LAST_WORDS_S, worker.number, _LAST_WORDS))
        return [Question(worker.number)]

    def _crews_in_order(self) -> list[_Crew]:
        return list(self._crews.values())
