"""Terms: neighbouring word pairs of a document by sentence, numbered by its own vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.hashing import is_in, mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.templates.view import View

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Shapes: ``pairs`` and ``ids`` (n_tokens,), ``lengths`` (n_sentences,)."""

    pairs: Ints
    """Hash of each token with the one before it in its sentence."""
    distinct: Ints
    """Ascending; ``ids`` are places in it."""
    ids: NDArray[np.int32]
    lengths: Ints

    def ids_of(self, pairs: Ints) -> NDArray[np.int32]:
        """Numbers of word pairs in this document, -1 for those it does not have."""
        at = np.minimum(np.searchsorted(self.distinct, pairs), max(len(self.distinct) - 1, 0))
        return np.where(is_in(pairs, self.distinct), at, -1).astype(np.int32)


def make_terms(view: View) -> Terms:
    """For :attr:`View.terms`."""
    tokens = view.tokens
    fresh = np.ones(len(tokens), bool)
    fresh[1:] = tokens.sentence[1:] != tokens.sentence[:-1]
    before = np.zeros(len(tokens), np.int64)
    before[1:] = tokens.code[:-1]
    pairs = mix(np.where(fresh, 0, before), tokens.code)
    distinct, ids = np.unique(pairs, return_inverse=True)
    lengths = np.bincount(tokens.sentence, minlength=max(len(view.sentences), 1))
    return Terms(pairs, distinct, ids.astype(np.int32), lengths.astype(np.int64))


def sentence_terms(view: View, number: int) -> Ints:
    """Distinct word pairs of one sentence, ascending."""
    first, last = np.searchsorted(view.tokens.sentence, (number, number + 1))
    return np.unique(view.terms.pairs[first:last])
