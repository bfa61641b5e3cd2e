"""The lease: the writer's lock as a file, for file systems that have no locks (Lustre, some NFS).

``FEATPIPE_LOCK=exclusive-file``, or ``--lock exclusive-file`` on a command that writes, makes every
writer create ``.<name>.lock`` beside the dictionary before it writes, and remove it at the end.
Every writer, also one that uses kernel locks, is refused while a lease is held.

A lease whose process is gone is taken over on the same host (same boot, same process namespace).
Whether a process of another host lives cannot be known: its lease must be removed by hand.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.errors import DictionaryLocked, UsageError
from featpipe.settings import LOCK_VARIABLE, LOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Record = dict[str, str | int | float]

KERNEL, EXCLUSIVE_FILE = LOCKS


def chosen_lock() -> str:
    """``kernel`` (the default) or ``exclusive-file``. Raises UsageError for another value."""
    lock = os.environ.get(LOCK_VARIABLE) or KERNEL
    if lock not in LOCKS:
        raise UsageError(
            f"{LOCK_VARIABLE} is {lock!r}", hint=f"choose from {', '.join(LOCKS)}, or unset it"
        )
    return lock


def lease_of(path: Path) -> Path:
    """The lease file of the dictionary at ``path``."""
    return path.with_name(f".{path.name}.lock")


def take_lease(path: Path) -> None:
    """Create the lease of ``path``. Raises DictionaryLocked, OSError."""
    lease = lease_of(path)
    if not _create(lease):
        with _alone(path, lease):
            refuse_leased(path)
            lease.unlink(missing_ok=True)  # of a dead process
            if not _create(lease):
                raise _refusal(path, lease)


def refuse_leased(path: Path) -> None:
    """Raises DictionaryLocked while a process that may be alive holds the lease of ``path``."""
    lease = lease_of(path)
    if lease.exists() and not _is_dead(_read(lease)):
        raise _refusal(path, lease)


def release_lease(path: Path) -> None:
    """Remove the lease of ``path`` when it is this process's."""
    lease = lease_of(path)
    mine = _this_process()
    if {**_read(lease), "opened": 0} == {**mine, "opened": 0}:
        lease.unlink(missing_ok=True)


def _create(lease: Path) -> bool:
    """False when the lease exists."""
    try:
        file = lease.open("xb")
    except FileExistsError:
        return False
    with file:
        file.write(json.dumps(_this_process()).encode())
    return True


def _read(lease: Path) -> Record:
    """The record in a lease; empty when it is gone or torn."""
    with suppress(OSError, ValueError):
        record = json.loads(lease.read_bytes())
        if isinstance(record, dict) and isinstance(record.get("pid"), int):
            return record
    return {}


def _this_process() -> Record:
    pid = os.getpid()
    here = _this_place()
    return {"pid": pid, "start_ticks": _start_ticks(pid), "opened": time.time(), **here}


def _this_place() -> dict[str, str]:
    """Where process numbers mean the same processes."""
    place = {"host": os.uname().nodename, "boot": "", "namespace": ""}
    with suppress(OSError):
        place["boot"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        place["namespace"] = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path: "pid:[…]"
    return place


def _start_ticks(pid: int) -> int:
    """Clock ticks from boot to the start of a process; -1 when there is none, or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in {"Z", "X"} else int(fields[19])


def _is_dead(record: Record) -> bool:
    """Whether the process of a record is known to be gone."""
    here = _this_place()
    if not record or not here["boot"] or record["host"] != here["host"]:
        return False
    if record["boot"] != here["boot"]:
        return True  # the host was started anew since
    is_visible = record["namespace"] == here["namespace"]
    return is_visible and _start_ticks(int(record["pid"])) != record["start_ticks"]


def _refusal(path: Path, lease: Path) -> DictionaryLocked:
    record = _read(lease)
    if not record:
        return DictionaryLocked(
            f"{path} is being written: {lease} exists, and names no process",
            hint=f"remove {lease} if no process writes the file",
        )
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(record["opened"])))
    return DictionaryLocked(
        f"{path} is being written by process {record['pid']} on {record['host']} since {when}",
        hint=f"wait until it is done; if that process is gone, remove {lease}",
    )


@contextmanager
def _alone(path: Path, lease: Path) -> Iterator[None]:
    """Exclude the other processes of this host; a holder's death ends it.

    An abstract socket has a name in the kernel only, so nothing is left behind.
    """
    name = sha256(os.fsencode(lease)).hexdigest()
    with socket.socket(socket.AF_UNIX) as mutex:
        try:
            mutex.bind(f"\0featpipe-lease-{name}")
        except OSError:
            raise _refusal(path, lease) from None
        yield
