"""On workers: thousands of documents x templates over a pool, in order, whatever some of them do.

Guarantees: every document handed in comes out once, in order, as its extractions or as the reason
why there are none; a document that kills its worker or runs past its deadline costs itself alone;
the values are those of the same Extractor in this process.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NoReturn

from featpipe.errors import FeatpipeError, PoolBroken, TaskTimedOut, WorkerDied, raise_original
from featpipe.extraction.worker import (
    ALL,
    ExtractTask,
    FieldsDone,
    FieldsTask,
    FitTask,
    extract_role,
    given_of,
    name_of,
)
from featpipe.pool import Pool
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.cache.documents import CachedDocument
    from featpipe.documents import Document
    from featpipe.errors import PoolError
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.reprocess import Work
    from featpipe.extraction.results import Extraction, FieldResult
    from featpipe.extraction.worker import Given
    from featpipe.pool import Outcome

#: Documents of one task: enough to make the way to the worker cheap, few enough to try each alone.
_BATCH = 8
_WORKS = 32
_FIT_DEADLINE_S = 3600.0


def extract_on_workers(
    extractor: Extractor,
    documents: Iterable[str | Path | Document | CachedDocument],
    template: str | None,
    workers: int,
    deadline_s: float | None,
) -> Iterator[Extraction | Quarantined]:
    """See :meth:`Extractor.extract_many`."""
    names = [template] if template in extractor.templates else []
    names = list(extractor.templates) if template == ALL and not names else names
    with _open_pool(extractor, workers, deadline_s) as pool:
        _fit_first(pool, extractor, names)
        tasks = (ExtractTask(batch, template) for batch in _batches(extractor, documents))
        for outcome in _ends(pool, tasks, ordered=True):
            for part in outcome.parts:
                if part.error is None:
                    for done in part.value:  # type: ignore[attr-defined]  # what ExtractRole.run gives
                        yield from done.extractions
                        yield from [done.quarantined] if done.quarantined else ()
                else:
                    for given in part.payload.documents:  # type: ignore[attr-defined]  # ExtractTask
                        yield _lost(name_of(given), part.error)


def find_fields_on_workers(
    extractor: Extractor, works: Sequence[Work], workers: int, deadline_s: float | None
) -> Iterator[tuple[Work, dict[str, FieldResult] | Quarantined, int]]:
    """Missing fields of many works, in order, and the number of texts encoded for them (0)."""
    prints = {
        name: {field: facts.fingerprint for field, facts in fitted.facts.items()}
        for name, fitted in extractor.templates.items()
    }
    parts = [works[at : at + _WORKS] for at in range(0, len(works), _WORKS)]
    tasks = [
        FieldsTask(
            tuple(
                (w.document.path, w.template, tuple((f, prints[w.template][f]) for f in w.missing))
                for w in part
            )
        )
        for part in parts
    ]
    with _open_pool(extractor, workers, deadline_s) as pool:
        _fit_first(pool, extractor, sorted({work.template for work in works}))
        for outcome in _ends(pool, tasks, ordered=True):
            pending = iter(parts[outcome.index])
            for part in outcome.parts:
                if isinstance(part.value, FieldsDone):
                    n_encoded = part.value.n_encoded
                    for result in part.value.results:
                        yield next(pending), result, n_encoded
                        n_encoded = 0
                elif part.error is not None:
                    for path, _, _ in part.payload.works:  # type: ignore[attr-defined]  # FieldsTask
                        yield next(pending), _lost(path, part.error), 0


def _open_pool(extractor: Extractor, workers: int, deadline_s: float | None) -> Pool:
    """Workers with the templates as they are at this moment, so that one run is of one state."""
    role = extract_role(
        extractor.cache.path.absolute(),
        [fitted.template for fitted in extractor.templates.values()],
        devices=("cpu",) * workers,
        space=extractor.space,
        checkpoints=extractor.checkpoints,
        folder=extractor.folder,
        deadline_s=deadline_s,
    )
    return Pool([role])


def _fit_first(pool: Pool, extractor: Extractor, names: Sequence[str]) -> None:
    """Each field is fitted by one worker and kept for the others, before they all need it."""
    into = pool.completions()
    for name in names:
        for field in extractor.templates[name].unfitted():
            pool.submit("extract", FitTask(name, field), deadline_s=_FIT_DEADLINE_S, into=into)
    try:
        while into.n_open:
            for outcome in into.get():
                if outcome.error is not None:
                    _raise(outcome.error)
    except PoolBroken as error:
        raise_original(error)


def _ends(pool: Pool, tasks: Iterable[object], *, ordered: bool) -> Iterator[Outcome]:
    try:
        for outcome in pool.map("extract", tasks, ordered=ordered):
            for part in outcome.parts:
                if part.error is not None and not isinstance(part.error, WorkerDied | TaskTimedOut):
                    _raise(part.error)
            yield outcome
    except PoolBroken as error:
        raise_original(error)


def _raise(error: PoolError) -> NoReturn:
    """What no document is to blame for ends the run, with the reason as it was raised."""
    if isinstance(error.__cause__, FeatpipeError):
        raise error.__cause__ from None
    raise error


def _lost(name: str, error: PoolError) -> Quarantined:
    return Quarantined(name, f"{name}: {error.message}", type(error).__name__)


def _batches(
    extractor: Extractor, documents: Iterable[str | Path | Document | CachedDocument]
) -> Iterator[tuple[Given, ...]]:
    source = iter(documents)
    for first in source:
        yield tuple(given_of(extractor, one) for one in chain([first], islice(source, _BATCH - 1)))
