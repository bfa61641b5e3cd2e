"""LangChain: a cache as ``Embeddings``.

Guarantees: documents have the vectors of the space, read from the cache or encoded in a worker
process; queries have the prompt that the model expects before them. This process imports no torch.

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

    from featpipe.encoders.query_backend import QueryBackend


class FeatpipeEmbeddings(Embeddings):
    """Vectors of one space.

    Args:
        cache: the file.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.
        query_prompt: put before a query; by default the model's own, see
            ``encoder.query_prompt_source``.
        query_backend: what computes a query: ``torch``, or ``onnx``; see `TextEncoder`.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.

    """

    def __init__(
        self,
        cache: str | Path,
        model: str | Path | None = None,
        *,
        device: str = "cpu",
        query_prompt: str | None = None,
        query_backend: QueryBackend = "torch",
    ) -> None:
        self.encoder = TextEncoder(
            cache, model, device=device, query_prompt=query_prompt, query_backend=query_backend
        )

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        return [vector.tolist() for vector in self.encoder.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one question, with the query prompt before it."""
        vector: list[float] = self.encoder.encode_queries([text])[0].tolist()
        return vector

    def close(self) -> None:
        """Stop the worker and close the cache."""
        self.encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
