"""Bytes in, ``Document`` or ``DocumentError`` out, and the registry of loaders.

Guarantees: no network, no macros, no file is opened; whatever the bytes are, only a
``DocumentError`` with the source in its message is raised; the same bytes, limits and versions give
the same document in any process.

A package registers its own loader under the entry-point group ``featpipe.loaders``::

    [project.entry-points."featpipe.loaders"]
    acme = "acme_reader:LOADER"

    LOADER = Loader("acme", 1, ("application/x-acme",), load=read_acme, recognise=looks_like_acme)

Registered loaders come before the built-in ones for the media types they name, so they can also
replace one. One that cannot be imported is an error of the installation and is raised.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from featpipe.documents import media_type
from featpipe.documents.document import Document
from featpipe.documents.limits import LoadLimits
from featpipe.errors import (
    DocumentError,
    DocumentTooLarge,
    EmptyDocument,
    FeatpipeError,
    UnreadableDocument,
    UnsupportedDocument,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from featpipe.documents.builder import DocumentBuilder
    from featpipe.documents.source import Source

GROUP = "featpipe.loaders"


def load_document(
    data: bytes,
    *,
    source: str,
    limits: LoadLimits | None = None,
    media_type: str | None = None,
    keep_origin: bool = False,
    bytes_hash: str | None = None,
) -> Document:
    """Read one file.

    Args:
        data: its bytes.
        source: its name; the suffix only decides between types of text.
        limits: bounds; ``LoadLimits()`` when None.
        media_type: of the bytes, if known; by default it is detected.
        keep_origin: also keep the map from the text to the decoded source (text formats).
        bytes_hash: `hash_bytes` of the data, where it is known.

    Raises:
        EmptyDocument: it holds no text.
        UnsupportedDocument: no loader reads this type, or an extra is missing.
        UnreadableDocument: it is damaged, locked, or of another type than declared.
        DocumentTooLarge: it is beyond one of the limits.
    """
    limits = limits or LoadLimits()
    with _document_errors(source):
        found_type, loader = _checked_loader(data, source, limits, media_type)
        builder = loader.function()(data, limits, is_traced=keep_origin)
        bytes_hash = bytes_hash or hash_bytes(data)
        return _to_document(builder, bytes_hash, source, found_type, loader)


@contextmanager
def _document_errors(source: str) -> Iterator[None]:
    """Turn every error of a loader into a DocumentError that names the source."""
    try:
        yield
    except DocumentError as error:
        raise _with_source(error, source) from error.__cause__
    except FeatpipeError:
        raise
    except RecursionError as error:
        raise DocumentTooLarge(f"{source}: nested too deeply") from error
    except MemoryError as error:
        raise DocumentTooLarge(f"{source}: does not fit into the memory allowed") from error
    except Exception as error:
        raise UnreadableDocument(
            f"{source}: cannot be read ({type(error).__name__}: {error})",
            hint="the file may be damaged",
        ) from error


def detect_media_type(data: bytes, source: str, media_type: str | None = None) -> str:
    """The media type under which `load_document` reads these bytes, whether it can or not."""
    return _find_loader(data, source, media_type)[0]


def load_source(
    source: Source, limits: LoadLimits | None = None, *, keep_origin: bool = False
) -> Document:
    """Read one source and load it.

    Raises:
        DocumentError: as ``Source.read`` and ``load_document``.
    """
    data = source.read(limits)
    return load_document(
        data, source=source.id, limits=limits, media_type=source.media_type, keep_origin=keep_origin
    )


def _checked_loader(
    data: bytes, source: str, limits: LoadLimits, known_type: str | None
) -> tuple[str, Loader]:
    """The media type, and the loader that reads it.

    Raises:
        DocumentError: the bytes are empty, too many, or of a type that no loader reads.
    """
    if not data:
        raise EmptyDocument("the file is empty")
    if len(data) > limits.max_bytes:
        raise DocumentTooLarge(f"{len(data):,} bytes are more than {limits.max_bytes:,}")
    if not data.strip(b"\0"):
        raise UnreadableDocument(f"{len(data):,} zero bytes and nothing else")
    if known_type is None:
        check_promise(data, source)
    media_type, loader = _find_loader(data, source, known_type)
    if loader is None:
        raise _unsupported(media_type)
    return media_type, loader


def check_promise(data: bytes, source: str) -> None:
    """Check that a name such as ``a.pdf`` keeps what it promises: bytes of a binary format.

    Raises:
        UnreadableDocument: they are text (a page that says the file is gone ...), or of no kind.
    """
    has_content = data[:4096].strip(b"\0 \t\r\n")
    found = media_type.broken_promise(data, source) if has_content else None
    if found is None or any(one.recognise and one.recognise(data, source) for one in registered()):
        return
    suffix = media_type.suffix_of(source)
    what = "of no known kind" if found == media_type.UNKNOWN else f"{found}"
    raise UnreadableDocument(
        f"{source}: named {suffix}, and its bytes are {what}",
        hint="rename it if that is what it is; else fetch or export it again",
    )


def added_identity(data: bytes) -> str:
    """Of the later loader that reads some bytes; empty for every other file."""
    if not data.startswith(media_type.ADDED_MAGIC):
        return ""
    found = media_type.media_type_of(data)
    return next((one.identity for one in ADDED if found in one.media_types), "")


def _find_loader(
    data: bytes, source: str, known_type: str | None = None
) -> tuple[str, Loader | None]:
    """The media type of some bytes, and the loader that reads it, None if there is none.

    Args:
        data: the bytes.
        source: their name.
        known_type: their media type, where it is known.
    """
    for loader in registered() if known_type is None else ():
        if loader.recognise and loader.recognise(data, source):
            return loader.media_types[0], loader
    found = known_type or media_type.media_type_of(data, source)
    for loader in (*registered(), *BUILT_IN, *ADDED):
        if found in loader.media_types:
            return found, loader
    return found, None


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


class LoadFunction(Protocol):
    """Bytes in, builder out; opens no file and no network connection."""

    def __call__(
        self, data: bytes, limits: LoadLimits, *, is_traced: bool = False
    ) -> DocumentBuilder:
        """Read one file.

        Args:
            data: its bytes.
            limits: bounds.
            is_traced: also keep the map to the decoded source, in formats that have one.

        Raises:
            UnreadableDocument: damaged, locked by a password, or not text in a known encoding.
            DocumentTooLarge: beyond one of the limits.
            UnsupportedDocument: an extra is missing.
        """


@dataclass(frozen=True, slots=True)
class Loader:
    """How one format is read.

    Attributes:
        name, version: together the identity stored with every document; raise the version when
            the same bytes give another text.
        media_types: those it reads.
        load: the function, or "module:function" to be imported at its first use.
        recognise: optional; whether some bytes, with their name, are of its type. Called before
            the built-in detection.
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
        """The load function, imported on the first call."""
        if not isinstance(self.load, str):
            return self.load
        module, _, name = self.load.partition(":")
        function: LoadFunction = getattr(import_module(module), name)
        return function


_HERE = "featpipe.documents.formats."

BUILT_IN = (
    Loader("plain", 5, (media_type.PLAIN,), _HERE + "text:load"),
    Loader("text", 3, (media_type.GIVEN,), _HERE + "text:load_given"),
    Loader("markdown", 7, (media_type.MARKDOWN,), _HERE + "markdown:load"),
    Loader("html", 7, (media_type.HTML,), _HERE + "html:load"),
    Loader("pdf", 6, (media_type.PDF,), _HERE + "pdf:load"),
    Loader("docx", 6, (media_type.DOCX,), _HERE + "docx:load"),
    Loader("pptx", 4, (media_type.PPTX,), _HERE + "pptx:load"),
    Loader("xlsx", 5, (media_type.XLSX,), _HERE + "xlsx:load"),
    Loader("odt", 5, (media_type.ODT,), _HERE + "odt_epub:load_odt"),
    Loader("epub", 6, (media_type.EPUB,), _HERE + "odt_epub:load_epub"),
    Loader("ocr", 3, media_type.PICTURES, _HERE + "ocr:load"),
    Loader("mail", 6, (media_type.MAIL,), _HERE + "mail:load"),
)

#: Built-in loaders that came later. The identities of all loaders above are part of the key of
#: every stored document; one of these is part of the keys of its own documents only, so that a
#: cache keeps what it holds when a format is added.
ADDED = (
    Loader("rtf", 3, (media_type.RTF,), _HERE + "rtf:load"),
    Loader("doc", 5, (media_type.DOC,), _HERE + "doc:load"),
)

#: Media type -> (name, next step): files that are recognised and not read.
_UNREAD = {
    media_type.ENCRYPTED_OFFICE: (
        "an Office file locked by a password",
        "save it without a password",
    ),
    media_type.XLS: ("an Excel file of the old binary format", "save it as .xlsx"),
    media_type.XLSB: ("an Excel file of the binary format .xlsb", "save it as .xlsx"),
    media_type.PPT: ("a PowerPoint file of the old binary format", "save it as .pptx or PDF"),
    media_type.MSG: ("an Outlook message", "save it as .eml"),
    media_type.ODS: ("an OpenDocument spreadsheet", "save it as .xlsx"),
    media_type.ODP: ("an OpenDocument presentation", "save it as .pptx or PDF"),
    media_type.OFFICE_XML: ("an Office file as one XML file", "save it as .docx, .xlsx or .odt"),
    media_type.OFD: ("an OFD file", "export it as PDF"),
    "application/postscript": ("a PostScript file", "convert it to PDF"),
    **{
        kind: (f"a packed file ({name})", "unpack it, or pack its content as .zip")
        for kind, name in media_type.PACKED.items()
    },
    media_type.ZIP: (
        "a zip archive inside another source, or a damaged one,",
        "unpack it; a whole archive named as a source is read member by member",
    ),
    media_type.UNKNOWN: ("binary data of no known kind", None),
}


def _unsupported(found: str) -> DocumentError:
    name, hint = _UNREAD.get(found, (f"a file of type {found}", None))
    if found == media_type.ENCRYPTED_OFFICE:
        return UnreadableDocument(f"{name}", hint=hint)
    return UnsupportedDocument(f"{name} is not read", hint=hint)


def _to_document(
    builder: DocumentBuilder, bytes_hash: str, source: str, media_type: str, loader: Loader
) -> Document:
    text = builder.text()
    if not text:
        why = "; ".join(builder.notes)
        raise EmptyDocument(f"no text in it ({why})" if why else "no text in it", hint=builder.hint)
    return Document(
        text=text,
        source=source,
        media_type=media_type,
        loader=loader.identity,
        bytes_hash=bytes_hash,
        text_hash=hash_text(text),
        title=builder.title,
        encoding=builder.encoding,
        notes=tuple(builder.notes),
        pages=tuple(builder.pages),
        tables=tuple(builder.tables),
        headings=tuple(builder.headings),
        origin=builder.origin(),
    )


def hash_bytes(data: bytes) -> str:
    """Identity of a file's content, whatever it is called: blake2b, 16 bytes, as hex."""
    return _file_hash(data).hexdigest()


def hash_file(path: Path) -> str:
    """``hash_bytes`` of a file, read in blocks.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file_digest(file, _file_hash).hexdigest()


def _file_hash(data: bytes = b"") -> blake2b:
    return blake2b(data, digest_size=16, person=b"featpipe-file-v1")


def hash_text(text: str) -> str:
    """Identity of an extracted text, whatever file it came from: blake2b, 16 bytes, as hex."""
    return blake2b(text.encode(), digest_size=16, person=b"featpipe-text-v1").hexdigest()


def _with_source(error: DocumentError, source: str) -> DocumentError:
    if error.message.startswith(f"{source}: "):
        return error
    return type(error)(f"{source}: {error.message}", hint=error.hint)
