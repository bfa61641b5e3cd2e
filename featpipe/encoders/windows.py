"""Long texts as overlapping windows, so that nothing is ever truncated.

The rule for a text of more tokens than fit one window (`capacity` tokens beside the special ones):
windows start every `stride` tokens and hold `capacity` tokens each; the last ends with the text.
A window's weight is the number of tokens that no earlier window held, so each token of the text
counts once. What the windows' vectors become is said by `combine`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from featpipe.encoders.tokens import Ints, Offsets

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of all texts, text by text. All shapes (w,) but n_windows (n,)."""

    text: Ints
    start: Ints
    """First token, counted over all texts."""
    length: Ints
    """Tokens, special ones not included; 0 for an empty text, which has one window."""
    weight: Ints
    n_windows: Ints


def plan_windows(lengths: Ints, *, capacity: int, stride: int, only_first: bool = False) -> Windows:
    """Cut texts of `lengths` tokens, shape (n,), into windows; `only_first` leaves out the rest."""
    beyond = np.maximum(lengths - capacity, 0) * (not only_first)
    n_windows = 1 + -(-beyond // stride)
    text = np.repeat(np.arange(len(lengths)), n_windows)
    first = np.cumsum(n_windows) - n_windows
    number = np.arange(len(text)) - first[text]
    offset = number * stride
    length = np.minimum(capacity, lengths[text] - offset)
    seen = np.where(number > 0, offset - stride + capacity, 0)
    text_start = np.cumsum(lengths) - lengths
    return Windows(
        text=text,
        start=text_start[text] + offset,
        length=length,
        weight=offset + length - seen,
        n_windows=n_windows,
    )


def combine(vectors: Vectors, windows: Windows, pooling: str) -> Vectors:
    """One vector per text from its windows' vectors.

    Shapes: vectors (w, dim) -> (n, dim). ``mean`` and ``cls``: mean weighted by the windows' new
    tokens; ``max``: elementwise maximum; ``last``: the last window's. A text of one window keeps
    its vector bit for bit. Sums run in window order, in float64, per text: other texts in the call
    change nothing.
    """
    last = np.cumsum(windows.n_windows) - 1
    out = vectors[last].copy()
    if pooling == "last":
        return out
    for text in np.flatnonzero(windows.n_windows > 1):
        rows = slice(last[text] + 1 - windows.n_windows[text], last[text] + 1)
        if pooling == "max":
            out[text] = vectors[rows].max(axis=0)
        else:
            weight = windows.weight[rows].astype(np.float64)
            total = (vectors[rows].astype(np.float64) * weight[:, None]).sum(axis=0)
            out[text] = total / weight.sum()
    return out


# Windows for tagging: every token is labelled once, from where it is seen best.
#
# A long text is cut at sentence ends, where no entity goes on, so windows need not overlap. Where a
# sentence is longer than a window, windows overlap, and each token's label comes from the window in
# which it is farther from the cut.


#: The place after a sentence: closing punctuation with any closing quotes, or a line break.
_SENTENCE_END = re.compile(r"[。！？；!?;]+[”’」』）)\"']*|[.][”’)\"']*(?=\s)|\n+")


@dataclass(frozen=True, slots=True)
class Cuts:
    """Windows of all texts, in text order. All shapes (w,), tokens counted over all texts."""

    start: Ints
    length: Ints
    own_start: Ints
    """First token whose label comes from this window; they follow one another without a gap."""


def cut_text(
    n_tokens: int, sentence_ends: Ints, *, capacity: int, overlap: int
) -> list[tuple[int, int]]:
    """(first, one past last) token of each window of a text of `n_tokens`.

    `sentence_ends` holds, ascending, the numbers of tokens that begin a sentence. A window ends
    with the last sentence that fits, unless that leaves more than half of it empty.
    """
    windows: list[tuple[int, int]] = []
    start = 0
    while n_tokens - start > capacity:
        stop = start + capacity
        at = int(np.searchsorted(sentence_ends, stop, side="right")) - 1
        end = int(sentence_ends[at]) if at >= 0 else 0
        is_sentence_end = end > start + capacity // 2
        windows.append((start, end if is_sentence_end else stop))
        start = end if is_sentence_end else stop - overlap
    windows.append((start, n_tokens))
    return windows


def own_starts(windows: list[tuple[int, int]]) -> list[int]:
    """First token that each window answers for: halfway through what it shares with the last."""
    return [
        windows[0][0],
        *(
            start if start >= before else (before - 1 + start) // 2 + 1
            for (_, before), (start, _) in pairwise(windows)
        ),
    ]


def find_sentence_starts(text: str, token_starts: Offsets) -> Ints:
    """Numbers of the tokens that follow a sentence end."""
    places = [match.end() for match in _SENTENCE_END.finditer(text)]
    return np.searchsorted(token_starts, np.array(places, np.uint32), side="left")
