"""Terms to numbers and back, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from featpipe.lexical.words import TermBatch


class Vocabulary:
    """Numbers terms from 0 on, in the order in which they are first added."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self.add(terms)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def terms(self) -> list[str]:
        """All terms; the number of each is its place."""
        return list(self._numbers)

    def add(self, terms: Iterable[str]) -> NDArray[np.int32]:
        """The number of each term, new ones being added."""
        number = self._numbers.setdefault
        return np.array([number(term, len(self._numbers)) for term in terms], np.int32)

    def add_batch(self, batch: TermBatch) -> NDArray[np.int32]:
        """A batch's ids in this vocabulary's numbers: (n_terms,) int32."""
        own = self.add(batch.vocabulary)
        return own[batch.ids] if len(own) else np.zeros(0, np.int32)

    def find(self, terms: Sequence[str]) -> NDArray[np.int32]:
        """The number of each term, -1 for unknown ones."""
        number = self._numbers.get
        return np.array([number(term, -1) for term in terms], np.int32)
