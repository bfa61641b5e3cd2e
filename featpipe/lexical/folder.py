"""Where compiled tables are kept between processes: one folder per dictionary, named by its hash.

Guarantees:
- A folder appears whole or not at all: it is written aside, synced, and renamed. Two processes
  that compile at the same time both succeed; the first one's folder stays.
- What does not load (shortened, foreign, older) is compiled anew and replaced.
- Without a place to write, tables are compiled in each process and nothing fails.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.lexical.compile import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

#: Counted up when the arrays' layout or the way they are compiled changes.
TABLES_VERSION = 3

_DESCRIPTION = "tables.json"
_ARRAYS = "tables.bin"
_ALIGNMENT = 64


def user_cache_folder() -> Path:
    """``$FEATPIPE_CACHE_DIR``, or ``featpipe`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``."""
    own = os.environ.get("FEATPIPE_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "featpipe"


def open_tables(identity: str, compile_anew: Callable[[], Tables | None]) -> Tables | None:
    """The tables of this identity, mapped read-only; compiled and kept if there are none yet.

    None when ``compile_anew`` says that this dictionary cannot be compiled; that is kept as well.
    """
    folder = user_cache_folder() / f"words-{TABLES_VERSION}-{identity}"
    try:
        return _map_tables(folder)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # absent or damaged: compile_anew makes the same arrays again
    tables = compile_anew()
    with contextlib.suppress(OSError):  # no place to write: this process keeps its own copy
        _keep(folder, tables)
        return _map_tables(folder)
    return tables


def _map_tables(folder: Path) -> Tables | None:
    described = json.loads((folder / _DESCRIPTION).read_text("utf-8"))
    if described["is_equal"] is False:
        return None
    with (folder / _ARRAYS).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(mapped) != described["n_bytes"]:
        raise ValueError(f"{folder / _ARRAYS} is not as long as it was written")
    arrays = {}
    for name in Tables._fields:
        dtype, shape, offset = described["arrays"][name]
        arrays[name] = np.ndarray(tuple(shape), dtype, mapped, offset)
    return Tables(**arrays)


def _keep(folder: Path, tables: Tables | None) -> None:
    import shutil
    import tempfile

    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        description: dict[str, object] = {"is_equal": tables is not None}
        if tables is not None:
            description |= _write_arrays(aside / _ARRAYS, tables)
        with (aside / _DESCRIPTION).open("w", encoding="utf-8") as text:
            json.dump(description, text)
            _sync(text.fileno(), text.flush)
        _put_in_place(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_arrays(path: Path, tables: Tables) -> dict[str, object]:
    """One file of all arrays, each from a multiple of 64 bytes on; where and what they are."""
    placed = {}
    with path.open("wb") as file:
        for name, array in tables._asdict().items():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            placed[name] = (array.dtype.str, array.shape, file.tell())
            file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        file.write(bytes(_ALIGNMENT))  # an empty array at the end has a place, too
        n_bytes = file.tell()
        _sync(file.fileno(), file.flush)
    return {"n_bytes": n_bytes, "arrays": placed}


def _sync(descriptor: int, flush: Callable[[], None]) -> None:
    # Before the rename: a folder that survives a power loss must hold whole files.
    flush()
    os.fsync(descriptor)


def _put_in_place(aside: Path, folder: Path) -> None:
    import shutil

    try:
        aside.rename(folder)
    except OSError:
        try:
            _map_tables(folder)  # another process was first, with the same arrays
        except (OSError, ValueError, KeyError, TypeError):
            shutil.rmtree(folder, ignore_errors=True)  # damaged: nobody can be reading it
            aside.rename(folder)
