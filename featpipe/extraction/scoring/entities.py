"""Entities: what a tagger found in a document, as evidence about any of its spans.

A tagger that saw much text knows what a name is, which a few samples cannot teach; where it begins
and ends it tells less surely. A span therefore has the label of an entity that it equals, another
one for an entity that it mostly shares its tokens with, and a mark if it cuts one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.context import N_HASHED, number_columns
from featpipe.extraction.scoring.tokens import hash_of, mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens
    from featpipe.extraction.tables.labelled_span import LabelledSpan

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_NO_ENTITY, _ROUGHLY = range(2)
#: Number of the hashed column of labels, and the place in the hashed space of spans without one.
ENTITY_COLUMN = 24
NO_ENTITY_PLACE = int(number_columns([np.array([_NO_ENTITY])], (ENTITY_COLUMN,))[0, 0]) & (
    N_HASHED - 1
)


@dataclass(frozen=True, slots=True, eq=False)
class EntityMarks:
    """The entities of one document by its tokens; of overlapping ones, the last.

    Shapes: ``first``, ``last`` (half-open) and ``label`` (n_tokens,), of the entity around each
    token, 0 where there is none; ``is_inside`` (n_tokens + 1,) places inside an entity.
    """

    first: Ints
    last: Ints
    label: Ints
    is_inside: Bools

    @classmethod
    def of(cls, tokens: Tokens, entities: Sequence[LabelledSpan]) -> EntityMarks:
        """From the entities of a page."""
        n = len(tokens)
        first, last, label = np.zeros((3, n), np.int64)
        is_inside = np.zeros(n + 1, bool)
        starts = np.searchsorted(tokens.end, [one.start for one in entities], side="right")
        ends = np.searchsorted(tokens.start, [one.end for one in entities], side="left")
        for entity, low, high in zip(entities, starts.tolist(), ends.tolist(), strict=True):
            at = slice(low, high)
            first[at], last[at], label[at] = low, high, hash_of(entity.label)
            is_inside[low + 1 : high] = True
        return cls(first, last, label, is_inside)

    def labels(self, first: Ints, last: Ints) -> Ints:
        """One number (n,) for each span of tokens: its entity's label and whether it is that one.

        A span has the label of an entity if more than half of what the two cover is in both.
        """
        if not self.label.any():
            return np.full(len(first), _NO_ENTITY)
        # An entity that holds more than half of a span holds its middle.
        middle = (first + last) // 2
        label = self.label[middle]
        shared = np.minimum(self.last[middle], last) - np.maximum(self.first[middle], first)
        whole = np.maximum(self.last[middle], last) - np.minimum(self.first[middle], first)
        is_most = (label != 0) & (2 * shared > whole)
        roughly = np.where(is_most, mix(label, _ROUGHLY), _NO_ENTITY)
        return np.where(is_most & (shared == whole), label, roughly)

    def cuts(self, first: Ints, last: Ints) -> Ints:
        """How many of the two ends (n,) of each span of tokens are inside an entity."""
        return self.is_inside[first].astype(np.int64) + self.is_inside[last]
