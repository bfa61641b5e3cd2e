"""The file that a job writes until it is published, owned by one process at a time.

On scratch it has a name of its own where another process of the machine is at the same job; in
place, the second process waits for the first. A job that was killed goes on in the same file; what
no job will go on with is removed by the next process that does jobs there.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from featpipe.errors import DictionaryError, DictionaryLocked, UsageError
from featpipe.store.disk import writing
from featpipe.store.lock import lock_for_writing, unlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from featpipe.build.publish import Publisher
    from featpipe.build.shards.job import Seat

#: Seconds between two attempts to take a lock that another process holds.
_TRY_AGAIN_S = 0.1

#: A work file, or what is made beside it; with a number before it, of one process only.
_WORK_FILE = re.compile(
    r"\.?(?P<file>(?P<own>[0-9]+-)?(?P<below>[a-z]+)-(?P<name>.+?\.h5))(?:\..+)?"
)


@contextmanager
def work_file(folder: Publisher, seat: Seat, name: str) -> Iterator[Path]:
    """The local file that will be published as ``name``; it need not exist yet.

    No other process writes it until the end of the block.

    Raises:
        DictionaryLocked: in place, another process is at it for longer than the seat waits.
        UsageError: in place, where the cache is in an object store.
        WriteFailed: the folder cannot be written.

    """
    below = _folder_of(folder, seat)
    with writing(below):
        below.mkdir(parents=True, exist_ok=True)
    path = below / name.replace("/", "-")
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(path, seat.wait_s if seat.scratch is None else 0.0))
        except DictionaryLocked:
            if seat.scratch is None:
                raise
            path = path.with_name(f"{os.getpid()}-{path.name}")
            stack.enter_context(_locked(path, 0.0))
            stack.callback(discard, path)  # nobody would go on with it
        yield path


def discard(path: Path) -> None:
    """Remove a work file, and what was made beside it."""
    for file in (path, *path.parent.glob(f".{path.name}.*")):
        file.unlink(missing_ok=True)


def discard_left(folder: Publisher, seat: Seat, is_dropped: Callable[[str], bool]) -> None:
    """Remove the work files of killed jobs with which no other would go on.

    These are files of one process, those whose name another process has published, and those of
    runs that were dropped. What a running job owns stays, and what cannot be removed.

    Args:
        folder: the cache.
        seat: that tells where the files are.
        is_dropped: whether a published name is of a run whose jobs need not be done.

    """
    if seat.scratch is None and folder.work_folder() is None:
        return
    below = _folder_of(folder, seat)
    names = [file.name for file in below.iterdir()] if below.is_dir() else []
    found = map(_WORK_FILE.fullmatch, names)
    for match in {match["file"]: match for match in found if match is not None}.values():
        path, name = below / match["file"], f"{match['below']}/{match['name']}"
        with suppress(OSError, DictionaryError), _locked(path, 0.0):
            # Asked as the owner: until now, a job may have been about to publish it.
            if match["own"] or folder.exists(name) or is_dropped(name):
                discard(path)


def _folder_of(folder: Publisher, seat: Seat) -> Path:
    if seat.scratch is not None:
        own = blake2b(folder.address.encode(), digest_size=6).hexdigest()
        return Path(seat.scratch).absolute() / f"featpipe-{own}"
    below = folder.work_folder()
    if below is None:
        raise UsageError(
            f"{folder.address} cannot be written in place", hint="name a local folder as --scratch"
        )
    return below


@contextmanager
def _locked(path: Path, wait_s: float) -> Iterator[None]:
    """Own a lock file beside ``path``; it is gone afterwards."""
    until = monotonic() + wait_s
    lock = path.with_name(f"{path.name}.lock")
    with writing(lock):
        descriptor = _take(lock, until)
    try:
        yield
    finally:
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        unlock(descriptor, lock)
        os.close(descriptor)


def _take(lock: Path, until: float) -> int:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            lock_for_writing(descriptor, lock)
        except DictionaryLocked:
            os.close(descriptor)
            if monotonic() >= until:
                raise
            sleep(_TRY_AGAIN_S)
            continue
        except BaseException:
            os.close(descriptor)
            raise
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        # Its owner removed it between opening and locking.
        unlock(descriptor, lock)
        os.close(descriptor)
