"""Embedding messages: what a request asks of an embed worker, and the answer.

Apart from the role, so that who asks imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmbedQuery:
    """Parent -> embed worker: the inputs of one request; one of the two is empty."""

    texts: tuple[str, ...] = ()
    tokens: tuple[tuple[int, ...], ...] = ()
    """Token ids of the model's own vocabulary, without special ones."""

    def __len__(self) -> int:
        return len(self.texts) or len(self.tokens)


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Embed worker -> parent. Shapes: vectors (n, dim) float32, n_tokens (n,) int32."""

    vectors: NDArray[np.float32]
    n_tokens: NDArray[np.int32]
    """Special tokens included."""
