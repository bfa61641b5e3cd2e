"""Confidence: the probability that a reported value is right, as people are shown it.

A field's own curve (:mod:`featpipe.extraction.scoring.calibration`) orders its values and decides
which are reported, but a few samples cannot tell how often such values are right. Many templates
can: a logistic regression over what a value and its field's samples show, whose weights were learnt
once, by ``scripts/learn_confidence.py``, from the development parts of four public sets
(``scripts/extraction_sets.py``), with the entities of the built-in model and without them:
announcements, event sentences, receipts and English contracts.

Its terms are few, since templates differ: many products of columns fit the four sets closer and
foretell a set they were not chosen on worse. Weights learnt without a set have an expected
calibration error of .04 to .07 on it with 5 samples and .04 to .10 with 20. Offsets learnt from a
field's, or a template's, own left-out samples lower it nowhere: a few samples tell the share of
right values no closer than templates differ in it.

Guarantee: in the order of a document's values, confidence never grows.
"""

from __future__ import annotations

from dataclasses import astuple, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.calibration import Evidence
from featpipe.extraction.scoring.candidates import SHAPED
from featpipe.extraction.scoring.logistic import sigmoid
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.field_model import FieldModel, Scored

    Floats = NDArray[np.float64]


#: Bounds of a value's score and of its lead over the others.
_MOST_SCORE, _MOST_LEAD = 8.0, 6.0
COLUMNS = (
    "one", "score", "lead", "shaped", *(field.name for field in fields(Evidence)), *VALUE_COLUMNS,
)  # fmt: skip


def columns_of(model: FieldModel, scored: Scored) -> Floats:
    """Columns (n_values, len(COLUMNS)) that terms are products of, of values in their order."""
    share = np.clip(scored.probabilities / model.values.ceiling, 1e-9, 1.0 - 1e-9)
    score = np.clip(np.log(share / (1.0 - share)), -_MOST_SCORE, _MOST_SCORE)
    own = (model.kind in SHAPED, *astuple(model.values.evidence))
    columns = np.empty((len(score), len(COLUMNS)))
    columns[:, 0], columns[:, 1], columns[:, 2] = 1.0, score, _MOST_LEAD
    if len(score) > 1:
        # The best value comes first: it leads the second, and the others are behind it.
        columns[:, 2] = np.maximum(score - score[0], -_MOST_LEAD)
        columns[0, 2] = min(score[0] - score[1], _MOST_LEAD)
    columns[:, 3 : 3 + len(own)] = own
    columns[:, 3 + len(own) :] = scored.rows
    return columns


#: Two columns each, and the weight of their product; ``BIAS`` is the sum without any.
TERMS: tuple[tuple[str, str, float], ...] = (
    ("one", "share", 0.4371),
    ("log length", "share", 1.0585),
    ("missing", "share", -0.3622),
    ("one", "mention", 0.4692),
    ("few", "mention", -0.3269),
    ("one", "lead", 0.2351),
    ("one", "is best", -0.8402),
    ("one", "n mentions", 0.5555),
    ("one", "accuracy", -0.0734),
)
BIAS = -0.6165

_FIRST, _SECOND = ([COLUMNS.index(term[side]) for term in TERMS] for side in (0, 1))
_WEIGHTS = np.array([weight for *_, weight in TERMS])


def terms_of(columns: Floats) -> Floats:
    """Products (n_values, len(TERMS)) of columns."""
    return np.asarray(columns[:, _FIRST] * columns[:, _SECOND])


def with_confidence(model: FieldModel, scored: Scored) -> tuple[FieldModel, Scored]:
    """A field's values with the probabilities that people are shown."""
    if not len(scored.rows):
        return model, scored
    logits = np.einsum("nt,t->n", terms_of(columns_of(model, scored)), _WEIGHTS) + BIAS
    return model, replace(scored, probabilities=np.minimum.accumulate(sigmoid(logits)))
