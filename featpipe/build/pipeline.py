"""The pipeline: documents in, one cache file out.

Guarantees: works in any program without a ``__main__`` guard; a second run over the same documents
encodes nothing and starts no model; killed at any point, the next run computes only the rest.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.build.departures import refuse_empty_roots
from featpipe.build.dry_run import DryRun, open_or_empty
from featpipe.build.intake import Intake
from featpipe.build.other_caches import OtherCaches
from featpipe.build.plan import Plan, make_plan, note_coarse
from featpipe.build.progress import RunRecord
from featpipe.build.roles import count_role, encode_role, prepare_role, read_limits
from featpipe.build.run import CoarsePrecision, Run
from featpipe.build.stored_units import StoredUnits
from featpipe.cache.write import CacheWriter, write_role
from featpipe.documents import Source
from featpipe.documents.find import Found, at_absolute_paths, search
from featpipe.encoders.builtin import find_builtin_model, is_builtin
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.errors import DictionaryLocked
from featpipe.pool import Pool, Role
from featpipe.pool.devices import check_devices, default_devices
from featpipe.settings import BuildSettings
from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from featpipe.build.dry_run import DryRunReport
    from featpipe.build.intake import UnitIntake
    from featpipe.build.progress import Progress
    from featpipe.report import RunReport

    Documents = str | Path | Iterable[str | Path | Source]

#: With more documents than this, a note recommends a larger model than the built-in one.
_MANY = 10_000

#: Passed as ``ner`` to find no entities.
NO_ENTITIES = "none"


class Pipeline:
    """Builds a cache from documents.

    ::

        with Pipeline(cache="c.h5") as pipeline:
            report = pipeline.build("contracts/")

    Args:
        cache: the HDF5 file; made when it does not exist.
        model: encoder, by local folder or hub name; by default the built-in one.
        ner: token-classification model for entities; by default the built-in one,
            :data:`NO_ENTITIES` for none.
        devices: one worker per entry, ``"cpu"`` or ``"cuda:0"``; a repeated name is two workers.
            By default every visible card, else the CPU.
        encoder: how texts become vectors: pooling, precision, stored dtype ...
        tagger: how entities are found.
        settings: levels, limits and deadlines.
        also: further caches, files or folders, whose rows are copied instead of computed.

    Raises:
        CheckpointError: a model folder that cannot be used.
        UsageError: settings that the checkpoint cannot follow.
        UnknownDevice: a device this machine does not have.
        UnreadableDictionary, NewerDictionary: the cache exists and cannot be extended.

    """

    def __init__(  # noqa: PLR0913  # the one public door: each argument is one decision of the user
        self,
        cache: str | Path,
        model: str | Path | None = None,
        ner: str | Path | None = None,
        *,
        devices: Sequence[str] | None = None,
        encoder: EncoderSettings | None = None,
        tagger: TaggerSettings | None = None,
        settings: BuildSettings | None = None,
        also: Sequence[str | Path] = (),
    ) -> None:
        self._cache = Path(cache)
        self._also = also
        self._settings = settings or BuildSettings()
        self._is_builtin = is_builtin(model)
        self._make_plan = partial(
            make_plan,
            find_builtin_model() if model is None else model,
            ner=_entity_model(ner),
            settings=self._settings,
            devices=check_devices(devices) if devices else default_devices(),
        )
        self._asked = encoder or EncoderSettings(), tagger or TaggerSettings()
        self._held = _find_held(self._cache)
        self._plan = self._plan_with(*self._asked)
        self._pool: Pool | None = None
        self._run: Run | None = None
        self._turns = deque([None])
        """Taken by the one run at a time. No lock: an idle pipeline can be pickled."""

    def build(
        self,
        documents: Documents,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        sync: bool = False,
        listen: Callable[[Progress], None] | None = None,
    ) -> RunReport:
        """Make sure that every unit of these documents has its features in the cache.

        Args:
            documents: files and folders (read to the bottom, with the members of zip archives and
                the records of JSONL files of texts), ``@FILE`` for a list of them, or sources
                such as :func:`featpipe.documents.of_texts` makes of texts at hand.
            include: glob patterns; a file inside a folder must match one (all do when empty).
            exclude: glob patterns of files inside folders to leave out.
            sync: documents that are gone from these folders and files leave the cache (see
                `featpipe.build.departures`).
            listen: called with a :class:`Progress` a few times a second, in this thread.

        Raises:
            MissingDocuments: a path that does not exist, or nothing to read.
            UsageError: with ``sync``, a folder that holds no document while the cache has some
                from there.
            DictionaryLocked: another process, or another build of this pipeline, is writing this
                cache.
            WriteFailed: disk full, read-only ...; what was acknowledged stays.
            PoolBroken: workers cannot start.

        """
        found = self._find(documents, include, exclude)
        n_documents = len(found.sources)

        def intake(reader: Reader) -> Intake:
            return self._make_intake(found, reader, sync=sync)

        return self._build(intake, n_documents, found.notes, listen or ignore)

    def encode_stored(self, *, listen: Callable[[Progress], None] | None = None) -> RunReport:
        """Give every text that the cache holds its features; no document is read.

        With another model than before, the cache gains a space of vectors.

        Raises:
            UnreadableDictionary: there is no such cache.
            DictionaryLocked, WriteFailed, PoolBroken: as :meth:`build`.

        """
        Reader(self._cache).close()
        return self._build(StoredUnits, 0, (), listen or ignore)

    def _build(
        self,
        intake: Callable[[Reader], UnitIntake],
        n_documents: int,
        notes: Sequence[str],
        listen: Callable[[Progress], None],
    ) -> RunReport:
        with self._taking_turn():
            self._follow_cache()
            try:
                return self._run_once(intake, self._start_record(n_documents, notes), listen)
            except CoarsePrecision as coarse:
                # No such vector was written. What was written, of documents, is not computed again.
                self._plan = self._plan_exact(coarse.least_cosine)
                return self._run_once(intake, self._start_record(n_documents, notes), listen)

    @contextmanager
    def _taking_turn(self) -> Iterator[None]:
        """Builds and their dry runs share workers and outcomes, so that one runs at a time."""
        try:
            self._turns.pop()
        except IndexError:
            raise DictionaryLocked(
                f"{self._cache} is being written by another build of this pipeline",
                hint="begin the next when it has ended, or give one build all documents",
            ) from None
        try:
            yield
        finally:
            self._turns.append(None)

    def _follow_cache(self) -> None:
        """Own the cache, and go on in the tables that others have filled since it was planned.

        Until the lock is held they may fill others: two spaces of the same vectors were computed.
        """
        while True:
            with self._open_pool() as pool:
                _own_cache(pool)
            held = _find_held(self._cache)
            if held == self._held:
                return
            self._held, before = held, self._plan
            plan = self._plan_with(*self._asked)
            if plan.checkpoints.keys() != before.checkpoints.keys():
                self.close()  # the workers are of the other plan; the lock is taken again
                self._plan = plan

    def _plan_exact(self, cosine: float) -> Plan:
        """The plan in float32, for a model that rounds too much in the precision of this one."""
        encoder, tagger = self._asked
        if self._plan.is_together:
            tagger = replace(tagger, precision="exact")
        plan = self._plan_with(replace(encoder, precision="exact"), tagger)
        note = f"vectors in precision exact: {note_coarse(cosine)}"
        return replace(plan, notes=(*plan.notes, note))

    def _plan_with(self, encoder: EncoderSettings, tagger: TaggerSettings) -> Plan:
        return self._make_plan(encoder=encoder, tagger=tagger, held=self._held)

    def _start_record(self, n_documents: int, notes: Sequence[str]) -> RunRecord:
        plan = self._plan
        record = RunRecord(new_run_id(), n_documents, plan.levels, plan.checkpoints)
        record.notes.extend(notes)
        record.notes.extend(self._notes(n_documents))
        return record

    def _run_once(
        self,
        intake: Callable[[Reader], UnitIntake],
        record: RunRecord,
        listen: Callable[[Progress], None],
    ) -> RunReport:
        with self._open_pool() as pool:
            writer = _own_cache(pool)
            with Reader(self._cache) as reader, OtherCaches(self._also) as others:
                units = intake(reader)
                self._run = Run(self._plan, writer, units, reader, record, listen, others=others)
                try:
                    return self._run.finish()
                finally:
                    self._run = None

    def dry_run(
        self,
        documents: Documents,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        sync: bool = False,
    ) -> DryRunReport:
        """Count exactly what ``build`` would do, with the same arguments; nothing is written.

        Raises:
            MissingDocuments, UsageError, PoolBroken: as :meth:`build`.
            DictionaryLocked: a build of this pipeline is running.

        """
        found = self._find(documents, include, exclude)
        with self._taking_turn(), open_or_empty(self._cache) as reader, self._open_pool() as pool:
            intake = self._make_intake(found, reader, sync=sync)
            run = DryRun(self._plan, pool, intake, reader)
            report = run.finish(self._cache, len(found.sources))
            departed = list(intake.find_departed().values())
            notes = (*found.notes, *(f"{id_} would leave the cache" for id_ in departed))
            return replace(report, notes=notes)

    @property
    def is_running(self) -> bool:
        """Whether there is work in flight that :meth:`stop_after_current` would wait for."""
        return self._run is not None

    def stop_after_current(self) -> bool:
        """Let the running ``build`` finish what is in flight, commit and return its report.

        Safe to call from a signal handler or another thread. Returns whether a build is running.
        """
        if self._run is None:
            return False
        self._run.stop_after_current()
        return True

    def close(self) -> None:
        """Stop the workers; the cache is left trimmed."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def __repr__(self) -> str:
        devices = ", ".join(self._plan.devices)
        return (
            f"<Pipeline {self._cache}: {self._plan.encoder.table.partition('/')[2]} on {devices}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _find(self, documents: Documents, include: Sequence[str], exclude: Sequence[str]) -> Found:
        """The sources by absolute path, as the cache stores them; the cache itself is left out."""
        named = [documents] if isinstance(documents, str | Path) else list(documents)
        given = [source for source in named if isinstance(source, Source)]
        paths = [path for path in named if not isinstance(path, Source)]
        found = Found([])
        if paths or not given:
            found = search(paths, include, exclude, expand=True, own=self._cache)
        return replace(found, sources=list(at_absolute_paths([*given, *found.sources])))

    def _notes(self, n_documents: int) -> Iterator[str]:
        yield from self._plan.notes
        if self._is_builtin and n_documents > _MANY:
            yield (
                f"{n_documents} documents by the small built-in model; a full-size encoder "
                "(--model) gives better vectors"
            )

    def _make_intake(self, found: Found, reader: Reader, *, sync: bool) -> Intake:
        if sync:
            refuse_empty_roots(reader, found.sources, found.roots)
        roots = found.roots if sync else None
        limits = read_limits(self._settings)
        return Intake(found.sources, self._plan.preparation, reader, limits, roots=roots)

    @contextmanager
    def _open_pool(self) -> Iterator[Pool]:
        """The workers, which are kept for the next run where this one ends well.

        Of one that does not, tasks are open: their outcomes would come out in the next run.
        """
        if self._pool is None:
            self._pool = Pool(_roles(self._cache, self._plan, self._settings))
        try:
            yield self._pool
        except BaseException:
            self.close()
            raise


def _own_cache(pool: Pool) -> CacheWriter:
    """Have the writer make the file, if need be, and hold its lock.

    This comes before any look-up: the rows of other runs until now are seen, and from here on
    no other run can write, so that no text is encoded by both.
    """
    writer = CacheWriter(pool)
    writer.append({})
    writer.settle()
    return writer


def _roles(cache: Path, plan: Plan, settings: BuildSettings) -> list[Role]:
    """The four roles; their children start when there is work for them."""
    return [
        prepare_role(plan.preparation, settings, plan.devices),
        encode_role(plan.encoder, plan.tagger, plan.devices, settings),
        count_role(settings),
        write_role(cache, plan.specs, plan.terms, wait_s=settings.lock_wait_s),
    ]


def _entity_model(ner: str | Path | None) -> str | Path | None:
    """The model that finds entities; None for none."""
    if ner is None:
        return find_builtin_model()
    return None if ner == NO_ENTITIES else ner


def _find_held(cache: Path) -> frozenset[str]:
    """Tables of the cache that hold rows.

    Raises:
        UnreadableDictionary, NewerDictionary: the file cannot be extended.

    """
    if not cache.exists():
        return frozenset()
    with Reader(cache) as reader:
        return frozenset(name for name in reader.tables() if reader.table(name).n_rows)


def new_run_id() -> str:
    """Begins with the time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z-{getpid()}"


def ignore(_: Progress) -> None:
    """Listen to nothing."""
