"""Terms of a batch of texts as numbers, with a vocabulary of the batch's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
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
