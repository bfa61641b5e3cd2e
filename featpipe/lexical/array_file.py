"""Derived arrays in one file, to be mapped by later processes instead of being worked out again.

Guarantees:
- A file appears whole or not at all: written aside, synced, renamed. Several processes may write
  the same one at once; the last one's stays, and whoever has mapped an earlier one keeps that.
- What is cut short, foreign, or damaged in its header or at either end of an array is refused with
  ValueError or OSError, never half used. What lies between an array's ends is not read on opening.

Layout: 16 bytes of magic, the header's length and crc32 (two little-endian u32), the header (JSON:
what it is about, the file's size, and of each array dtype, shape, place and the crc32 of its first
and last 4 KiB), then the arrays, each from a multiple of 64 bytes on.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_MAGIC = b"featpipe arrays\n"
_LENGTHS = Struct("<II")
_ALIGNMENT = 64
_END_BYTES = 4096


class Mapped(NamedTuple):
    """What a file is about, and its arrays: private maps, read from the disk when touched."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def map_arrays(path: Path) -> Mapped:
    """Open a file of arrays, in time that does not depend on their size.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is not such a file, or not a whole one.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(_MAGIC) + _LENGTHS.size:
            raise ValueError(f"{path} is too short")
        # A private map of its own: nothing that is written to an array could reach the file, and
        # compiled kernels take the arrays as they take any others.
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    header = _read_header(path, mapped)
    if header["size"] != size:
        raise ValueError(f"{path} is not as long as it was written")
    arrays = {}
    for name, (dtype, shape, expected, place) in header["arrays"].items():
        arrays[name] = np.ndarray(tuple(shape), dtype, mapped, place)
        if _check_ends(arrays[name]) != expected:
            raise ValueError(f"{path} is damaged at {name}")
    return Mapped(header["about"], arrays)


def write_arrays(
    path: Path, about: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Put a file of arrays in its place, whole; its folder is made if there is none.

    Args:
        path: whose earlier file, if any, is replaced.
        about: plain JSON values.
        arrays: of plain dtypes.

    Raises:
        OSError: it cannot be written; nothing is left behind then.
    """
    header, places = _lay_out(about, arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In a name of this process and moment: another writer must not write into the same file.
    aside = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with aside.open("xb") as file:
            file.write(header)
            for name, array in arrays.items():
                file.seek(places[name])
                file.write(_bytes_of(array))
            file.truncate(_size_of(arrays, places, len(header)))
            file.flush()
            # Before the rename: a name that survives a power loss must stand for a whole file.
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _read_header(path: Path, mapped: mmap.mmap) -> dict[str, Any]:
    begin = len(_MAGIC) + _LENGTHS.size
    n_bytes, expected = _LENGTHS.unpack_from(mapped, len(_MAGIC))
    written = mapped[begin : begin + n_bytes]
    if mapped[: len(_MAGIC)] != _MAGIC or len(written) != n_bytes or crc32(written) != expected:
        raise ValueError(f"{path} is not a file of arrays, or a damaged one")
    header: dict[str, Any] = json.loads(written)
    return header


def _lay_out(
    about: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]
) -> tuple[bytes, dict[str, int]]:
    """The file's beginning, and where each array goes."""
    # The places stand in the header, and its length decides them: room is made for the longest.
    shapes = {
        name: (array.dtype.str, array.shape, _check_ends(array)) for name, array in arrays.items()
    }
    room = len(json.dumps({"about": about, "arrays": shapes})) + 32 * (len(arrays) + 2)
    at, places = len(_MAGIC) + _LENGTHS.size + room, {}
    for name, array in arrays.items():
        places[name] = at = -(-at // _ALIGNMENT) * _ALIGNMENT
        at += array.nbytes
    described = {name: (*shapes[name], places[name]) for name in arrays}
    size = _size_of(arrays, places, len(_MAGIC) + _LENGTHS.size + room)
    header = json.dumps({"about": about, "size": size, "arrays": described}).encode().ljust(room)
    return _MAGIC + _LENGTHS.pack(room, crc32(header)) + header, places


def _check_ends(array: NDArray[Any]) -> int:
    data = _bytes_of(array)
    return crc32(data[-_END_BYTES:], crc32(data[:_END_BYTES]))


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")


def _size_of(
    arrays: Mapping[str, NDArray[Any]], places: Mapping[str, int], n_header_bytes: int
) -> int:
    ends = [places[name] + array.nbytes for name, array in arrays.items()]
    return max([n_header_bytes, *ends]) + _ALIGNMENT  # an empty array at the end has a place, too
