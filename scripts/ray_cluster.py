"""A Ray cluster on this machine: a head without cores, and nodes of one core each.

For tests and benchmarks: seats and nodes can be killed and frozen.
"""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20


class Nodes:
    """The nodes; they are named by numbers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[int, object] = {}

    @property
    def alive(self) -> list[int]:
        """Nodes that were not killed."""
        return sorted(self._nodes)

    def add(self) -> int:
        """Another node joins; its number."""
        number = max(self._nodes, default=-1) + 1
        node = self._cluster.add_node(num_cpus=1, object_store_memory=_STORE_BYTES)
        self._nodes[number] = node
        return number

    def kill(self, number: int) -> None:
        """The raylet by SIGKILL: its workers end by themselves."""
        self._cluster.remove_node(self._nodes.pop(number), allow_graceful=False)

    def seat(self, number: int) -> psutil.Process | None:
        """The process of the seat on a node; None where there is none at present."""
        with suppress(psutil.NoSuchProcess):
            for child in self._raylet(number).children():
                if child.cmdline() and "FeatpipeSeat" in child.cmdline()[0]:
                    return child
        return None

    def of_process(self, pid: int) -> int:
        """The node that a worker runs on."""
        return next(n for n in self._nodes if psutil.Process(pid).ppid() == self._raylet(n).pid)

    @contextmanager
    def frozen(self, number: int) -> Iterator[None]:
        """Within this, no process of a node does anything."""
        raylet = self._raylet(number)
        stopped = [raylet, *raylet.children(recursive=True)]
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in stopped:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)

    def _raylet(self, number: int) -> psutil.Process:
        (started,) = self._nodes[number].all_processes["raylet"]
        return psutil.Process(started.process.pid)


@contextmanager
def running_cluster(n_nodes: int = 2, *, paths: Sequence[Path] = ()) -> Iterator[Nodes]:
    """A cluster; it takes 10 seconds to start. Programs find it by RAY_ADDRESS.

    ``paths``: where its processes find modules, besides this project.
    """
    from ray.cluster_utils import Cluster

    before = os.environ.copy()
    here = Path(__file__).resolve().parent
    every = [*map(str, paths), str(here.parent), *filter(None, [before.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(every)
    with tempfile.TemporaryDirectory(prefix="fp") as folder:
        os.environ["RAY_TMPDIR"] = folder
        os.environ["TMPDIR"] = folder  # where seats divide the cores among themselves
        cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": _STORE_BYTES,
                "include_dashboard": False,
            },
        )
        os.environ["RAY_ADDRESS"] = cluster.address
        try:
            nodes = Nodes(cluster)
            for _ in range(n_nodes):
                nodes.add()
            yield nodes
        finally:
            cluster.shutdown()
            os.environ.clear()
            os.environ.update(before)
