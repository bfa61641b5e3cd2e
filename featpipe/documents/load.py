"""Bytes in, ``Document`` or ``DocumentError`` out: all of loading, without files or processes.

Guarantees: no network, no macros, no file is opened; whatever the bytes are, what is raised is a
``DocumentError`` with the source in its message; the same bytes, limits and versions give the same
document in any process.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from featpipe.documents import kinds
from featpipe.documents.limits import LoadLimits
from featpipe.documents.loaders.registry import Loader, find_loader
from featpipe.documents.model import Document
from featpipe.errors import (
    DocumentError,
    DocumentTooLarge,
    EmptyDocument,
    FeatpipeError,
    UnreadableDocument,
    UnsupportedDocument,
)

if TYPE_CHECKING:
    from featpipe.documents.draft import Draft
    from featpipe.documents.source import Source

#: Kind -> (what to call it, what to do): files that are known and not read.
_UNREAD = {
    kinds.ENCRYPTED_OFFICE: ("an Office file locked by a password", "save it without a password"),
    kinds.DOC: ("a Word file of the old binary format", "save it as .docx or PDF"),
    kinds.XLS: ("an Excel file of the old binary format", "save it as .xlsx"),
    kinds.PPT: ("a PowerPoint file of the old binary format", "save it as .pptx or PDF"),
    kinds.RTF: ("a Rich Text file", "save it as .docx or PDF"),
    kinds.MSG: ("an Outlook message", "save it as .eml"),
    kinds.ZIP: (
        "a zip archive inside another source, or a damaged one,",
        "unpack it; a whole archive named as a source is read member by member",
    ),
    kinds.UNKNOWN: ("binary data of no known kind", None),
}


def load_document(
    data: bytes,
    *,
    source: str,
    limits: LoadLimits | None = None,
    media_type: str | None = None,
    keep_origin: bool = False,
) -> Document:
    """Read one file.

    Args:
        data: its bytes.
        source: the name it is known by; the suffix only breaks ties between kinds of text.
        limits: bounds; ``LoadLimits()`` when None.
        media_type: what the bytes are, if that is known; None lets them tell.
        keep_origin: also keep the map from the text to the decoded source (text formats).

    Raises:
        EmptyDocument: it holds no text.
        UnsupportedDocument: nobody reads this kind, or an extra is missing.
        UnreadableDocument: it is damaged, locked, or not what it says.
        DocumentTooLarge: it is beyond one of the limits.
    """
    limits = limits or LoadLimits()
    try:
        return _load(data, source, limits, media_type, keep_origin=keep_origin)
    except DocumentError as error:
        raise _named(error, source) from error.__cause__
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


def hash_bytes(data: bytes) -> str:
    """Identity of a file's content, whatever it is called: blake2b, 16 bytes, as hex."""
    return blake2b(data, digest_size=16, person=b"featpipe-file-v1").hexdigest()


def hash_text(text: str) -> str:
    """Identity of an extracted text, whatever file it came from: blake2b, 16 bytes, as hex."""
    return blake2b(text.encode(), digest_size=16, person=b"featpipe-text-v1").hexdigest()


def load_source(
    source: Source, limits: LoadLimits | None = None, *, keep_origin: bool = False
) -> Document:
    """Read one source: its bytes, and what is in them.

    Raises:
        DocumentError: as ``Source.read`` and ``load_document``.
    """
    data = source.read(limits)
    return load_document(
        data,
        source=source.id,
        limits=limits,
        media_type=source.media_type,
        keep_origin=keep_origin,
    )


def _load(
    data: bytes, source: str, limits: LoadLimits, known_type: str | None, *, keep_origin: bool
) -> Document:
    if not data:
        raise EmptyDocument("the file is empty")
    if len(data) > limits.max_bytes:
        raise DocumentTooLarge(f"{len(data):,} bytes are more than {limits.max_bytes:,}")
    if not data.strip(b"\0"):
        raise UnreadableDocument(f"{len(data):,} zero bytes and nothing else")
    media_type, loader = find_loader(data, source, known_type)
    if loader is None:
        raise _unsupported(media_type)
    draft = loader.function()(data, limits, is_traced=keep_origin)
    return _finished(draft, data, source, media_type, loader)


def _finished(draft: Draft, data: bytes, source: str, media_type: str, loader: Loader) -> Document:
    text = draft.text()
    if not text:
        why = "; ".join(draft.notes)
        raise EmptyDocument(f"no text in it ({why})" if why else "no text in it", hint=draft.hint)
    return Document(
        text=text,
        source=source,
        media_type=media_type,
        loader=loader.identity,
        bytes_hash=hash_bytes(data),
        text_hash=hash_text(text),
        title=draft.title,
        encoding=draft.encoding,
        notes=tuple(draft.notes),
        pages=tuple(draft.pages),
        tables=tuple(draft.tables),
        headings=tuple(draft.headings),
        origin=draft.origin(),
    )


def _unsupported(media_type: str) -> DocumentError:
    name, hint = _UNREAD.get(media_type, (f"a file of type {media_type}", None))
    if media_type == kinds.ENCRYPTED_OFFICE:
        return UnreadableDocument(f"{name}", hint=hint)
    return UnsupportedDocument(f"{name} is not read", hint=hint)


def _named(error: DocumentError, source: str) -> DocumentError:
    if error.message.startswith(f"{source}: "):
        return error
    return type(error)(f"{source}: {error.message}", hint=error.hint)
