"""One run: a single loop in the caller's thread that feeds four roles and reacts to their answers.

::

    files -> prepare -> rows ----------------------------------> write -> acknowledged
                        units -> queue -> encode, count -> rows -> write -> acknowledged

Guarantees: memory and descriptors are bounded (files are read on only while few units wait for a
device, and few rows for the disk), every file is accounted for, a lost worker costs at most the
unit it died on, and what was acknowledged counts even when the run is interrupted at any point.
"""

from __future__ import annotations

import json
from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING, cast

import numpy as np

from featpipe.build.queue import BuildQueue
from featpipe.cache import tables
from featpipe.cache.places import gone_rows
from featpipe.cache.texts import Texts
from featpipe.cache.write import WRITE
from featpipe.encoders.precision import LEAST_COSINE
from featpipe.errors import CheckpointError, PoolBroken, PoolError, raise_original

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from featpipe.build.intake import KnownUnits, UnitIntake
    from featpipe.build.messages import FeatureBatch, FeatureTask, PreparedBatch, PrepareTask
    from featpipe.build.other_caches import OtherCaches
    from featpipe.build.plan import Plan
    from featpipe.build.progress import Progress, RunRecord
    from featpipe.build.queue import UnitStates
    from featpipe.cache.tables import Rows
    from featpipe.cache.texts import Units
    from featpipe.cache.write import CacheWriter, LocalTerms
    from featpipe.pool import Outcome
    from featpipe.report import RunReport
    from featpipe.store import Reader

#: Seconds between two calls of the listener, and the longest wait for an answer.
_TICK_S = 0.25

#: Files are read on while fewer bytes of units than this wait for a device.
_MOST_WAITING_BYTES = 64 << 20


class CoarsePrecision(Exception):  # no error: the pipeline plans anew
    """Vectors in the lower precision that ``auto`` chose are too unlike those in float32."""

    def __init__(self, least_cosine: float) -> None:
        super().__init__(f"least cosine {least_cosine}")
        self.least_cosine = least_cosine


class Run:
    """State of one ``build``. Used once.

    `finish` raises `CoarsePrecision` before a vector of an unproven plan is written, if it is so.

    Args:
        plan: what to fill.
        writer: of the cache; its pool has the roles ``prepare``, ``encode`` and ``count``, too, as
            far as the intake and the plan need them.
        intake: the files, or the units.
        reader: of the cache, whose lock the writer holds.
        record: counts, for the report.
        listen: called with a :class:`Progress` a few times a second.
        others: caches whose rows are copied.

    """

    def __init__(  # noqa: PLR0913  # what a run works on, each made by the caller
        self,
        plan: Plan,
        writer: CacheWriter,
        intake: UnitIntake,
        reader: Reader,
        record: RunRecord,
        listen: Callable[[Progress], None],
        *,
        others: OtherCaches | None = None,
    ) -> None:
        self._pool = writer.pool
        self._writer = writer
        self._tables = plan.specs
        self._intake = intake
        self._record = record
        record.cards = tuple(device for device in plan.devices if device != "cpu")
        self._reader = reader
        self._listen = listen
        self._queue = BuildQueue(plan, reader, others)
        self._open: Counter[str] = Counter()
        self._last_tick = 0.0
        self._is_stopping = False

    def stop_after_current(self) -> None:
        """Take in nothing more; what workers hold is finished and committed. Safe in a handler."""
        self._is_stopping = True

    def finish(self) -> RunReport:
        """Run to the end and leave the record of the run in the file."""
        while self._feed():
            self._take_answers(_TICK_S)
            self._tick()
        if not self._is_stopping:
            self._let_go()
        queue = self._queue
        report = self._record.report(queue.vectors, queue.states, self._is_stopping)
        text = json.dumps(report.as_dict(), ensure_ascii=False)
        if tables.RUNS in self._tables:
            self._write({tables.RUNS: {"record": Texts.from_strings([text]).ragged}})
        self._writer.settle()
        self._tick(is_last=True)
        return report

    def _let_go(self) -> None:
        departed = self._intake.find_departed()
        if departed:
            self._write({tables.SOURCES: gone_rows(departed)})
            self._record.n_departed = len(departed)

    # ---- handing out

    def _feed(self) -> bool:
        """Give the workers what they can take; False when all is done and acknowledged."""
        if not self._is_stopping:
            self._take_in()
            self._hand_out()
        return self._open.total() + self._writer.n_open > 0 or self._has_more()

    def _has_more(self) -> bool:
        """Whether documents or units have not been handed out. Never for long: see `_hand_out`."""
        return not self._is_stopping and (not self._intake.is_exhausted or self._queue.n_bytes > 0)

    def _take_in(self) -> None:
        while (
            not self._is_stopping
            and not self._intake.is_exhausted
            and self._has_room("prepare")
            and not self._is_full
            and not self._writer.is_full
        ):
            chunk = self._intake.next_chunk()
            if chunk is None:
                break
            self._record.quarantined.extend(chunk.quarantined)
            self._record.counts += chunk.counts
            if chunk.known is not None:
                self._add(chunk.known)
            if chunk.rows:
                self._write(chunk.rows)
            if chunk.task is not None:
                self._submit("prepare", chunk.task)
            # As long as readers are the faster ones, there is room: others are not to wait for it.
            self._take_answers(0.0)
            self._hand_out()
            self._tick()  # it may tell this run to stop

    def _add(self, units: Units | KnownUnits) -> None:
        for table, rows in self._queue.add(units):
            keys = np.array(rows["keys"], np.uint8)
            self._write({table: rows}, None, (self._queue.states_of(table), keys), is_copied=True)

    def _hand_out(self) -> None:
        # A full queue is cut, too: nothing is read before some of it is handed out.
        is_last = self._is_full or (self._intake.is_exhausted and not self._open["prepare"])
        for role in ("encode", "count"):
            while self._has_room(role) and not self._writer.is_full:
                task = self._queue.next_task(role, is_last=is_last)
                if task is None:
                    break
                self._submit(role, task)

    @property
    def _is_full(self) -> bool:
        return self._queue.n_bytes >= _MOST_WAITING_BYTES

    def _has_room(self, role: str) -> bool:
        # Only of a role that has tasks: the pool has none that the intake and the plan do without.
        return not self._open[role] or self._pool.has_room(role)

    # ---- taking answers

    def _take_answers(self, within_s: float) -> None:
        try:
            outcomes = self._pool.completed(within_s)
        except PoolBroken as error:
            raise_original(error)
        for outcome in outcomes:
            self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        if outcome.role == WRITE:
            self._writer.take(outcome)
            return
        self._open[outcome.role] -= 1
        if outcome.role == "encode":
            self._record.encode_s += outcome.seconds
        take = self._take_prepared if outcome.role == "prepare" else self._take_features
        for part in outcome.parts:
            take(part)

    def _take_prepared(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._record.add_lost_documents(cast("PrepareTask", outcome.payload), outcome.error)
            return
        batch = cast("PreparedBatch", outcome.value)
        self._record.add_prepared(batch)
        if batch.rest is not None:
            self._submit("prepare", batch.rest)
        if batch.rows:
            self._write({name: rows for name, rows in batch.rows.items() if name in self._tables})
        self._add(batch.units)

    def _take_features(self, outcome: Outcome) -> None:
        task = cast("FeatureTask", outcome.payload)
        if outcome.error is not None:
            if isinstance(outcome.error.__cause__, CheckpointError):
                raise outcome.error.__cause__
            self._queue.close_task(task)
            self._queue.give_up(task, _first_line(outcome.error))
            return
        self._queue.close_task(task, outcome.seconds)
        batch = cast("FeatureBatch", outcome.value)
        for part in (batch, *batch.also):
            self._take_rows(part)

    def _take_rows(self, batch: FeatureBatch) -> None:
        if batch.least_cosine < LEAST_COSINE:
            raise CoarsePrecision(batch.least_cosine)
        states = self._queue.states_of(batch.table)
        self._record.add_features(batch)
        for key, reason in batch.failed:
            states.give_up(np.frombuffer(key, np.uint8), reason)
        if batch.terms is not None:
            self._write({}, batch.terms, (states, np.array(batch.terms.keys)))
        elif batch.rows:
            keys = np.array(batch.rows["keys"], np.uint8)
            self._write({batch.table: batch.rows}, None, (states, keys))

    # ---- the edges

    def _submit(self, role: str, payload: object) -> None:
        self._open[role] += 1
        self._pool.submit(role, payload)

    def _write(
        self,
        rows: Mapping[str, Rows],
        terms: LocalTerms | None = None,
        units: tuple[UnitStates, NDArray[np.uint8]] | None = None,
        *,
        is_copied: bool = False,
    ) -> None:
        """Have rows written; ``units`` are those whose rows they are."""

        def acknowledge() -> None:
            # The reader must see the rows before the states forget that they were under way.
            self._reader.refresh()
            if units is not None:
                states, keys = units
                states.acknowledge(keys, is_copied=is_copied)

        self._writer.append(rows, terms, then=acknowledge)

    def _tick(self, *, is_last: bool = False) -> None:
        now = monotonic()
        if is_last or now - self._last_tick >= _TICK_S:
            self._last_tick = now
            is_reading = not self._intake.is_exhausted or self._open["prepare"]
            seconds_left = None if is_reading else self._queue.seconds_left()
            queue = self._queue
            self._listen(self._record.progress(queue.vectors, queue.states, seconds_left))


def _first_line(error: PoolError) -> str:
    return error.message.splitlines()[0] if error.message else type(error).__name__
