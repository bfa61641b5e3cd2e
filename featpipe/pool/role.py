"""A role: one kind of child, named by import path so that only names and data are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A role is given up when this many of its workers in a row die before they are ready.
START_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Role:
    """One kind of child and how many of them, one per entry of ``devices``.

    In the child: ``instance = target(**arguments)``; ``device``, ``threads`` and ``worker_name``
    are added when the target's signature has a parameter of that name. Each task is
    ``instance.run(payload)``; ``instance.close()``, if there is one, is called at the stop.
    Arrays in a payload arrive read-only: they may be shared with other processes.

    Raises:
        UsageError: a field that cannot work; nothing was started.
    """

    name: str
    target: str
    """``package.module:Class``, or any attribute path that gives a callable."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cpu",)
    threads: int | None = None
    """Threads of each worker; by default the usable cores shared out among the cpu workers."""
    deadline_s: float | None = None
    """A task that runs longer is interrupted by killing its worker."""
    start_deadline_s: float = 300.0
    stopped_deadline_s: float = 15.0
    """A worker that is stopped (SIGSTOP) while it has a task or starts is named in a warning, and
    after so long replaced as if it had died; also without any other deadline."""
    max_memory_bytes: int | None = None
    """Private memory of a worker; a task that wants more fails with out of memory."""
    prefetch: int = 2
    """Tasks a worker may hold at a time, the running one included. Where it is not 1, and the last
    tasks took a fraction of a millisecond each, a worker holds up to a millisecond's work."""
    is_lazy: bool = True
    """Children start when there is a task for them; otherwise with the pool."""
    bisect: str | None = None
    """How to halve a payload that kills its worker: ``package.module:function`` giving two
    payloads (or None when it cannot be halved), such as `halve_sequence` below, or the name of a
    method of the payload. It is called in a worker."""
    max_losses: int = 3
    """A task that cannot be halved fails after so many lost workers (after one time-out). Those
    killed or stopped from outside do not count where other tasks suffer the same."""
    preload: tuple[str, ...] = ()
    """Modules that a fork server imports once, ``package.module`` or ``package.module:name``.
    Workers on ``cpu`` are then forked from it, ready in a fraction of the time and sharing its
    memory. FEATPIPE_START=fresh in the environment switches fork servers off."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the children, over everything the pool sets."""
    then: str | None = None
    """Name of the role that gets the value of every task as its payload: a writer, for example. The
    value goes there without a way through the caller, unpickled by the receiver alone. The outcome
    is that of the last role, with the tag and index of the task that was submitted; where an
    earlier role fails, it is that one's."""

    def __post_init__(self) -> None:
        if not self.name or not self.devices:
            raise UsageError(f"a role needs a name and at least one device: {self.name!r}")
        _refuse_bad_path(self.name, "target", self.target)
        if self.bisect is not None and ":" in self.bisect:
            _refuse_bad_path(self.name, "bisect", self.bisect)
        if self.prefetch < 1 or self.max_losses < 1:
            raise UsageError(f"role {self.name}: prefetch and max_losses start at 1")
        if self.stopped_deadline_s <= 0:
            raise UsageError(f"role {self.name}: stopped_deadline_s must be above 0")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"role {self.name}: threads start at 1, not {self.threads}")

    @property
    def window(self) -> int:
        """Tasks worth having unfinished at a time: all workers busy, and as many again ready.

        More of them where tasks are quick: see `prefetch`.
        """
        return 2 * self.prefetch * len(self.devices)


def _refuse_bad_path(role: str, what: str, path: str) -> None:
    module, colon, attribute = path.partition(":")
    if not (module and colon and attribute):
        raise UsageError(
            f"role {role}: {what} {path!r} is not an import path", hint="package.module:Name"
        )
    if module == "__main__":
        raise UsageError(
            f"role {role}: {what} {path!r} is in the program's main module,"
            " which workers never import",
            hint="move it to a module of its own and name that",
        )


#: For ``Role(bisect=HALVE_SEQUENCE)``, where a payload is a sequence.
HALVE_SEQUENCE = "featpipe.pool.role:halve_sequence"


def halve_sequence(payload: Sequence[object]) -> tuple[Sequence[object], Sequence[object]] | None:
    """The halves of a sequence; None for one that has a single item."""
    middle = len(payload) // 2
    return (payload[:middle], payload[middle:]) if middle else None
