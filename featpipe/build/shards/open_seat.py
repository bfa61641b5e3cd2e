"""A seat at work: its workers, kept from job to job, and the way to stop it.

Loading a model takes longer than encoding a small shard, so pools are kept by what their workers
were started with, and the file that is written is named in each task.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Self

from featpipe.build.roles import count_role, encode_role, prepare_role
from featpipe.cache.write import CacheWriter
from featpipe.cache.write_files import write_files_role
from featpipe.pool import Pool
from featpipe.pool.devices import check_devices, default_devices, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from pathlib import Path

    from featpipe.build.plan import Plan
    from featpipe.build.progress import Progress
    from featpipe.build.run import Run
    from featpipe.build.shards.job import Seat
    from featpipe.pool import Role
    from featpipe.settings import BuildSettings

#: What a writer of a killed program may take to end with it, in seconds.
_ORPHAN_S = 60.0


class OpenSeat:
    """The workers of a seat.

    Args:
        seat: what they may use.
        listen: called with the `Progress` of the job under way, a few times a second.
        clock: of the seconds between two publications of a long job.

    Raises:
        UnknownDevice: a device this machine does not have.

    """

    def __init__(
        self,
        seat: Seat,
        listen: Callable[[Progress], None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.seat = seat
        self.devices = check_devices(seat.devices) if seat.devices else default_devices()
        self.n_cores = seat.threads or usable_cores()
        self.listen = listen or _ignore
        self.clock = clock
        self.is_stopping = False
        self._run: Run | None = None
        self._pools: dict[Hashable, Pool] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers."""
        while self._pools:
            self._pools.popitem()[1].close()

    # ---- stopping

    def stop_after_current(self) -> bool:
        """Have the job under way finish what is in flight, commit and publish it.

        Safe to call from a signal handler or another thread. No further job does anything.
        """
        self.is_stopping = True
        run = self._run
        if run is not None:
            run.stop_after_current()
        return True

    @contextmanager
    def running(self, run: Run) -> Iterator[None]:
        """While this is open, `stop_after_current` stops the run."""
        self._run = run
        if self.is_stopping:
            run.stop_after_current()
        try:
            yield
        finally:
            self._run = None

    # ---- workers

    def reading_pool(self, plan: Plan, settings: BuildSettings) -> Pool:
        """Workers that read documents, one per core, and a writer."""
        n = self.n_cores
        memory = self.seat.memory // n if self.seat.memory else settings.max_worker_memory_bytes
        mine = replace(settings, n_prepare_workers=n, max_worker_memory_bytes=memory)

        def roles() -> list[Role]:
            writer = write_files_role(plan.specs, wait_s=_ORPHAN_S)
            return [prepare_role(plan.preparation, mine), writer]

        return self._pool(("prepare", plan.preparation, mine), roles)

    def encoding_pool(self, plan: Plan, settings: BuildSettings) -> Pool:
        """One worker per device, one that counts terms, and a writer."""
        self._close_readers()
        n_cpu = sum(device == "cpu" for device in plan.devices)
        threads = max(1, self.n_cores // max(1, n_cpu))

        def roles() -> list[Role]:
            return [
                encode_role(plan.encoder, plan.tagger, plan.devices, settings, threads=threads),
                count_role(settings),
                write_files_role(plan.specs, plan.terms, wait_s=_ORPHAN_S),
            ]

        return self._pool(("encode", plan.encoder, plan.tagger, settings), roles)

    @contextmanager
    def writing(self, pool: Pool, work: Path) -> Iterator[CacheWriter]:
        """The writer of a work file, which lets go of it at the end; an error closes the pool."""
        writer = CacheWriter(pool, work)
        try:
            writer.append({})
            writer.settle()
            yield writer
            writer.release()
        except BaseException:
            # Tasks of this job would end in the next, which takes outcomes from the same pool.
            self._drop(pool)
            raise

    def _drop(self, pool: Pool) -> None:
        """Close a pool that is of no further use, such as one whose writer failed."""
        for key in [key for key, kept in self._pools.items() if kept is pool]:
            del self._pools[key]
        pool.close()

    def _pool(self, key: Hashable, roles: Callable[[], list[Role]]) -> Pool:
        if key not in self._pools:
            self._pools[key] = Pool(roles())
        return self._pools[key]

    def _close_readers(self) -> None:
        for key in [key for key in self._pools if isinstance(key, tuple) and key[0] == "prepare"]:
            self._pools.pop(key).close()


def _ignore(_: Progress) -> None:
    pass
