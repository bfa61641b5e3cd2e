"""The best paths through a linear-chain CRF. Oracle: pytorch-crf.

Each step computes all texts that have not ended; the sums are pytorch-crf's, in its order and in
float32. Of equally good labels the first is chosen. The limit is additions: three for each pair of
labels and token, one label's row of all texts at a time, so that the processor's wide registers do
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from featpipe.encoders.tokens import Ints

Scores: TypeAlias = npt.NDArray[np.float32]
"""Shape (tokens, labels), not normalised; or part of that."""
Labels: TypeAlias = npt.NDArray[np.intp]

#: Texts whose paths are found together: their scores stay in the processor's cache.
_TEXTS_AT_ONCE = 4096

#: Pairs of labels, times texts, from which label by label is faster than all pairs in one call.
_MANY = 20_000


@dataclass(frozen=True, slots=True)
class Transitions:
    """Scores of a linear-chain CRF. Shapes: between (k, k) from row to column; start, end (k,)."""

    between: Scores
    start: Scores
    end: Scores


def find_best_paths(emissions: Scores, lengths: Ints, transitions: Transitions) -> Labels:
    """The best path of each text (Viterbi).

    The score of a path is start[first] + its emissions + its between[from, to] + end[last].

    Shapes: emissions (tokens, k), finite, texts one after another; lengths (n,) -> (tokens,).
    """
    order = np.argsort(-lengths, kind="stable")  # texts that have not ended are then the first
    order = order[: np.count_nonzero(lengths)]
    first = (np.cumsum(lengths) - lengths)[order]
    path = np.empty(len(emissions), np.intp)
    for at in range(0, len(order), _TEXTS_AT_ONCE):
        some = slice(at, at + _TEXTS_AT_ONCE)
        _find_paths(emissions, first[some], lengths[order[some]], transitions, path)
    return path


def _find_paths(
    emissions: Scores, first: Ints, sizes: Ints, transitions: Transitions, path: Labels
) -> None:
    """Write the paths of texts that begin at `first` and have `sizes`, which never increase.

    Within, a column is a text and a row a label.
    """
    n_going = np.searchsorted(-sizes, -np.arange(sizes[0]), side="left").tolist()
    score = np.ascontiguousarray((transitions.start + emissions[first]).T)
    came_from: list[npt.NDArray[np.signedinteger]] = [np.empty((0, 0), np.int8)]
    for step, going in enumerate(n_going[1:], start=1):
        emitted = np.ascontiguousarray(emissions[first[:going] + step].T)
        step_once = step_by_label if going * len(score) ** 2 >= _MANY else step_by_pair
        score[:, :going], came = step_once(score[:, :going], transitions.between, emitted)
        came_from.append(came)
    best = (score.T + transitions.end).argmax(axis=1)
    texts = np.arange(len(first))
    for step in range(len(n_going) - 1, -1, -1):
        going = n_going[step]
        path[first[:going] + step] = best[:going]
        if step:
            best[:going] = came_from[step][best[:going], texts[:going]]


def step_by_pair(
    score: Scores, between: Scores, emitted: Scores
) -> tuple[Scores, npt.NDArray[np.signedinteger]]:
    """Shapes: score, emitted (k, n) -> the best (k, n), and the label (k, n) that each is from."""
    reached = score[:, None] + between[:, :, None]
    reached += emitted
    return reached.max(axis=0), reached.argmax(axis=0)


def step_by_label(
    score: Scores, between: Scores, emitted: Scores
) -> tuple[Scores, npt.NDArray[np.signedinteger]]:
    """As `step_by_pair`."""
    kind = np.min_scalar_type(-len(score))
    best = score[0] + between[0][:, None]
    best += emitted
    came = np.zeros(best.shape, kind)
    reached, marked, is_higher = np.empty_like(best), np.empty_like(came), np.empty(best.shape, "?")
    for label in range(1, len(score)):
        np.add(score[label], between[label][:, None], out=reached)
        np.add(reached, emitted, out=reached)
        np.greater(reached, best, out=is_higher)
        np.maximum(best, reached, out=best)
        np.multiply(is_higher, kind.type(label), out=marked)
        np.maximum(came, marked, out=came)
    return best, came
