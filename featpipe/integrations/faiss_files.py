"""FAISS indexes kept in the user's cache folder, each with the checksums of the rows it is made of.

Guarantee: what is read is, byte for byte, the index that was written for rows of these checksums,
by this version of FAISS. The index and its description are two files; a description that is not of
this index, another version, and a flipped bit anywhere are all as no index.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self
from zlib import crc32

import faiss
import numpy as np

from featpipe import user_cache
from featpipe.atomic_write import is_being_written
from featpipe.lexical.jieba_dictionary import hash_of
from featpipe.user_cache import ArrayFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.cache.dictionary import Dictionary

    Checks = NDArray[np.uint32]

logger = getLogger(__name__)

_FOLDER = "faiss"
_INDEX, _ABOUT = ".index", ".arrays"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Where the index of one cache, space, level and factory is kept.

    Attributes:
        index: FAISS's file.
        about: JSON values that stand in its description.

    """

    index: Path
    about: dict[str, object]

    @classmethod
    def of(cls, dictionary: Dictionary, factory: str) -> Self:
        """By the path of the cache."""
        about: dict[str, object] = {
            "cache": str(dictionary.path.resolve()),
            "space": dictionary.name,
            "level": dictionary.level,
            "factory": factory,
            "faiss": faiss.__version__,
        }
        name = hash_of(json.dumps(about, sort_keys=True).encode("utf-8", "surrogateescape"))
        return cls(user_cache.folder(_FOLDER) / f"{name}{_INDEX}", about)

    def read(self, checks: Checks) -> faiss.Index | None:
        """The kept index of the first of these rows, or of all; None where there is none."""
        with suppress(OSError, KeyError, TypeError, ValueError, RuntimeError):
            described = ArrayFile.map(self._description)
            held = described.arrays["checks"]
            if not np.array_equal(held, checks[: len(held)]):
                return None
            with self.index.open("rb") as file:  # one file, whatever replaces it meanwhile
                if described.about != self.about | {"crc": _crc_of(file)}:
                    return None
                file.seek(0)
                reader = faiss.PyCallbackIOReader(file.read, _BLOCK_BYTES)  # type: ignore[attr-defined]  # of SWIG
                index = faiss.read_index(reader)
            return index if index.ntotal == len(held) else None
        return None

    def write(self, index: faiss.Index, checks: Checks) -> None:
        """Keep an index of rows of these checksums; a warning where it cannot be written."""

        def write_index(file: BinaryIO) -> None:
            writer = faiss.PyCallbackIOWriter(file.write, _BLOCK_BYTES)  # type: ignore[attr-defined]  # of SWIG
            faiss.write_index(index, writer)

        try:
            user_cache.keep(self.index, write_index)
            with self.index.open("rb") as file:
                about = self.about | {"crc": _crc_of(file)}
            ArrayFile.write(self._description, about, {"checks": checks})
        except (OSError, RuntimeError) as error:  # FAISS's own, for a write that failed
            logger.warning("the FAISS index is built anew in each process: %s", error)
            return
        with suppress(OSError):
            _tidy(self.index.parent)

    @property
    def _description(self) -> Path:
        return self.index.with_suffix(_ABOUT)


def _crc_of(file: BinaryIO) -> int:
    """The crc32 of the rest of a file."""
    crc = 0
    while block := file.read(_BLOCK_BYTES):
        crc = crc32(block, crc)
    return crc


def _tidy(folder: Path) -> None:
    """Remove abandoned files, and the indexes of caches that are gone."""
    user_cache.sweep(file for file in folder.iterdir() if is_being_written(file))
    for description in folder.glob(f"*{_ABOUT}"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            if not Path(ArrayFile.map(description).about["cache"]).exists():
                description.unlink(missing_ok=True)
                description.with_suffix(_INDEX).unlink(missing_ok=True)
