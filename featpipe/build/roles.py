"""The roles of a build's workers: which processes read, encode and count.

The writer's role is `featpipe.cache.write.write_role`.
"""

from __future__ import annotations

from dataclasses import replace
from os import sysconf
from typing import TYPE_CHECKING

from featpipe.build.messages import BEGIN_WITHIN_S
from featpipe.documents import LoadLimits
from featpipe.encoders.memory import SMALL_KERNEL_CACHES
from featpipe.pool import Role
from featpipe.pool.devices import usable_cores

if TYPE_CHECKING:
    from featpipe.build.messages import EncoderPlan, TaggerPlan
    from featpipe.cache.places import Preparation
    from featpipe.settings import BuildSettings


#: Readers for each card: one reads 0.7 M to 1.0 M tokens of plain texts a second
#: (`bench_encode.py --only stages`), and an H200 computes 2.4 M of BERT-base's.
READERS_OF_A_CARD = 6


def prepare_role(
    preparation: Preparation, settings: BuildSettings, devices: tuple[str, ...] = ()
) -> Role:
    """Workers that read documents and cut them into units, for encoders on `devices`."""
    return Role(
        name="prepare",
        target="featpipe.build.workers:PrepareRole",
        arguments={"preparation": preparation, "limits": read_limits(settings)},
        devices=("cpu",) * (settings.n_prepare_workers or count_readers(devices)),
        threads=1,
        deadline_s=settings.task_deadline_s + BEGIN_WITHIN_S,
        max_memory_bytes=settings.max_worker_memory_bytes or _half_of_memory(),
        bisect="split",
    )


def count_readers(devices: tuple[str, ...]) -> int:
    """Processes that read documents for encoders on `devices`, where none are asked for."""
    n_cards = len(set(devices) - {"cpu"})
    return max(1, min(READERS_OF_A_CARD * n_cards, usable_cores() - len(devices)))


def encode_role(
    encoder: EncoderPlan,
    tagger: TaggerPlan | None,
    devices: tuple[str, ...],
    settings: BuildSettings,
    *,
    threads: int | None = None,
) -> Role:
    """Workers that compute vectors and entities, one per device.

    ``threads``: of each; by default the usable cores shared out among those on ``cpu``.
    """
    return Role(
        name="encode",
        target="featpipe.build.encode_worker:EncodeRole",
        arguments={"encoder": encoder, "tagger": tagger},
        devices=devices,
        threads=threads,
        environment=SMALL_KERNEL_CACHES,
        preload=("torch", "featpipe.build.encode_worker"),
        deadline_s=settings.unit_deadline_s,
        bisect="split",
    )


def count_role(settings: BuildSettings) -> Role:
    """The worker that counts the terms of sentences."""
    return Role(
        name="count",
        target="featpipe.build.workers:CountRole",
        arguments={"analyser": settings.analyser},
        threads=1,
        deadline_s=settings.unit_deadline_s,
        bisect="split",
    )


def read_limits(settings: BuildSettings) -> LoadLimits:
    """Beyond which a document is refused."""
    default = LoadLimits(use_ocr=settings.use_ocr)
    return replace(
        default,
        max_bytes=settings.max_document_bytes or default.max_bytes,
        max_characters=settings.max_document_characters or default.max_characters,
    )


def _half_of_memory() -> int:
    """The default ceiling of a prepare worker, so that no document exhausts the machine."""
    return sysconf("SC_PHYS_PAGES") * sysconf("SC_PAGE_SIZE") // 2
