"""Mentions: the log odds that a span, at its place, is a value of the field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.logistic import fit_logistic, true_weight
from featpipe.extraction.scoring.priors import prior_weights
from featpipe.extraction.scoring.tokens import hashes_of
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.hashed_rows import HashedRows
    from featpipe.extraction.scoring.pretrained import PretrainedField
    from featpipe.extraction.scoring.tokens import Tokens

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    #: Chosen rows and their weights.
    Choice = tuple[NDArray[np.intp], Floats]

#: Two spans that differ by these alone are one value (:mod:`featpipe.extraction.values.values`).
_IGNORED_MARKS = hashes_of(".。;:、\"'《》<>")
_RANDOM_PER_DOCUMENT = 80
_OVERLAPPING_PER_DOCUMENT = 100
_HARD_PER_DOCUMENT = 30
_HASHED_STRENGTH = 2.0
#: What the field's names show holds also where the labels of the samples are others.
_BY_NAME = ("behind alias", "alias near", "from label")
_MEASURED_STRENGTH = np.array([4.0 if name in _BY_NAME else 0.5 for name in MEASURED])
PRIOR_BIAS = -4.0


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """Candidates of one sample document. Arrays of one length."""

    hashed: HashedRows
    measured: Floats
    labels: Bools
    """True mentions."""
    overlaps: Bools
    """Overlap a true mention without being one: they show where values begin and end."""


@dataclass(frozen=True, slots=True, eq=False)
class MentionModel:
    """Shapes: ``hashed`` (N_HASHED,) float32, ``measured`` (len(MEASURED),)."""

    hashed: NDArray[np.float32]
    measured: Floats
    bias: float

    def logits(self, hashed: HashedRows, measured: Floats) -> Floats:
        """Log odds (n,) of each candidate."""
        return np.asarray(hashed.sums(self.hashed) + measured @ self.measured + self.bias)

    def parts(self, hashed: NDArray[np.int32], measured: Floats) -> dict[str, float]:
        """Terms of one candidate's log odds, by name."""
        named = dict(zip(MEASURED, (measured * self.measured).tolist(), strict=True))
        words = float(self.hashed[hashed].sum())
        return {"words": words, "bias": self.bias} | {k: v for k, v in named.items() if v}


def label_candidates(
    features: PageFeatures, found: Candidates, true_spans: Sequence[tuple[int, int]]
) -> tuple[Bools, Bools]:
    """Whether each candidate is a true mention; whether it overlaps one without being one.

    ``true_spans`` are character spans of a sample document's located values.
    """
    tokens = features.tokens
    start, end = tokens.start[found.first], tokens.end[found.last - 1]
    true = np.array(sorted(set(true_spans)), np.int64).reshape(-1, 2)
    wanted = np.unique(_trimmed(tokens, *tokens.spans(true)))
    labels = is_in(_trimmed(tokens, found.first, found.last), wanted)
    overlaps = np.zeros(len(found), bool)
    for a, b in true.tolist():
        overlaps |= (start < b) & (a < end)
    return labels, overlaps & ~labels


def _trimmed(tokens: Tokens, first: Ints, last: Ints) -> Ints:
    """One number per token span, the same with ignored marks at its ends and without them."""
    kept = np.flatnonzero(~is_in(tokens.code, _IGNORED_MARKS))
    ahead = np.append(kept, len(tokens))[np.searchsorted(kept, first)]
    back = np.append(-1, kept)[np.searchsorted(kept, last)] + 1
    is_empty = ahead >= back
    return np.where(is_empty, first << 32 | last, ahead << 32 | back)


def prior_model(
    n_samples: int = 0, *, of_clauses: bool = False, pretrained: PretrainedField | None = None
) -> MentionModel:
    """The prior of a field with so many samples: without learned words, unless pretrained."""
    weights = prior_weights(n_samples, of_clauses=of_clauses)
    if pretrained is None:
        return MentionModel(np.zeros(N_HASHED, np.float32), weights, PRIOR_BIAS)
    return MentionModel(
        pretrained.hashed, weights + pretrained.measured, PRIOR_BIAS + pretrained.bias
    )


def fit_mentions(
    documents: Sequence[TrainingRows],
    *,
    of_clauses: bool = False,
    pretrained: PretrainedField | None = None,
    seed: int = 0,
) -> MentionModel:
    """Fit on some negatives, add the worst errors of that model (hard negatives), and fit again."""
    documents = [rows for rows in documents if len(rows.labels)]
    prior = prior_model(len(documents), of_clauses=of_clauses, pretrained=pretrained)
    if not any(rows.labels.any() for rows in documents):
        return prior
    chance = np.random.default_rng(seed)
    chosen = [first_choice(rows, chance) for rows in documents]
    model = _fit(chosen_rows(documents, chosen), prior)
    return _fit(chosen_rows(documents, add_hard_negatives(documents, chosen, model)), prior)


def first_choice(rows: TrainingRows, chance: np.random.Generator) -> Choice:
    """True spans, overlapping ones, and some of the rest, weighted to stand for all of it."""
    near = np.flatnonzero(rows.labels | rows.overlaps)
    if rows.overlaps.sum() > _OVERLAPPING_PER_DOCUMENT:
        true = np.flatnonzero(rows.labels)
        overlapping = chance.choice(
            np.flatnonzero(rows.overlaps), _OVERLAPPING_PER_DOCUMENT, replace=False
        )
        near = np.concatenate((true, overlapping))
    rest = np.flatnonzero(~(rows.labels | rows.overlaps))
    n = min(len(rest), _RANDOM_PER_DOCUMENT)
    drawn = chance.choice(rest, n, replace=False) if n else rest
    weight = min(len(rest) / max(n, 1), 4.0)
    return np.concatenate((near, drawn)), np.concatenate((np.ones(len(near)), np.full(n, weight)))


def add_hard_negatives(
    documents: Sequence[TrainingRows], chosen: Sequence[Choice], model: MentionModel
) -> list[Choice]:
    """The choice of each document with the candidates added that a model is most wrong about."""
    return [
        _with_hard_negatives(rows, choice, model) if len(rows.labels) > len(choice[0]) else choice
        for rows, choice in zip(documents, chosen, strict=True)
    ]


def _with_hard_negatives(rows: TrainingRows, choice: Choice, model: MentionModel) -> Choice:
    chosen, weights = choice
    logits = np.where(rows.labels, -np.inf, model.logits(rows.hashed, rows.measured))
    logits[chosen] = -np.inf
    worst = np.argsort(-logits)[:_HARD_PER_DOCUMENT]
    worst = worst[np.isfinite(logits[worst])]
    return np.concatenate((chosen, worst)), np.concatenate((weights, np.ones(len(worst))))


class ChosenRows(NamedTuple):
    """Chosen candidates of all documents, ``n`` rows.

    Shapes: ``hashed`` (n, width), ``measured`` (n, len(MEASURED)), ``labels`` and ``weights`` (n,).
    """

    hashed: NDArray[np.int32]
    measured: Floats
    labels: Bools
    weights: Floats


def chosen_rows(documents: Sequence[TrainingRows], chosen: Sequence[Choice]) -> ChosenRows:
    """The rows that a model is fitted on; true ones weigh more."""
    both = list(zip(documents, chosen, strict=True))
    truth = [rows.labels[at] for rows, (at, _) in both]
    weights = [
        np.where(own, true_weight(own), given)
        for own, (_, given) in zip(truth, chosen, strict=True)
    ]
    return ChosenRows(
        np.concatenate([rows.hashed.at(at).matrix() for rows, (at, _) in both]),
        np.concatenate([rows.measured[at] for rows, (at, _) in both]),
        np.concatenate(truth),
        np.concatenate(weights),
    )


def _fit(rows: ChosenRows, prior: MentionModel) -> MentionModel:
    from scipy.sparse import csr_matrix, hstack

    columns, inverse = np.unique(rows.hashed, return_inverse=True)
    n, width = rows.hashed.shape
    sparse = csr_matrix(
        (np.ones(n * width), inverse.ravel(), np.arange(0, n * width + 1, width)),
        shape=(n, len(columns)),
    )
    strength = np.concatenate((np.full(len(columns), _HASHED_STRENGTH), _MEASURED_STRENGTH))
    mean = np.concatenate((prior.hashed[columns].astype(np.float64), prior.measured))
    fitted = fit_logistic(
        hstack((sparse, csr_matrix(rows.measured)), format="csr"), rows.labels, rows.weights,
        strength=strength, prior=mean, prior_bias=prior.bias,
    )  # fmt: skip
    table = prior.hashed.copy()
    table[columns] = fitted.weights[: len(columns)]
    return MentionModel(table, fitted.weights[len(columns) :], fitted.bias)
