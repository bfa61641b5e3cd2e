"""The nursery: templates, one per list of modules, and the workers they forked.

A template that cannot be made safely is a warning, and its workers are started fresh instead. One
that somebody kills costs nothing but time: workers it had forked go on, those it had not are forked
by the next, and nothing of it counts as a failed start.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
from typing import TYPE_CHECKING

from featpipe.pool import frames
from featpipe.pool.actions import Start
from featpipe.pool.role import START_ATTEMPTS
from featpipe.pool.spawn import (
    ForkedProcess,
    environment_of_template,
    make_ends,
    start_fresh,
    template_record,
    to_started,
)
from featpipe.pool.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from featpipe.pool.event_loop import Switchboard
    from featpipe.pool.role import Role
    from featpipe.pool.spawn import Started

    class Parent(Protocol):
        """What the nursery needs of the hub."""

        def flush(self, worker: Worker) -> None:
            """Send what was noted."""

        def on_exit(self, number: int) -> None:
            """The worker's process has ended."""

        def on_stillborn(self, number: int) -> None:
            """The worker was never forked: start it another way."""


log = logging.getLogger("featpipe.pool")

_ENDING_S = 0.2


class _Template:
    def __init__(self, preload: tuple[str, ...], worker: Worker) -> None:
        self.preload, self.worker = preload, worker
        self.is_ready = False
        self.failure = ""
        self.children: dict[int, ForkedProcess] = {}


class Nursery:
    """Forks workers from templates. Lives in the hub's thread."""

    def __init__(self, board: Switchboard, parent: Parent) -> None:
        self._board, self._parent = board, parent
        self._templates: dict[tuple[str, ...], _Template] = {}
        self._barren: set[tuple[str, ...]] = set()
        self._n_killed: dict[tuple[str, ...], int] = {}
        """Templates in a row that somebody killed before they were ready."""

    def takes(self, role: Role, slot: int) -> bool:
        """Whether this worker may be forked: a cpu one, with something worth sharing."""
        return (
            bool(role.preload)
            and role.devices[slot] == "cpu"
            and role.preload not in self._barren
            and hasattr(os, "pidfd_open")
            and os.environ.get("FEATPIPE_START", "template") != "fresh"
        )

    def start(
        self, number: int, role: Role, record: dict[str, object], environment: Mapping[str, str]
    ) -> Started:
        """Have a worker forked. Raises PoolBroken when no template can be started."""
        template = self._templates.get(role.preload)
        if template is None:
            template = self._make_template(role.preload)
        ends = make_ends()
        body = pickle.dumps({**record, "environment": dict(environment)}, 5)
        for descriptor in ends.theirs:
            data = frames.frame_with_descriptor(frames.HAND, number)
            template.worker.send(data, descriptor)
            os.close(descriptor)
        template.worker.send(frames.frame(frames.FORK, number, body))
        self._parent.flush(template.worker)
        process = template.children[number] = ForkedProcess()
        return to_started(process, ends.ours)

    def template_of(self, number: int) -> Worker | None:
        """The template that is to fork this worker, or to tell of its end, if there is one."""
        for template in self._templates.values():
            if number in template.children:
                return template.worker
        return None

    def give_up(self, template: Worker) -> None:
        """Kill a template that does not do what it should: if it was never ready, no other is."""
        template.is_condemned = True
        template.signal(signal.SIGKILL)

    def workers(self) -> list[Worker]:
        """The templates themselves."""
        return [template.worker for template in self._templates.values()]

    def close(self) -> None:
        """End the templates; their workers have ended before, or do with their lifelines."""
        for template in self._templates.values():
            template.worker.signal(signal.SIGKILL)
            template.worker.reap(_ENDING_S)
            template.worker.close()
        self._templates.clear()

    def _make_template(self, preload: tuple[str, ...]) -> _Template:
        record = template_record(preload, logging.getLogger().getEffectiveLevel())
        started = start_fresh(record, environment_of_template())
        template = _Template(preload, Worker(0, "template", "cpu", Start(0, "", 0), started))
        worker = self._templates[preload] = template
        self._board.listen(template.worker.sock.fileno(), lambda _: self._hear(template))
        self._board.listen(template.worker.stderr, lambda _: self._hear_stderr(template))
        self._board.listen(template.worker.process.pidfd, lambda _: self._lose(template))
        return worker

    def _hear(self, template: _Template, *, is_last: bool = False) -> None:
        found, is_open = template.worker.read(is_last=is_last)
        for item in found:
            kind, _, number, _, body, descriptor = item
            if kind == frames.FORKED:
                template.children[number].learn(int.from_bytes(body, "little"), descriptor)
            elif kind == frames.EXITED:
                process = template.children.pop(number)
                process.exit_code = int.from_bytes(body, "little", signed=True)
                self._parent.on_exit(number)
            elif kind == frames.READY:
                template.is_ready = True
                self._n_killed.pop(template.preload, None)
            elif kind == frames.START_ERROR:
                name, message, _, _ = pickle.loads(body)  # noqa: S301  # from our own child
                template.failure = f"{name}: {message}"
            else:
                template.worker.relay_log(item)
        self._parent.flush(template.worker)
        if not is_open and not is_last:
            template.worker.signal(signal.SIGKILL)
            self._board.ignore(template.worker.sock.fileno())

    def _hear_stderr(self, template: _Template) -> None:
        lines, is_open = template.worker.read_stderr()
        for line in lines:
            log.info("template: %s", line)
        if not is_open:
            self._board.ignore(template.worker.stderr)

    def _lose(self, template: _Template) -> None:
        """A template has ended. Its living workers go on; the others start another way."""
        self._hear(template, is_last=True)
        self._hear_stderr(template)
        worker = template.worker
        for descriptor in (worker.sock.fileno(), worker.stderr, worker.process.pidfd):
            self._board.ignore(descriptor)
        code = worker.reap(_ENDING_S)
        story = template.failure or f"exit code {code}: {worker.last_words()}"
        worker.close()
        del self._templates[template.preload]
        if not template.is_ready and self._is_barren(template, code):
            self._barren.add(template.preload)
            log.warning("workers start without a template, which takes longer: %s", story)
        for number, process in template.children.items():
            if process.pid is None and process.is_given_up:
                self._parent.on_exit(number)
            elif process.pid is None:
                self._parent.on_stillborn(number)
            else:
                self._watch_orphan(number, process)

    def _is_barren(self, template: _Template, code: int | None) -> bool:
        """Whether another attempt would only repeat the end of one that was never ready.

        A SIGKILL that is not ours says nothing about the modules; but not for ever.
        """
        if template.worker.is_condemned or template.failure or code != -signal.SIGKILL:
            return True
        n_killed = self._n_killed[template.preload] = self._n_killed.get(template.preload, 0) + 1
        return n_killed >= START_ATTEMPTS

    def _watch_orphan(self, number: int, process: ForkedProcess) -> None:
        # Nobody will tell us its exit code, but that it ended we still learn.
        self._board.listen(process.pidfd, lambda _: self._parent.on_exit(number))
