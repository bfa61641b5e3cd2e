"""Cutting by jieba's compiled tables: opens or compiles them, picks the kernel, cuts in slices.

Tables are kept in the user's cache folder, one folder per dictionary, named by its hash:

- A folder is used only when whole: its description is written after its arrays, each atomically.
  Processes that compile at the same time write the same bytes.
- A shortened or foreign file is compiled anew and replaced.
- Without a place to write, each process compiles its own tables and nothing fails.
"""

from __future__ import annotations

import json
import mmap
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import numpy as np

from featpipe.lexical.backend import Backends
from featpipe.lexical.compile import (
    CodedTexts,
    Offsets,
    Tables,
    add_probe,
    compile_tables,
    passes_probe,
    walk,
)
from featpipe.lexical.cut_numpy import cut as cut_with_numpy
from featpipe.lexical.jieba_dictionary import Jieba, hash_of
from featpipe.user_cache import folder, keep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from featpipe.lexical.compile import Kernel
    from featpipe.lexical.jieba_dictionary import InstalledJieba, UserDictionary

#: Counted up when the arrays' layout or the way they are compiled changes.
TABLES_VERSION = 3

_DESCRIPTION = "tables.json"
_ARRAYS = "tables.bin"
_ALIGNMENT = 64

#: Characters per call of a kernel: bounds its scratch memory (about 100 bytes a character).
_SLICE = 1 << 18
#: With "auto", characters cut by numpy before numba's half second of loading is worth it.
_WARM_UP = 1_000_000


def open_cutter(
    installed: InstalledJieba,
    user_dictionaries: Sequence[UserDictionary],
    engine: Literal["auto", "numba", "numpy"],
) -> CompiledCutter | None:
    """Compiled tables for this dictionary; None when they would not cut as jieba does."""
    hashes = (installed.dictionary, installed.model, *(each.content for each in user_dictionaries))
    identity = hash_of(installed.version.encode(), *map(str.encode, hashes))
    tables = open_tables(identity, lambda: _compile_tested(installed, user_dictionaries))
    if tables is None:
        warnings.warn(
            f"jieba {installed.version} in {installed.folder} does not cut as its compiled form "
            "does: words are cut by jieba itself, which is much slower",
            stacklevel=2,
        )
        return None
    return CompiledCutter(tables, engine)


def _compile_tested(
    installed: InstalledJieba, user_dictionaries: Sequence[UserDictionary]
) -> Tables | None:
    """Compile, and compare with jieba on probe texts; None where any cut differs."""
    jieba = Jieba(installed, user_dictionaries)
    tables = add_probe(compile_tables(jieba), jieba)
    return tables if passes_probe(tables, cut_with_numpy) else None


def open_tables(identity: str, compile_anew: Callable[[], Tables | None]) -> Tables | None:
    """The tables of this identity, mapped read-only; compiled and kept when absent or damaged.

    None when ``compile_anew`` returns None: no tables cut as this dictionary does. Kept as well.
    """
    place = folder(f"words-{TABLES_VERSION}-{identity}")
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _map_tables(place)
    tables = compile_anew()
    with suppress(OSError):
        _keep_tables(place, tables)
        return _map_tables(place)
    return tables


def _map_tables(place: Path) -> Tables | None:
    described = json.loads((place / _DESCRIPTION).read_text("utf-8"))
    if described["is_equal"] is False:
        return None
    with (place / _ARRAYS).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if len(mapped) != described["n_bytes"]:
        raise ValueError(f"{place / _ARRAYS} is not as long as it was written")
    arrays = {}
    for name in Tables._fields:
        dtype, shape, offset = described["arrays"][name]
        arrays[name] = np.ndarray(tuple(shape), dtype, mapped, offset)
    return Tables(**arrays)


def _keep_tables(place: Path, tables: Tables | None) -> None:
    """One file of all arrays, each from a multiple of 64 bytes on, and one that describes them."""
    arrays = {} if tables is None else tables._asdict()
    description: dict[str, object] = {"is_equal": tables is not None}
    placed = {}

    def write_arrays(file: BinaryIO) -> None:
        for name, array in arrays.items():
            file.write(bytes(-file.tell() % _ALIGNMENT))
            placed[name] = (array.dtype.str, array.shape, file.tell())
            file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
        file.write(bytes(_ALIGNMENT))  # an empty array at the end has a place, too
        description.update(n_bytes=file.tell(), arrays=placed)

    if tables is not None:
        keep(place / _ARRAYS, write_arrays, is_durable=True)
    keep(place / _DESCRIPTION, json.dumps(description).encode(), is_durable=True)


class CompiledCutter:
    """Cuts with compiled tables; made by :func:`open_cutter`."""

    def __init__(self, tables: Tables, engine: Literal["auto", "numba", "numpy"]) -> None:
        self._tables = tables
        self._backends = Backends(engine, warm_up=_WARM_UP)
        self._is_tested = False

    @property
    def backend(self) -> Literal["numba", "numpy"]:
        """The kernels the next call will run."""
        return self._backends.current

    def cut(self, coded: CodedTexts, *, hmm: bool) -> Offsets:
        """Where words start, over all texts laid end to end: (n_words,) int64, ascending."""
        self._backends.count(len(coded.codes))
        kernel = self._numba_kernel() if self.backend == "numba" else cut_with_numpy
        parts = [kernel(self._tables, part, hmm=hmm) + base for base, part in self._slices(coded)]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def words_within(
        self, coded: CodedTexts, starts: Offsets, ends: Offsets
    ) -> tuple[Offsets, Offsets]:
        """Words and the shorter dictionary words inside them, as ``cut_for_search`` orders them."""
        pieces = [(starts, ends, np.arange(len(starts)), np.full(len(starts), 9))]
        for width in (2, 3):
            first, owners = self._find_inner(coded, starts, ends, width)
            pieces.append((first, first + width, owners, np.full(len(first), width)))
        first, last, owners, widths = (
            np.concatenate(column) for column in zip(*pieces, strict=True)
        )
        order = np.lexsort((first, widths, owners))
        return first[order], last[order]

    def _find_inner(
        self, coded: CodedTexts, starts: Offsets, ends: Offsets, width: int
    ) -> tuple[Offsets, Offsets]:
        """Starts of the dictionary words of `width` characters inside longer words, and of which.

        Shapes: (n,), (n,) places in ``starts``.
        """
        longer = np.flatnonzero(ends - starts > width)
        counts = (ends - starts)[longer] - width + 1
        owners = np.repeat(longer, counts)
        offsets = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = starts[owners] + offsets
        _, weights = walk(self._tables, coded.codes, first, first + width)
        known = ~np.isnan(weights)
        return first[known], owners[known]

    def _numba_kernel(self) -> Kernel:
        """Numba's kernel, tested in this process: its code may come from a cache on disk."""
        from featpipe.lexical.cut_numba import cut

        if not self._is_tested:
            if not passes_probe(self._tables, cut):
                warnings.warn(
                    "numba's kernel does not cut as jieba does; going on without numba",
                    stacklevel=2,
                )
                self._backends = Backends("numpy", warm_up=0)
                return cut_with_numpy
            self._is_tested = True
        return cut

    def _slices(self, coded: CodedTexts) -> Iterator[tuple[int, CodedTexts]]:
        """Parts to be cut one after the other, with the place where each begins.

        A part ends between texts or behind a character outside of all blocks, so that no word
        reaches over. A text without any such place stays whole, however long.
        """
        n, begin = len(coded.codes), 0
        while n - begin > _SLICE + _SLICE // 2:
            end = self._place_to_part(coded, begin + _SLICE)
            if end >= n:
                break
            yield begin, _part(coded, begin, end)
            begin = end
        yield begin, _part(coded, begin, n)

    def _place_to_part(self, coded: CodedTexts, wanted: int) -> int:
        """The first place from ``wanted`` on at which a part may end; n_characters if none."""
        n = len(coded.codes)
        bound = int(coded.bounds[np.searchsorted(coded.bounds, wanted)])
        window = 1 << 12
        for low in range(wanted, bound, window):
            before = coded.codes[low - 1 : min(low - 1 + window, n)]
            parts = (self._tables.classes_of(before) == 0) & (before != ord("\r"))
            if parts.any():
                return min(low + int(np.argmax(parts)), bound)
        return bound


def _part(coded: CodedTexts, begin: int, end: int) -> CodedTexts:
    if begin == 0 and end == len(coded.codes):
        return coded
    low, high = np.searchsorted(coded.bounds, (begin, end), side="right")
    inner = coded.bounds[low:high]
    bounds = np.concatenate(([begin], inner[inner < end], [end])) - begin
    return CodedTexts(coded.codes[begin:end], bounds)
