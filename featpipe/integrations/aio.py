"""asyncio: the library without blocking the event loop.

Guarantees: everything slow runs in threads, which wait for worker processes or read the cache. A
cancelled build finishes and commits its work in flight before `CancelledError` is raised.

::

    async with AsyncPipeline(cache="c.h5") as pipeline:
        report = await pipeline.build("contracts/")
    async with AsyncExtractor("templates/", cache="c.h5") as extractor:
        async for extraction in extractor.extract_many(paths): ...
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from featpipe.build.pipeline import Pipeline
from featpipe.cache.cache import Cache
from featpipe.errors import UsageError
from featpipe.extraction.extractor import Extractor
from featpipe.on_demand.text_encoder import TextEncoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from featpipe.build.pipeline import Documents
    from featpipe.build.progress import Progress
    from featpipe.cache.documents import CachedDocument
    from featpipe.cache.nearest import Neighbour
    from featpipe.documents import Document, Source
    from featpipe.extraction.results import Extraction
    from featpipe.extraction.template import Template
    from featpipe.report import RunReport

    Given = str | Path | Source | Document | CachedDocument
    Templates = str | Path | Sequence[Template]

T = TypeVar("T")


class AsyncPipeline:
    """A `Pipeline`; arguments and errors are those of `Pipeline`."""

    def __init__(self, *args: Any, **named: Any) -> None:  # Any: as `Pipeline` takes them
        self.pipeline = Pipeline(*args, **named)

    async def build(
        self,
        documents: Documents,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        listen: Callable[[Progress], None] | None = None,
    ) -> RunReport:
        """As `Pipeline.build`; ``listen`` is called in the event loop.

        When this is cancelled, no further work is begun and work in flight is committed; then
        `CancelledError` is raised. No worker is left behind.
        """
        loop = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if listen is not None:
                loop.call_soon_threadsafe(listen, progress)

        build = partial(
            self.pipeline.build, documents, include=include, exclude=exclude, listen=tell
        )
        return await self._stop_when_cancelled(_in_thread(build))

    async def _stop_when_cancelled(self, running: asyncio.Future[RunReport]) -> RunReport:
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await self._finish(running)
            raise

    async def _finish(self, running: asyncio.Future[RunReport]) -> None:
        """Stop, and wait for the end. Repeated, since a run that is starting misses a request."""
        while not running.done():
            self.pipeline.stop_after_current()
            with suppress(asyncio.CancelledError):  # once more, as anyio does until it is raised
                await asyncio.wait([running], timeout=0.05)
        running.exception()

    async def close(self) -> None:
        """Stop the workers."""
        await asyncio.to_thread(self.pipeline.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncExtractor:
    """An `Extractor`, either an open one or made from the arguments of `Extractor`."""

    def __init__(self, templates: Extractor | Templates, *args: Any, **named: Any) -> None:
        self._is_own = not isinstance(templates, Extractor)
        self.extractor = (
            templates if isinstance(templates, Extractor) else Extractor(templates, *args, **named)
        )

    async def extract(self, document: Given, template: str | None = None) -> Extraction:
        """As `Extractor.extract`."""
        return await asyncio.to_thread(self.extractor.extract, document, template)

    async def extract_many(
        self,
        documents: Iterable[Given] | AsyncIterable[Given],
        template: str | None = None,
        *,
        n_at_once: int = 4,
    ) -> AsyncIterator[Extraction]:
        """In the order of the documents, of which at most ``n_at_once`` are worked on.

        Raises:
            UsageError: ``n_at_once`` below 1.
            DocumentError: a document that cannot be read; the iteration ends there.

        """
        if n_at_once < 1:
            raise UsageError(f"n_at_once must be at least 1, not {n_at_once}")
        running: deque[asyncio.Future[Extraction]] = deque()
        try:
            async for document in _iterate(documents):
                running.append(_in_thread(partial(self.extractor.extract, document, template)))
                if len(running) == n_at_once:
                    yield await _take_first(running)
            while running:
                yield await _take_first(running)
        finally:
            # Threads cannot be stopped: wait for them, so that the cache may be closed.
            await asyncio.gather(*running, return_exceptions=True)

    async def close(self) -> None:
        """Close the extractor, if it was opened here."""
        if self._is_own:
            await asyncio.to_thread(self.extractor.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncCache:
    """A `Cache` that also encodes texts it lacks.

    Args:
        cache: the file.
        model: for `encode`: the encoder that filled the space; by default the built-in.
        device: where to encode what is missing.

    """

    def __init__(
        self, cache: str | Path, model: str | Path | None = None, *, device: str = "cpu"
    ) -> None:
        self.cache = Cache.open(cache)
        self._arguments = (cache, model, device)
        self._encoder: TextEncoder | None = None
        self._lock = asyncio.Lock()

    async def lookup(
        self, texts: Sequence[str], space: str | None = None
    ) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
        """As `Dictionary.lookup`: vectors (n, dim), and whether each was found; nothing encoded."""
        return await asyncio.to_thread(self.cache.dictionary(space).lookup, texts)

    async def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `TextEncoder.encode`: from the cache, else from a worker."""
        encoder = await self._open_encoder()
        return await asyncio.to_thread(encoder.encode, texts)

    async def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `TextEncoder.encode_queries`: for `nearest`."""
        encoder = await self._open_encoder()
        return await asyncio.to_thread(encoder.encode_queries, texts)

    async def _open_encoder(self) -> TextEncoder:
        async with self._lock:
            if self._encoder is None:
                cache, model, device = self._arguments
                self._encoder = await asyncio.to_thread(TextEncoder, cache, model, device=device)
            return self._encoder

    async def nearest(
        self, vectors: ArrayLike, k: int = 10, *, space: str | None = None, level: str | None = None
    ) -> list[list[Neighbour]]:
        """As `Dictionary.nearest`."""
        return await asyncio.to_thread(self.cache.dictionary(space, level).nearest, vectors, k)

    async def documents(self) -> AsyncIterator[CachedDocument]:
        """As `Cache.documents`."""
        for document in await asyncio.to_thread(lambda: list(self.cache.documents())):
            yield document

    async def refresh(self) -> None:
        """Read what the writer has committed since."""
        await asyncio.to_thread(self.cache.refresh)

    async def close(self) -> None:
        """Stop the worker, if there is one, and close the file."""
        if self._encoder is not None:
            await asyncio.to_thread(self._encoder.close)
        self.cache.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _in_thread(function: Callable[[], T]) -> asyncio.Future[T]:
    """A call in a thread. No task, which `asyncio.run` cancels at its end: the thread goes on."""
    context = copy_context()  # as `asyncio.to_thread`
    return asyncio.get_running_loop().run_in_executor(None, lambda: context.run(function))


async def _take_first(running: deque[asyncio.Future[Extraction]]) -> Extraction:
    # Removed when it is done and not before, so that a cancellation here waits for it, too.
    extraction = await asyncio.shield(running[0])
    running.popleft()
    return extraction


async def _iterate(documents: Iterable[Given] | AsyncIterable[Given]) -> AsyncIterator[Given]:
    if hasattr(documents, "__aiter__"):
        async for document in documents:
            yield document
        return
    for document in documents:
        yield document
