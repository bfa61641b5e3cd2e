"""Trades: the roles of a service, and how requests become their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.documents import LoadLimits
from featpipe.extraction.warm_worker import FEW_KERNELS, warm_role
from featpipe.extraction.worker import Done, ExtractTask, ReloadTask
from featpipe.pool import Role
from featpipe.pool.role import usable_cores
from featpipe.service.batcher import Trade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.extraction.deploy import Publication
    from featpipe.on_demand.checkpoints import Chosen
    from featpipe.service.settings import ServiceSettings

#: What a template process imports once for all workers on the processor.
_PRELOAD = ("torch", "featpipe.encoders.encoder", "featpipe.on_demand.worker")
#: An uploaded file may unpack to this many times its size, and to this much in any case.
_UNPACKED_TIMES, _UNPACKED_BYTES = 4, 64 << 20
_HALVE = "featpipe.pool.bisect:halve_sequence"


def extracting(settings: ServiceSettings, publication: Publication) -> Trade:
    """Documents under templates. A group is (template, whether the text is sent back)."""
    size = settings.max_body_bytes
    limits = LoadLimits(
        max_bytes=max(size, settings.max_batch_bytes),
        max_unpacked_bytes=max(_UNPACKED_BYTES, _UNPACKED_TIMES * size),
    )
    return Trade(
        warm_role(publication, limits, settings.document_deadline_s),
        make=lambda group, items: ExtractTask(items, group[0], with_text=group[1]),
        count=lambda task: len(task.documents) if isinstance(task, ExtractTask) else 1,
        answers=_extraction_answers,
        ping=ReloadTask(),
    )


def embedding(settings: ServiceSettings, devices: tuple[str, ...], chosen: Chosen) -> Trade:
    """Texts or token ids to vectors."""
    # One worker with every core answers a request sooner than several with one core each.
    cards = tuple(device for device in devices if device != "cpu")
    return Trade(
        Role(
            name="embed",
            target="featpipe.on_demand.worker:EmbedRole",
            arguments={
                "model": chosen.model,
                "settings": chosen.encoder,
                "cache": str(settings.cache.absolute()),
                "space": chosen.space,
            },
            devices=cards or ("cpu",),
            threads=None if cards else usable_cores(),
            deadline_s=settings.document_deadline_s,
            bisect=_HALVE,
            preload=_PRELOAD,
            environment=FEW_KERNELS,
            is_lazy=False,
        ),
        make=lambda _, items: items,
        count=len,
        answers=list,
        ping=(),
    )


def searching(settings: ServiceSettings, chosen: Chosen) -> Trade:
    """Queries to ranked sentences."""
    return Trade(
        Role(
            name="search",
            target="featpipe.cache.search_role:SearchRole",
            arguments={
                "cache": str(settings.cache.absolute()),
                "space": chosen.space,
                "analyser": settings.analyser,
            },
            threads=1,
            deadline_s=settings.document_deadline_s,
            bisect=_HALVE,
        ),
        make=lambda _, items: items,
        count=len,
        answers=list,
        ping=(),
    )


def _extraction_answers(value: object) -> Sequence[object]:
    """One `Done` per document; what a `ReloadTask` gives is a single answer."""
    return (
        value if isinstance(value, tuple) and all(isinstance(v, Done) for v in value) else [value]
    )
