"""Long texts as windows, so that no token is left out: one plan for vectors, one for labels.

For vectors, a text of more than `capacity` tokens (those that fit one window beside the special
ones) gets a window of `capacity` tokens every `stride` tokens; the last ends with the text. A
window's weight is the number of its tokens that no earlier window holds, so that each token counts
once.

For labels, a long text is cut at sentence ends, where no entity continues, so windows need not
overlap. Only a sentence that is longer than a window gets overlapping ones, and each token's label
comes from the window in which the token is farther from the cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from featpipe.encoders.tokens import number_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints, Offsets, Tokens

Vectors: TypeAlias = npt.NDArray[np.float32]

#: End of a sentence: closing punctuation with any closing quotes, or a line break.
_SENTENCE_END = re.compile(r"[。！？；!?;]+[”’」』）)\"']*|[.][”’)\"']*(?=\s)|\n+")


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of all texts, text by text. Shapes: (w,), but n_windows (n,)."""

    start: Ints
    """First token, counted over all texts."""
    length: Ints
    """Tokens, special ones not included; 0 for an empty text, which has one window."""
    weight: Ints
    n_windows: Ints


def plan_windows(lengths: Ints, *, capacity: int, stride: int, only_first: bool = False) -> Windows:
    """Cut texts of `lengths` tokens, shape (n,), into windows; `only_first` omits the others."""
    text_start = np.cumsum(lengths) - lengths
    if lengths.max(initial=0) <= capacity:
        return Windows(text_start, lengths, lengths, np.ones_like(lengths))
    beyond = np.maximum(lengths - capacity, 0) * (not only_first)
    n_windows = 1 + -(-beyond // stride)
    text = np.repeat(np.arange(len(lengths)), n_windows)
    number = number_within(n_windows)
    offset = number * stride
    length = np.minimum(capacity, lengths[text] - offset)
    seen = np.where(number > 0, offset - stride + capacity, 0)
    return Windows(
        start=text_start[text] + offset,
        length=length,
        weight=offset + length - seen,
        n_windows=n_windows,
    )


def combine(vectors: Vectors, windows: Windows, pooling: str) -> Vectors:
    """One vector per text from its windows' vectors.

    Shapes: vectors (w, dim) -> (n, dim). ``max``: elementwise maximum; ``last``: the last window's;
    otherwise the mean by the windows' weights. A text of one window keeps its vector bit for bit.
    Sums run in window order, in float64, per text: other texts in the call change nothing.
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


@dataclass(frozen=True, slots=True)
class LabelWindows:
    """Windows of all texts, text by text. Shapes (w,), tokens counted over all texts."""

    start: Ints
    length: Ints
    own_start: Ints
    """First token whose label comes from this window."""
    own_length: Ints
    """Number of these tokens; every token is one window's own."""

    def take_own(
        self, out: npt.NDArray[np.generic], rows: npt.NDArray[np.generic], pack: Pack, n_before: int
    ) -> None:
        """Copy the rows of the windows' own tokens to the tokens' places in `out`.

        Shapes: out (tokens, k); rows (t, k), one per token of `pack`, whose sequences are windows,
        each with `n_before` special tokens before it.
        """
        start, count = self.own_start[pack.sequences], self.own_length[pack.sequences]
        skipped = n_before + start - self.start[pack.sequences]
        row = np.cumsum(pack.lengths) - pack.lengths + skipped
        within = number_within(count)
        out[np.repeat(start, count) + within] = rows[np.repeat(row, count) + within]


def plan_label_windows(
    texts: Sequence[str], tokens: Tokens, *, capacity: int, overlap: int
) -> LabelWindows:
    """Cut `texts`, whose `tokens` have offsets, into windows of at most `capacity` tokens."""
    starts, _ = tokens.offsets
    rows: list[tuple[int, int, int, int]] = []
    for text, end, count in zip(texts, tokens.ends.tolist(), tokens.lengths.tolist(), strict=True):
        first = end - count
        windows = [(0, count)]
        if count > capacity:
            breaks = find_sentence_starts(text, starts[first:end])
            windows = cut_at_sentences(count, breaks, capacity=capacity, overlap=overlap)
        owned = pairwise([*own_starts(windows), count])
        rows += [
            (first + start, stop - start, first + own, own_stop - own)
            for (start, stop), (own, own_stop) in zip(windows, owned, strict=True)
        ]
    return LabelWindows(*np.array(rows, np.int64).reshape(-1, 4).T)


def cut_at_sentences(
    n_tokens: int, sentence_starts: Ints, *, capacity: int, overlap: int
) -> list[tuple[int, int]]:
    """(first, one past last) token of each window of a text of `n_tokens`.

    `sentence_starts` holds, ascending, the numbers of tokens that begin a sentence. A window ends
    with the last sentence that fits, unless that leaves more than half of it empty.
    """
    windows: list[tuple[int, int]] = []
    start = 0
    while n_tokens - start > capacity:
        stop = start + capacity
        at = int(np.searchsorted(sentence_starts, stop, side="right")) - 1
        end = int(sentence_starts[at]) if at >= 0 else 0
        is_sentence_end = end > start + capacity // 2
        windows.append((start, end if is_sentence_end else stop))
        start = end if is_sentence_end else stop - overlap
    windows.append((start, n_tokens))
    return windows


def own_starts(windows: list[tuple[int, int]]) -> list[int]:
    """First token that each window labels: the middle of its overlap with the window before."""
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
