"""The engine: the batchers of a service and the templates it offers. Free of HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from logging import ERROR, getLogger
from typing import TYPE_CHECKING

from featpipe.cache.cache import Cache
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.memory import SMALLEST_KERNEL_CACHES
from featpipe.encoders.prompts import find_query_prompt
from featpipe.encoders.query_backend import check_query_backend
from featpipe.encoders.spec import encoder_spec
from featpipe.errors import TemplateError, UsageError
from featpipe.extraction.deploy import Publication
from featpipe.extraction.messages import Done, ExtractTask, ReloadTask
from featpipe.extraction.review_worker import Ping
from featpipe.on_demand.space import Checkpoints, choose_checkpoints, refuse_unknown_models
from featpipe.on_demand.text_encoder import text_role
from featpipe.pool import Role
from featpipe.pool.devices import check_devices, default_devices, usable_cores
from featpipe.pool.role import HALVE_SEQUENCE
from featpipe.service.batcher import Batcher, Workload
from featpipe.service.metrics import ServiceMetrics
from featpipe.service.request_queue import BatcherLimits
from featpipe.service.review import Reviews
from featpipe.service.template_watcher import TemplateWatcher
from featpipe.service.tracing import Tracer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeVar

    import numpy as np
    from numpy.typing import NDArray

    from featpipe.cache.search import Hit
    from featpipe.cache.search_worker import ScoreQuery, SearchQuery
    from featpipe.encoders.prompts import QueryPrompt
    from featpipe.encoders.spec import Spec
    from featpipe.extraction.messages import Given
    from featpipe.extraction.review_worker import ReviewAnswer, ReviewTask
    from featpipe.on_demand.messages import Embedded, EmbedQuery
    from featpipe.on_demand.space import Chosen
    from featpipe.service.settings import ServiceSettings

    ItemT = TypeVar("ItemT")
    AnswerT = TypeVar("AnswerT")

logger = getLogger("featpipe.service")

#: Characters of texts, or bytes of documents, of one batch: some seconds of work for a large model
#: on a slow machine. A heavier item is a batch of its own.
_BATCH_WEIGHT = 32_768
#: Seconds until templates that could not be fitted at the start are tried again.
_PAUSE_S = 5.0

#: A field that takes longer to fit, or a few documents to search, is given up.
_REVIEW_S = 600.0
_MOST_REVIEWING = 4

#: What the fork server imports once for all workers on the processor.
_PRELOAD = ("torch", "featpipe.encoders.encoder", "featpipe.on_demand.worker")


class Engine:
    """Batchers, templates and metrics of one service.

    Opening it checks everything that can be checked without loading a model, so that the command
    ends with a clear error instead of starting a service that cannot answer.

    Args:
        settings: of the service.

    Raises:
        FeatpipeError: the cache, a model folder or a template cannot be used.

    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics, self.tracer = ServiceMetrics(), Tracer(is_on=settings.is_traced)
        self.is_draining = False
        self._watching: asyncio.Task[None] | None = None
        devices = check_devices(settings.devices) or default_devices()
        for device in _embedding_devices(devices):
            check_query_backend(settings.query_backend, device)
        with Cache.open(settings.cache) as cache:
            self.chosen = choose_checkpoints(cache, settings.model, settings.ner, settings.space)
            if self.chosen.space is None:  # beside vectors of another model, its own would mislead
                refuse_unknown_models(cache, settings.space)
            _check_tokenizer(settings.token_ids, self.chosen)
            self.query_prompt = _find_query_prompt(self.chosen, settings.query_prompt)
            has_terms = any(name.startswith("terms/") for name in cache.reader.tables())
            space = cache.dictionary(self.chosen.space) if self.chosen.space else None
            self.dim = space.dim if space else None
            self.spec = space.spec if space else _own_spec(self.chosen)
        self.watcher: TemplateWatcher | None = None
        self.extract: Batcher[Given, Done] | None = None
        self.reviews: Reviews | None = None
        self.review: Batcher[ReviewTask, ReviewAnswer] | None = None
        if settings.templates is not None:
            self._open_templates(settings.templates, devices)
        self.embed = self._batcher(embedding_workload(settings, devices, self.chosen), max_batch=64)
        self.search = (
            self._batcher(search_workload(settings, self.chosen), max_batch=16, is_eager=False)
            if has_terms
            else None
        )
        self.batchers = [
            batcher
            for batcher in (self.extract, self.embed, self.search, self.review)
            if batcher is not None
        ]
        self.metrics.watch(self.batchers)

    @property
    def is_ready(self) -> bool:
        """Whether a request would be answered now."""
        return not self.is_draining and all(batcher.is_ready for batcher in self.batchers)

    def start(self) -> None:
        """Start the workers; call it in the event loop."""
        self.embed.open()
        if self.search is not None:
            self.search.open()
        if self.review is not None:
            self.review.open()
        if self.watcher is not None and self.extract is not None:
            watching = self._publish_and_watch(self.watcher, self.extract)
            self._watching = asyncio.create_task(watching)

    async def stop(self) -> None:
        """End the workers, and remove the published templates."""
        if self._watching is not None:
            self._watching.cancel()
        if self.reviews is not None:
            self.reviews.close()
        await asyncio.gather(*(asyncio.to_thread(batcher.close) for batcher in self.batchers))
        if self.watcher is not None:
            self.watcher.publication.close()

    def _open_templates(self, templates: Path, devices: tuple[str, ...]) -> None:
        settings = self.settings
        publication = Publication(
            templates,
            settings.cache,
            self.chosen,
            devices,
            settings.space,
            limits=settings.limits,
        )
        self.watcher = TemplateWatcher(publication)
        self.extract = self._batcher(extraction_workload(settings, publication), settings.max_batch)
        if settings.is_review:
            n_workers = min(_MOST_REVIEWING, usable_cores())
            workload = review_workload(publication, n_workers)
            self.review = self._batcher(workload, max_batch=1, is_eager=False)
            self.reviews = Reviews(self.watcher, self.review, n_workers)

    async def _publish_and_watch(
        self, watcher: TemplateWatcher, extract: Batcher[Given, Done]
    ) -> None:
        """Open the batcher of extraction when there is a template, then watch the files."""
        while not watcher.templates:
            try:
                await watcher.publish()
            except TemplateError as error:
                logger.log(ERROR, "no templates can be used: %s", error.message)
                await asyncio.sleep(_PAUSE_S)
        extract.open()
        await watcher.watch()

    def _batcher(
        self, workload: Workload[ItemT, AnswerT], max_batch: int, *, is_eager: bool = True
    ) -> Batcher[ItemT, AnswerT]:
        limits = BatcherLimits(
            max_waiting=self.settings.max_waiting,
            max_waiting_weight=self.settings.max_waiting_bytes,
            max_batch=max_batch,
            max_batch_weight=_BATCH_WEIGHT,
            linger_s=self.settings.linger_s,
        )
        return Batcher(workload, limits, self.metrics, self.tracer, is_eager=is_eager)


def _find_query_prompt(chosen: Chosen, given: str | None) -> QueryPrompt:
    passage = chosen.encoder.prompt
    checkpoint = describe_checkpoint(chosen.model)
    if passage is None:  # no space: the model's own settings
        passage = checkpoint.recipe.default_prompt
    return find_query_prompt(checkpoint, passage, given)


def _own_spec(chosen: Chosen) -> Spec:
    """The spec of a model that filled no space of the cache."""
    return encoder_spec(describe_checkpoint(chosen.model), chosen.encoder)


def _check_tokenizer(name: str | None, chosen: Chosen) -> None:
    """Check that token ids are allowed of the tokenizer of the model that reads them.

    Raises:
        UsageError: another name.
    """
    if name not in {None, chosen.name, chosen.space, chosen.model}:
        raise UsageError(
            f"token ids of {name} cannot be read: the model here is {chosen.name}",
            hint=f"say --token-ids {chosen.name} if clients use its tokenizer; else let them send"
            " texts",
        )


def extraction_workload(
    settings: ServiceSettings, publication: Publication
) -> Workload[Given, Done]:
    """Documents under templates. A group is (template, whether the text is sent back)."""
    return Workload(
        publication.role(settings.document_deadline_s),
        make=lambda group, items: ExtractTask(items, group[0], with_text=group[1]),
        count=lambda task: len(task.documents) if isinstance(task, ExtractTask) else 1,
        answers=_extraction_answers,
        ping=ReloadTask(),
    )


def review_workload(publication: Publication, n_workers: int) -> Workload[ReviewTask, ReviewAnswer]:
    """Fields fitted and values found under proposed templates; one task per batch."""
    return Workload(
        publication.review_role(_REVIEW_S, n_workers),
        make=lambda _, items: items[0],
        count=lambda _: 1,
        answers=lambda answer: [answer],
        ping=Ping(),
    )


def embedding_workload(
    settings: ServiceSettings, devices: tuple[str, ...], chosen: Chosen
) -> Workload[EmbedQuery, Embedded]:
    """Texts or token ids to vectors."""
    role = _embedding_role(settings, devices, chosen)
    return Workload(role, make=lambda _, items: items, count=len, answers=list, ping=())


def _embedding_role(settings: ServiceSettings, devices: tuple[str, ...], chosen: Chosen) -> Role:
    computing = _embedding_devices(devices)
    checkpoints = Checkpoints(
        chosen.model, encoder=chosen.encoder, query_backend=settings.query_backend
    )
    return replace(
        text_role(checkpoints, settings.cache.absolute(), chosen.space),
        devices=computing,
        threads=usable_cores() if computing == ("cpu",) else None,
        deadline_s=settings.document_deadline_s,
        preload=_PRELOAD,
        environment=SMALLEST_KERNEL_CACHES,
        is_lazy=False,
    )


def _embedding_devices(devices: tuple[str, ...]) -> tuple[str, ...]:
    """The cards; else the processor once.

    One worker with every core answers a request sooner than several with one core each.
    """
    return tuple(device for device in devices if device != "cpu") or ("cpu",)


def search_workload(
    settings: ServiceSettings, chosen: Chosen
) -> Workload[SearchQuery | ScoreQuery, list[Hit] | NDArray[np.float64]]:
    """Queries to ranked sentences, or to the scores of given texts."""
    role = Role(
        name="search",
        target="featpipe.cache.search_worker:SearchRole",
        arguments={
            "cache": str(settings.cache.absolute()),
            "space": chosen.space,
            "analyser": settings.analyser,
        },
        threads=1,
        deadline_s=settings.document_deadline_s,
        bisect=HALVE_SEQUENCE,
    )
    return Workload(role, make=lambda _, items: items, count=len, answers=list, ping=())


def _extraction_answers(value: object) -> Sequence[object]:
    """One `Done` per document; the result of a `ReloadTask` is a single answer."""
    return (
        value if isinstance(value, tuple) and all(isinstance(v, Done) for v in value) else [value]
    )
