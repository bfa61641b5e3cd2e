"""Windows for tagging: every token is labelled once, from where it is seen best.

A long text is cut at sentence ends, where no entity goes on, so windows need not overlap. Where a
sentence is longer than a window, windows overlap, and each token's label comes from the window in
which it is farther from the cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from featpipe.features.tokens import Ints, Offsets

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
