"""The engine: spawned workers by role. Imports no text, torch or HDF5 code.

Guarantees:

- A task that was accepted ends in exactly one `Outcome`, or the pool raises `PoolBroken`.
- A worker that dies is noticed at once and replaced, and its unfinished tasks go to others.
- A batch that kills its workers is halved until the bad item is alone, and named with its reason.
- No child outlives its parent, and none imports the caller's ``__main__``.
- A worker leads a process group: what its tasks start ends with it, with a close, and with the
  parent. (What left the group ends with a deadline and a close.) A terminal's keys reach the
  program only; suspended by Ctrl-Z, it has workers that finish the tasks they hold.

Public names are loaded when first used: every child imports this package on its way to
`featpipe.pool.child` and must not load the parent's half.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.pool.interrupt import stopping_in_two_steps
    from featpipe.pool.outcomes import Completions, Outcome
    from featpipe.pool.pool import Pool, WorkerView
    from featpipe.pool.role import Role

_HOMES = {
    "Completions": "featpipe.pool.outcomes",
    "Outcome": "featpipe.pool.outcomes",
    "Pool": "featpipe.pool.pool",
    "Role": "featpipe.pool.role",
    "WorkerView": "featpipe.pool.pool",
    "stopping_in_two_steps": "featpipe.pool.interrupt",
}

__all__ = ["Completions", "Outcome", "Pool", "Role", "WorkerView", "stopping_in_two_steps"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'featpipe.pool' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
