"""asyncio: the library without holding up the event loop.

Everything slow runs in threads, which wait for worker processes or read the cache; cancelling a
build lets what is in flight be finished and committed before the cancellation goes on.

::

    async with AsyncPipeline(cache="c.h5") as pipeline:
        report = await pipeline.build("contracts/")
    async with AsyncExtractor("templates/", cache="c.h5") as extractor:
        async for extraction in extractor.extract_many(paths): ...
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

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
    from featpipe.documents import Document
    from featpipe.extraction.results import Extraction
    from featpipe.report import RunReport

    Given = str | Path | Document | CachedDocument

_END = object()


class AsyncPipeline:
    """A `Pipeline`. Args and errors: its."""

    def __init__(self, *args: object, **named: object) -> None:
        self.pipeline = Pipeline(*args, **named)  # type: ignore[arg-type]  # handed through

    async def build(
        self,
        documents: Documents,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        listen: Callable[[Progress], None] | None = None,
    ) -> RunReport:
        """As `Pipeline.build`; ``listen`` is called in the event loop.

        When this is cancelled, nothing more is begun, what is in flight is committed, and only
        then `CancelledError` is raised: no worker is left behind, nothing finished is lost.
        """
        loop = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if listen is not None:
                loop.call_soon_threadsafe(listen, progress)

        running = asyncio.ensure_future(
            asyncio.to_thread(
                self.pipeline.build, documents, include=include, exclude=exclude, listen=tell
            )
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await self._finish(running)
            raise

    async def _finish(self, running: asyncio.Future[RunReport]) -> None:
        """Stop, and wait for the end; asked again and again, since a run may just be starting."""
        while not running.done():
            self.pipeline.stop_after_current()
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
    """An `Extractor`. Args and errors: its; it may also be given one that is open."""

    def __init__(self, templates: Extractor | object, *args: object, **named: object) -> None:
        self._is_own = not isinstance(templates, Extractor)
        self.extractor = (
            templates if isinstance(templates, Extractor) else Extractor(templates, *args, **named)  # type: ignore[arg-type]  # handed through
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
            DocumentError: a document that cannot be read ends the iteration where it stands.

        """
        if n_at_once < 1:
            raise UsageError(f"n_at_once must be at least 1, not {n_at_once}")
        source, is_over = _iterate(documents), False
        waiting: list[asyncio.Task[Extraction]] = []
        try:
            while True:
                while len(waiting) < n_at_once and not is_over:
                    document = await anext(source, _END)
                    if document is _END:
                        is_over = True
                        break
                    task = asyncio.create_task(self.extract(document, template))  # type: ignore[arg-type]  # no end
                    waiting.append(task)
                if not waiting:
                    return
                # Kept in the list until it is done, so that a cancellation here waits for it, too.
                extraction = await asyncio.shield(waiting[0])
                del waiting[0]
                yield extraction
        finally:
            # Threads cannot be cut short: they are let run out, so that the cache may be closed.
            await asyncio.gather(*waiting, return_exceptions=True)

    async def close(self) -> None:
        """Let go of the cache, if the extractor was opened here."""
        if self._is_own:
            await asyncio.to_thread(self.extractor.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncCache:
    """A `Cache`, and vectors for texts it lacks.

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
        async with self._lock:
            if self._encoder is None:
                cache, model, device = self._arguments
                self._encoder = await asyncio.to_thread(TextEncoder, cache, model, device=device)
        return await asyncio.to_thread(self._encoder.encode, texts)

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
        """See what the writer has committed since."""
        await asyncio.to_thread(self.cache.refresh)

    async def close(self) -> None:
        """Stop the worker, if there is one, and let go of the file."""
        if self._encoder is not None:
            await asyncio.to_thread(self._encoder.close)
        self.cache.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


async def _iterate(documents: Iterable[Given] | AsyncIterable[Given]) -> AsyncIterator[Given]:
    if hasattr(documents, "__aiter__"):
        async for document in documents:
            yield document
        return
    for document in documents:
        yield document
