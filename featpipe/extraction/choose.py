"""The template for a document, chosen by the words that it shares with the templates' samples.

The choice is arithmetic over hashed word pairs: no model, a few milliseconds per document. A
template that names its documents (glob patterns) is preferred for those, and applied to them.

Guarantee: a document is refused that is much less like the samples of a template than those are
like each other: the likeliest of some templates need not be right. Measured: held-out documents
have a likeness of .34 and more (announcements), .44 (receipts), .23 (English contracts, the least
alike), novels, news, letters and recipes one of .08 and less.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.errors import UsageError
from featpipe.extraction.scoring.tokens import pair_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.scoring.features import PageFeatures

    Floats = NDArray[np.float64]

_N_HASHED = 1 << 14
#: Weight of the words of the title.
_TITLE = 4.0
#: Samples of one template that are compared; more of them cost time and change little.
_MOST_SAMPLES = 12
#: The likeness that a document needs: this share of that of the sample which is least like the
#: other samples, within bounds.
_SHARE, _LEAST, _MOST = 0.4, 0.09, 0.25
#: With one sample there is nothing to learn it from.
_UNTAUGHT = 0.12


class Choice(NamedTuple):
    """The likeliest template; whether it fits."""

    fitted: FittedTemplate
    likeness: float
    """Cosine of the document and the samples' mean, 0 to 1."""
    needed: float
    """0 for a document that the template names."""

    @property
    def fits(self) -> bool:
        """Whether the document is like enough to the samples."""
        return self.likeness >= self.needed


def is_meant(fitted: FittedTemplate, name: str) -> bool:
    """Whether a document matches a pattern of the template; without patterns all match.

    Patterns are compared with its id, and with its path below the folder that was given.
    """
    patterns = fitted.template.documents
    names = (name, name.partition("/")[2] or name)
    return not patterns or any(fnmatch(n, pattern) for pattern in patterns for n in names)


def find_unmatched(templates: Iterable[FittedTemplate], names: Sequence[str]) -> Iterator[str]:
    """What to say of each template whose patterns match none of some documents."""
    for fitted in templates:
        patterns = fitted.template.documents
        if patterns and not any(is_meant(fitted, name) for name in names):
            yield (
                f"{fitted.template.name}: 0 of {len(names)} documents of the cache match its "
                f"`documents` patterns {', '.join(patterns)}; they stand in the template's file"
            )


class Chooser:
    """Compares documents with the samples of each template.

    Args:
        templates: those without samples are never chosen.

    """

    def __init__(self, templates: Sequence[FittedTemplate]) -> None:
        self._templates = [one for one in templates if one.has_samples]
        samples = [
            np.stack([_profile(features) for features in one.sample_pages[:_MOST_SAMPLES]])
            for one in self._templates
        ]
        profiles = [own.mean(axis=0) for own in samples]
        self._rarity = np.zeros(_N_HASHED)
        self._profiles = np.zeros((0, _N_HASHED))
        if profiles:
            stacked = np.stack(profiles)
            seen = (stacked > 0).sum(axis=0)
            self._rarity = np.log1p(len(profiles) / np.maximum(seen, 1)) - np.log1p(1.0) + 0.05
            self._profiles = _unit(stacked * self._rarity)
        self._needed = [_needed(own * self._rarity) for own in samples]

    def choose(self, features: PageFeatures) -> Choice:
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
        is_named = bool(features.page.id) and bool(named.any())
        best = int(np.argmax(np.where(named, similarity, -1.0) if is_named else similarity))
        needed = 0.0 if is_named else self._needed[best]
        return Choice(self._templates[best], float(similarity[best]), needed)


def _needed(samples: Floats) -> float:
    """The likeness that a template asks for, by that of each sample (n, _N_HASHED) to the rest."""
    if len(samples) < 2:
        return _UNTAUGHT
    others = _unit(samples.sum(axis=0) - samples)
    likeness = (others * _unit(samples)).sum(axis=1)
    return float(np.clip(_SHARE * likeness.min(), _LEAST, _MOST))


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
