"""Which loader reads which kind of file: ours by table, a user's by entry point.

A package registers a loader under the group ``featpipe.loaders``; the object is a ``Loader``:

    [project.entry-points."featpipe.loaders"]
    acme = "acme_reader:LOADER"

    LOADER = Loader("acme", 1, ("application/x-acme",), load=read_acme, recognise=looks_like_acme)

A user's loader comes before ours for the media types it names, so it can also replace one. One that
cannot be imported is an error of the installation and is raised, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from featpipe.documents import kinds
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.documents.draft import Draft
    from featpipe.documents.limits import LoadLimits

GROUP = "featpipe.loaders"


class LoadFunction(Protocol):
    """Bytes in, draft out. Raises DocumentError subclasses only; touches no file, no network."""

    def __call__(self, data: bytes, limits: LoadLimits, *, is_traced: bool = False) -> Draft:
        """Read one file."""
        ...


@dataclass(frozen=True, slots=True)
class Loader:
    """How one format is read.

    Attributes:
        name, version: together the identity stored with every document; raise the version when
            the same bytes give another text.
        media_types: what it takes.
        load: the function, or "module:function" to be imported at its first use.
        recognise: optional; says whether some bytes (with the name they came under) are of its
            kind. Asked before our own detection.
    """

    name: str
    version: int
    media_types: tuple[str, ...]
    load: LoadFunction | str
    recognise: Callable[[bytes, str], bool] | None = None

    @property
    def identity(self) -> str:
        """Such as ``html/1``."""
        return f"{self.name}/{self.version}"

    def function(self) -> LoadFunction:
        """The load function, imported now if it was not."""
        if not isinstance(self.load, str):
            return self.load
        module, _, name = self.load.partition(":")
        function: LoadFunction = getattr(import_module(module), name)
        return function


_HERE = "featpipe.documents.loaders."

BUILT_IN = (
    Loader("plain", 1, (kinds.PLAIN,), _HERE + "plain:load"),
    Loader("text", 1, (kinds.GIVEN,), _HERE + "plain:load_given"),
    Loader("markdown", 3, (kinds.MARKDOWN,), _HERE + "markdown:load"),
    Loader("html", 2, (kinds.HTML,), _HERE + "html:load"),
    Loader("pdf", 2, (kinds.PDF,), _HERE + "pdf:load"),
    Loader("docx", 1, (kinds.DOCX,), _HERE + "docx:load"),
    Loader("pptx", 1, (kinds.PPTX,), _HERE + "pptx:load"),
    Loader("xlsx", 1, (kinds.XLSX,), _HERE + "xlsx:load"),
    Loader("odt", 1, (kinds.ODT,), _HERE + "odt:load"),
    Loader("epub", 1, (kinds.EPUB,), _HERE + "epub:load"),
    Loader("ocr", 1, kinds.PICTURES, _HERE + "ocr:load"),
    Loader("mail", 1, (kinds.MAIL,), _HERE + "mail:load"),
)


@lru_cache(maxsize=1)
def registered() -> tuple[Loader, ...]:
    """The loaders installed by entry point, in the order of their names.

    Raises:
        UsageError: an entry point that cannot be imported or is no ``Loader``.
    """
    found = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        try:
            loader = entry.load()
        except Exception as error:
            raise UsageError(
                f"the loader {entry.name!r} ({entry.value}) cannot be imported: {error}",
                hint="repair or remove the package that registers it",
            ) from error
        if not isinstance(loader, Loader):
            raise UsageError(f"the loader {entry.name!r} ({entry.value}) is no featpipe Loader")
        found.append(loader)
    return tuple(found)


def find_loader(
    data: bytes, source: str, known_type: str | None = None
) -> tuple[str, Loader | None]:
    """The media type of some bytes, and the loader that takes it (None: nobody does).

    Args:
        data: the bytes.
        source: the name they came under.
        known_type: their media type, where it is known.
    """
    for loader in registered() if known_type is None else ():
        if loader.recognise and loader.recognise(data, source):
            return loader.media_types[0], loader
    media_type = known_type or kinds.media_type_of(data, source)
    for loader in (*registered(), *BUILT_IN):
        if media_type in loader.media_types:
            return media_type, loader
    return media_type, None
