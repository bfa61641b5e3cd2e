"""Tokens of many texts as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer as RawTokenizer

Ints: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.int32]
Offsets: TypeAlias = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of all texts one after another, without special tokens.

    Shapes: ids (t,); ends (n,), so that text i has ``ids[ends[i-1]:ends[i]]``; start and stop (t,),
    the characters of its text that each token covers, None when they were not asked for.
    """

    ids: Ids
    ends: Ints
    start: Offsets | None = None
    stop: Offsets | None = None

    @property
    def lengths(self) -> Ints:
        """Tokens per text, shape (n,)."""
        return np.diff(self.ends, prepend=0)

    @property
    def offsets(self) -> tuple[Offsets, Offsets]:
        """Start and stop.

        Raises:
            ValueError: they were not asked for.
        """
        if self.start is None or self.stop is None:
            raise ValueError("tokens without offsets")
        return self.start, self.stop

    def places(self, texts: Ints) -> Ints:
        """Places in ``ids`` of the tokens of `texts`, text by text."""
        return find_places(self.lengths, texts)

    def take(self, texts: Ints) -> Tokens:
        """The tokens of `texts` alone."""
        at = self.places(texts)
        start = None if self.start is None else self.start[at]
        stop = None if self.stop is None else self.stop[at]
        return Tokens(self.ids[at], np.cumsum(self.lengths[texts]), start, stop)

    def texts_of(self, places: Ints) -> list[int]:
        """Numbers of the texts that hold the tokens at `places`, ascending, each once."""
        if not len(places):
            return []
        found: list[int] = np.unique(np.searchsorted(self.ends, places, side="right")).tolist()
        return found


def find_places(lengths: Ints, texts: Ints) -> Ints:
    """Places of what belongs to `texts`, where each of n texts has `lengths` (n,) of them."""
    found = lengths[texts]
    return number_within(found) + np.repeat(np.cumsum(lengths)[texts] - found, found)


def number_within(lengths: Ints) -> Ints:
    """0 to length - 1 for each of `lengths`, one after another."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def find_unknown(tokens: Tokens, n_words: int) -> list[int]:
    """Numbers of the texts with an id of `n_words` or more."""
    return tokens.texts_of(np.flatnonzero(tokens.ids >= n_words))


def encode_slowly(raw: RawTokenizer, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
    """The reference path: one call of the tokenizer, with Python objects for every token."""
    batch = raw.encode_batch if with_offsets else raw.encode_batch_fast
    try:
        encodings = batch(list(texts), add_special_tokens=False)
    except TypeError:  # the Rust side's error for a lone surrogate, which is a UnicodeEncodeError
        "".join(texts).encode("utf-8")
        raise
    lengths = np.fromiter((len(e) for e in encodings), np.int64, len(encodings))
    ends: Ints = np.cumsum(lengths)
    total = int(lengths.sum())
    ids: Ids = np.fromiter((i for e in encodings for i in e.ids), np.int32, total)
    if not with_offsets:
        return Tokens(ids, ends)
    flat = (edge for e in encodings for pair in e.offsets for edge in pair)
    offsets = np.fromiter(flat, np.uint32, 2 * total).reshape(total, 2)
    return Tokens(ids, ends, offsets[:, 0].copy(), offsets[:, 1].copy())


def concatenate(parts: Sequence[Tokens]) -> Tokens:
    """Join the texts of several batches: at least one, all with offsets or all without."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([part.ids for part in parts])
    ends: Ints = np.cumsum(np.concatenate([part.lengths for part in parts]))
    if parts[0].start is None:
        return Tokens(ids, ends)
    starts, stops = zip(*(part.offsets for part in parts), strict=True)
    return Tokens(ids, ends, np.concatenate(starts), np.concatenate(stops))
