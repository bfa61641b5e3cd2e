"""Messages between the caller of a text worker and the worker; importing them loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from featpipe.errors import EncodingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    #: (start, end, label, score), offsets in the text.
    Entity = tuple[int, int, str, float]


@dataclass(frozen=True, slots=True)
class EmbedQuery:
    """Caller -> worker: the inputs of one request; one of the two is empty."""

    texts: tuple[str, ...] = ()
    tokens: tuple[tuple[int, ...], ...] = ()
    """Token ids of the model's own vocabulary, without special ones."""
    prompt: str | None = None
    """Put before each, for queries; None: the space's, so that stored vectors may be used."""

    def __len__(self) -> int:
        return len(self.texts) or len(self.tokens)


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """Worker -> caller. Shapes: vectors (n, dim) float32, n_tokens (n,) int32."""

    vectors: NDArray[np.float32]
    n_tokens: NDArray[np.int32]
    """Special tokens included."""


#: One text or query: its vectors, or why there are none.
Answer = Embedded | EncodingError


@dataclass(frozen=True, slots=True)
class TagQuery:
    """Caller -> worker: one text, of which the entities are wanted. Answer: list of Entity."""

    text: str


class TextFeatures(Protocol):
    """Vectors and entities of texts outside a cache, by the models that filled it."""

    @property
    def has_encoder(self) -> bool:
        """Whether texts get vectors."""
        ...

    @property
    def has_tagger(self) -> bool:
        """Whether texts get entities."""
        ...

    def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) as stored ones are; zeros for a text that cannot be encoded."""
        ...

    def entities_of(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Entities of each text; none for a text that cannot be tagged."""
        ...

    def close(self) -> None:
        """Stop what was started."""
        ...
