"""Ray: builds a folder cache on every node of a cluster.

::

    report = build("contracts/", "corpus.fp", shards=1024, workers=64, gpus=1)

Guarantees, besides those of the jobs (`featpipe.build.jobs`), which keep all state in files:

- The death of a worker, a node or the driver loses no finished text; the same call again does the
  rest. A frozen node's jobs go to others.
- The driver holds some hundred bytes a job, the object store nothing.
- Of two builds of one folder on a cluster, the second is refused by the folder's name.

A seat is an actor (:mod:`featpipe.integrations.ray_seat`). Calls are never retried by Ray itself:
resubmitted tasks wait for a frozen node for minutes.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from featpipe.errors import DictionaryLocked, MissingExtra, UsageError

try:
    import ray
    from ray.exceptions import RayActorError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    raise MissingExtra("this needs ray", hint="pip install 'featpipe[ray]'") from error

if TYPE_CHECKING:
    from collections.abc import Iterator


log = logging.getLogger(__name__)

#: For the first answer of a cluster's head.
_KNOCK_S = 10.0
_NAMESPACE = "featpipe"
#: How often seats that wait are looked at again.
_TICK_S = 1.0
#: A lease that a killed driver had is gone within seconds.
_LEASE_WAIT_S = 15.0


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
        return str(ray.get(ray.get_actor(name, _NAMESPACE).owner.remote(), timeout=5))
    except (ValueError, RayActorError, ray.exceptions.GetTimeoutError):
        return "another driver"
