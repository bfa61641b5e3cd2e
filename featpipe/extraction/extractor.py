"""The extractor: opens a cache and templates once, and serves any number of threads.

Guarantees: a document that is in the cache costs no encoder call; any other document gets vectors
and entities by the models that filled the cache, so that its values are the same here, on workers,
in the service and in the consumer; changed template files are seen by the next call without
reloading any model, and only changed fields are fitted again; a template file that has become
invalid changes nothing, so that the last good version is used, and is reported.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Never, Self, cast

from featpipe.cache.cache import Cache
from featpipe.errors import UsageError
from featpipe.extraction.engine import ExtractionEngine
from featpipe.extraction.model_cache import ModelCache
from featpipe.on_demand.space import choose_checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from featpipe.documents import Document, LoadLimits, Source
    from featpipe.extraction.engine import AnyDocument
    from featpipe.extraction.results import Extraction
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.template import Template
    from featpipe.on_demand.space import Checkpoints
    from featpipe.report import Quarantined

logger = getLogger(__name__)


class Extractor:
    """Extracts the fields of templates from documents.

    ::

        with Extractor("templates/", cache="c.h5") as extractor:
            extractor.extract("notice.html").fields["合同金额"].value

    Texts that the cache does not hold get vectors and entities by the models that filled it, which
    a worker process loads at the first such text. Models that filled it and are neither named nor
    the built-in ones are left out: ``notes`` names them, and the first new document logs a warning.

    Args:
        templates: file or folder, or templates already loaded.
        cache: file or opened cache; its vectors and entities are inputs of extraction.
        model: the encoder that filled the cache, by folder or hub name; by default the built-in.
        ner: the tagger that found its entities; ``none`` to do without.
        space: which vectors, when the cache has several; by default those of ``model``.
        checkpoints: the models with all their settings, in place of ``model`` and ``ner``;
            ``"none"``: texts that the cache does not hold get neither vectors nor entities.
        encode: texts -> vectors of that space, in place of a model; entities are then only those
            stored, unless ``checkpoints`` are given.
        folder: where sample documents lie, when templates are given already loaded.
        models: folder where fitted fields are kept, by fingerprint; by default in the user's cache
            folder, so that the next process starts without fitting. A mapping keeps them in memory.
        limits: beyond which a document is refused.

    Raises:
        TemplateError: a template cannot be used, or a sample document is nowhere.
        UnreadableDictionary: of the cache.
        UnknownSpace, UsageError: ``model`` or ``ner`` did not fill the cache, or a space must be
            named.

    """

    def __init__(  # noqa: PLR0913  # the one public door: each argument is one decision of the user
        self,
        templates: str | Path | Sequence[Template],
        cache: str | Path | Cache,
        *,
        model: str | Path | None = None,
        ner: str | Path | None = None,
        space: str | None = None,
        checkpoints: Checkpoints | Literal["none"] | None = None,
        encode: Callable[[Sequence[str]], NDArray[np.generic]] | None = None,
        folder: str | Path | None = None,
        models: str | Path | MutableMapping[str, object] | None = None,
        limits: LoadLimits | None = None,
    ) -> None:
        if (checkpoints is not None or encode is not None) and (model or ner):
            raise UsageError("model and ner go with neither checkpoints nor encode")
        owns_cache = not isinstance(cache, Cache)
        self.cache = cache if isinstance(cache, Cache) else Cache.open(cache)
        self.notes: tuple[str, ...] = ()
        """What documents outside the cache lack, and why."""
        self._owned = self.cache if owns_cache else None
        self._has_warned = False
        try:
            if checkpoints is None and encode is None:
                chosen = choose_checkpoints(self.cache, model, ner, space)
                space, self.notes = chosen.space or space, chosen.notes
                checkpoints = chosen.checkpoints
            self.engine = ExtractionEngine(
                templates,
                self.cache,
                space=space,
                checkpoints=checkpoints,
                encode=encode,
                folder=folder,
                models=_keeper(models),
                limits=limits,
            )
        except BaseException:
            if owns_cache:
                self.cache.close()
            raise

    @property
    def templates(self) -> dict[str, Template]:
        """By name, as the files are now."""
        return {name: fitted.template for name, fitted in self.engine.templates.items()}

    @property
    def problem(self) -> str:
        """Why changed template files are not used, "" if they are."""
        return self.engine.problem

    def extract(self, document: AnyDocument, template: str | None = None) -> Extraction:
        """Extract one document under one template.

        Args:
            document: a path, a source (such as a member of an archive), the id of a cached
                document, a loaded document, or a text (a string that is neither a file nor an id).
            template: its name; may be left out when there is one.

        Raises:
            UsageError: no such template, or several.
            DocumentError: the file cannot be read.
            CheckpointError: a model folder that cannot be used, or that holds another model.

        """
        features, is_new = self.engine.page_of(document)
        if is_new:
            self.warn_of_missing_models()
        return self.engine.extract_page(features, self.engine.template_set.choose(template))

    def extract_many(
        self,
        documents: Iterable[AnyDocument],
        template: str | None = None,
        *,
        workers: int = 0,
        deadline_s: float | None = 120.0,
    ) -> Iterator[Extraction | Quarantined]:
        """Every document in order; one that cannot be extracted is a record with its reason.

        Args:
            documents: as for :meth:`extract`; read when their turn comes.
            template: its name, "*" for every template that is meant for the document, "auto" for
                the likeliest one; a document that is unlike the samples of all is left out.
            workers: processes to do it; 0: this one. The values are the same.
            deadline_s: for a batch of a few documents on a worker; what takes longer is given up.

        Raises:
            UsageError: no such template, or ``encode`` with workers (name ``checkpoints`` instead).
            CheckpointError: as for :meth:`extract`.
            PoolBroken: workers cannot start.

        """
        given = map(self.engine.given_of, documents)
        n_documents = n_unmatched = 0
        for done in self.engine.extract_each(given, template, workers, deadline_s):
            n_documents += 1
            if done.is_new:
                self.warn_of_missing_models()
            yield from done.extractions
            yield from [done.quarantined] if done.quarantined else ()
            n_unmatched += not done.extractions and not done.quarantined
        if n_unmatched:
            logger.warning(
                "%d of %d documents match the `documents` patterns of no template; a template that "
                "is named is applied to any",
                n_unmatched,
                n_documents,
            )

    async def aextract(
        self, document: str | Path | Source | Document, template: str | None = None
    ) -> Extraction:
        """``extract`` without holding up the event loop."""
        return await asyncio.to_thread(self.extract, document, template)

    def close(self) -> None:
        """Stop the worker that holds models, and let go of the cache if it was opened here."""
        self.engine.close()
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Never:
        """Refuse to travel: it holds open files, and perhaps a worker.

        Raises:
            UsageError: with the way on.

        """
        raise UsageError(
            "an Extractor cannot be pickled, so it goes to no other process",
            hint="make one in that process, or let extract_many(documents, workers=N) start some",
        )

    def __repr__(self) -> str:
        names = ", ".join(self.engine.templates)
        return f"<Extractor of {names or 'no templates'} over {self.cache.path}>"

    def warn_of_missing_models(self) -> None:
        """Log, the first time, what documents that the cache does not hold lack."""
        if not self._has_warned:
            self._has_warned = True
            for note in self.notes:
                logger.warning("%s", note)


def _keeper(
    models: str | Path | MutableMapping[str, object] | None,
) -> ModelCache | MutableMapping[str, FieldModel] | None:
    if isinstance(models, str | Path):
        return ModelCache(Path(models))
    return cast("MutableMapping[str, FieldModel] | None", models)
