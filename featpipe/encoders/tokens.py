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

    def places(self, texts: Ints) -> Ints:
        """Where the tokens of some texts lie, text by text."""
        lengths = self.lengths[texts]
        ends = np.cumsum(lengths)
        return np.arange(int(lengths.sum())) + np.repeat(self.ends[texts] - ends, lengths)

    def take(self, texts: Ints) -> Tokens:
        """Those of some texts."""
        at = self.places(texts)
        start = None if self.start is None else self.start[at]
        stop = None if self.stop is None else self.stop[at]
        return Tokens(self.ids[at], np.cumsum(self.lengths[texts]), start, stop)


def find_unknown(tokens: Tokens, n_words: int) -> list[int]:
    """Numbers of the texts with an id of `n_words` or more."""
    beyond = np.flatnonzero(tokens.ids >= n_words)
    found: list[int] = np.unique(np.searchsorted(tokens.ends, beyond, side="right")).tolist()
    return found


def encode_slowly(raw: RawTokenizer, texts: Sequence[str], *, with_offsets: bool) -> Tokens:
    """One call of the tokenizer per batch, and Python objects in between: the reference path."""
    batch = raw.encode_batch if with_offsets else raw.encode_batch_fast
    try:
        encodings = batch(list(texts), add_special_tokens=False)
    except TypeError:  # what the Rust side makes of a lone surrogate
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


def concatenate(parts: Sequence[Tokens], *, with_offsets: bool) -> Tokens:
    """Texts of several batches as one."""
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts]
    ends: Ints = np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]))
    ids = np.concatenate([np.empty(0, np.int32), *(part.ids for part in parts)])
    if not with_offsets:
        return Tokens(ids, ends)
    none = np.empty(0, np.uint32)
    start = np.concatenate([none, *(none if p.start is None else p.start for p in parts)])
    stop = np.concatenate([none, *(none if p.stop is None else p.stop for p in parts)])
    return Tokens(ids, ends, start, stop)
