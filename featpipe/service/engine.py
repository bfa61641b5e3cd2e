"""The engine: the lanes of a service and the templates it offers. Free of HTTP."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from featpipe.cache.cache import Cache
from featpipe.errors import TemplateError
from featpipe.extraction.deploy import Publication
from featpipe.on_demand.checkpoints import choose_checkpoints
from featpipe.pool.devices import check_devices, default_devices
from featpipe.service import workload as trades
from featpipe.service.batcher import Lane
from featpipe.service.metrics import Meters
from featpipe.service.request_queue import LaneLimits
from featpipe.service.template_watcher import Publisher
from featpipe.service.tracing import Tracer

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.service.batcher import Trade
    from featpipe.service.settings import ServiceSettings

logger = getLogger("featpipe.service")

#: Characters of texts, or bytes of documents, that go to a worker together: some seconds of work
#: for a large model on a slow machine. What is heavier goes alone.
_BATCH_WEIGHT = 32_768
#: Seconds until templates that could not be fitted at the start are tried again.
_PAUSE_S = 5.0


class Engine:
    """What a service works with, from the first request to the last.

    Opening it checks everything that can be checked without a model: the command ends with a clear
    message instead of a service that answers nothing.

    Args:
        settings: of the service.

    Raises:
        FeatpipeError: the cache, a model folder or a template cannot be used.

    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.meters, self.tracer = Meters(), Tracer(is_on=settings.is_traced)
        self.is_draining = False
        self._watching: asyncio.Task[None] | None = None
        devices = check_devices(settings.devices) or default_devices()
        with Cache.open(settings.cache) as cache:
            self.chosen = choose_checkpoints(cache, settings.model, settings.ner, settings.space)
            has_terms = any(name.startswith("terms/") for name in cache.reader.tables())
            self.dim = cache.dictionary(self.chosen.space).dim if self.chosen.space else None
        self.publisher: Publisher | None = None
        self.extract: Lane | None = None
        if settings.templates is not None:
            self._open_templates(settings.templates, devices)
        self.embed = self._lane(trades.embedding(settings, devices, self.chosen), max_batch=64)
        self.search = (
            self._lane(trades.searching(settings, self.chosen), max_batch=16, is_eager=False)
            if has_terms
            else None
        )
        self.lanes = [lane for lane in (self.extract, self.embed, self.search) if lane is not None]
        self.meters.watch(self.lanes)

    @property
    def is_ready(self) -> bool:
        """Whether a request would be answered now."""
        return not self.is_draining and all(lane.is_ready for lane in self.lanes)

    def start(self) -> None:
        """Start the workers; call it in the event loop."""
        for lane in self.lanes:
            if lane is not self.extract:
                lane.open()
        if self.publisher is not None:
            self._watching = asyncio.create_task(self._publish_and_watch(self.publisher))

    async def stop(self) -> None:
        """End the workers, and let go of the cache."""
        if self._watching is not None:
            self._watching.cancel()
        await asyncio.gather(*(asyncio.to_thread(lane.close) for lane in self.lanes))
        if self.publisher is not None:
            self.publisher.publication.close()

    def _open_templates(self, templates: Path, devices: tuple[str, ...]) -> None:
        settings = self.settings
        publication = Publication(templates, settings.cache, self.chosen, devices, settings.space)
        self.publisher = Publisher(publication)
        self.extract = self._lane(trades.extracting(settings, publication), settings.max_batch)

    async def _publish_and_watch(self, publisher: Publisher) -> None:
        """Documents are taken as soon as there is something to extract."""
        while not publisher.templates:
            try:
                await publisher.publish()
            except TemplateError as error:
                logger.error("no templates can be used: %s", error.message)  # noqa: TRY400  # a fault of files, not of code
                await asyncio.sleep(_PAUSE_S)
        assert self.extract is not None  # noqa: S101  # it is made with the publisher
        self.extract.open()
        await publisher.watch()

    def _lane(self, trade: Trade, max_batch: int, *, is_eager: bool = True) -> Lane:
        limits = LaneLimits(
            max_waiting=self.settings.max_waiting,
            max_waiting_weight=self.settings.max_waiting_bytes,
            max_batch=max_batch,
            max_batch_weight=_BATCH_WEIGHT,
            linger_s=self.settings.linger_s,
        )
        return Lane(trade, limits, self.meters, self.tracer, is_eager=is_eager)
