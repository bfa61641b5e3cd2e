"""The best path through a linear-chain CRF, for many texts at once. Oracle: pytorch-crf.

A path's score is start[y0] + sum of emissions + sum of transitions[from, to] + end[y_last].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from featpipe.features.tokens import Ints

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Transitions:
    """Shapes: between (k, k) from row to column; start and end (k,)."""

    between: Scores
    start: Scores
    end: Scores


def find_best_paths(
    emissions: Scores, lengths: Ints, transitions: Transitions
) -> npt.NDArray[np.intp]:
    """Label per token.

    Shapes: emissions (tokens, k), texts one after another; lengths (n,) -> (tokens,). Each step is
    taken by all texts still going on; the sums are pytorch-crf's, in its order and in float32. Of
    equally good labels the first wins.
    """
    n_labels = emissions.shape[1]
    order = np.argsort(-lengths, kind="stable")  # texts still going on are then the first rows
    first = (np.cumsum(lengths) - lengths)[order]
    sizes = lengths[order]
    n_texts = int(np.count_nonzero(sizes))
    path = np.empty(len(emissions), np.intp)
    if not n_texts:
        return path
    score = transitions.start + emissions[first[:n_texts]]
    came_from = np.empty((len(emissions), n_labels), np.int16 if n_labels < 1 << 15 else np.int32)
    for step in range(1, int(sizes[0])):
        going = int(np.searchsorted(-sizes, -step, side="left"))
        rows = first[:going] + step
        reached = score[:going, :, None] + transitions.between + emissions[rows][:, None, :]
        came_from[rows] = reached.argmax(axis=1)
        score[:going] = reached.max(axis=1)
    best = (score + transitions.end).argmax(axis=1)
    for step in range(int(sizes[0]) - 1, -1, -1):
        going = int(np.searchsorted(-sizes, -step, side="left"))
        rows = first[:going] + step
        path[rows] = best[:going]
        if step:
            best[:going] = came_from[rows, best[:going]]
    return path
