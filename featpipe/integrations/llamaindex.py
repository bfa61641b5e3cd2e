"""LlamaIndex: a cache as an embedding model.

Guarantees: texts have the vectors of the space, read from the cache or encoded in a worker process;
queries have the prompt that the model expects before them. The space's name is the model's name,
so that LlamaIndex keeps it beside the vectors that it stores. This process imports no torch.

::

    Settings.embed_model = FeatpipeEmbedding(cache="c.h5")
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from featpipe.encoders.query_backend import QueryBackend  # noqa: TC001  # pydantic reads it
from featpipe.errors import MissingExtra
from featpipe.on_demand.text_encoder import TextEncoder

if TYPE_CHECKING:
    from pathlib import Path

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from pydantic import PrivateAttr
except ImportError as error:
    raise MissingExtra(
        "this needs llama-index-core", hint="pip install 'featpipe[llamaindex]'"
    ) from error


class FeatpipeEmbedding(BaseEmbedding):
    """Vectors of one space.

    Args:
        cache: the file.
        model: the encoder that filled the space, by folder or hub name; by default the built-in.
        device: where to encode what is missing.
        query_prompt: put before a query; by default the model's own, see
            ``encoder.query_prompt_source``.
        query_backend: what computes a query: ``torch``, or ``onnx``; see `TextEncoder`.
        further: of ``BaseEmbedding``, such as ``embed_batch_size`` and ``callback_manager``.

    Raises:
        UnknownSpace: the cache holds no vectors by this very model.

    """

    cache: str
    model: str | None = None
    device: str = "cpu"
    query_prompt: str | None = None
    query_backend: QueryBackend = "torch"
    _encoder: TextEncoder = PrivateAttr()

    def __init__(
        self,
        cache: str | Path,
        model: str | Path | None = None,
        device: str = "cpu",
        query_prompt: str | None = None,
        query_backend: QueryBackend = "torch",
        **further: object,
    ) -> None:
        encoder = TextEncoder(
            cache, model, device=device, query_prompt=query_prompt, query_backend=query_backend
        )
        further.setdefault("model_name", encoder.space)
        named = None if model is None else str(model)
        super().__init__(
            cache=str(cache), model=named, device=device, query_prompt=query_prompt,
            query_backend=query_backend, **further,
        )  # fmt: skip
        self._encoder = encoder

    @classmethod
    def class_name(cls) -> str:
        """The name in files that LlamaIndex writes."""
        return "FeatpipeEmbedding"

    @property
    def encoder(self) -> TextEncoder:
        """The source of the vectors."""
        return self._encoder

    def close(self) -> None:
        """Stop the worker and close the cache."""
        self._encoder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._encoder.encode(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._encoder.encode_queries([query])[0].tolist()
        return vector

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
