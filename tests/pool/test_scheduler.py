"""The scheduler's guarantees, held against every order of facts that hypothesis can think of."""

from __future__ import annotations

import sys
from collections import Counter
from unittest.mock import create_autospec

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from featpipe.pool.actions import Action, Break, Finish, Halve, Kill, RequestStack, Send, Start
from featpipe.pool.hub import Hub
from featpipe.pool.outcomes import Completions
from featpipe.pool.payload_store import PayloadStore
from featpipe.pool.role import Role
from featpipe.pool.scheduler import MOST_HELD, Scheduler
from featpipe.pool.task import Cause, Loss, Task

ROLES = [
    Role("many", "m:A", devices=("cpu",) * 3, prefetch=2, max_losses=2),
    Role("one", "m:B", prefetch=3, is_lazy=False, max_losses=3),
    Role("batch", "m:C", devices=("cpu",) * 2, prefetch=1, bisect="split", max_losses=2),
]
LOSSES = [
    Loss(Cause.SIGNALLED, "segfault"),
    Loss(Cause.KILLED, "killed"),
    Loss(Cause.EXITED, "exited"),
    Loss(Cause.OUT_OF_MEMORY, "out of memory"),
    Loss(Cause.BROKEN, "answered twice"),
    Loss(Cause.UNSEEN, "could not be killed"),
]


STORE = create_autospec(PayloadStore, instance=True, most_viewed=1)
HUB = create_autospec(Hub, instance=True)


class SchedulerMachine(RuleBasedStateMachine):
    """Plays the hub and the processes; keeps books of its own on who holds what."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.numbers = iter(range(1, 1_000_000))
        self.scheduler = Scheduler(ROLES)
        self.workers: dict[int, str] = {}
        self.ready: set[int] = set()
        self.held: dict[int, list[Task]] = {}
        self.open: dict[int, Task] = {}
        self.size: dict[int, int] = {}
        self.ended: Counter[int] = Counter()
        self.condemned: set[int] = set()
        self.begun: dict[int, int] = {}
        #: The scheduler sees no more of them than whether they are full.
        self.queues = [Completions(STORE, HUB), Completions(STORE, HUB)]
        self.sent: set[int] = set()
        #: Answers in a row that were quick.
        self.n_quick: Counter[str] = Counter()
        self.n_starts = 0
        self.n_answers = 0
        self.n_innocent = 0
        self.is_over = False

    def act(self, actions: list[Action]) -> None:
        queue = list(actions)
        while queue and not self.is_over:
            queue += self.act_one(queue.pop(0))

    def act_one(self, action: Action) -> list[Action]:
        match action:
            case Start(worker, role, slot):
                assert worker not in self.workers
                assert 0 <= slot < len(next(r for r in ROLES if r.name == role).devices)
                self.workers[worker] = role
                self.held[worker] = []
                self.begun[worker] = 0
                self.n_starts += 1
            case Send(worker, task):
                assert self.workers[worker] == task.role
                assert worker in self.ready, "only a ready worker is sent tasks"
                assert worker not in self.condemned
                assert task.number in self.open
                assert not any(task in held for held in self.held.values()), "on one worker only"
                self.held[worker].append(task)
                self.refuse_too_many(worker)
                is_retry = task.n_losses > 0 or task.number in self.sent
                assert is_retry or task.into is None or not task.into.is_full
                self.sent.add(task.number)
            case Finish(task, loss):
                self.finish(task, loss)
            case Halve(task, loss):
                return self.halve(task, loss)
            case RequestStack(worker):
                self.condemned.add(worker)
            case Kill(worker):
                assert worker in self.condemned, "first it is asked for its stack"
                return self.die(worker, Loss(Cause.TIMED_OUT, "too long"))
            case Break():
                self.is_over = True
        return []

    def refuse_too_many(self, worker: int) -> None:
        role = next(role for role in ROLES if role.name == self.workers[worker])
        is_quick = role.prefetch > 1 and self.n_quick[role.name] >= 20
        assert len(self.held[worker]) <= (MOST_HELD if is_quick else role.prefetch)

    def finish(self, task: Task, loss: Loss | None) -> None:
        assert task.number in self.open
        assert not any(task in held for held in self.held.values())
        del self.open[task.number]
        self.ended[task.number] += 1
        if loss is not None:
            assert task.n_losses >= 1, "a task that no worker began has killed none"

    def halve(self, task: Task, loss: Loss) -> list[Action]:
        size = self.size[task.number]
        if size < 2:
            return self.scheduler.cannot_halve(task, loss, self.now)
        del self.open[task.number]
        self.ended[task.number] += 1
        pieces = [self.make("batch", part) for part in (size // 2, size - size // 2)]
        return self.scheduler.halved(pieces, self.now)

    def make(self, role: str, size: int) -> Task:
        number = next(self.numbers)
        into = self.queues[number % 2]
        task = Task(number, role, deadline_s=10.0, can_halve=role == "batch", into=into)
        self.open[task.number] = task
        self.size[task.number] = size
        return task

    def die(self, worker: int, loss: Loss) -> list[Action]:
        self.workers.pop(worker)
        held = self.held.pop(worker)
        before = {task.number: task.n_losses for task in held}
        begun = self.begun.pop(worker)
        is_late = worker in self.condemned
        self.ready.discard(worker)
        self.condemned.discard(worker)
        actions = self.scheduler.lost(worker, loss, begun, self.now)
        charged = [task.number for task in held if task.n_losses > before[task.number]]
        assert len(charged) <= 1
        if charged and not is_late:
            assert charged == [begun], "only the task it had begun is charged"
        if not charged and not is_late:
            self.n_innocent += 1
        return actions

    @initialize()
    def opens(self) -> None:
        self.act(self.scheduler.open(self.now))
        assert set(self.workers.values()) == {"one"}, "the others wait for a task"

    @precondition(lambda self: not self.is_over)
    @rule(role=st.sampled_from([role.name for role in ROLES]), size=st.integers(1, 5))
    def submit(self, role: str, size: int) -> None:
        self.act(self.scheduler.submit(self.make(role, size), self.now))

    @precondition(lambda self: not self.is_over)
    @rule(role=st.sampled_from(["many", "one"]), n=st.integers(10, 30))
    def submit_many(self, role: str, n: int) -> None:
        for _ in range(n):
            self.submit(role, 1)

    @precondition(lambda self: not self.is_over and len(self.ready) < len(self.workers))
    @rule(data=st.data())
    def becomes_ready(self, data: st.DataObject) -> None:
        waiting = sorted(set(self.workers) - self.ready - self.condemned)
        if waiting:
            worker = data.draw(st.sampled_from(waiting))
            self.ready.add(worker)
            self.act(self.scheduler.ready(worker, self.now))

    @precondition(lambda self: not self.is_over and any(self.held.values()))
    @rule(data=st.data())
    def begins(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from([w for w, held in self.held.items() if held]))
        self.begun[worker] = self.held[worker][0].number

    @precondition(lambda self: not self.is_over and any(self.held.values()))
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 2e-5, 1.0]), n=st.integers(1, 30))
    def answers(self, data: st.DataObject, seconds: float, n: int) -> None:
        """So many times, by one worker."""
        busy = [w for w, held in self.held.items() if held and w not in self.condemned]
        worker = data.draw(st.sampled_from(busy)) if busy else 0
        while n and not self.is_over and self.held.get(worker):
            n -= 1
            task = self.held[worker].pop(0)
            self.begun[worker] = task.number
            self.n_answers += 1
            self.n_quick[task.role] = self.n_quick[task.role] + 1 if seconds < 1 else 0
            self.act(self.scheduler.answered(worker, task.number, self.now, seconds))

    @precondition(lambda self: not self.is_over and self.workers)
    @rule(data=st.data(), loss=st.sampled_from(LOSSES))
    def dies(self, data: st.DataObject, loss: Loss) -> None:
        worker = data.draw(st.sampled_from(sorted(self.workers)))
        if worker in self.condemned:
            loss = Loss(Cause.TIMED_OUT, "too long")
        self.act(self.die(worker, loss))

    @precondition(lambda self: not self.is_over)
    @rule(number=st.integers(0, 1))
    def becomes_full(self, number: int) -> None:
        self.queues[number].is_full = True

    @precondition(lambda self: not self.is_over)
    @rule(number=st.integers(0, 1))
    def has_room_again(self, number: int) -> None:
        self.queues[number].is_full = False
        self.act(self.scheduler.resume(self.now))

    @precondition(lambda self: not self.is_over)
    @rule(seconds=st.sampled_from([0.01, 0.06, 1.0, 11.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.act(self.scheduler.tick(self.now))

    @precondition(lambda self: self.is_over)
    @rule()
    def stays_over(self) -> None:
        """After a Break the hub ends every task itself; nothing more is asked of the scheduler."""

    @invariant()
    def each_task_ends_at_most_once(self) -> None:
        assert all(count == 1 for count in self.ended.values())
        assert not self.open.keys() & self.ended.keys()

    @invariant()
    def starts_are_bounded(self) -> None:
        n_slots = sum(len(role.devices) for role in ROLES)
        n_charged = sum(task.n_losses for task in self.open.values()) + 3 * len(self.ended)
        assert self.n_starts <= n_slots * 300 + n_charged + 3 * self.n_answers + self.n_innocent

    @invariant()
    def counts_agree(self) -> None:
        if not self.is_over:
            for role in ROLES:
                n_open = sum(task.role == role.name for task in self.open.values())
                assert self.scheduler.n_unfinished(role.name) == n_open

    def teardown(self) -> None:
        """Left to well-behaved processes and callers, everything that is open ends."""
        for number in range(2 * (not self.is_over)):
            self.has_room_again(number)
        for _ in range(10_000):
            if self.is_over or not self.open:
                return
            for worker in sorted(set(self.workers) - self.ready - self.condemned):
                self.ready.add(worker)
                self.act(self.scheduler.ready(worker, self.now))
            busy = [w for w, held in self.held.items() if held and w not in self.condemned]
            if busy:
                task = self.held[busy[0]].pop(0)
                self.act(self.scheduler.answered(busy[0], task.number, self.now))
                continue
            at = self.scheduler.wake_at()
            assert at is not None, "tasks are open and nothing is going to happen: a hang"
            self.now = max(self.now, at)
            self.act(self.scheduler.tick(self.now))
        pytest.fail("tasks are still open")


SchedulerMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
TestScheduler = SchedulerMachine.TestCase


def test_a_retry_goes_to_another_worker() -> None:
    scheduler = Scheduler([Role("r", "m:A", devices=("cpu", "cuda:0"), prefetch=1)])
    first, second = Task(1, "r"), Task(2, "r")
    scheduler.submit(first, 0.0)
    scheduler.submit(second, 0.0)
    assert scheduler.ready(1, 0.0) == [Send(1, first)]
    assert scheduler.ready(2, 0.0) == [Send(2, second)]
    (start,) = scheduler.lost(1, LOSSES[0], 1, 1.0)
    assert isinstance(start, Start)
    assert scheduler.ready(start.worker, 1.1) == [], "it waits for the one that did not die of it"
    assert scheduler.answered(2, 2, 1.2) == [Finish(second, None), Send(2, first)]


def test_a_task_of_a_full_queue_is_not_sent_beside_a_retry_for_another_worker() -> None:
    full = Completions(STORE, HUB)
    scheduler = Scheduler([Role("r", "m:A", devices=("cpu", "cuda:0"), prefetch=1)])
    for task in (Task(1, "r"), Task(2, "r"), Task(3, "r", into=full)):
        scheduler.submit(task, 0.0)
    scheduler.ready(1, 0.0)
    scheduler.ready(2, 0.0)
    full.is_full = True
    (start,) = scheduler.lost(1, LOSSES[0], 1, 1.0)
    assert isinstance(start, Start)
    assert scheduler.ready(start.worker, 1.1) == []
    full.is_full = False
    (send,) = scheduler.resume(1.2)
    assert isinstance(send, Send)
    assert (send.worker, send.task.number) == (start.worker, 3)


def test_everybody_gets_a_first_task_before_anybody_gets_a_second() -> None:
    scheduler = Scheduler([Role("r", "m:A", devices=("cpu", "cpu"), is_lazy=False)])
    scheduler.open(0.0)
    scheduler.ready(1, 0.0)
    scheduler.ready(2, 0.0)
    sent = [
        action.worker
        for number in range(4)
        for action in scheduler.submit(Task(number, "r"), 0.0)
        if isinstance(action, Send)
    ]
    assert sent == [1, 2, 1, 2]


def test_a_worker_of_quick_tasks_holds_a_millisecond_of_them_until_one_is_slow() -> None:
    def n_held_after(seconds: list[float], prefetch: int = 2) -> int:
        scheduler = Scheduler([Role("r", "m:A", prefetch=prefetch, is_lazy=False)])
        scheduler.open(0.0)
        scheduler.ready(1, 0.0)
        for number in range(200):
            scheduler.submit(Task(number, "r"), 0.0)
        for number, took_s in enumerate(seconds):
            scheduler.answered(1, number, 0.0, took_s)
        return scheduler.workers()[0][-1]

    assert n_held_after([]) == 2
    assert n_held_after([1e-5] * 60) == MOST_HELD
    assert n_held_after([2e-4] * 60) == 5
    assert n_held_after([1e-2] * 60) == 2
    assert n_held_after([1e-5] * 60, prefetch=1) == 1, "who asks for one at a time gets that"
    assert n_held_after([1e-5] * 60, prefetch=20) == 20
    many = [1e-5] * 60
    assert n_held_after([*many, 0.5, *many[:13]]) == 2, "what it held, and no more"


def test_a_role_whose_starts_fail_is_given_up() -> None:
    scheduler = Scheduler([Role("r", "m:A")])
    actions = scheduler.submit(Task(1, "r"), 0.0)
    now = 0.0
    for _ in range(10):
        starts = [action for action in actions if isinstance(action, Start)]
        if not starts:
            at = scheduler.wake_at()
            assert at is not None
            now = at
            actions = scheduler.tick(now)
            continue
        actions = scheduler.lost(starts[0].worker, Loss(Cause.EXITED, "no weights"), 0, now)
        if any(isinstance(action, Break) for action in actions):
            break
    assert actions == [Break("r", Loss(Cause.EXITED, "no weights"))]
    assert starts[0].worker == 3, "the third failure in a row is the last"


def condemned() -> Scheduler:
    """One whose worker was asked for its stack at 5.0."""
    scheduler = Scheduler([Role("r", "m:A", deadline_s=5.0)])
    scheduler.submit(Task(1, "r", deadline_s=5.0), 0.0)
    scheduler.ready(1, 0.0)
    assert scheduler.tick(5.0) == [RequestStack(1)]
    return scheduler


def test_a_worker_is_killed_when_it_has_written_its_stack_or_does_not() -> None:
    scheduler = condemned()
    assert scheduler.tick(7.9) == []
    assert scheduler.tick(8.0) == [Kill(1)]

    scheduler = condemned()
    scheduler.spoke(1, 6.0)
    scheduler.spoke(1, 6.04)  # a stack comes in pieces
    assert scheduler.tick(6.06) == []
    assert scheduler.wake_at() == pytest.approx(6.09)
    assert scheduler.tick(6.1) == [Kill(1)]


@pytest.mark.parametrize("is_much", [True, False])
def test_a_worker_that_writes_without_an_end_is_killed(is_much: bool) -> None:
    scheduler = condemned()
    killed_at = []
    for hundredths in range(500, 900):
        now = hundredths / 100
        scheduler.spoke(1, now, is_much=is_much)
        killed_at += [now for _ in scheduler.tick(now)]
    assert killed_at[0] == (5.0 if is_much else 8.0)
    assert len(killed_at) <= 2


def test_an_idle_scheduler_has_nothing_to_wake_for() -> None:
    scheduler = Scheduler([Role("r", "m:A", deadline_s=5.0)])
    scheduler.submit(Task(1, "r", deadline_s=5.0), 0.0)
    scheduler.ready(1, 0.0)
    assert scheduler.wake_at() == 5.0
    scheduler.answered(1, 1, 1.0)
    assert scheduler.wake_at() is None


def calls_of_one_task(n_workers: int) -> int:
    """Python calls for the way of one task through a scheduler with so many ready workers."""
    scheduler = Scheduler([Role("r", "m:A", devices=("cpu",) * n_workers, is_lazy=False)])
    scheduler.open(0.0)
    for worker in range(1, n_workers + 1):
        scheduler.ready(worker, 0.0)
    n_calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"

    sys.setprofile(count)
    try:
        (send,) = scheduler.submit(Task(1, "r"), 0.0)
        assert isinstance(send, Send)
        scheduler.answered(send.worker, 1, 0.0)
    finally:
        sys.setprofile(None)
    return n_calls


def test_a_task_costs_the_same_for_any_number_of_workers() -> None:
    assert calls_of_one_task(1) == calls_of_one_task(64)
