"""The scheduler: which worker runs which task, and what happens to a task whose worker died.

Pure: it takes facts and the time, and returns actions; it starts nothing, reads no clock and never
blocks. Guarantees, for any order of facts:

- Every accepted task is finished by exactly one `Finish`, or replaced by exactly one `Halve`,
  unless a `Break` ended everything.
- A task is on at most one worker at a time. A worker holds at most ``prefetch`` tasks or, where
  that is not 1, as many as it runs in a millisecond, by the pace of its role.
- A task is charged for a lost worker only if that worker had begun it. One killed from outside is
  no reason to give the task up where the tasks beside it suffer the same (see `KillRate`).
- A task whose queue of outcomes is full is sent once that has room; the tasks of others go on.
- The number of starts is bounded by the number of finished tasks: respawning always ends.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from featpipe.pool.actions import Action, Break, Finish, Halve, Kill, RequestStack, Send, Start
from featpipe.pool.kill_rate import KillRate
from featpipe.pool.role import START_ATTEMPTS, Role
from featpipe.pool.task import FOREIGN, Cause, Loss, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: A FOREIGN end, such as a SIGKILL that was not for want of memory, tells little about the role.
KILLS_PER_FAILURE = 100
#: A worker that was asked for its stack is killed when it has written and been silent for so long,
LAST_WORDS_S = 0.05
#: or after this time, whatever it does: on a busy machine its turn to write may be long in coming.
_MOST_LAST_WORDS_S = 3.0
_BACK_OFF_S = 0.1
#: In the place of a task's number: the worker's start, and the end of LAST_WORDS_S.
_START, _LAST_WORDS = -1, -2
#: The longest wait before another start of a slot.
_LONGEST_BACK_OFF_S = 5.0
#: A task without a deadline has one while it is cut.
_CUT_DEADLINE_S = 60.0
#: A task that was lost to a kill from outside waits behind so many others per worker: whether they
#: survive tells whose fault it was.
_TASKS_BETWEEN = 8
#: A task fails after so many kills on top of ``max_losses``, whatever happens to the others.
_MOST_KILLS = 20
#: A worker whose tasks are quick is given as many as it runs in this time, at most `MOST_HELD`:
#: else it would wait for the hub after each.
_QUICK_S = 1e-3
MOST_HELD = 16
#: One slow task counts as so much quicker after each that follows.
_FORGET = 0.8


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
    """The task, or _START, that took too long."""
    kill_at: float = 0.0
    """When it is killed for it, if it writes nothing until then."""
    last_kill_at: float = 0.0
    """When it is killed for it, whatever it writes."""
    has_spoken: bool = False
    """Whether it has written since it was asked for its stack."""


@dataclass(slots=True, eq=False)
class _Slot:
    """The place of one worker in a role; it outlives its worker."""

    index: int
    queue: _RoleQueue
    worker: _Worker | None = None
    failures: float = 0.0
    may_start_at: float = 0.0


class _RoleQueue:
    """A role's slots and its waiting tasks."""

    def __init__(self, role: Role, most_in_flight: int) -> None:
        self.role = role
        self._most_held = 1
        if role.prefetch > 1:  # who asks for one at a time gets that
            self._most_held = min(MOST_HELD, most_in_flight // (2 * len(role.devices)))
        self.slots = [_Slot(index, self) for index in range(len(role.devices))]
        self.waiting: deque[Task] = deque()
        self.retries: deque[Task] = deque()
        self.held_back: deque[Task] = deque()
        """Those whose queue of outcomes is full."""
        self.kills = KillRate()
        self.depth = role.prefetch
        """Tasks that a worker may hold now."""
        self.least = 0
        """No ready worker holds fewer tasks than this."""
        self._slowest_s = 1.0
        self.n_sent = 0
        self.n_starting = 0
        self.n_there = 0
        """Slots that have a worker, in whatever state."""
        #: The slots of ready workers by the number of tasks they hold: to find the least busy one
        #: takes the same time for any number of workers.
        self.ready: list[dict[_Slot, None]] = [
            {} for _ in range(max(role.prefetch, self._most_held) + 1)
        ]

    @property
    def n_waiting(self) -> int:
        return len(self.waiting) + len(self.retries) + len(self.held_back)

    @property
    def n_ready(self) -> int:
        """Ready workers."""
        return sum(map(len, self.ready))

    @property
    def window(self) -> int:
        """Tasks worth having unfinished at a time: all workers busy, and as many again ready."""
        return 2 * self.depth * len(self.slots)

    def note_pace(self, seconds: float) -> None:
        """A task took so long."""
        slowest_s = self._slowest_s = max(seconds, _FORGET * self._slowest_s)
        n_quick = int(_QUICK_S / max(slowest_s, _QUICK_S / MOST_HELD))
        self.depth = max(self.role.prefetch, min(self._most_held, n_quick))

    def wait_behind_others(self, task: Task) -> None:
        """Put the task behind some of the others."""
        self.waiting.insert(_TASKS_BETWEEN * len(self.slots), task)

    def next_for(self, slot: _Slot) -> Task | None:
        """The next task for this slot: a retry first, unless another ready slot should take it."""
        if self.retries:
            has_others = self.n_ready > 1
            for place, task in enumerate(self.retries):
                if task.avoid != slot.index or not has_others:
                    del self.retries[place]
                    return task
        return self.waiting.popleft() if self.waiting else None


class Scheduler:
    """See the module's guarantees. Methods that take ``now`` return actions, in their order.

    Args:
        most_in_flight: so many quick tasks of a role are worth having unfinished; each may need a
            descriptor.
    """

    def __init__(self, roles: Iterable[Role], most_in_flight: int = 200) -> None:
        self._queues = {role.name: _RoleQueue(role, most_in_flight) for role in roles}
        self._workers: dict[int, _Worker] = {}
        self._next_worker = 1
        #: (time, worker, what for); a negative worker stands for a queue that waits to start again
        self.alarms: list[tuple[float, int, int]] = []
        self._is_over = False

    # facts

    def open(self, now: float) -> list[Action]:
        """Start the workers of the roles that do not wait for a first task."""
        return [action for queue in self._queues.values() for action in self._fill(queue, now)]

    def submit(self, task: Task, now: float) -> list[Action]:
        """Accept a task."""
        queue = self._queues[task.role]
        queue.waiting.append(task)
        return self._fill(queue, now)

    def ready(self, worker: int, now: float) -> list[Action]:
        """The worker has made its instance."""
        record = self._workers[worker]
        queue = record.slot.queue
        if record.state is State.STARTING:
            record.state = State.READY
            queue.n_starting -= 1
            queue.ready[0][record.slot] = None
            queue.least = 0
        return self._fill(queue, now)

    def answered(self, worker: int, number: int, now: float, seconds: float = 1.0) -> list[Action]:
        """The worker has sent a value or an error for the task, or has cut it.

        ``seconds`` is the time it took, by the worker's clock.
        """
        record = self._workers[worker]
        task = record.sent.popleft()
        if task.number != number:
            raise AssertionError(f"worker {worker} answered {number}, {task.number} was due")
        queue = record.slot.queue
        queue.n_sent -= 1
        record.slot.failures = 0.0
        if record.state is _READY:
            n_held = len(record.sent)
            del queue.ready[n_held + 1][record.slot]
            queue.ready[n_held][record.slot] = None
            queue.least = min(queue.least, n_held)
            if n_held:
                self._watch(record, now)
        queue.kills.n_answers += 1
        if queue.depth != MOST_HELD or seconds * MOST_HELD > _QUICK_S:
            queue.note_pace(seconds)
        if task.cut_for is not None:
            return [Halve(task, task.cut_for), *self._fill(queue, now)]
        if not queue.waiting and not queue.retries and queue.n_there == len(queue.slots):
            return [Finish(task, None)]
        return [Finish(task, None), *self._fill(queue, now)]

    def resume(self, now: float) -> list[Action]:
        """Some queue of outcomes has room again: tasks held back for it come first."""
        actions: list[Action] = []
        for queue in self._queues.values():
            if queue.held_back:
                queue.waiting.extendleft(reversed(queue.held_back))
                queue.held_back.clear()
                actions += self._fill(queue, now)
        return actions

    def lost(self, worker: int, loss: Loss, begun: int, now: float) -> list[Action]:
        """The worker's process has ended; ``begun`` is the number of the last task it began."""
        record = self._workers.pop(worker)
        slot, queue = record.slot, record.slot.queue
        slot.worker = None
        queue.n_there -= 1
        queue.n_sent -= len(record.sent)
        queue.n_starting -= record.state is State.STARTING or record.condemned_for == _START
        if record.state is State.READY:
            del queue.ready[len(record.sent)][slot]
        head = record.sent[0] if record.sent else None
        # A worker killed for a task charges that task, even if the task ended after all.
        blamed = record.condemned_for or begun
        charged = record.sent.popleft() if head is not None and head.number == blamed else None
        # Tasks it had not begun go back to the queue, at no charge.
        for task in record.sent:
            task.n_sent -= 1
        queue.waiting.extendleft(reversed(record.sent))
        if self._is_over:
            return []
        actions: list[Action] = []
        if loss.cause in FOREIGN:
            queue.kills.n_kills += 1
        if charged is not None:
            actions += self._charge(queue, charged, slot.index, loss)
        elif record.condemned_for <= 0:
            actions += self._note_failure(slot, record.state, loss, now)
        return [*actions, *self._fill(queue, now)]

    def spoke(self, worker: int, now: float, *, is_much: bool = False) -> None:
        """A worker that was asked for its stack has written; more than a stack, if ``is_much``."""
        record = self._workers.get(worker)
        if record is None or record.state is not State.DYING or record.kill_at <= now:
            return
        record.kill_at = now if is_much else min(record.last_kill_at, now + LAST_WORDS_S)
        if is_much or not record.has_spoken:
            record.has_spoken = True
            heapq.heappush(self.alarms, (record.kill_at, worker, _LAST_WORDS))

    def halved(self, pieces: Sequence[Task], now: float) -> list[Action]:
        """The pieces of a task that `Halve` named: next in line, each charged with a loss."""
        queue = self._queues[pieces[0].role]
        for piece in pieces:
            piece.n_losses = 1
        queue.retries.extend(pieces)
        return self._fill(queue, now)

    def cannot_halve(self, task: Task, loss: Loss, now: float) -> list[Action]:
        """The task that `Halve` named cannot be cut: it is judged like any other."""
        task.can_halve, task.cut_for = False, None
        queue = self._queues[task.role]
        return [*self._judge(queue, task, loss), *self._fill(queue, now)]

    def tick(self, now: float) -> list[Action]:
        """Handle the alarms that are due."""
        actions: list[Action] = []
        while self.alarms and self.alarms[0][0] <= now:
            _, worker, number = heapq.heappop(self.alarms)
            if worker < 0:
                actions += self._fill(self._queues_in_order()[-1 - worker], now)
            elif self._is_due(worker, number):
                actions += self._interrupt(self._workers[worker], now)
        return actions

    def wake_at(self) -> float | None:
        """When `tick` is due next; None when it is due only after another fact."""
        while self.alarms:
            at, worker, number = self.alarms[0]
            if worker < 0 or self._is_due(worker, number):
                return at
            heapq.heappop(self.alarms)
        return None

    # views

    def n_unfinished(self, role: str) -> int:
        """Tasks of the role that are waiting or with a worker."""
        queue = self._queues[role]
        return queue.n_waiting + queue.n_sent

    def window(self, role: str) -> int:
        """Tasks of the role that are worth having unfinished at a time; in any thread."""
        return self._queues[role].window

    def first_task_of(self, worker: int) -> Task | None:
        """The task that the worker is to answer next."""
        sent = self._workers[worker].sent
        return sent[0] if sent else None

    @property
    def is_busy(self) -> bool:
        """Whether a worker has a task, is starting, or is dying of either."""
        return any(queue.n_sent or queue.n_starting for queue in self._queues.values())

    def busy_workers(self) -> list[tuple[int, str, Task | None]]:
        """(worker, role, its first task or None) of those."""
        return [
            (number, w.slot.queue.role.name, w.sent[0] if w.sent else None)
            for number, w in self._workers.items()
            if w.sent or w.state is not State.READY
        ]

    def start_of(self, worker: int) -> Start:
        """The action that started the worker."""
        slot = self._workers[worker].slot
        return Start(worker, slot.queue.role.name, slot.index)

    def is_ready(self, worker: int) -> bool:
        """Whether the worker has made its instance, also if it is dying since."""
        record = self._workers.get(worker)
        return record is not None and (record.state is State.READY or record.condemned_for > 0)

    def workers(self) -> list[tuple[int, str, int, State, int]]:
        """(worker, role, slot, state, tasks it holds) of every worker."""
        return [
            (number, w.slot.queue.role.name, w.slot.index, w.state, len(w.sent))
            for number, w in self._workers.items()
        ]

    # decisions

    def _charge(self, queue: _RoleQueue, task: Task, slot: int, loss: Loss) -> list[Action]:
        """Count the lost worker against the task, and decide on it."""
        task.n_losses += 1
        task.avoid = slot
        if loss.cause in FOREIGN:
            task.n_foreign += 1
            n_counted = task.n_losses - task.n_foreign
            is_explained = task.n_foreign < _MOST_KILLS and queue.kills.explains(task)
            if is_explained and n_counted < queue.role.max_losses:
                queue.wait_behind_others(task)
                return []
        if task.cut_for is not None:  # it was being cut: it is judged for what it did before
            loss, task.can_halve, task.cut_for = task.cut_for, False, None
        return self._judge(queue, task, loss)

    def _judge(self, queue: _RoleQueue, task: Task, loss: Loss) -> list[Action]:
        is_certain = loss.cause in {Cause.TIMED_OUT, Cause.OUT_OF_MEMORY}
        if task.can_halve:
            if is_certain or task.n_losses >= 2:
                task.cut_for = loss
        elif loss.cause is Cause.TIMED_OUT or task.n_losses >= queue.role.max_losses:
            return [Finish(task, loss)]
        if loss.cause in FOREIGN and task.cut_for is None:
            queue.wait_behind_others(task)
        else:
            queue.retries.append(task)
        return []

    def _note_failure(self, slot: _Slot, state: State, loss: Loss, now: float) -> list[Action]:
        """A death without a task to charge: repeated or refused start failures end the run."""
        slot.failures += 1 / KILLS_PER_FAILURE if loss.cause in FOREIGN else 1.0
        is_passing = loss.cause is Cause.NOT_STARTED and slot.queue.n_ready > 0
        if loss.cause is Cause.REFUSED or (slot.failures >= START_ATTEMPTS and not is_passing):
            self._is_over = True
            return [Break(slot.queue.role.name, loss)]
        if state is not State.READY:
            back_off_s = min(_BACK_OFF_S * slot.failures**2, _LONGEST_BACK_OFF_S)
            slot.may_start_at = now + back_off_s
            place = self._queues_in_order().index(slot.queue)
            heapq.heappush(self.alarms, (slot.may_start_at, -1 - place, 0))
        return []

    def _fill(self, queue: _RoleQueue, now: float) -> list[Action]:
        """Hand out waiting tasks, least busy worker first; start workers for the rest."""
        actions: list[Action] = []
        if self._is_over:
            return actions
        while queue.waiting or queue.retries:
            # Also beside retries, which not every worker may have.
            if queue.waiting:
                task = queue.waiting[0]
                # What was handed on to this role goes on: it makes room.
                if task.into is not None and task.into.is_full and task.origin is None:
                    queue.held_back.append(queue.waiting.popleft())
                    continue
            send = self._hand_out(queue, now)
            if send is None:
                break
            actions.append(send)
        if queue.n_there == len(queue.slots):
            return actions
        n_wanted = len(queue.slots)
        if queue.role.is_lazy:
            n_wanted = min(n_wanted, queue.n_waiting + queue.n_sent)
        startable = [s for s in queue.slots if s.worker is None and s.may_start_at <= now]
        n_missing = max(0, n_wanted - queue.n_there)
        return actions + [self._start(slot, now) for slot in startable[:n_missing]]

    def _hand_out(self, queue: _RoleQueue, now: float) -> Send | None:
        """Give a task to the least busy worker that may have it."""
        # Every worker gets a first task before any gets a second.
        ready = queue.ready
        while queue.least < queue.depth and not ready[queue.least]:
            queue.least += 1
        for n_held in range(queue.least, queue.depth):
            for slot in ready[n_held]:
                task = queue.next_for(slot) if queue.retries else queue.waiting.popleft()
                if task is not None and slot.worker is not None:
                    del ready[n_held][slot]
                    ready[n_held + 1][slot] = None
                    return self._send(slot.worker, task, now)
                if not queue.retries:
                    return None
        return None

    def _send(self, worker: _Worker, task: Task, now: float) -> Send:
        task.n_sent += 1
        worker.sent.append(task)
        worker.slot.queue.n_sent += 1
        if len(worker.sent) == 1 and (task.deadline_s is not None or task.cut_for is not None):
            self._watch(worker, now)
        return Send(worker.number, task)

    def _start(self, slot: _Slot, now: float) -> Start:
        worker = _Worker(self._next_worker, slot)
        self._next_worker += 1
        slot.worker = worker
        slot.queue.n_there += 1
        slot.queue.n_starting += 1
        self._workers[worker.number] = worker
        role = slot.queue.role
        heapq.heappush(self.alarms, (now + role.start_deadline_s, worker.number, _START))
        return Start(worker.number, role.name, slot.index)

    def _watch(self, worker: _Worker, now: float) -> None:
        """The worker's first task begins about now: its deadline counts from here."""
        head = worker.sent[0]
        deadline_s = head.deadline_s
        if deadline_s is None and head.cut_for is not None:
            deadline_s = _CUT_DEADLINE_S
        if deadline_s is not None:
            heapq.heappush(self.alarms, (now + deadline_s, worker.number, head.number))

    def _is_due(self, worker: int, number: int) -> bool:
        """Whether an alarm still concerns the worker's state or first task."""
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
            if now >= worker.kill_at:
                return [Kill(worker.number)]
            heapq.heappush(self.alarms, (worker.kill_at, worker.number, _LAST_WORDS))
            return []
        is_starting = worker.state is State.STARTING
        worker.condemned_for = _START if is_starting else worker.sent[0].number
        if not is_starting:
            del worker.slot.queue.ready[len(worker.sent)][worker.slot]
        worker.state = State.DYING
        worker.last_kill_at = worker.kill_at = now + _MOST_LAST_WORDS_S
        heapq.heappush(self.alarms, (worker.kill_at, worker.number, _LAST_WORDS))
        return [RequestStack(worker.number)]

    def _queues_in_order(self) -> list[_RoleQueue]:
        return list(self._queues.values())
