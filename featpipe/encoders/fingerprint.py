"""Digests of checkpoint files, computed once per version of a file.

Guarantees:

* A digest is of the file's bytes. A file that changes while it is read is read again, and is an
  error if it keeps changing.
* A remembered digest is used only while path, device, inode, size, modification time and change
  time are all the same. No program can set the change time back, so restoring an old modification
  time does not hide new bytes.
* A file touched within the last two seconds is not remembered: a second write could fall into the
  same tick of the file system's clock.

Digests are remembered in memory, and in ``remember_digests_in()`` across processes.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager, suppress
from time import time_ns as now_ns
from typing import TYPE_CHECKING

from featpipe import user_cache
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_TICK_NS = 2_000_000_000
_BLOCK_BYTES = 1 << 20
_N_READS = 3

_memory: dict[str, str] = {}


def digest_of(files: Iterable[Path]) -> str:
    """Digest of several files' bytes as a set: their names and order do not matter."""
    return digest_text("\n".join(sorted(digest_file(file) for file in files)))


def digest_named(files: Iterable[Path]) -> str:
    """As `digest_of`, for files whose names matter."""
    return digest_text("\n".join(sorted(f"{file.name} {digest_file(file)}" for file in files)))


def digest_text(text: str) -> str:
    """Digest of a text: 40 hex digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def digest_file(file: Path) -> str:
    """Digest of the file's bytes: 40 hex digits, remembered while the file is unchanged.

    Raises:
        CheckpointError: the file cannot be read, or keeps changing.
    """
    try:
        for _ in range(_N_READS):
            before = identity_of(file)
            if known := _memory.get(before) or _read_remembered(before):
                return _memory.setdefault(before, known)
            started_ns = now_ns()
            digest = _read_and_digest(file)
            if identity_of(file) == before:
                _remember(file, before, digest, started_ns)
                return digest
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from error
    raise CheckpointError(f"{file} is being written to", hint="run again once it is complete")


def identity_of(file: Path) -> str:
    """Digest of the facts that change with the file's bytes, which are not read."""
    path = file.resolve()
    stat = path.stat()
    facts = (str(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return digest_text(json.dumps(facts))


@contextmanager
def refuse_changes(files: Sequence[Path], folder: Path) -> Iterator[None]:
    """Refuse what the block did if one of `files` changed meanwhile.

    Around loading: the fingerprint is of the files as they were first, the weights are read later.
    They belong together only if the files are the same before the one and after the other.

    Raises:
        CheckpointError: after the block; it names `folder`.
    """
    before = [identity_of(file) for file in files]
    yield
    if [identity_of(file) for file in files] != before:
        raise CheckpointError(f"{folder} changed while it was loaded")


def remember_digests_in() -> Path | None:
    """Folder of digests remembered across processes; None when ``FEATPIPE_NO_MEMO`` is set."""
    if os.environ.get("FEATPIPE_NO_MEMO"):
        return None
    return user_cache.folder("digests")


def forget_digests() -> None:
    """Forget the digests in this process's memory; those on disk stay."""
    _memory.clear()


def _read_and_digest(file: Path) -> str:
    digest = hashlib.blake2b(digest_size=20)
    with file.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _remember(file: Path, identity: str, digest: str, started_ns: int) -> None:
    stat = file.stat()
    if started_ns - max(stat.st_mtime_ns, stat.st_ctime_ns) < _TICK_NS:
        return
    _memory[identity] = digest
    folder = remember_digests_in()
    if folder is None:
        return
    with suppress(OSError):  # no home, read-only, full: the digest is computed again next time
        user_cache.keep(folder / identity, digest.encode("ascii"))


def _read_remembered(identity: str) -> str | None:
    folder = remember_digests_in()
    if folder is None:
        return None
    try:
        text = (folder / identity).read_text("ascii")
    except (OSError, ValueError):
        return None
    # A torn file, or one of another program, does not hold 40 hex digits.
    is_whole = len(text) == 40 and all(character in "0123456789abcdef" for character in text)
    return text if is_whole else None
