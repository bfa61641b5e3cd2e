"""Extraction worker: holds one ExtractionEngine, and answers extract, fields, fit and reload tasks.

Guarantees: the cache and the templates are opened once per worker, and models are loaded at the
first text that needs them, then kept; every task begins with a look whether template files changed
(a few ``stat`` calls), and a change is fitted without loading any model again. A document that
cannot be extracted is a :class:`Done` with its reason; the other documents of the task are done. A
document that kills its worker or runs past the deadline is found by giving each of the task to a
worker alone (the role's ``bisect``), so that it costs twice its deadline at the most, and is the
only one whose part of the outcome is an error. Results are equal to those of an Extractor in the
caller's process.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.encoders.lost_card import ending_with_card
from featpipe.errors import FeatpipeError, UsageError
from featpipe.extraction.engine import ExtractionEngine, quarantine
from featpipe.extraction.messages import (
    Done,
    ExtractTask,
    FieldsDone,
    FieldsTask,
    FitTask,
    Reloaded,
    ReloadTask,
)
from featpipe.extraction.model_cache import ModelCache
from featpipe.on_demand.worker import LoadedModels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from featpipe.cache.cache import Cache
    from featpipe.documents import LoadLimits
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.template import Template
    from featpipe.on_demand.space import Checkpoints
    from featpipe.report import Quarantined


class ExtractRole:
    """The worker's side of :func:`featpipe.extraction.on_workers.extract_role`.

    Args:
        cache, templates, space, checkpoints, folder, models, limits: as there.
        is_warm: load models and fitted fields before the worker is ready and before the first
            document after a change of the templates, so that a document's time is its own.
        device, threads: given by the pool; they win over those of ``checkpoints``.

    Raises:
        TemplateError, DictionaryError: neither templates nor cache can be used.

    """

    def __init__(  # noqa: PLR0913  # the pool passes arguments by name
        self,
        *,
        cache: str,
        templates: str | tuple[Template, ...],
        space: str | None = None,
        checkpoints: Checkpoints | Literal["none"] | None = None,
        folder: str | None = None,
        models: str | None = None,
        limits: LoadLimits | None = None,
        is_warm: bool = False,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        def load_here(
            given: Checkpoints, cache: Cache, space: str | None, tagger: str | None
        ) -> LoadedModels:
            here = replace(given, device=device, threads=threads)
            return LoadedModels(here, cache, space, tagger)

        self._device = device
        self._in_memory: dict[str, FieldModel] = {}
        self.engine = ExtractionEngine(
            templates,
            cache,
            space=space,
            checkpoints=checkpoints,
            folder=folder,
            models=None if models is None else ModelCache(Path(models), self._in_memory),
            limits=limits,
            open_models=load_here,
        )
        self._is_warm = is_warm
        self._loaded: dict[str, FittedTemplate] | None = None
        if is_warm:
            self._load()

    def run(
        self, task: ExtractTask | FieldsTask | FitTask | ReloadTask
    ) -> tuple[Done, ...] | FieldsDone | Reloaded | int:
        """One answer per kind of task.

        Raises:
            UsageError: no such template.
            CheckpointError, DictionaryError: nothing can be extracted at all.

        """
        with ending_with_card(self._device):
            return self._answer(task)

    def _answer(
        self, task: ExtractTask | FieldsTask | FitTask | ReloadTask
    ) -> tuple[Done, ...] | FieldsDone | Reloaded | int:
        if self._is_warm:
            self._load_fitted()
        match task:
            case ExtractTask():
                return self._extract(task)
            case FieldsTask():
                return self._find_fields(task)
            case FitTask():
                return self._fit(task)
            case ReloadTask():
                templates = self.engine.templates
                prints = {name: one.fingerprint for name, one in templates.items()}
                return Reloaded(prints, self.engine.problem)

    def close(self) -> None:
        """Let go of the cache."""
        self.engine.close()

    def _extract(self, task: ExtractTask) -> tuple[Done, ...]:
        return tuple(
            self.engine.extract_given(given, task.template, with_text=task.with_text)
            for given in task.documents
        )

    def _find_fields(self, task: FieldsTask) -> FieldsDone:
        before = self.engine.pages.n_encoded
        pages: dict[str, PageFeatures] = {}
        results: list[dict[str, FieldResult] | Quarantined] = []
        for path, template, fields in task.works:
            fitted = self.engine.template_set.choose(template)
            try:
                if path not in pages:
                    document = self.engine.cache.document(path)
                    pages = {path: self.engine.page_of(document)[0]}
                results.append(_fields_of(fitted, fields, pages[path]))
            except FeatpipeError:
                raise
            except Exception as error:  # a poison document costs itself alone
                results.append(quarantine(path, error))
        return FieldsDone(tuple(results), self.engine.pages.n_encoded - before)

    def _fit(self, task: FitTask) -> int:
        before = self.engine.pages.n_encoded
        fitted = self.engine.template_set.choose(task.template)
        for name in task.fields:
            fitted.model(name)
        return self.engine.pages.n_encoded - before

    def _load(self) -> None:
        models = self.engine.pages.models
        if isinstance(models, LoadedModels):
            models.load()
        self._load_fitted()

    def _load_fitted(self) -> None:
        """Of the templates as they are now: load new fields, let go of those that are gone."""
        templates = self.engine.templates
        if templates is self._loaded:
            return
        self._loaded = templates
        for one in templates.values():
            for field in one.template.fields:
                one.model(field.name)
        wanted = {
            facts.model_fingerprint for one in templates.values() for facts in one.facts.values()
        }
        for gone in self._in_memory.keys() - wanted:
            del self._in_memory[gone]
        if len(templates) > 1 and any(one.has_samples for one in templates.values()):
            # Templates are chosen by all their samples, which are made ready here.
            self.engine.template_set.chooser()


def _fields_of(
    fitted: FittedTemplate, fields: Sequence[tuple[str, str]], features: PageFeatures
) -> dict[str, FieldResult]:
    """Found under exactly the fingerprints that the caller will keep them by."""
    for name, fingerprint in fields:
        if fitted.facts[name].fingerprint != fingerprint:
            raise UsageError(
                f"template {fitted.template.name}: {name} is not what it was when the run began",
                hint="run the command again; what is stored is untouched",
            )
    return fitted.extract_fields([name for name, _ in fields], features)
