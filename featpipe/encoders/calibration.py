"""Calibrated probabilities of entities: a logistic function of what a tagger says of a span.

A checkpoint may hold ``entity_calibration.json``, fitted on texts whose entities are known:
``{"features": [...], "weights": {type: [one number per feature]}}``. A score is then the logistic
function of the sum of weights times features (Platt 1999, with more than one feature and one set of
weights for each entity type). Without the file, scores are means of softmax probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from featpipe.encoders.recipe import read_json_object
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: In this order: a constant; log odds of the mean and of the least softmax probability of the
#: tokens' labels; logarithm of the number of tokens; log odds of the probability of the label right
#: before and right behind, certain where the text ends and where another entity follows at once.
FEATURES = ("bias", "mean", "least", "tokens", "before", "behind")

_LEAST_PROBABILITY = 1e-4

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Weights (types, features) of the entity types of one tagger."""

    weights: Floats

    def score(self, features: Floats, label: npt.NDArray[np.integer]) -> Floats:
        """Probability that an entity is right.

        Shapes: features (m, features) as `measure_spans` gives them, label (m,), numbers of types.
        """
        odds = (features * self.weights[label]).sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-odds)))


def read_calibration(file: Path, types: Sequence[str]) -> Calibration:
    """Weights in the order of `types`.

    Raises:
        CheckpointError: a damaged file, other features than these, or a type without weights.
    """
    content = read_json_object(file)
    if content.get("features") != list(FEATURES):
        raise CheckpointError(
            f"{file} has the features {content.get('features')}",
            hint=f"this version computes {list(FEATURES)}",
        )
    weights = content.get("weights")
    rows = []
    for kind in types:
        row = weights.get(kind) if isinstance(weights, dict) else None
        if not isinstance(row, list) or len(row) != len(FEATURES) or not all(map(_is_number, row)):
            raise CheckpointError(
                f"{file} has no {len(FEATURES)} numbers as weights of {kind}",
                hint="fit it again, or delete it to have scores that are not calibrated",
            )
        rows.append(row)
    return Calibration(np.array(rows, np.float64).reshape(len(types), len(FEATURES)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def measure_spans(
    scores: npt.NDArray[np.float32],
    first: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    text: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> Floats:
    """What is known of m entities, as `FEATURES`: (m, features).

    Shapes: scores (tokens,), probability of each token's label; first, last (m,), the entities'
    tokens in order; text (m,), the number of the text that each is in; ends (texts,), the number
    of tokens up to the end of each text.
    """
    if not len(first):
        return np.empty((0, len(FEATURES)), np.float64)
    exact = scores.astype(np.float64)
    bounds = np.column_stack([first, last + 1]).ravel()
    # Entities alternate with what is between them; the last one's end may be the array's.
    within = bounds[:-1] if bounds[-1] == len(exact) else bounds
    least = np.minimum.reduceat(exact, within)[::2]
    n_tokens = last - first + 1
    mean = np.add.reduceat(exact, within)[::2] / n_tokens
    is_start, is_end = first == np.append(0, ends)[text], last + 1 == ends[text]
    # In a list of names without marks each touches the next, and that says nothing about it.
    touches = first[1:] == last[:-1] + 1
    before = np.where(is_start | np.append(False, touches), 1.0, exact[first - 1])
    behind = np.where(is_end | np.append(touches, False), 1.0, np.append(exact, 1.0)[last + 1])
    return np.column_stack(
        [
            np.ones(len(first)),
            _log_odds(mean),
            _log_odds(least),
            np.log(n_tokens),
            _log_odds(before),
            _log_odds(behind),
        ]
    )


def _log_odds(probability: Floats) -> Floats:
    kept = np.clip(probability, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    return np.asarray(np.log(kept / (1 - kept)))
