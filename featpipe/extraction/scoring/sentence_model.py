"""Sentences: the log odds, by the words in it, that a sentence holds a value of the field.

A long value is known by what it speaks of: a clause on assignment has the word. Logistic regression
over the distinct words and pairs of neighbouring tokens of a sentence; unlike the similarities,
which tell the best sentence of a document from its others, its log odds are absolute: in a document
without a value none is high.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.logistic import fit_logistic, true_weight
from featpipe.extraction.scoring.sentence_words import N_PLACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Places = NDArray[np.int32]

#: Sentences without a value that a sample is represented by; more cost time.
_MOST_FALSE = 120
_STRENGTH = 1.0
_PRIOR_BIAS = -4.0
_N_STEPS = 30
#: Words and pairs that a field keeps, those of the greatest weights.
_MOST_KEPT = 8192


class SentenceScores(NamedTuple):
    """Of the sentences of a page by one field, (n_sentences,) each."""

    by_vectors: Floats
    """Similarity to the sentences of the samples; ``by_words`` likewise."""
    by_words: Floats
    log_odds: Floats
    """Of holding a value."""


@dataclass(frozen=True, slots=True, eq=False)
class SentenceModel:
    """Shape: ``weights`` (N_PLACES,) float32."""

    weights: NDArray[np.float32]
    bias: float = _PRIOR_BIAS

    def logits(self, features: PageFeatures) -> Floats:
        """Log odds (n_sentences,) that each sentence holds a value."""
        words = features.sentence_words
        sums = np.bincount(words.sentences, self.weights.take(words.places), words.n_sentences)
        return np.asarray(sums + self.bias, np.float64)


def no_sentences() -> SentenceModel:
    """What is known of a field before any sample has been seen: nothing."""
    return SentenceModel(np.zeros(N_PLACES, np.float32))


def fit_sentences(
    samples: Sequence[tuple[PageFeatures, Sequence[tuple[int, int]]]],
    prior: SentenceModel | None = None,
    seed: int = 0,
) -> SentenceModel:
    """Fit on samples with the located values (character spans) of each, those without included."""
    chance = np.random.default_rng(seed)
    parts = [_sentences_of(features, spans, chance) for features, spans in samples]
    prior = prior or no_sentences()
    if not any(part.truth.any() for part in parts):
        return prior
    return _fit(parts, prior)


class _Part(NamedTuple):
    """Sentences of one sample: words by row, whether each has a value, and its weight."""

    places: Places
    rows: NDArray[np.int64]
    truth: Bools
    weights: Floats


def _sentences_of(
    features: PageFeatures, spans: Sequence[tuple[int, int]], chance: np.random.Generator
) -> _Part:
    words = features.sentence_words
    truth = np.zeros(words.n_sentences, bool)
    for start, end in spans:
        truth[features.page.sentence_of(start) : features.page.sentence_of(end - 1) + 1] = True
    rest = np.flatnonzero(~truth)
    drawn = chance.choice(rest, min(len(rest), _MOST_FALSE), replace=False)
    chosen = np.sort(np.concatenate((np.flatnonzero(truth), drawn)))
    numbers = np.full(words.n_sentences, -1)
    numbers[chosen] = np.arange(len(chosen))
    rows = numbers[words.sentences]
    weights = np.where(truth[chosen], true_weight(truth), len(rest) / max(len(drawn), 1))
    return _Part(words.places[rows >= 0], rows[rows >= 0], truth[chosen], weights)


def _fit(parts: Sequence[_Part], prior: SentenceModel) -> SentenceModel:
    from scipy.sparse import csr_matrix

    first = np.cumsum([0, *(len(part.truth) for part in parts)])
    rows = np.concatenate([part.rows + at for part, at in zip(parts, first[:-1], strict=True)])
    places = np.concatenate([part.places for part in parts])
    counts = np.bincount(places, minlength=N_PLACES)
    # What a single sentence has tells nothing of others.
    kept = np.flatnonzero(counts > 1)
    numbers = np.full(N_PLACES, -1)
    numbers[kept] = np.arange(len(kept))
    columns = numbers[places]
    is_kept = columns >= 0
    shape = int(first[-1]), len(kept)
    matrix = csr_matrix(
        (np.ones(int(is_kept.sum())), (rows[is_kept], columns[is_kept])), shape=shape
    )
    fitted = fit_logistic(
        matrix,
        np.concatenate([part.truth for part in parts]),
        np.concatenate([part.weights for part in parts]),
        strength=_STRENGTH, prior=prior.weights[kept].astype(np.float64), prior_bias=prior.bias,
        n_steps=_N_STEPS,
    )  # fmt: skip
    most = np.sort(np.argsort(-np.abs(fitted.weights), kind="stable")[:_MOST_KEPT])
    table = prior.weights.copy()
    table[kept[most]] = fitted.weights[most]
    return SentenceModel(table, fitted.bias)
