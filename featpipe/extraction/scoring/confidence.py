"""Confidence: the probability that a reported value is right, as people are shown it.

A field's own curve (:mod:`featpipe.extraction.scoring.calibration`) orders its values and decides
which are reported, but a few samples cannot tell how often such values are right. Many templates
can: a logistic regression over what a value and its field's samples show, whose weights were learnt
once, by ``scripts/learn_confidence.py``, from the development parts of four public sets
(``scripts/extraction_sets.py``): announcements, event sentences, receipts and English contracts.

Guarantee: in the order of a document's values, confidence never grows.

Measured on companies and event types held out, with 5 and 20 samples: an expected calibration error
of .04 and .08 for announcements (.02 and .05 by the curve alone, which was sure of hardly any of
them), .07 and .05 for sentences (.09 and .06), .06 and .03 for receipts (.09 and .06).
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
    """Columns (n_values, len(COLUMNS)) that terms are products of."""
    score = np.clip(model.values.model.logits(scored.rows), -_MOST_SCORE, _MOST_SCORE)
    lead = np.full(len(score), _MOST_LEAD)
    if len(score) > 1:
        first, second = np.sort(score)[:-3:-1]
        lead = np.clip(score - np.where(score == first, second, first), -_MOST_LEAD, _MOST_LEAD)
    own = [1.0, model.kind in SHAPED, *astuple(model.values.evidence)]
    one, is_shaped, *evidence = (np.full(len(score), float(number)) for number in own)
    return np.column_stack([one, score, lead, is_shaped, *evidence, scored.rows])


#: Two columns each, and the weight of their product; ``BIAS`` is the sum without any.
TERMS: tuple[tuple[str, str, float], ...] = (
    ("one", "score", -0.0164),
    ("one", "few", -0.7313),
    ("log length", "share", 1.7487),
    ("lead", "missing", -0.0635),
    ("n mentions", "share", 1.1175),
    ("one", "mention", 0.3689),
    ("log length", "known value", 2.9974),
    ("position", "position", -1.2937),
    ("log length", "position", 1.6608),
    ("lead", "lead", 0.0290),
    ("mention", "mention", -0.0913),
    ("accuracy", "is best", -0.2859),
    ("log length", "log occurrences", 0.3853),
    ("known value", "mention", -0.3213),
    ("several", "known value", -1.7159),
    ("lead", "stands free", 0.0703),
    ("shaped", "in title", -2.7756),
    ("mention", "extends", 0.7849),
    ("accuracy", "several", 0.1490),
    ("log length", "log length", -0.6082),
    ("accuracy", "in title", -0.1924),
    ("mention", "in title", 0.2733),
    ("accuracy", "mention", 0.0926),
)
BIAS = -0.5037

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
