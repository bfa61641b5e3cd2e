"""Terms of a batch of texts as numbers, with a vocabulary of the batch's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TermBatch:
    """The terms of some texts. Worker -> writer: nothing in it needs a shared vocabulary.

    ``vocabulary`` lists the distinct terms in order of first appearance; ``ids`` (n_terms,) int32
    are places in it, in text order, repeats included; ``lengths`` (n_texts,) int64 says how many
    belong to each text.
    """

    vocabulary: list[str]
    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]


def join_batches(batches: Sequence[TermBatch]) -> TermBatch:
    """One batch of the texts of all, in order; its vocabulary is numbered by first appearance."""
    numbers: dict[str, int] = {}
    ids = [np.zeros(0, np.int32)]
    for batch in batches:
        own = [numbers.setdefault(term, len(numbers)) for term in batch.vocabulary]
        ids.append(np.array(own, np.int32).take(batch.ids))
    lengths = np.concatenate([np.zeros(0, np.int64), *(batch.lengths for batch in batches)])
    return TermBatch(list(numbers), np.concatenate(ids), lengths)
