"""LangChain: a cache as ``Embeddings``.

Guarantees: a text has the same vector as a document and as a query. Vectors are read from the
cache; a text that it lacks is encoded in a worker process. This process imports no torch.

::

    embeddings = FeatpipeEmbeddings("c.h5")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from featpipe.errors import MissingExtra
from featpipe.on_demand.text_encoder import TextEncoder

try:
    from langchain_core.embeddings import Embeddings
except ImportError as error:
    raise MissingExtra(
        "this needs langchain-core", hint="pip install 'featpipe[langchain]'"
    ) from error

if TYPE_CHECKING:
    from pathlib import Path


class FeatpipeEmbeddings(Embeddings):
    """Vectors of one space.

    Args:
        cache: the file.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.

    """

    def __init__(
        self, cache: str | Path, model: str | Path | None = None, *, device: str = "cpu"
    ) -> None:
        self.encoder = TextEncoder(cache, model, device=device)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        return [vector.tolist() for vector in self.encoder.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]

    def close(self) -> None:
        """Stop the worker and close the cache."""
        self.encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
