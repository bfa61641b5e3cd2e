"""One run: a single loop in the caller's thread that feeds four roles and reacts to their answers.

::

    files -> prepare -> rows ------------------------------------> write -> acknowledged
                        units -> ledger -> encode, count -> rows -> write -> acknowledged

Guarantees: memory is bounded (files are read on only while few units wait), every file is accounted
for, a lost worker costs at most the unit it died on, and what was acknowledged counts even when the
run is interrupted at any point.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from time import monotonic
from typing import TYPE_CHECKING, cast

import numpy as np

from featpipe.build.intake import KnownDocuments
from featpipe.build.messages import TOGETHER, PrepareTask
from featpipe.build.plan import Product
from featpipe.build.queue import Backlog, Ledger
from featpipe.cache import tables
from featpipe.cache.texts import Texts, Units
from featpipe.cache.write import WRITE, CacheWriter
from featpipe.errors import CheckpointError, PoolBroken, PoolError, raise_original

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from featpipe.build.intake import Chunk, Intake, KnownUnits
    from featpipe.build.messages import FeatureBatch, FeatureTask, PreparedBatch
    from featpipe.build.plan import Plan
    from featpipe.build.progress import Progress, Tally
    from featpipe.cache.write import LocalTerms, Rows
    from featpipe.pool import Outcome, Pool
    from featpipe.report import RunReport
    from featpipe.store import Reader

#: Seconds between two calls of the listener, and the longest wait for an answer.
_TICK_S = 0.25

#: Files are read on while fewer bytes of units than this wait for a device.
_BACKLOG_BYTES = 64 << 20


class Run:
    """State of one ``build``. Used once.

    Args:
        plan: what to fill.
        pool: with the roles ``prepare``, ``encode``, ``count`` and that of the writer.
        intake: the files.
        reader: of the cache, whose lock the writer holds.
        tally: counts, for the report.
        listen: called with a :class:`Progress` a few times a second.

    """

    def __init__(
        self,
        plan: Plan,
        pool: Pool,
        intake: Intake,
        reader: Reader,
        tally: Tally,
        listen: Callable[[Progress], None],
    ) -> None:
        self._pool = pool
        self._writer = CacheWriter(pool)
        self._intake = intake
        self._tally = tally
        self._reader = reader
        self._listen = listen
        n_devices = len(plan.devices)
        n_workers = {"encode": n_devices, "count": 1}
        self._ledgers = {p.table: Ledger(p, reader) for p in plan.products}
        self._backlogs = {p.table: Backlog(p, n_workers[p.role]) for p in plan.products}
        self._together: tuple[str, ...] = ()
        if plan.is_together and plan.tagger is not None:
            self._together = (plan.encoder.table, plan.tagger.table)
            self._backlogs[TOGETHER] = Backlog(Product("encode", TOGETHER, 0), n_devices)
        self._known = KnownDocuments(reader)
        self._vectors = self._ledgers[plan.encoder.table]
        self._open: Counter[str] = Counter()
        self._windows = {"prepare": 4, "encode": 2 * n_devices + 1, "count": 3}
        self._last_tick = 0.0
        self._is_stopping = False

    def stop_after_current(self) -> None:
        """Take in nothing more; what workers hold is finished and committed. Safe in a handler."""
        self._is_stopping = True

    def finish(self) -> RunReport:
        """Run to the end and leave the record of the run in the file."""
        while self._feed():
            self._take_answers()
            self._tick()
        report = self._tally.report(self._vectors, self._ledgers.values(), self._is_stopping)
        self._write_record(report)
        self._tick(is_last=True)
        return report

    # ---- handing out

    def _feed(self) -> bool:
        """Give the workers what they can take; False when all is done and acknowledged."""
        if not self._is_stopping:
            self._take_in()
            self._hand_out()
        return self._open.total() + self._writer.n_open > 0

    def _take_in(self) -> None:
        while (
            not self._intake.is_exhausted
            and self._open["prepare"] < self._windows["prepare"]
            and sum(backlog.n_bytes for backlog in self._backlogs.values()) < _BACKLOG_BYTES
        ):
            chunk = self._intake.next_chunk()
            if chunk is None:
                break
            self._tally.quarantined.extend(chunk.quarantined)
            if chunk.known:
                self._recognise(chunk)
            if chunk.task is not None:
                self._submit("prepare", chunk.task)
            self._tick()

    def _hand_out(self) -> None:
        is_last = self._intake.is_exhausted and not self._open["prepare"]
        for backlog in self._backlogs.values():
            role = backlog.product.role
            while self._open[role] < self._windows[role]:
                task = backlog.next_task(is_last=is_last)
                if task is None:
                    break
                self._submit(role, task)

    def _recognise(self, chunk: Chunk) -> None:
        """Documents of a former run: nothing is read, and only what is missing is computed."""
        found = self._known.find_units(chunk)
        if found is None:
            self._submit("prepare", PrepareTask(tuple(chunk.known)))
            return
        self._tally.add_unchanged(len(chunk.known), found.n_units)
        self._queue(found)
        moved = self._intake.moved(chunk)
        if moved is not None:
            self._write({tables.SOURCES: moved})

    # ---- taking answers

    def _take_answers(self) -> None:
        try:
            outcomes = self._pool.completed(timeout=_TICK_S)
        except PoolBroken as error:
            raise_original(error)
        for outcome in outcomes:
            self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        if outcome.role == WRITE:
            self._writer.take(outcome)
            return
        self._open[outcome.role] -= 1
        take = self._take_prepared if outcome.role == "prepare" else self._take_features
        for part in outcome.parts:
            take(part)

    def _take_prepared(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            task = cast("PrepareTask", outcome.payload)
            self._tally.add_lost_documents(task.sources, outcome.error)
            return
        batch = cast("PreparedBatch", outcome.value)
        self._tally.add_prepared(batch)
        if batch.rest is not None:
            self._submit("prepare", batch.rest)
        if batch.rows:
            self._write(batch.rows)
        self._queue(batch.units)

    def _queue(self, units: Units | KnownUnits) -> None:
        """Put what lacks a row into the backlogs; what lacks two of one trunk, into theirs."""
        missing = {
            table: ledger.find_missing(self._reader, units.keys, units.levels)
            for table, ledger in self._ledgers.items()
        }
        if self._together:
            first, second = self._together
            both = np.intersect1d(missing[first], missing[second], assume_unique=True)
            for table in self._together:
                missing[table] = np.setdiff1d(missing[table], both, assume_unique=True)
            missing[TOGETHER] = both
        for table, rows in missing.items():
            if len(rows):
                self._backlogs[table].add(units.take(rows))

    def _take_features(self, outcome: Outcome) -> None:
        task = cast("FeatureTask", outcome.payload)
        tables = self._together if task.table == TOGETHER else (task.table,)
        self._backlogs[task.table].close_task(task)
        if outcome.error is not None:
            if isinstance(outcome.error.__cause__, CheckpointError):
                raise outcome.error.__cause__
            for table in tables:
                self._ledgers[table].give_up(task.units.keys, _first_line(outcome.error))
            return
        batch = cast("FeatureBatch", outcome.value)
        self._backlogs[task.table].learn(task, outcome.seconds)
        for part in (batch, *batch.also):
            self._take_rows(part)

    def _take_rows(self, batch: FeatureBatch) -> None:
        ledger = self._ledgers[batch.table]
        self._tally.add_encoded(batch)
        if batch.stored is not None and len(batch.stored):
            ledger.acknowledge(batch.stored)
        for key, reason in batch.failed:
            ledger.give_up(np.frombuffer(key, np.uint8), reason)
        if batch.terms is not None:
            self._write({}, batch.terms, (ledger, np.array(batch.terms.keys)))
        elif batch.rows:
            keys = np.array(batch.rows["keys"], np.uint8)
            self._write({batch.table: batch.rows}, None, (ledger, keys))

    # ---- the edges

    def _submit(self, role: str, payload: object) -> None:
        self._open[role] += 1
        self._pool.submit(role, payload)

    def _write(
        self,
        rows: Mapping[str, Rows],
        terms: LocalTerms | None = None,
        acknowledge: tuple[Ledger, NDArray[np.uint8]] | None = None,
    ) -> None:
        def then() -> None:
            # The reader must see the rows before the ledger forgets that they were under way.
            self._reader.refresh()
            if acknowledge is not None:
                ledger, keys = acknowledge
                ledger.acknowledge(keys)

        self._writer.append(rows, terms, then=then)

    def _write_record(self, report: RunReport) -> None:
        record = Texts.from_strings([json.dumps(report.as_dict(), ensure_ascii=False)])
        self._write({tables.RUNS: {"record": record.ragged}})
        self._writer.settle()

    def _tick(self, *, is_last: bool = False) -> None:
        now = monotonic()
        if is_last or now - self._last_tick >= _TICK_S:
            self._last_tick = now
            ledgers = self._ledgers.values()
            self._listen(self._tally.progress(self._vectors, ledgers, self._seconds_left()))

    def _seconds_left(self) -> float | None:
        """Of the role that has most to do; unknown while documents are still being read."""
        if not self._intake.is_exhausted or self._open["prepare"]:
            return None
        by_role: defaultdict[str, float] = defaultdict(float)
        for backlog in self._backlogs.values():
            seconds = backlog.seconds_left()
            if seconds is None:
                return None
            by_role[backlog.product.role] += seconds
        return max(by_role.values(), default=0.0)


def _first_line(error: PoolError) -> str:
    return error.message.splitlines()[0] if error.message else type(error).__name__
