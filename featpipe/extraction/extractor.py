"""The extractor: opens a cache and templates once, and serves any number of threads.

Guarantees: a document that is in the cache costs no encoder call; changed template files are seen
by the next call without reloading any model, and only changed fields are fitted again; a template
file that has become invalid leaves the last good version at work and is reported.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Self

from featpipe.cache.cache import Cache
from featpipe.cache.documents import CachedDocument
from featpipe.documents import Document, hash_bytes, load_document
from featpipe.errors import TemplateError, UnreadableDocument, UsageError
from featpipe.extraction.choose import Chooser, is_meant
from featpipe.extraction.fitted import FittedTemplate, SampleDocument, hash_json
from featpipe.extraction.model_cache import ModelCache, default_folder
from featpipe.extraction.page_source import Evidence
from featpipe.extraction.results import (
    Extraction,
    FieldResult,
    Provenance,
    make_records,
    record_fields,
)
from featpipe.extraction.template import load_templates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from featpipe.extraction.page_source import Encode
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import SampleSpec, Template
    from featpipe.on_demand.live import Checkpoints
    from featpipe.report import Quarantined

logger = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Templates as they were in the files of this state."""

    state: tuple[tuple[str, int, int], ...]
    fitted: dict[str, FittedTemplate]
    problem: str = ""
    """Why the files could not be read again, "" if these are what is in them."""
    chooser: list[Chooser] = field(default_factory=list)
    """Made when first needed."""


class Extractor:
    """Extracts the fields of templates from documents.

    ::

        extractor = Extractor("templates/", cache="c.h5")
        extractor.extract("notice.html").fields["合同金额"].value

    Args:
        templates: file or folder, or templates already loaded.
        cache: file or opened cache; its vectors and entities are evidence.
        space: which vectors, when the cache has several.
        encode: texts -> vectors of that space, for documents that are not in the cache; without
            it they are extracted from words and shapes alone.
        checkpoints: the same by naming the models that built the cache: they are loaded when a
            text is met that the cache does not hold, find its entities too, and travel to workers.
        folder: where sample documents lie, when templates are given already loaded.
        models: where fitted fields are kept, by fingerprint; by default in the user's cache
            folder, so that the next process starts without fitting.

    Raises:
        TemplateError: a template cannot be used, or a sample document is nowhere.
        UnreadableDictionary, UnknownSpace: of the cache.

    """

    def __init__(  # noqa: PLR0913  # the one public door: each argument is one decision of the user
        self,
        templates: str | Path | Sequence[Template],
        cache: str | Path | Cache,
        *,
        space: str | None = None,
        encode: Encode | None = None,
        checkpoints: Checkpoints | None = None,
        folder: str | Path | None = None,
        models: ModelCache | MutableMapping[str, FieldModel] | None = None,
    ) -> None:
        self._owns_cache = not isinstance(cache, Cache)
        self.cache = cache if isinstance(cache, Cache) else Cache.open(cache)
        self.evidence = Evidence(self.cache, space, encode, checkpoints)
        self.space, self.checkpoints = space, checkpoints
        self._encode = encode
        self._path = Path(templates) if isinstance(templates, str | Path) else None
        self._given = [] if isinstance(templates, str | Path) else list(templates)
        self.folder = Path(folder) if folder is not None else _folder_of(self._path)
        if not isinstance(models, ModelCache):
            models = ModelCache(default_folder() if models is None else None, models)
        self.models = models
        self._lock = threading.Lock()
        self._loaded = self._load()

    @property
    def templates(self) -> dict[str, FittedTemplate]:
        """By name, as the files are now."""
        if self._path is not None and _state_of(self._path) != self._loaded.state:
            with self._lock:
                if _state_of(self._path) != self._loaded.state:
                    self._reload()
        return self._loaded.fitted

    @property
    def problem(self) -> str:
        """Why changed template files are not at work, "" when there is nothing to say."""
        return self._loaded.problem

    def extract(
        self, document: str | Path | Document | CachedDocument, template: str | None = None
    ) -> Extraction:
        """Extract one document under one template.

        Args:
            document: a path, the id of a cached document, a loaded document, or a text (a string
                that is neither a file nor an id).
            template: its name; may be left out when there is one.

        Raises:
            UsageError: no such template, or several.
            DocumentError: the file cannot be read.

        """
        return self.extract_page(self.page_of(document), self.choose(template))

    def extract_many(
        self,
        documents: Iterable[str | Path | Document | CachedDocument],
        template: str | None = None,
        *,
        workers: int = 0,
        deadline_s: float | None = 120.0,
    ) -> Iterator[Extraction | Quarantined]:
        """Every document in order; one that cannot be extracted is a record with its reason.

        Args:
            documents: as for :meth:`extract`; read when their turn comes.
            template: its name, "*" for every template that is meant for the document, "auto" for
                the likeliest one.
            workers: processes to do it; 0: this one. The values are the same.
            deadline_s: for a batch of a few documents on a worker; what takes longer is given up.

        Raises:
            UsageError: no such template, or ``encode`` with workers (name ``checkpoints`` instead).
            PoolBroken: workers cannot start.

        """
        if workers:
            from featpipe.extraction.on_workers import extract_on_workers

            if self._encode is not None:
                raise UsageError("encode cannot travel to workers", hint="give checkpoints instead")
            yield from extract_on_workers(self, documents, template, workers, deadline_s)
            return
        for document in documents:
            yield from self._extract_safely(document, template)

    def _extract_safely(
        self, document: str | Path | Document | CachedDocument, template: str | None
    ) -> Iterator[Extraction | Quarantined]:
        """As a worker does it: whatever a document breaks, it costs itself alone."""
        from featpipe.extraction.worker import extract_given, given_of

        done = extract_given(self, given_of(self, document), template)
        yield from done.extractions
        yield from [done.quarantined] if done.quarantined else ()

    async def aextract(
        self, document: str | Path | Document, template: str | None = None
    ) -> Extraction:
        """``extract`` without holding up the event loop."""
        return await asyncio.to_thread(self.extract, document, template)

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
                cache=str(self.cache.path),
                run=run,
            ),
        )

    def page_of(self, document: str | Path | Document | CachedDocument) -> PageFeatures:
        """A document made ready: from the cache where it is there, else read and cut now."""
        if isinstance(document, CachedDocument):
            return self.evidence.page_of_cached(document)
        if isinstance(document, Document):
            known = self.cache.find_content(document.bytes_hash)
            return (
                self.evidence.page_of_cached(known)
                if known
                else self.evidence.page_of_document(document)
            )
        if isinstance(document, Path) or is_file(document):
            return self.page_of_file(Path(document))
        known = self.cache.find_document(document)
        return (
            self.evidence.page_of_cached(known) if known else self.evidence.page_of_text(document)
        )

    def close(self) -> None:
        """Let go of the cache, if it was opened here."""
        if self._owns_cache:
            self.cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- documents

    def page_of_file(self, path: Path, name: str = "") -> PageFeatures:
        """A file, by its content: as cached wherever it lies, else read now.

        Raises:
            DocumentError: it cannot be read.

        """
        read = self._read(path, name or str(path))
        if isinstance(read, CachedDocument):
            return self.evidence.page_of_cached(read)
        return self.evidence.page_of_document(read)

    def _read(self, path: Path, name: str) -> CachedDocument | Document:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UnreadableDocument(f"{path}: cannot be read: {error.strerror}") from error
        return self.cache.find_content(hash_bytes(data)) or load_document(data, source=name)

    # ---- templates

    def choose(self, name: str | None) -> FittedTemplate:
        """One template by name; the only one without.

        Raises:
            UsageError: no such template, or several and no name.

        """
        templates = self.templates
        if name is None and len(templates) == 1:
            return next(iter(templates.values()))
        if name is None or name not in templates:
            asked = "a template must be named" if name is None else f"no template {name!r}"
            raise UsageError(f"{asked}: there are {', '.join(templates) or 'none'}")
        return templates[name]

    def choose_for(self, features: PageFeatures, how: str) -> list[FittedTemplate]:
        """Templates for one document: all that are meant for it ("*"), or the likeliest ("auto").

        Raises:
            UsageError: "auto" without a sample in any template.

        """
        templates = self.templates
        if how == "*":
            return [fitted for fitted in templates.values() if is_meant(fitted, features.page.id)]
        loaded = self._loaded
        if not loaded.chooser:
            loaded.chooser.append(Chooser(list(loaded.fitted.values())))
        return [loaded.chooser[0].choose(features)]

    def _load(self) -> _Loaded:
        state = _state_of(self._path) if self._path is not None else ()
        templates = load_templates(self._path) if self._path is not None else self._given
        return _Loaded(state, {t.name: self._prepare(t) for t in templates})

    def _reload(self) -> None:
        try:
            self._loaded = self._load()
        except TemplateError as error:
            logger.warning("keeping the templates as they were: %s", error.message)
            state = _state_of(self._path) if self._path is not None else ()
            self._loaded = _Loaded(state, self._loaded.fitted, error.message)

    def _prepare(self, template: Template) -> FittedTemplate:
        documents = [self._sample(template, sample) for sample in template.samples]
        return FittedTemplate(template, documents, self.evidence.name, self.models)

    def _sample(self, template: Template, sample: SampleSpec) -> SampleDocument:
        if sample.text is not None:
            text = sample.text
            gaps = self.evidence.gaps_of_text(text)
            return _lazily(text, gaps, lambda: self.evidence.page_of_text(text))
        name = str(sample.document)
        known = self.cache.find_document(name)
        if known is not None:
            return self._lazily_cached(known)
        for path in (self.folder / name, Path(name)):
            if path.is_file():
                return self._lazily_read(self._read(path, str(path)))
        raise TemplateError(
            f"template {template.name}: the sample document {name} is neither in the cache nor a "
            f"file beside the template",
            hint="name it as `featpipe inspect` lists it, or by a path from the template's folder",
        )

    def _lazily_cached(self, document: CachedDocument) -> SampleDocument:
        (gaps,) = self.evidence.gaps_of_documents([document])
        return _lazily(document.text, gaps, lambda: self.evidence.page_of_cached(document))

    def _lazily_read(self, read: CachedDocument | Document) -> SampleDocument:
        if isinstance(read, CachedDocument):
            return self._lazily_cached(read)
        gaps = self.evidence.gaps_of_text(read.text)
        return _lazily(read.text, gaps, lambda: self.evidence.page_of_document(read))


def _lazily(text: str, gaps: str, make: Callable[[], PageFeatures]) -> SampleDocument:
    """A sample whose evidence is incomplete is another one than the same with all of it."""
    return SampleDocument(hash_json([text, gaps] if gaps else [text]), make)


def _folder_of(path: Path | None) -> Path:
    if path is None:
        return Path()
    return path if path.is_dir() else path.parent


def is_file(name: str | Path) -> bool:
    """Whether a string names a file; a long one is a text."""
    try:
        return len(str(name)) < 1024 and Path(name).is_file()
    except (OSError, ValueError):
        return False


def _state_of(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of the template files: what tells a change."""
    files = (
        sorted(path.rglob("*")) if path.is_dir() else [path, *path.parent.glob("*.samples.jsonl")]
    )
    found = []
    for file in files:
        if file.suffix in {".toml", ".json", ".jsonl"} and file.is_file():
            status = file.stat()
            found.append((str(file), status.st_mtime_ns, status.st_size))
    return tuple(found)
