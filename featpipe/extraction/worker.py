"""Extract: a worker that holds one Extractor, and the messages that go to it and come back.

What a caller with a pool of its own needs (a service, a queue consumer)::

    pool = Pool([extract_role("c.h5", "templates/", devices=("cpu",) * 2,
                              checkpoints=Checkpoints(model="...", ner="..."))])
    done = pool.call("extract", ExtractTask((Inline("甲方：...", name="upload 7"),), "租赁合同"))
    done[0].extractions[0].as_dict()    # plain JSON; or done[0].quarantined says why there is none
    pool.call("extract", ReloadTask()).problem

Guarantees: the cache and the templates are opened once per worker and models are loaded at the
first text that needs them, then kept; every task begins by looking whether template files changed
(a few ``stat`` calls), and a change is fitted without loading any model again. A document that
cannot be extracted is a :class:`Done` with its reason; the other documents of the task are done. A
document that kills its worker or runs past the deadline is found by giving each of the task to a
worker alone (the role's ``bisect``), so that it costs twice its deadline at the most, and is the
only one whose part of the outcome is an error. Results are equal to those of an
Extractor in the caller's process.

Only plain frozen data crosses: paths, texts and bytes in, :class:`Extraction` out (it pickles, and
``as_dict()`` is JSON). Nothing here touches a device before the first text to encode.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from featpipe.cache.documents import CachedDocument
from featpipe.documents import Document, LoadLimits, hash_bytes, load_document
from featpipe.errors import DocumentError, FeatpipeError, UnreadableDocument, UsageError
from featpipe.extraction.extractor import Extractor, is_file
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.pool import Role
from featpipe.report import Quarantined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.results import Extraction, FieldResult
    from featpipe.extraction.template import Template
    from featpipe.on_demand.live import Checkpoints

#: Passed as ``template``: every template that is meant for the document, or the likeliest one.
ALL = "*"
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Stored:
    """A document of the cache, by its readable id or its path; nothing else is looked at."""

    name: str


@dataclass(frozen=True, slots=True)
class Inline:
    """A text; ``name`` is what the result calls it."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file's bytes; the suffix of ``name``, or ``media_type``, may decide how it is read."""

    data: bytes
    name: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file that the worker reads itself. Never make one of a path that a stranger names."""

    path: str
    name: str = ""
    """What the result calls it when the cache does not know it; by default the path."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document that was read before."""

    document: Document

    @property
    def name(self) -> str:
        """As it was handed in."""
        return self.document.source


Given = Stored | Inline | Upload | OnDisk | Loaded


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """Caller -> worker: some documents under one template, :data:`ALL` or :data:`AUTO`."""

    documents: tuple[Given, ...]
    template: str | None = None
    """None: the only one there is."""
    with_text: bool = False
    """Send back the text that the spans count in, for those who do not have it."""

    def split(self) -> tuple[ExtractTask, ...] | None:
        """Each document alone, for the pool, when this task killed its worker or ran too long.

        Not halves: one that hangs would then take its deadline once for every halving.
        """
        if len(self.documents) < 2:
            return None
        return tuple(replace(self, documents=(document,)) for document in self.documents)


@dataclass(frozen=True, slots=True)
class Done:
    """Worker -> caller: what became of one document. Either extractions or a reason."""

    document: str
    extractions: tuple[Extraction, ...] = ()
    quarantined: Quarantined | None = None
    text: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FieldsTask:
    """Caller -> worker: fields of cached documents: (path, template, field -> its fingerprint)."""

    works: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]

    def split(self) -> tuple[FieldsTask, ...] | None:
        """Each work alone, as above."""
        return tuple(FieldsTask((work,)) for work in self.works) if len(self.works) > 1 else None


@dataclass(frozen=True, slots=True)
class FieldsDone:
    """Worker -> caller: per work its fields, or the reason why there are none."""

    results: tuple[dict[str, FieldResult] | Quarantined, ...]
    n_encoded: int = 0


@dataclass(frozen=True, slots=True)
class FitTask:
    """Caller -> worker: fit one field now, so that it is kept for all. Answer: nothing."""

    template: str
    field: str

    def split(self) -> None:
        """There is nothing to split."""


@dataclass(frozen=True, slots=True)
class ReloadTask:
    """Caller -> worker: see whether template files changed, now and not with the next document."""

    def split(self) -> None:
        """There is nothing to split."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Worker -> caller. ``problem`` says why the files are not what is at work, "" if they are."""

    fingerprints: dict[str, str]
    problem: str = ""


def extract_role(  # noqa: PLR0913  # each argument is one decision of the caller
    cache: str | Path,
    templates: str | Path | Sequence[Template],
    *,
    name: str = "extract",
    devices: tuple[str, ...] = ("cpu",),
    space: str | None = None,
    checkpoints: Checkpoints | None = None,
    folder: str | Path | None = None,
    limits: LoadLimits | None = None,
    threads: int | None = 1,
    deadline_s: float | None = 120.0,
) -> Role:
    """The role for a pool: one worker per entry of ``devices``.

    Args:
        cache: the HDF5 file.
        templates: file or folder, watched for changes; or templates already loaded.
        name: of the role.
        devices: where unknown texts are encoded.
        space: which vectors, when the cache has several.
        checkpoints: models for texts that the cache does not hold; None to do without.
        folder: where sample documents of templates already loaded lie.
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
            "limits": limits,
        },
        devices=devices,
        threads=threads,
        deadline_s=deadline_s,
        bisect="split",
        preload=("featpipe.extraction.worker",),
    )


class ExtractRole:
    """The worker's side.

    Args:
        cache, templates, space, checkpoints, folder, limits: as for :func:`extract_role`.
        device, threads: given by the engine; they win over those of ``checkpoints``.

    Raises:
        TemplateError, DictionaryError: neither templates nor cache can be used.

    """

    def __init__(  # noqa: PLR0913, PLR0917  # the engine passes arguments by name
        self,
        cache: str,
        templates: str | tuple[Template, ...],
        space: str | None = None,
        checkpoints: Checkpoints | None = None,
        folder: str | None = None,
        limits: LoadLimits | None = None,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        here = None
        if checkpoints is not None:
            here = replace(checkpoints, device=device, threads=threads)
        self.extractor = Extractor(templates, cache, space=space, checkpoints=here, folder=folder)
        self._limits = limits or LoadLimits()

    def run(
        self, task: ExtractTask | FieldsTask | FitTask | ReloadTask
    ) -> tuple[Done, ...] | FieldsDone | Reloaded | None:
        """One answer per kind of task.

        Raises:
            UsageError: no such template.
            CheckpointError, DictionaryError: nothing can be extracted at all.

        """
        if isinstance(task, ExtractTask):
            return tuple(
                extract_given(
                    self.extractor, given, task.template, self._limits, with_text=task.with_text
                )
                for given in task.documents
            )
        if isinstance(task, FieldsTask):
            return self._find_fields(task)
        if isinstance(task, FitTask):
            self.extractor.choose(task.template).model(task.field)
            return None
        fitted = self.extractor.templates
        prints = {name: template.fingerprint for name, template in fitted.items()}
        return Reloaded(prints, self.extractor.problem)

    def close(self) -> None:
        """Let go of the cache."""
        self.extractor.close()

    def _find_fields(self, task: FieldsTask) -> FieldsDone:
        before = self.extractor.evidence.n_encoded
        pages: dict[str, PageFeatures] = {}
        results: list[dict[str, FieldResult] | Quarantined] = []
        for path, template, fields in task.works:
            fitted = self.extractor.choose(template)
            try:
                if path not in pages:
                    pages = {path: _page_of(self.extractor, Stored(path), self._limits)}
                results.append(_fields_of(fitted, fields, pages[path]))
            except FeatpipeError:
                raise
            except Exception as error:  # as above
                results.append(quarantine(path, error))
        return FieldsDone(tuple(results), self.extractor.evidence.n_encoded - before)


def extract_given(
    extractor: Extractor,
    given: Given,
    template: str | None,
    limits: LoadLimits | None = None,
    *,
    with_text: bool = False,
) -> Done:
    """One document, in whatever process; its fault is told in the result, never raised.

    Raises:
        UsageError: no such template.
        CheckpointError, DictionaryError: nothing can be extracted at all.

    """
    started = monotonic()
    is_one = template not in {ALL, AUTO} or template in extractor.templates
    # Before the document is read: a template that is not there is the caller's mistake.
    chosen = extractor.choose(template) if is_one else None
    try:
        features = _page_of(extractor, given, limits or LoadLimits())
        fitted = [chosen] if chosen else extractor.choose_for(features, str(template))
        done = tuple(extractor.extract_page(features, one) for one in fitted)
    except DocumentError as error:
        why = Quarantined(name_of(given), error.message, type(error).__name__)
        return Done(name_of(given), quarantined=why)
    except FeatpipeError:
        raise
    except Exception as error:  # a poison document: whatever it breaks, it costs itself alone
        return Done(name_of(given), quarantined=quarantine(name_of(given), error))
    text = features.page.text if with_text else None
    return Done(features.page.id or name_of(given), done, text=text, seconds=monotonic() - started)


def given_of(extractor: Extractor, document: str | Path | Document | CachedDocument) -> Given:
    """As data that travels, by the same rules as :meth:`Extractor.page_of`."""
    if isinstance(document, CachedDocument):
        return Stored(document.path)
    if isinstance(document, Document):
        known = extractor.cache.find_content(document.bytes_hash)
        return Stored(known.path) if known else Loaded(document)
    if isinstance(document, Path) or is_file(document):
        return OnDisk(str(Path(document).absolute()), str(document))
    known = extractor.cache.find_document(document)
    return Stored(known.path) if known else Inline(document)


def _page_of(extractor: Extractor, given: Given, limits: LoadLimits) -> PageFeatures:
    evidence, cache = extractor.evidence, extractor.cache
    if isinstance(given, Inline):
        return evidence.page_of_text(given.text, given.name)
    if isinstance(given, Loaded):
        return evidence.page_of_document(given.document)
    if isinstance(given, OnDisk):
        return extractor.page_of_file(Path(given.path), given.name)
    if isinstance(given, Upload):
        found = cache.find_content(hash_bytes(given.data))
        if found is not None:
            return PageFeatures(replace(evidence.page_of_cached(found).page, id=given.name))
        return evidence.page_of_document(
            load_document(given.data, source=given.name, limits=limits, media_type=given.media_type)
        )
    known = cache.find_document(given.name)
    if known is None:
        raise UnreadableDocument(f"{given.name}: no such document in the cache")
    return evidence.page_of_cached(known)


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


def name_of(given: Given) -> str:
    """What a document is called before it is read."""
    if isinstance(given, OnDisk):
        return given.name or given.path
    return given.name or "text"


def quarantine(name: str, error: Exception) -> Quarantined:
    """The record of a document that broke the extraction."""
    message = error.message if isinstance(error, FeatpipeError) else repr(error)
    first = message.splitlines()[0] if message else type(error).__name__
    return Quarantined(name, f"{name}: extraction failed: {first}", type(error).__name__)
