"""Confidence: the probability that a value is right, as people are shown it.

A field's own curve (:mod:`featpipe.extraction.scoring.calibration`) orders its values, but a few
samples cannot tell how often such values are right, nor whether a document has one at all. Many
templates can, and so the likeliest value is reported by its confidence: a logistic regression over
what a value and its field's samples show, whose weights were learnt once, by
``scripts/learn_confidence.py``, from the development parts of four public sets
(``scripts/extraction_sets.py``): announcements, event sentences, receipts and English contracts,
with pretrained fields and without; of four sets that we wrote: freezes, case facts, trades and
repurchases of shares; and from documents of other institutions than their samples are of
(``scripts/eval_institutions.py``). All were measured with the entities of the built-in model and
without them.

Its terms are few, since templates differ: they were chosen one after another, each for what it
foretells of a set, and of a kind of documents, that the weights were not learnt on. Of such, the
likeliest values have an expected calibration error of .02 to .05, with 5 samples and with 20, and
of .05 to .08 those of the sets that we wrote, of which more are right than is said; of those said
to be sure (.9 and more) .90 to .99 are right, and .65 to .94 of event sentences, which have hardly
any. Boosted trees over all columns foretell a set that they were not learnt on no better. Offsets
learnt from a field's, or a template's, own left-out samples lower the error nowhere: a few samples
tell the share of right values no closer than templates differ in it.

Where nothing but a field's names is known, how the document says them tells: the weights of such
fields were learnt by ``scripts/eval_without_samples.py`` from three sets of written documents, and
from announcements of freezes. Of two further sets that nothing was learnt from, the values have an
expected calibration error of .03 and .07 (.16 and .20 by the weights above).

Guarantee: in the order of a document's values, confidence never grows.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Protocol

import numpy as np

from featpipe.extraction.scoring.calibration import Evidence
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.logistic import log_odds, sigmoid
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.ranking import ValueModel
    from featpipe.extraction.values.values import FieldType

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]


class FieldTraits(Protocol):
    """What is told of a field by its model (:mod:`featpipe.extraction.scoring.field_model`)."""

    @property
    def kind(self) -> FieldType:
        """Type of the values."""
        ...

    @property
    def values(self) -> ValueModel:
        """The second stage, and what the samples show."""
        ...

    @property
    def is_pretrained(self) -> bool:
        """Whether its model began with pretrained weights."""
        ...

    @property
    def is_unshown(self) -> bool:
        """Whether it is pretrained, and no sample has a value."""
        ...

    @property
    def is_untaught(self) -> bool:
        """Whether nothing but its names tells of it."""
        ...

    @property
    def trusts_names(self) -> bool:
        """Whether samples have their values behind its names."""
        ...


#: Bound of a value's score.
_MOST_SCORE = 8.0
_EVIDENCE = tuple(field.name for field in fields(Evidence))
#: Measured columns of a value's best mention.
_MENTION = ("early", "place like", "both sides like")
_OF_MENTION = [MEASURED.index(name) for name in _MENTION]
#: Whether a field's values are percentages, and whether it began with pretrained weights.
_FIELD = ("percent", "pretrained")
COLUMNS = ("one", *_FIELD, *_EVIDENCE, "score", "fills cell", *VALUE_COLUMNS, *_MENTION)


def columns_of(
    model: FieldTraits, rows: Floats, measured: Floats, probabilities: Floats, fills_cell: Bools
) -> Floats:
    """Columns (n_values, len(COLUMNS)) that terms are products of, of values in their order.

    Args:
        model: of the field.
        rows: value columns (n_values, len(VALUE_COLUMNS)).
        measured: columns (n_values, len(MEASURED)) of the best mention of each.
        probabilities: (n_values,) by the field's own curve, never growing.
        fills_cell: (n_values,) whether the best mention is all of a cell below a header.

    """
    values = model.values
    share = np.clip(probabilities / values.ceiling, 1e-9, 1.0 - 1e-9)
    score = np.clip(np.log(share / (1.0 - share)), -_MOST_SCORE, _MOST_SCORE)
    evidence = (getattr(values.evidence, name) for name in _EVIDENCE)
    own = np.array([1.0, model.kind == "percent", model.is_pretrained, *evidence])
    return np.column_stack(
        (np.tile(own, (len(score), 1)), score, fills_cell, rows, measured[:, _OF_MENTION])
    )


#: Two columns each, and the weight of their product; ``BIAS`` is the sum without any.
TERMS: tuple[tuple[str, str, float], ...] = (
    ("one", "score", 0.1646),
    ("one", "mention", 0.4115),
    ("one", "share", 2.4530),
    ("one", "missing", -0.2645),
    ("one", "fills cell", 1.0249),
    ("one", "pretrained", -0.3719),
    ("accuracy", "early", -0.3222),
    ("accuracy", "place like", 0.5646),
    ("few", "place like", 1.1172),
    ("few", "both sides like", -1.6571),
    ("few", "rejected", -5.5782),
    ("several", "score", 0.1828),
)
BIAS = -1.7157

#: Log odds from which they grow more slowly, and how much. Of the surer values of a set that the
#: weights were not learnt on, fewer were right than was said: of announcements at .9 and more .93
#: with 5 samples, of English contracts .95 (.91, .94 for .85). The calibration error is .02 to .05;
#: for .75 it is larger in receipts and sentences.
_SURE, _BEYOND_SURE = 0.5, 0.8

_FIRST, _SECOND = ([COLUMNS.index(term[side]) for term in TERMS] for side in (0, 1))
_WEIGHTS = np.array([weight for *_, weight in TERMS])


def terms_of(columns: Floats) -> Floats:
    """Products (n_values, len(TERMS)) of columns."""
    return np.asarray(columns[:, _FIRST] * columns[:, _SECOND])


def confidences_of(
    model: FieldTraits, rows: Floats, measured: Floats, probabilities: Floats, fills_cell: Bools
) -> Floats:
    """Confidence (n_values,) of a field's values; arguments as for :func:`columns_of`."""
    columns = columns_of(model, rows, measured, probabilities, fills_cell)
    logits = np.einsum("nt,t->n", terms_of(columns), _WEIGHTS) + BIAS
    return np.asarray(np.minimum.accumulate(sigmoid(moderated(logits))))


def moderated(logits: Floats) -> Floats:
    """Log odds of any shape, the surer of which grow more slowly."""
    return np.asarray(np.minimum(logits, _SURE + _BEYOND_SURE * (logits - _SURE)))


#: Weights of the columns of a field that is known by its names alone.
UNTAUGHT_TERMS = {
    "named": 1.6886,
    "share": 3.3004,
    "n words": -0.8808,
    "whole line": 0.288,
}
UNTAUGHT_BIAS = -0.5353
_BEHIND_ALIAS, _SHARE = MEASURED.index("behind alias"), VALUE_COLUMNS.index("share")
_UNTAUGHT_MENTION = [MEASURED.index(name) for name in ("n words", "whole line")]
_UNTAUGHT_WEIGHTS = np.array(list(UNTAUGHT_TERMS.values()))
#: Of the log odds that a sample has no value, where there are samples.
_MISSING = next(weight for _, name, weight in TERMS if name == "missing")


def untaught_columns_of(rows: Floats, measured: Floats) -> Floats:
    """Columns (n_values, len(UNTAUGHT_TERMS)); arguments as for :func:`columns_of`.

    The first is whether the label is one of the field's own names.
    """
    is_named = measured[:, _BEHIND_ALIAS] >= 1
    return np.column_stack((is_named, rows[:, _SHARE], measured[:, _UNTAUGHT_MENTION]))


def listed_confidences(confidences: Floats, shares: Floats) -> Floats:
    """Confidence (n,) of n values of a list that names alone tell: each has the share of all.

    Args:
        confidences: (n,) of each by itself.
        shares: (n,) the value column "share" of each.

    """
    others = shares.sum() - shares
    return np.asarray(sigmoid(log_odds(confidences) + UNTAUGHT_TERMS["share"] * others))


def untaught_confidences_of(values: ValueModel, rows: Floats, measured: Floats) -> Floats:
    """Confidence (n_values,) where names alone tell: see :func:`columns_of`."""
    columns = untaught_columns_of(rows, measured)
    logits = np.einsum("nt,t->n", columns, _UNTAUGHT_WEIGHTS) + UNTAUGHT_BIAS
    logits += _MISSING * values.evidence.missing
    return np.asarray(np.minimum.accumulate(sigmoid(logits)))
