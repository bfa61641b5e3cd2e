"""Confidence: the probability that a value is right, as people are shown it.

A field's own curve (:mod:`featpipe.extraction.scoring.calibration`) orders its values, but a few
samples cannot tell how often such values are right, nor whether a document has one at all. Many
templates can, and so the likeliest value is reported by its confidence: a logistic regression over
what a value and its field's samples show, whose weights were learnt once, by
``scripts/learn_confidence.py``, from the development parts of four public sets
(``scripts/extraction_sets.py``), with the entities of the built-in model and without them:
announcements, event sentences, receipts and English contracts.

Its terms are few, since templates differ: many products of columns fit the four sets closer and
foretell a set they were not chosen on worse. Weights learnt without a set have an expected
calibration error of .04 to .08 on its likeliest values with 5 samples and .02 to .07 with 20; of
values said to be sure (.9 and more) .71 to .96 and .85 to .96 are right. Offsets learnt from a
field's, or a template's, own left-out samples lower it nowhere: a few samples tell the share of
right values no closer than templates differ in it.

Guarantee: in the order of a document's values, confidence never grows.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.calibration import Evidence
from featpipe.extraction.scoring.logistic import sigmoid
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.ranking import ValueModel

    Floats = NDArray[np.float64]


#: Bounds of a value's score and of its lead over the others.
_MOST_SCORE, _MOST_LEAD = 8.0, 6.0
_EVIDENCE = tuple(field.name for field in fields(Evidence))
COLUMNS = ("one", "score", "lead", "shaped", *_EVIDENCE, *VALUE_COLUMNS)


def columns_of(
    values: ValueModel, rows: Floats, probabilities: Floats, *, is_shaped: bool
) -> Floats:
    """Columns (n_values, len(COLUMNS)) that terms are products of, of values in their order.

    Args:
        values: of the field.
        rows: value columns (n_values, len(VALUE_COLUMNS)).
        probabilities: (n_values,) by the field's own curve, never growing.
        is_shaped: whether values of the field's type have a shape.

    """
    share = np.clip(probabilities / values.ceiling, 1e-9, 1.0 - 1e-9)
    score = np.clip(np.log(share / (1.0 - share)), -_MOST_SCORE, _MOST_SCORE)
    shown = values.evidence
    own = (is_shaped, *(getattr(shown, name) for name in _EVIDENCE))
    columns = np.empty((len(score), len(COLUMNS)))
    columns[:, 0], columns[:, 1], columns[:, 2] = 1.0, score, _MOST_LEAD
    if len(score) > 1:
        # The best value comes first: it leads the second, and the others are behind it.
        columns[:, 2] = np.maximum(score - score[0], -_MOST_LEAD)
        columns[0, 2] = min(score[0] - score[1], _MOST_LEAD)
    columns[:, 3 : 3 + len(own)] = own
    columns[:, 3 + len(own) :] = rows
    return columns


#: Two columns each, and the weight of their product; ``BIAS`` is the sum without any.
TERMS: tuple[tuple[str, str, float], ...] = (
    ("one", "share", 1.4246),
    ("log length", "share", 0.3141),
    ("missing", "share", -0.3068),
    ("one", "mention", 0.3844),
    ("few", "mention", -0.2256),
    ("one", "lead", 0.1569),
    ("one", "is best", -1.1328),
    ("one", "n mentions", 0.5512),
    ("one", "accuracy", -0.2053),
    ("one", "score", 0.1268),
    ("one", "rejected", -1.8415),
    ("several", "few", -0.2369),
    ("accuracy", "behind best", -0.2203),
    ("mention", "second mention", -0.1393),
)
BIAS = -0.5717

#: Log odds from which they grow more slowly, and how much. Of the surest values of a set that
#: weights were not learnt on, fewer were right than was said; the log loss is the same.
_SURE, _BEYOND_SURE = 1.5, 0.9

_FIRST, _SECOND = ([COLUMNS.index(term[side]) for term in TERMS] for side in (0, 1))
_WEIGHTS = np.array([weight for *_, weight in TERMS])


def terms_of(columns: Floats) -> Floats:
    """Products (n_values, len(TERMS)) of columns."""
    return np.asarray(columns[:, _FIRST] * columns[:, _SECOND])


def confidences_of(
    values: ValueModel, rows: Floats, probabilities: Floats, *, is_shaped: bool
) -> Floats:
    """Confidence (n_values,) of a field's values; arguments as for :func:`columns_of`."""
    columns = columns_of(values, rows, probabilities, is_shaped=is_shaped)
    logits = np.einsum("nt,t->n", terms_of(columns), _WEIGHTS) + BIAS
    logits = np.minimum(logits, _SURE + _BEYOND_SURE * (logits - _SURE))
    return np.asarray(np.minimum.accumulate(sigmoid(logits)))
