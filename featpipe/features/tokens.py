"""Tokens of many texts as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.int32]
Offsets: TypeAlias = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of all texts one after another, without special tokens.

    Shapes: ids (t,); ends (n,), so that text i has ``ids[ends[i-1]:ends[i]]``; start and stop (t,),
    the characters of its text that each token covers, None when they were not asked for.
    """

    ids: Ids
    ends: Ints
    start: Offsets | None = None
    stop: Offsets | None = None

    @property
    def lengths(self) -> Ints:
        """Tokens per text, shape (n,)."""
        return np.diff(self.ends, prepend=0)
