"""Files kept in the user's cache folder.

::

    words-3-<identity>/      compiled words             postings-<cache>-<analyser>/   BM25 postings
    fitted/3f/<name>.field   fitted template fields     faiss/<name>                   FAISS indexes
    levels/<name>           levels of texts            digests/  precision/     small facts
    word-classes/            tags of jieba's words          triton/       kernels of cards

Everything here can be computed again. Guarantees:

- ``FEATPIPE_CACHE_DIR`` moves every kind of kept file. The folder is made for its owner alone:
  terms, and the values of samples, are as confidential as the documents.
- Files are written as :mod:`featpipe.atomic_write` describes; ``sweep`` removes what killed
  processes left.
- ``sweep`` keeps files used within the last hour. A process that finds its file gone computes it
  again, so any number of processes may use and sweep a folder at the same time.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from contextlib import suppress
from pathlib import Path
from struct import Struct
from time import time
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from zlib import crc32

from featpipe.atomic_write import is_being_written, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]  # Any: of whichever plain dtype
    Arrays = Mapping[str, Array]
    Json = dict[str, Any]  # Any: the values of a JSON object

_IN_USE_S = 3600.0
_DAY_S = 86400.0
OLDEST_S = 90 * _DAY_S
#: A fitted field takes some hundred kB: room for thousands.
MOST_BYTES = 2 << 30


def root() -> Path:
    """``$FEATPIPE_CACHE_DIR``, else ``$XDG_CACHE_HOME/featpipe``, else ``~/.cache/featpipe``.

    Where nothing tells a home, as in a container of a user without a name, a place below
    ``/dev/null``: to keep a file there is an OSError.
    """
    own = os.environ.get("FEATPIPE_CACHE_DIR")
    if own:
        return Path(own)
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:
        cache = Path(os.devnull)
    return cache / "featpipe"


def folder(kind: str) -> Path:
    """The folder of one kind of kept file, such as ``fitted``. It need not exist."""
    return root() / kind


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone; one that exists stays as it is. Raises OSError."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def keep(
    path: Path, content: bytes | Callable[[BinaryIO], object], *, is_durable: bool = False
) -> None:
    """As :func:`write_atomically`, and make the folder of ``path`` when it is absent."""
    make_folder(path.parent)
    write_atomically(path, content, is_durable=is_durable)


def sweep(
    files: Iterable[Path], *, most_bytes: int = MOST_BYTES, oldest_s: float = OLDEST_S
) -> int:
    """Remove abandoned and long unused files, and beyond ``most_bytes`` the least recently used.

    Returns:
        The number of files removed. A file that cannot be removed stays, without an error.
    """
    now = time()
    n_bytes = n_removed = 0
    for used, size, file in sorted(_stat_each(files), reverse=True):
        age_s = now - used
        is_too_much = n_bytes + size > most_bytes
        if age_s > _IN_USE_S and (is_being_written(file) or age_s > oldest_s or is_too_much):
            with suppress(OSError):
                file.unlink()
                n_removed += 1
        else:
            n_bytes += size
    return n_removed


def _stat_each(files: Iterable[Path]) -> list[tuple[float, int, Path]]:
    """(time of last use, bytes, file) of the files that exist."""
    found = []
    for file in files:
        with suppress(OSError):  # another process may have swept it just now
            status = file.stat()
            found.append((status.st_mtime, status.st_size, file))
    return found


class KeptFiles:
    """Bytes by name in one folder, held to a size and an age. Safe between threads and processes.

    Args:
        path: the folder, made with the first write. Files of other names in it are left alone.

    """

    SUFFIX = ".field"
    _OWN = re.compile(r"\.?[0-9a-f]{2,64}-[0-9a-f]{12}\.(field(-\d+-[0-9a-f]+)?|\d+-\d+)")

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, name: str) -> Path:
        """The file of a name: ``<fingerprint>-<code version>``, both hexadecimal."""
        return self._path / name[:2] / f"{name}{self.SUFFIX}"

    def read(self, name: str) -> bytes:
        """The bytes under a name; marks the file as used, at most once a day.

        Raises:
            OSError: the file is absent or unreadable.

        """
        file = self.file(name)
        data = file.read_bytes()
        with suppress(OSError):  # a read-only folder is no reason to fail
            if time() - file.stat().st_mtime > _DAY_S:
                os.utime(file)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace the bytes under a name.

        Raises:
            OSError: the folder cannot be written.

        """
        keep(self.file(name), data)

    def sweep(self, most_bytes: int = MOST_BYTES, oldest_s: float = OLDEST_S) -> int:
        """As :func:`sweep`, over the files of this class's names."""
        listed = self._path.glob("[0-9a-f][0-9a-f]/*")
        own = (file for file in listed if self._OWN.fullmatch(file.name))
        return sweep(own, most_bytes=most_bytes, oldest_s=oldest_s)


_MAGIC = b"featpipe arrays\n"
_LENGTHS = Struct("<II")
_ALIGNMENT = 64
_END_BYTES = 4096


class ArrayFile(NamedTuple):
    """Named arrays in one file, mapped instead of read.

    Layout: 16 bytes of magic; the header's length and crc32 (two little-endian u32); the header
    (JSON: ``about``, the file's size, and of each array dtype, shape, crc32 of its first and last
    4 KiB, and offset); the arrays, each from a multiple of 64 bytes on.

    ``about`` holds JSON values; ``arrays`` are private maps, read from the disk when touched.
    """

    about: Json
    arrays: Arrays

    @classmethod
    def map(cls, path: Path) -> ArrayFile:
        """Open a file, in time that does not depend on the size of its arrays.

        Raises:
            OSError: it cannot be opened.
            ValueError: it is foreign, shortened, or damaged in its header or at either end of an
                array. The bytes between an array's ends are not checked.
        """
        import numpy as np

        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(_MAGIC) + _LENGTHS.size:
                raise ValueError(f"{path} is too short")
            # Private and writable: no write to an array reaches the file, and compiled kernels
            # take the arrays as they take any others.
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        header = _read_header(path, mapped)
        if header["size"] != size:
            raise ValueError(f"{path} is not as long as it was written")
        arrays = {}
        for name, (dtype, shape, expected, place) in header["arrays"].items():
            arrays[name] = np.ndarray(tuple(shape), dtype, mapped, place)
            if _check_ends(arrays[name]) != expected:
                raise ValueError(f"{path} is damaged at {name}")
        return cls(header["about"], arrays)

    @staticmethod
    def write(path: Path, about: Mapping[str, object], arrays: Arrays) -> None:
        """Write a file atomically and durably; its folder is made when absent.

        Args:
            path: an earlier file is replaced.
            about: JSON values.
            arrays: of plain dtypes.

        Raises:
            OSError: it cannot be written.
        """
        header, places = _lay_out(about, arrays)

        def write_all(file: BinaryIO) -> None:
            file.write(header)
            for name, array in arrays.items():
                file.seek(places[name])
                file.write(_bytes_of(array))
            file.truncate(_size_of(arrays, places, len(header)))

        keep(path, write_all, is_durable=True)


def _read_header(path: Path, mapped: mmap.mmap) -> Json:
    begin = len(_MAGIC) + _LENGTHS.size
    n_bytes, expected = _LENGTHS.unpack_from(mapped, len(_MAGIC))
    written = mapped[begin : begin + n_bytes]
    if mapped[: len(_MAGIC)] != _MAGIC or len(written) != n_bytes or crc32(written) != expected:
        raise ValueError(f"{path} is not a file of arrays, or a damaged one")
    header: Json = json.loads(written)
    return header


def _lay_out(about: Mapping[str, object], arrays: Arrays) -> tuple[bytes, dict[str, int]]:
    """The file's beginning, and the offset of each array."""
    # The header holds the offsets, which depend on its length: room is made for the longest.
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


def _check_ends(array: Array) -> int:
    data = _bytes_of(array)
    return crc32(data[-_END_BYTES:], crc32(data[:_END_BYTES]))


def _bytes_of(array: Array) -> memoryview:
    import numpy as np

    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")


def _size_of(arrays: Arrays, places: Mapping[str, int], n_header_bytes: int) -> int:
    ends = [places[name] + array.nbytes for name, array in arrays.items()]
    return max([n_header_bytes, *ends]) + _ALIGNMENT  # an empty array at the end has a place, too
