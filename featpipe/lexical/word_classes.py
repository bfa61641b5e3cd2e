"""Word classes: noun, verb, name of a place ... by the tags of jieba's dictionary.

Words are looked up by a 64-bit polynomial of their characters, all words of a text at once: about
0.1 ms for a thousand words. The table is compiled once per dictionary, in half a second, and
kept in the user's cache folder; where that cannot be written, each process compiles its own.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.lexical.jieba_dictionary import InstalledJieba, find_jieba
from featpipe.user_cache import ArrayFile, folder

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Points = NDArray[np.uint32]
    Offsets = NDArray[np.int64]
    Hashes = NDArray[np.uint64]
    Classes = NDArray[np.uint8]

#: Counted up when the table's layout or the classes change.
CLASSES_VERSION = 1
#: Class numbers are places in this list: of jieba's tags the first letter counts, and of names
#: (of persons, places, institutions, others) two. 0 is a word that the dictionary does not hold.
CLASSES = ("", "nr", "ns", "nt", "nz", *"abcdefghijklmnopqrstuvwxyz")
_NUMBERS = {tag: number for number, tag in enumerate(CLASSES)}
#: Odd, so that it has an inverse modulo 2**64.
_BASE = 0x9E3779B97F4A7C15


class WordClasses(NamedTuple):
    """A dictionary's words and their classes. Shapes: (n_words,) each, ``words`` ascending."""

    words: Hashes
    classes: Classes

    def of(self, points: Points, starts: Offsets, ends: Offsets) -> Classes:
        """Class number (n,) of each word, given as spans of a text's code points."""
        if not len(self.words) or not len(starts):
            return np.zeros(len(starts), np.uint8)
        # Each distinct word is searched once: the table is larger than the processor's caches.
        wanted, number = np.unique(hash_words(points, starts, ends), return_inverse=True)
        at = np.minimum(np.searchsorted(self.words, wanted), len(self.words) - 1)
        return np.where(self.words[at] == wanted, self.classes[at], np.uint8(0))[number]


def hash_words(points: Points, starts: Offsets, ends: Offsets) -> Hashes:
    """A number (n,) for each span of code points, the same wherever the span stands."""
    powers, inverse = (_powers(base, len(points) + 1) for base in (_BASE, pow(_BASE, -1, 1 << 64)))
    sums = np.zeros(len(points) + 1, np.uint64)
    np.cumsum((points.astype(np.uint64) + np.uint64(1)) * powers[:-1], out=sums[1:])
    return (sums[ends] - sums[starts]) * inverse[starts]


def _powers(base: int, n: int) -> Hashes:
    factors = np.full(n, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


@cache
def open_classes() -> WordClasses:
    """The classes of the installed jieba's words.

    Raises:
        MissingExtra: jieba is not installed.
    """
    installed = find_jieba()
    file = folder("word-classes") / f"{CLASSES_VERSION}-{installed.dictionary}.arrays"
    with suppress(OSError, ValueError, KeyError):
        return _map(file)
    compiled = compile_classes(installed)
    with suppress(OSError):  # a read-only folder is no reason to fail
        ArrayFile.write(file, {}, compiled._asdict())
    return compiled


def _map(file: Path) -> WordClasses:
    arrays = ArrayFile.map(file).arrays
    return WordClasses(np.asarray(arrays["words"]), np.asarray(arrays["classes"]))


def compile_classes(installed: InstalledJieba) -> WordClasses:
    """The table of a dictionary; of a word that stands in it twice, the first tag counts."""
    lines = [line.split(" ") for line in installed.dictionary_path.read_text("utf-8").splitlines()]
    tagged = [(line[0], _number_of(line[-1])) for line in lines if len(line) == 3 and line[0]]
    text = "".join(word for word, _ in tagged)
    ends = np.cumsum([len(word) for word, _ in tagged])
    starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    words, first = np.unique(hash_words(points, starts, ends), return_index=True)
    return WordClasses(words, np.array([number for _, number in tagged], np.uint8)[first])


def _number_of(tag: str) -> int:
    return _NUMBERS.get(tag[:2], _NUMBERS.get(tag[:1], 0))
