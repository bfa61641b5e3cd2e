"""The template for a document, chosen by the words that it shares with the templates' samples.

The choice is arithmetic over hashed word pairs: no model, a few milliseconds per document. A
template that names its documents (glob patterns) is preferred for those.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UsageError
from featpipe.extraction.scoring.tokens import pair_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.scoring.features import PageFeatures

    Floats = NDArray[np.float64]

_N_HASHED = 1 << 14
#: Weight of the words of the title.
_TITLE = 4.0
#: Samples of one template that are compared; more of them cost time and change little.
_MOST_SAMPLES = 12


def is_meant(fitted: FittedTemplate, name: str) -> bool:
    """Whether a document matches a pattern of the template; without patterns all match.

    Patterns are compared with its id, and with its path below the folder that was given.
    """
    patterns = fitted.template.documents
    names = (name, name.partition("/")[2] or name)
    return not patterns or any(fnmatch(n, pattern) for pattern in patterns for n in names)


class Chooser:
    """Compares documents with the samples of each template.

    Args:
        templates: those without samples are never chosen.

    """

    def __init__(self, templates: Sequence[FittedTemplate]) -> None:
        self._templates = [one for one in templates if one.has_samples]
        profiles = [
            np.mean([_profile(features) for features in one.sample_pages[:_MOST_SAMPLES]], axis=0)
            for one in self._templates
        ]
        self._rarity = np.zeros(_N_HASHED)
        self._profiles = np.zeros((0, _N_HASHED))
        if profiles:
            stacked = np.stack(profiles)
            seen = (stacked > 0).sum(axis=0)
            self._rarity = np.log1p(len(profiles) / np.maximum(seen, 1)) - np.log1p(1.0) + 0.05
            self._profiles = _unit(stacked * self._rarity)

    def choose(self, features: PageFeatures) -> FittedTemplate:
        """The template whose samples are most similar to the document.

        Raises:
            UsageError: no template has a sample to compare with.

        """
        if not self._templates:
            raise UsageError("no template has samples, so none can be chosen: name one")
        similarity = self._profiles @ _unit(_profile(features)[None] * self._rarity)[0]
        named = np.array(
            [
                bool(one.template.documents) and is_meant(one, features.page.id)
                for one in self._templates
            ]
        )
        if features.page.id and named.any():
            similarity = np.where(named, similarity, -1.0)
        return self._templates[int(np.argmax(similarity))]


def _profile(features: PageFeatures) -> Floats:
    """Sublinear counts of hashed word pairs (_N_HASHED,), unit length; the first line counts more.

    A text of one token or none has a profile of zeros.
    """
    code = features.tokens.code
    counts = np.zeros(_N_HASHED)
    if len(code) > 1:
        pairs = pair_codes(code)[:-1] & (_N_HASHED - 1)
        weights = np.where(features.tokens.line[:-1] == 0, _TITLE, 1.0)
        counts += np.bincount(pairs, weights, minlength=_N_HASHED)
    return np.asarray(_unit(np.log1p(counts)[None])[0])


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
