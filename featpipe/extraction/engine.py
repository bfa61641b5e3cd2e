"""The engine of extraction: pages of documents, templates as they are now, and the fields of both.

Shared by :class:`featpipe.Extractor`, extraction workers, reprocessing and deployment, so that a
document has the same values through each of them. The caller names the models; none is chosen here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from logging import getLogger
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

from featpipe.cache.cache import Cache
from featpipe.cache.documents import CachedDocument
from featpipe.documents import Document, LoadLimits, Source
from featpipe.errors import (
    DocumentError,
    FeatpipeError,
    TaskFailed,
    TemplateError,
    UsageError,
)
from featpipe.extraction.corrections_fold import supersede
from featpipe.extraction.field_facts import hash_json
from featpipe.extraction.fitted import FittedTemplate, SampleDocument
from featpipe.extraction.messages import (
    ALL,
    AUTO,
    Done,
    FitTask,
    FromSource,
    Given,
    Inline,
    Loaded,
    OnDisk,
    Stored,
    name_of,
)
from featpipe.extraction.model_cache import ModelCache, default_folder
from featpipe.extraction.named_documents import find_sample, find_version, is_file
from featpipe.extraction.on_workers import extract_on_workers, extract_role
from featpipe.extraction.page_source import PageSource
from featpipe.extraction.records import make_records, record_fields
from featpipe.extraction.results import Extraction, Provenance
from featpipe.extraction.template_set import TemplateSet, folder_of
from featpipe.on_demand.text_encoder import ModelsInWorker
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from featpipe.extraction.page_source import Encode, OpenModels
    from featpipe.extraction.results import FieldResult
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import SampleSpec, Template
    from featpipe.on_demand.space import Checkpoints
    from featpipe.pool import Role

    #: As users hand documents in: a string is a path, the id of a cached document, or a text.
    AnyDocument = str | Path | Source | Document | CachedDocument


logger = getLogger("featpipe.extraction.extractor")

#: Documents of one task: enough to make the way to the worker cheap, few enough to try each alone.
_BATCH = 8


class ExtractionEngine:
    """Extracts the fields of templates from documents, with models that the caller names.

    Args:
        templates: file or folder, or templates already loaded.
        cache: file or opened cache.
        space: which vectors, when the cache has several.
        checkpoints: models for texts that the cache does not hold; without them such texts have
            neither vectors nor entities.
        encode: texts -> vectors of that space, in place of the encoder of ``checkpoints``.
        folder: where sample documents lie, when templates are given already loaded.
        models: where fitted fields are kept, by fingerprint.
        limits: beyond which a document is refused.
        open_models: where the models of ``checkpoints`` are loaded; workers load them in their own
            process.

    Raises:
        TemplateError: a template cannot be used, or a sample document is nowhere.
        UnreadableDictionary, UnknownSpace: of the cache.

    """

    def __init__(  # noqa: PLR0913  # each argument is one decision of the caller
        self,
        templates: str | Path | Sequence[Template],
        cache: str | Path | Cache,
        *,
        space: str | None = None,
        checkpoints: Checkpoints | Literal["none"] | None = None,
        encode: Encode | None = None,
        folder: str | Path | None = None,
        models: ModelCache | MutableMapping[str, FieldModel] | None = None,
        limits: LoadLimits | None = None,
        open_models: OpenModels = ModelsInWorker,
    ) -> None:
        self._owns_cache = not isinstance(cache, Cache)
        self.cache = cache if isinstance(cache, Cache) else Cache.open(cache)
        self.space, self.checkpoints = space, checkpoints or "none"
        self._encode, self.limits = encode, limits or LoadLimits()
        try:
            given = None if self.checkpoints == "none" else self.checkpoints
            self.pages = PageSource(self.cache, space, encode, given, open_models, self.limits)
            if not isinstance(models, ModelCache):
                models = ModelCache(default_folder() if models is None else None, models)
            self.models = models
            self.folder = folder_of(templates) if folder is None else Path(folder)
            self.template_set = TemplateSet(templates, self.prepare)
        except BaseException:
            if self._owns_cache:
                self.cache.close()
            raise

    @property
    def templates(self) -> dict[str, FittedTemplate]:
        """By name, as the files are now."""
        return self.template_set.fitted

    @property
    def problem(self) -> str:
        """Why changed template files are not used, "" if they are."""
        return self.template_set.problem

    def extract_given(self, given: Given, template: str | None, *, with_text: bool = False) -> Done:
        """One document; its fault is in the answer and never raised.

        Raises:
            UsageError: no such template.
            CheckpointError, DictionaryError: nothing can be extracted at all.

        """
        started = monotonic()
        is_one = template not in {ALL, AUTO} or template in self.templates
        # Before the document is read: a template that is not there is the caller's mistake.
        chosen = self.template_set.choose(template) if is_one else None
        try:
            features, is_new = self.pages.page_of(given)
            fitted = [chosen] if chosen else self.template_set.choose_for(features, str(template))
            done = tuple(self.extract_page(features, one) for one in fitted)
        except DocumentError as error:
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            why = Quarantined(name_of(given), reason, type(error).__name__)
            return Done(name_of(given), quarantined=why)
        except TaskFailed as error:  # its texts killed the worker that holds the models
            return Done(name_of(given), quarantined=quarantine(name_of(given), error))
        except FeatpipeError:
            raise
        except Exception as error:  # a poison document: whatever it breaks, it costs itself alone
            return Done(name_of(given), quarantined=quarantine(name_of(given), error))
        return Done(
            features.page.id or name_of(given),
            done,
            text=features.page.text if with_text else None,
            seconds=monotonic() - started,
            is_new=is_new,
        )

    def extract_page(self, features: PageFeatures, fitted: FittedTemplate) -> Extraction:
        """All fields of a document that was made ready before."""
        names = [field.name for field in fitted.template.fields]
        results = fitted.extract_fields(names, features)
        return self.assemble(features.page, fitted, results)

    def assemble(
        self, page: Page, fitted: FittedTemplate, results: dict[str, FieldResult], run: str = ""
    ) -> Extraction:
        """Put fields together, with records and provenance."""
        names = record_fields(fitted.template)
        return Extraction(
            document=page.id,
            fields=results,
            records=make_records(page, results, names) if names else (),
            provenance=Provenance(
                template=fitted.template.name,
                fingerprint=fitted.fingerprint,
                version=fitted.template.version,
                space=fitted.space,
                cache=str(self.cache.path.absolute()),
                run=run,
            ),
        )

    def close(self) -> None:
        """Stop the worker that holds models, and let go of the cache if it was opened here."""
        self.pages.close()
        if self._owns_cache:
            self.cache.close()

    # ---- documents

    def page_of(self, document: AnyDocument) -> tuple[PageFeatures, bool]:
        """A document made ready, and whether the cache did not hold it.

        Raises:
            DocumentError: it cannot be read.

        """
        if isinstance(document, CachedDocument):
            return self.pages.page_of(Stored(document.path))
        return self.pages.page_of(self.given_of(document))

    def given_of(self, document: AnyDocument) -> Given:
        """As data that travels to a worker.

        Raises:
            MissingDocuments: the end of several documents' ids.

        """
        if isinstance(document, CachedDocument):
            return Stored(document.path)
        if isinstance(document, Document):
            return Loaded(document)
        if isinstance(document, Source):
            return FromSource(replace(document, path=document.path.absolute()))
        if isinstance(document, Path) or is_file(document):
            path = str(Path(document).absolute())
            return OnDisk(path, self.pages.label_at(path, str(document)))
        known = self.cache.stored_documents.find_only(document)
        return Stored(known.path) if known else Inline(document)

    # ---- workers

    def extract_each(
        self,
        documents: Iterable[Given],
        template: str | None,
        workers: int = 0,
        deadline_s: float | None = 120.0,
    ) -> Iterator[Done]:
        """The outcome of every document, in order; each is asked for when its turn comes.

        Args:
            documents: to extract.
            template: as for :class:`ExtractTask`.
            workers: processes; 0: this one.
            deadline_s: of a batch of documents on a worker.

        Raises:
            UsageError: no such template.
            CheckpointError, PoolBroken: nothing can be extracted at all.

        """
        if not workers:
            yield from (self.extract_given(one, template) for one in documents)
            return
        names = [template] if template in self.templates else []
        names = list(self.templates) if template == ALL and not names else names
        given = iter(documents)
        batches = ((first, *islice(given, _BATCH - 1)) for first in given)
        role = self.role(workers, deadline_s)
        yield from extract_on_workers(role, self.fit_tasks(names), batches, template)

    def role(self, workers: int, deadline_s: float | None) -> Role:
        """Workers with the templates as they are at this moment, so that one run is of one state.

        Raises:
            UsageError: ``encode`` was given, which cannot travel.

        """
        if self._encode is not None:
            raise UsageError("encode cannot travel to workers", hint="give checkpoints instead")
        return extract_role(
            self.cache.path.absolute(),
            [fitted.template for fitted in self.templates.values()],
            devices=("cpu",) * workers,
            space=self.space,
            checkpoints=self.checkpoints,
            folder=self.folder,
            limits=self.limits,
            deadline_s=deadline_s,
        )

    def fit_tasks(self, names: Iterable[str]) -> list[FitTask]:
        """The fields of some templates that are not fitted yet, one task each."""
        return [
            FitTask(name, (field,)) for name in names for field in self.templates[name].unfitted()
        ]

    # ---- samples

    def prepare(self, template: Template) -> FittedTemplate:
        """A template with its sample documents found; nothing is fitted yet.

        Reviewed samples win over others of the same text. One whose document the cache does not
        hold in the version that was reviewed is left out, and logged.

        Raises:
            TemplateError: another sample document is nowhere.

        """
        found = [(sample, self._sample(template, sample)) for sample in template.samples]
        samples = tuple(sample for sample, document in found if document is not None)
        documents = [document for _, document in found if document is not None]
        kept = template.model_copy(update={"samples": samples})
        whole = supersede(kept, [document.identity for document in documents])
        return FittedTemplate(whole, documents, self.pages.name, self.models)

    def _sample(self, template: Template, sample: SampleSpec) -> SampleDocument | None:
        if sample.key is not None:
            return self._reviewed_sample(template, str(sample.document), sample.key)
        if sample.text is not None:
            text = sample.text
            missing = self.pages.missing_inputs_of_text(text)
            return _sample_document(text, missing, lambda: self.pages.page_of_text(text))
        name = str(sample.document)
        found = find_sample(self.cache, name, self.folder)
        if isinstance(found, Path):
            return self._found_sample(self.pages.find(OnDisk(str(found))))
        if found is not None:
            return self._found_sample(found)
        raise TemplateError(
            f"template {template.name}: the sample document {name} is neither in the cache nor a "
            f"file beside the template",
            hint="name it as `featpipe inspect` lists it, or by a path from the template's folder",
        )

    def _reviewed_sample(self, template: Template, name: str, key: str) -> SampleDocument | None:
        known = self.version(name, key)
        if known is None:
            logger.warning(
                "template %s: what was said of %s is left out: the cache does not hold the version "
                "of the document that was reviewed", template.name, name,
            )  # fmt: skip
            return None
        return self._found_sample(known)

    def version(self, name: str, key: str) -> CachedDocument | None:
        """The cached document of a key (32 hex digits), under its name or wherever it lies now."""
        return find_version(self.cache, name, key)

    def _found_sample(self, found: CachedDocument | Document) -> SampleDocument:
        if isinstance(found, Document):
            missing = self.pages.missing_inputs_of_text(found.text)
            return _sample_document(found.text, missing, lambda: self.pages.page_of_document(found))
        [missing] = self.pages.missing_inputs_of_documents([found])
        made = _sample_document(found.text, missing, lambda: self.pages.page_of_cached(found))
        made.key = found.key
        return made


def _sample_document(text: str, missing: str, make: Callable[[], PageFeatures]) -> SampleDocument:
    """A sample with missing inputs is another one than the same with all of them."""
    text_hash = hash_json([text])
    identity = hash_json([text, missing]) if missing else text_hash
    return SampleDocument(identity, make, text_hash=text_hash)


def quarantine(name: str, error: Exception) -> Quarantined:
    """The record of a document that broke the extraction."""
    message = error.message if isinstance(error, FeatpipeError) else repr(error)
    first = message.splitlines()[0] if message else type(error).__name__
    return Quarantined(name, f"{name}: extraction failed: {first}", type(error).__name__)
