"""Priors: the weights of the measured columns before any sample has been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.columns import MEASURED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Prior weights of the measured columns for fields with few samples and for those with many, 0 for
#: columns left out. For few samples, the weights of similarity are those of a pooled fit over the
#: fields of five collections (notices, sentences, contracts, receipts, documents of our own); the
#: others are about halfway between that fit and the weights for many. Fitted on any four of the
#: five, they ranked the values of the fifth better than the weights for many did. Those of amounts
#: and of lines were chosen on the parts for development of receipts and announcements alone, those
#: of brackets, and of names in brackets, on that of announcements.
_PRIORS = {
    "unbalanced": (-1.6, -2.5),
    "behind colon": (0.3, 0.6),
    "behind opener": (0.4, 0.3),
    "before stop": (0.2, 0.5),
    "line start": (-0.3, 0.0),
    "whole line": (0.2, 0.0),
    "marks inside": (-0.3, 0.0),
    "log length": (0.2, 0.0),
    "cuts a word": (-0.7, -1.0),
    "position": (-0.2, 0.0),
    "early": (0.4, 0.3),
    "function words": (-0.9, -1.0),
    "person": (0.3, 0.0),
    "all digits": (-0.3, 0.0),
    "clean start": (0.4, 0.5),
    "clean end": (0.4, 0.5),
    "cuts entity": (-1.0, -1.0),
    "before bracket": (-0.8, -0.8),
    "behind bracket": (-0.8, -0.8),
    "repeats": (0.3, 0.5),
    "vector": (0.5, 0.5),
    "words of sentence": (0.9, 0.8),
    "behind alias": (1.8, 2.0),
    "alias near": (1.1, 0.7),
    "named in bracket": (2.0, 2.0),
    "from shape": (0.9, 0.0),
    "from unit": (0.6, 0.3),
    "from entity": (0.4, 0.4),
    "from known value": (0.5, 0.0),
    "from cell": (0.5, 0.5),
    "from label": (3.0, 1.5),
    "from lines": (0.7, 0.7),
    "left like": (1.3, 0.0),
    "right like": (0.4, 0.0),
    "first words like": (0.7, 0.0),
    "last words like": (1.6, 0.0),
    "both sides like": (1.0, 0.0),
    "label like": (0.4, 0.0),
    "entity like": (1.5, 1.0),
    "kinds like": (1.0, 1.0),
    "kinds before like": (0.2, 0.2),
    "kinds behind like": (0.2, 0.2),
    "words inside like": (1.0, 0.5),
    "marks like": (2.0, 0.0),
    "line before like": (-0.3, 0.0),
    "line behind like": (-0.3, 0.0),
    "words before like": (0.9, 0.0),
    "words behind like": (1.2, 0.0),
    "length like": (1.1, 0.0),
    "letters like": (1.2, 0.0),
    "place like": (0.7, 0.0),
    "lines above like": (0.3, 0.0),
    "lines below like": (0.1, 0.0),
}
#: Of fields of clauses, where they differ, for few samples and many: a pooled fit over the six such
#: fields of contracts (part for development; ``scripts/learn_clauses.py``), rounded; of
#: columns whose weight depends on the draw of samples or on the field, none. Those of five fields
#: raise the F1 of the sixth. "sentence odds" weighs more than by that fit, which sees few of the
#: sentences that are no clause of the field.
_CLAUSE_PRIORS = {
    "sentence odds": 2.0,
    "further sentences": 1.0,
    "ends sentence": 0.5,
    "from clause": 1.0,
    "from unit": 1.0,
    "kinds like": 4.0,
    "kinds before like": -0.3,
    "kinds behind like": -0.4,
    "left like": 2.3,
    "right like": 0.4,
    "first words like": 1.5,
    "words before like": 1.5,
    "words behind like": 1.0,
    "letters like": 1.0,
    "log length": -1.2,
    "repeats": -0.8,
    "unbalanced": -0.4,
    "function words": -0.2,
    "organisation": -0.3,
    "clean start": -0.2,
    "early": 0.0,
    "behind colon": 0.0,
    "before stop": 0.1,
}
#: Number of samples at which both count alike.
_FEW = 10.0
#: All of them times this. With it, and with looser measured and firmer hashed weights
#: (:mod:`featpipe.extraction.scoring.mentions`), the right mention was first more often in the
#: parts for development of announcements, receipts, sentences and contracts. On what was held out
#: of them F1 of values with 20 samples changed by -.010, +.007, +.015 and +.012: within the noise.
SCALE = 1.25


def prior_weights(n_samples: int, *, of_clauses: bool = False) -> Floats:
    """Prior mean (len(MEASURED),) of the weights of a field with so many samples.

    The fewer the samples, the more weight has the similarity to their values.
    """
    share = _FEW / (_FEW + n_samples)
    known = _PRIORS
    if of_clauses:
        known = _PRIORS | {name: (prior, prior) for name, prior in _CLAUSE_PRIORS.items()}
    priors = [known.get(name, (0.0, 0.0)) for name in MEASURED]
    return SCALE * np.array([share * few + (1 - share) * many for few, many in priors])
