"""Ray: builds a folder cache on the machines of a cluster.

::

    report = build("contracts/", "corpus.fp", shards=1024, workers=64, gpus=1)

Guarantees, besides those of the jobs (`featpipe.build.jobs`), which keep all state in files:

- The death of a worker, of a node, or of the driver loses no finished text; the same call again
  does the rest. The jobs of a node that stands still go to others.
- Documents and checkpoint are paths (or the checkpoint a name) that every node knows.
- Of two builds of one folder on a cluster, the second is refused by the folder's name.

What runs on the nodes is `featpipe.integrations.ray_seat`; who gets which job, and what is done
about lost, frozen and failing seats, is `featpipe.integrations.ray_engine`.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Seat, SeatJobs
from featpipe.errors import DictionaryLocked, MissingExtra, UsageError

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayActorError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from featpipe.integrations.ray_engine import RayEngine
except ImportError as error:
    raise MissingExtra("this needs ray", hint="pip install 'featpipe[ray]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.build.jobs import Job, JobReport
    from featpipe.build.progress import Progress
    from featpipe.build.shards.folder_plan import Models
    from featpipe.report import RunReport
    from featpipe.settings import BuildSettings

log = logging.getLogger(__name__)

_NAMESPACE = "featpipe"
#: For the first answer of a cluster's head.
_KNOCK_S = 10.0
#: How long a lease is asked for: that of a killed driver is gone within seconds.
_LEASE_WAIT_S = 15.0
#: For the name of who holds it: on a busy machine its process may still be starting.
_OWNER_S = 30.0
_TICK_S = 1.0


def build(  # noqa: PLR0913  # the one public door: each argument is one decision of the user
    source: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    shards: int | None = None,
    workers: int | None = None,
    gpus: int = 0,
    cpus: int = 1,
    scratch: str | None = None,
    address: str | None = None,
    models: Models | None = None,
    settings: BuildSettings | None = None,
    listen: Callable[[Progress], None] | None = None,
) -> RunReport:
    """Build a folder cache on a cluster: read on seats without cards, encode on seats with them.

    Args:
        source: files and folders, as of `featpipe.Pipeline.build`.
        folder: the cache: a path that every node knows, or the URL of an object store.
        shards: of a new folder, a power of two; 64 by default.
        workers: the most seats; those beyond what the cluster has wait for nodes to join. By
            default as many as it has room for.
        gpus: cards of each seat that encodes.
        cpus: cores of each seat.
        scratch: a local folder of the nodes for files that are being written, by default the
            temporary one; ``none``: files grow in the cache, and a loss costs a batch only. That
            needs a shared file system with locks, and a frozen node keeps its lock.
        address: of the cluster; by default ``RAY_ADDRESS``, else the one this machine belongs to.
            Inside a running Ray job, that job's.
        models: encoder and tagger; by default the folder's own.
        settings: levels, limits and deadlines.
        listen: called with the progress, as jobs end.

    Raises:
        UsageError: no cluster; documents or settings as `FolderPipeline.build`.
        DictionaryLocked: another driver builds this folder.
        PoolBroken: the cluster had no such seat for ten minutes.
        FeatpipeError: a job failed on three nodes, or on all; the others have ended.

    """
    devices = tuple(f"cuda:{number}" for number in range(gpus)) or ("cpu",) * cpus
    pipeline = FolderPipeline(
        folder,
        models,
        settings=settings,
        n_shards=shards,
        seat=Seat(devices, cpus, scratch=None if scratch == "none" else scratch or gettempdir()),
        on=lambda folder, **_: ClusterEngine(folder, address=address or "", n_seats=workers),
    )
    documents = [source] if isinstance(source, str | os.PathLike) else list(source)
    return pipeline.build(documents, listen=listen)


class ClusterEngine:
    """The engine ``ray`` of the command line: connects, and holds the folder's name, while open.

    Args:
        folder: the cache.
        listen: not called; progress is what reports of jobs say.
        address: as of :func:`connected`.
        n_seats: see `RayEngine`.

    """

    def __init__(
        self,
        folder: str,
        *,
        listen: Callable[[Progress], None] | None = None,  # noqa: ARG002  # as of every engine
        address: str = "",
        n_seats: int | None = None,
    ) -> None:
        self._folder, self._address = folder, address
        self._engine = RayEngine(_JobsOn(folder), workers=n_seats)
        self._open = ExitStack()
        self._is_open = False

    @property
    def notes(self) -> list[str]:
        """As of `RayEngine`."""
        return self._engine.notes

    def run(self, jobs: Iterable[Job], seat: Seat) -> Iterator[JobReport]:
        """As `RayEngine.run`. Raises UsageError, DictionaryLocked."""
        if not self._is_open:
            self._open.enter_context(connected(self._address))
            self._open.enter_context(leased(self._folder))
            self._is_open = True
        yield from self._engine.run(jobs, seat)

    def stop_after_current(self) -> bool:
        """As `RayEngine.stop_after_current`."""
        return self._engine.stop_after_current()

    def close(self) -> None:
        """Give the folder's name back, and leave the cluster."""
        self._is_open = False
        self._open.close()


class _JobsOn:
    """Makes, on a seat, what does the jobs of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, seat: Seat) -> SeatJobs:
        return SeatJobs(self._folder, seat)


@contextmanager
def connected(address: str | None = None) -> Iterator[None]:
    """Within this, the process is connected to a cluster; inside a running job, to that job's.

    Args:
        address: ``host:port`` of the cluster's head, or ``ray://host:10001``; by default
            ``RAY_ADDRESS``, else the cluster that this machine belongs to.

    Raises:
        UsageError: there is no cluster.

    """
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "auto"
    try:
        _knock(address)
        with _keeping_handler():
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError) as error:
        words = str(error).splitlines()[0]
        raise UsageError(
            f"no Ray cluster can be reached at {address}: {words}",
            hint="ray start --head, then set RAY_ADDRESS, or name it: --on ray://HOST:10001",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _keeping_handler() -> Iterator[None]:
    """Ray's own handler of SIGTERM would end a build at once that is to end in two steps."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread() and before is not None:
        signal.signal(signal.SIGTERM, before)


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself tries for four minutes, and exits then."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()


class _Lease:
    """An actor whose name says that this folder is being built; it ends with its driver."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def owner(self) -> str:
        return self._owner


@contextmanager
def leased(folder: str) -> Iterator[None]:
    """Hold the name of a folder on this cluster.

    Raises:
        DictionaryLocked: another driver holds it.

    """
    name = f"featpipe:{folder}"
    owner = f"process {os.getpid()} on {socket.gethostname()}"
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    options: dict[str, Any] = {  # Any: of Ray's own types
        "name": name, "namespace": _NAMESPACE, "num_cpus": 0, "max_restarts": -1,
        "scheduling_strategy": here,
    }  # fmt: skip
    until = time.monotonic() + _LEASE_WAIT_S
    while True:
        try:
            lease = ray.remote(_Lease).options(**options).remote(owner)
            break
        except ValueError as error:  # the name is taken
            if time.monotonic() > until:
                raise DictionaryLocked(
                    f"{folder} is being built on this cluster by {_owner_of(name)}",
                    hint="wait for it, or stop it",
                ) from error
            time.sleep(_TICK_S)
    try:
        yield
    finally:
        ray.kill(lease)


def _owner_of(name: str) -> str:
    try:
        return str(ray.get(ray.get_actor(name, _NAMESPACE).owner.remote(), timeout=_OWNER_S))
    except (ValueError, RayActorError, GetTimeoutError):
        return "another driver"
