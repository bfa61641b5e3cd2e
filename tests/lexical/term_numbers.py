"""Terms to numbers, for tests of what takes numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class TermNumbers:
    """Numbers terms from 0 on, in the order in which they are first added."""

    def __init__(self, terms: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self.add(terms)

    def add(self, terms: Iterable[str]) -> np.ndarray[Any, Any]:
        number = self._numbers.setdefault
        return np.array([number(term, len(self._numbers)) for term in terms], np.int32)

    def find(self, terms: Sequence[str]) -> np.ndarray[Any, Any]:
        """-1 for unknown ones."""
        return np.array([self._numbers.get(term, -1) for term in terms], np.int32)
