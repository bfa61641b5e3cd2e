"""Messages between a caller and its extraction workers: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from featpipe.documents import Document, Source
    from featpipe.extraction.results import Extraction, FieldResult
    from featpipe.report import Quarantined

#: Passed as ``template``: every template that is meant for the document, or the likeliest one.
ALL = "*"
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Stored:
    """A document of the cache, by its readable id or its path; no file is opened."""

    name: str


@dataclass(frozen=True, slots=True)
class Inline:
    """A text; ``name`` labels the result."""

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
    """A file that the worker reads itself. Never make one of a path from an untrusted client."""

    path: str
    name: str = ""
    """Labels the result, whatever the cache holds under this content; by default the id of the
    document that the cache has at this path, else the path."""


@dataclass(frozen=True, slots=True)
class FromSource:
    """A source that the worker reads itself: a file, a member of an archive, a record, a text.

    The result has the id of the source, whether the cache holds its content or not. As for
    :class:`OnDisk`, never make one of a path from an untrusted client.
    """

    source: Source

    @property
    def name(self) -> str:
        """The id of the source."""
        return self.source.id


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document that was read before."""

    document: Document

    @property
    def name(self) -> str:
        """As it was handed in."""
        return self.document.source


Given = Stored | Inline | Upload | OnDisk | FromSource | Loaded


def name_of(given: Given) -> str:
    """The name of a document before it is read."""
    if isinstance(given, OnDisk):
        return given.name or given.path
    return given.name or "text"


@dataclass(frozen=True, slots=True)
class ExtractTask:
    """Caller -> worker: some documents under one template, :data:`ALL` or :data:`AUTO`."""

    documents: tuple[Given, ...]
    template: str | None = None
    """None: the only one."""
    with_text: bool = False
    """Also send back the text that the spans count in."""

    def split(self) -> tuple[ExtractTask, ...] | None:
        """Each document alone, for the pool, when this task killed its worker or ran too long.

        Not halves: one that hangs would then take its deadline once for every halving.
        """
        if len(self.documents) < 2:
            return None
        return tuple(replace(self, documents=(document,)) for document in self.documents)


@dataclass(frozen=True, slots=True)
class Done:
    """Worker -> caller: the extractions of one document, or the reason why there are none."""

    document: str
    extractions: tuple[Extraction, ...] = ()
    quarantined: Quarantined | None = None
    text: str | None = None
    seconds: float = 0.0
    is_new: bool = False
    """Whether the cache did not hold the document."""


#: (path of a cached document, template, (field, its fingerprint) ...).
FieldsWork = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class FieldsTask:
    """Caller -> worker: fields of cached documents, under exactly the fingerprints given."""

    works: tuple[FieldsWork, ...]

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
    """Caller -> worker: fit these fields of a template now, so that they are kept for all.

    The answer is the number of texts encoded for it.
    """

    template: str
    fields: tuple[str, ...]

    def split(self) -> None:
        """Not cut."""


@dataclass(frozen=True, slots=True)
class ReloadTask:
    """Caller -> worker: look now whether template files changed."""

    def split(self) -> None:
        """Not cut."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Worker -> caller. ``problem``: why the files are not used, "" if they are."""

    fingerprints: dict[str, str]
    problem: str = ""
