"""Extraction on workers: thousands of documents x templates over a pool, in order.

Guarantees: every document handed in comes out once, in order, as its extractions or as the reason
why there are none; a document that kills its worker or runs past its deadline costs itself alone;
the values are those of the same Extractor in the caller's process.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from featpipe.encoders.memory import SMALL_KERNEL_CACHES
from featpipe.errors import PoolBroken, TaskTimedOut, WorkerDied, raise_original
from featpipe.extraction.messages import Done, ExtractTask, FieldsDone, FieldsTask, name_of
from featpipe.pool import Pool, Role
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Literal

    from featpipe.documents import LoadLimits
    from featpipe.errors import PoolError
    from featpipe.extraction.messages import FieldsWork, FitTask, Given
    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.template import Template
    from featpipe.on_demand.space import Checkpoints
    from featpipe.pool import Outcome

#: Works of one task.
_WORKS = 32
_FIT_DEADLINE_S = 3600.0


def extract_role(  # noqa: PLR0913  # each argument is one decision of the caller
    cache: str | Path,
    templates: str | Path | Sequence[Template],
    *,
    name: str = "extract",
    devices: tuple[str, ...] = ("cpu",),
    space: str | None = None,
    checkpoints: Checkpoints | Literal["none"] | None = None,
    folder: str | Path | None = None,
    models: Path | None = None,
    limits: LoadLimits | None = None,
    threads: int | None = 1,
    deadline_s: float | None = 120.0,
) -> Role:
    """The role for a pool: one worker per entry of ``devices``.

    A caller with a pool of its own, such as a service or a queue consumer, uses it as follows::

        pool = Pool([extract_role("c.h5", "templates/", devices=("cpu",) * 2)])
        task = ExtractTask((Inline("甲方：...", name="upload 7"),), "租赁合同")
        done = pool.call("extract", task)
        done[0].extractions[0].as_dict()    # plain JSON; or done[0].quarantined has the reason

    Args:
        cache: the HDF5 file.
        templates: file or folder, watched for changes; or templates already loaded.
        name: of the role.
        devices: where unknown texts are encoded.
        space: which vectors, when the cache has several.
        checkpoints: models for texts that the cache does not hold, as for
            :class:`featpipe.extraction.extractor.Extractor`.
        folder: where sample documents of templates already loaded lie.
        models: folder of fitted fields; by default in the user's cache folder.
        limits: beyond which a document is refused.
        threads: of each worker.
        deadline_s: of a task; a document that takes longer is given up and its worker replaced.

    """
    given = str(templates) if isinstance(templates, str | Path) else tuple(templates)
    return Role(
        name=name,
        target="featpipe.extraction.worker:ExtractRole",
        arguments={
            "cache": str(cache),
            "templates": given,
            "space": space,
            "checkpoints": checkpoints,
            "folder": None if folder is None else str(folder),
            "models": None if models is None else str(models),
            "limits": limits,
        },
        devices=devices,
        threads=threads,
        deadline_s=deadline_s,
        bisect="split",
        preload=("featpipe.extraction.worker",),
        environment=SMALL_KERNEL_CACHES,
    )


def extract_on_workers(
    role: Role,
    fit_first: Sequence[FitTask],
    batches: Iterable[tuple[Given, ...]],
    template: str | None,
) -> Iterator[Done]:
    """Every document of the batches in order.

    Args:
        role: of `extract_role`.
        fit_first: each is done by one worker, before all of them need it.
        batches: documents that travel together.
        template: as for :class:`ExtractTask`.

    Raises:
        FeatpipeError: nothing can be extracted at all.

    """
    with Pool([role]) as pool:
        _fit(pool, role, fit_first)
        tasks = (ExtractTask(batch, template) for batch in batches)
        for outcome in _run(pool, role, tasks):
            for part in outcome.parts:
                if part.error is None:
                    yield from cast("tuple[Done, ...]", part.value)
                    continue
                for given in cast("ExtractTask", part.payload).documents:
                    name = name_of(given)
                    yield Done(name, quarantined=_lost(name, part.error))


def find_fields_on_workers(
    role: Role, fit_first: Sequence[FitTask], works: Sequence[FieldsWork]
) -> Iterator[tuple[dict[str, FieldResult] | Quarantined, int]]:
    """The fields of each work in order, and the number of texts encoded for them.

    Args:
        role: of `extract_role`.
        fit_first: as for `extract_on_workers`.
        works: as for :class:`FieldsTask`.

    Raises:
        FeatpipeError: nothing can be extracted at all.

    """
    tasks = (FieldsTask(tuple(works[at : at + _WORKS])) for at in range(0, len(works), _WORKS))
    with Pool([role]) as pool:
        n_encoded = _fit(pool, role, fit_first)
        for outcome in _run(pool, role, tasks):
            for part in outcome.parts:
                if part.error is not None:
                    for path, _, _ in cast("FieldsTask", part.payload).works:
                        yield _lost(path, part.error), 0
                    continue
                done = cast("FieldsDone", part.value)
                n_encoded += done.n_encoded
                for result in done.results:
                    yield result, n_encoded
                    n_encoded = 0


def _fit(pool: Pool, role: Role, tasks: Sequence[FitTask]) -> int:
    """The number of texts encoded for it."""
    into = pool.completions()
    for task in tasks:
        pool.submit(role.name, task, deadline_s=_FIT_DEADLINE_S, into=into)
    n_encoded = 0
    try:
        while into.n_open:
            for outcome in into.get():
                if outcome.error is not None:
                    raise_original(outcome.error)
                n_encoded += cast("int", outcome.value)
    except PoolBroken as error:
        raise_original(error)
    return n_encoded


def _run(pool: Pool, role: Role, tasks: Iterable[object]) -> Iterator[Outcome]:
    try:
        for outcome in pool.map(role.name, tasks, ordered=True):
            for part in outcome.parts:
                if part.error is not None and not isinstance(part.error, WorkerDied | TaskTimedOut):
                    raise_original(part.error)
            yield outcome
    except PoolBroken as error:
        raise_original(error)


def _lost(name: str, error: PoolError) -> Quarantined:
    return Quarantined(name, f"{name}: {error.message}", type(error).__name__)
