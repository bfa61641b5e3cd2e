"""Levels of texts, kept in the user's cache folder where a cache itself does not give them.

The log of a file has the levels of its texts (`featpipe.cache.levels`). In a folder the documents
are read for them, as in any cache with forgotten documents; what they give is kept here, so that
one process reads them once for each state of the cache, and all others map a byte a text.

Guarantees:

- Kept levels are used only for the very texts, in their order, and the very documents that the
  cache shows now, by keys and checksums. Whatever changed these, be it a job, a part that forgets
  documents, a repair or a compaction, has them read anew.
- They were made of rows that were held against their checksums, and no flipped bit in a kept file
  goes unnoticed.
- Where the files cannot be written, each process reads the documents, and a warning is logged once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from logging import getLogger
from time import time
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from featpipe import user_cache
from featpipe.atomic_write import is_being_written
from featpipe.cache import tables
from featpipe.cache.levels import level_bits, n_covered
from featpipe.settings import LEVELS
from featpipe.store.schema import KEYS
from featpipe.user_cache import ArrayFile

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.cache.levels import Bits, Keep
    from featpipe.store import Reader, TableReader

logger = getLogger(__name__)

#: Of what is kept, and of how it is known.
_VERSION = 1
_FOLDER, _SUFFIX = "levels", ".arrays"
#: With fewer units in all documents, reading them takes some milliseconds.
_FEW_UNITS = 1 << 17
_MOST_BYTES = 1 << 30
_BLOCK = 1 << 18
_DAY_S = 86400.0
#: Folders whose write fault has been logged.
_logged: set[Path] = set()


def kept_level_bits(reader: Reader, keep: Keep | None = None) -> Bits:
    """As `featpipe.cache.levels.level_bits`; not to be written to.

    Args:
        reader: of the cache.
        keep: where documents were forgotten: theirs do not count.

    """
    if not _is_worth_keeping(reader, keep):
        return level_bits(reader, keep)
    name = _name(reader, keep)
    path = user_cache.folder(_FOLDER) / f"{name}{_SUFFIX}"
    kept = _map(path)
    if kept is not None:
        return kept
    bits = level_bits(reader, keep)
    if _name(reader, keep) == name:  # no thread refreshed the reader meanwhile
        _keep(path, bits)
    return bits


def _is_worth_keeping(reader: Reader, keep: Keep | None) -> bool:
    if tables.DOCUMENTS not in reader or tables.TEXTS not in reader or not reader.checks_rows:
        return False
    documents = reader.table(tables.DOCUMENTS)
    if keep is None and n_covered(reader) == documents.n_rows:
        return False
    return sum(documents.n_values(f"{level}_keys") for level in LEVELS) >= _FEW_UNITS


def _name(reader: Reader, keep: Keep | None) -> str:
    """Of all that the levels depend on, and of nothing else: a copy of the cache has the same."""
    texts, documents = reader.table(tables.TEXTS), reader.table(tables.DOCUMENTS)
    told = blake2b(f"{_VERSION} {texts.n_rows} {documents.n_rows}".encode(), digest_size=16)
    for start in range(0, texts.n_rows, _BLOCK):
        _tell(told, texts, [KEYS], start)
    for start in range(0, documents.n_rows, _BLOCK):
        _tell(told, documents, [KEYS, "checks"], start)
        if keep is not None:
            rows = np.arange(start, min(start + _BLOCK, documents.n_rows))
            told.update(keep(documents, rows).tobytes())
    return told.hexdigest()


def _tell(told: blake2b, table: TableReader, columns: list[str], start: int) -> None:
    for column in table.slices(columns, start, min(start + _BLOCK, table.n_rows)):
        told.update(np.ascontiguousarray(column).data)


def _map(path: Path) -> Bits | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = ArrayFile.map(path)
        bits = found.arrays["bits"]
        if found.about["crc"] == crc32(bits.data):
            if time() - path.stat().st_mtime > _DAY_S:
                os.utime(path)  # it is in use
            return bits
    return None


def _keep(path: Path, bits: Bits) -> None:
    try:
        ArrayFile.write(path, {"crc": crc32(bits.data)}, {"bits": bits})
    except OSError as error:
        if path.parent not in _logged:
            _logged.add(path.parent)
            logger.warning("levels of texts are read anew in each process: %s", error)
        return
    with suppress(OSError):
        mine = (f for f in path.parent.iterdir() if f.suffix == _SUFFIX or is_being_written(f))
        user_cache.sweep(mine, most_bytes=_MOST_BYTES)
