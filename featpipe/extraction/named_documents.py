"""Where documents are found that templates and people name: in the cache, or in files.

Guarantee: a file whose content the cache holds is the document as it is stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents import (
    Document,
    LoadLimits,
    Source,
    detect_media_type,
    hash_bytes,
    load_document,
)
from featpipe.errors import DocumentError, DocumentTooLarge

if TYPE_CHECKING:
    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.template import SampleSpec


def find_version(cache: Cache, name: str, key: str | None) -> CachedDocument | None:
    """The document of a key (32 hex digits), under its name or wherever it lies now.

    Without a key: the document of the name.
    """
    known = cache.find_document(name)
    if key is None or (known is not None and known.key.hex() == key):
        return known
    return next((one for one in cache.documents() if one.key.hex() == key), None)


def find_sample(cache: Cache, name: str, folder: Path) -> CachedDocument | Path | None:
    """What a sample without a key names: a document of the cache, or a file; None for neither.

    A file beside the template comes before a document whose id only ends in this name.
    """
    known = cache.find_document(name)
    if known is not None and (known.id == name or not is_file(folder / name)):
        return known
    return next((path for path in (folder / name, Path(name)) if is_file(path)), None)


def stored_sample(cache: Cache, sample: SampleSpec, folder: Path) -> CachedDocument | None:
    """The document of a sample as the cache holds it; None for a text and for what it lacks."""
    name = sample.document
    if name is None or sample.key is not None:
        return None if name is None else find_version(cache, name, sample.key)
    found = find_sample(cache, name, folder)
    if not isinstance(found, Path):
        return found
    try:
        data = read_source(Source(name, found))
        return find_stored(cache, data, hash_bytes(data), name)
    except DocumentError:
        return None


def is_file(name: str | Path) -> bool:
    """Whether a string names a file; a long one is a text."""
    try:
        return len(str(name)) < 1024 and Path(name).is_file()
    except (OSError, ValueError):
        return False


def read_source(source: Source, limits: LoadLimits | None = None) -> bytes:
    """As ``Source.read``; every error has a next step.

    Raises:
        DocumentError: it cannot be read, or it is beyond the limits.

    """
    try:
        return source.read(limits)
    except DocumentError as error:
        if error.hint is None:
            is_large = isinstance(error, DocumentTooLarge)
            error.hint = (
                "a larger LoadLimits.max_bytes (Extractor(limits=)) allows it"
                if is_large
                else "name a regular file that this user may read"
            )
        raise


def find_stored(
    cache: Cache, data: bytes, bytes_hash: str, name: str, media_type: str | None = None
) -> CachedDocument | None:
    """A file as it is stored where it was read under the same media type."""
    if cache.find_content(bytes_hash) is None:
        return None
    return cache.find_content(bytes_hash, detect_media_type(data, name, media_type))


def stored_or_read(
    cache: Cache, data: bytes, name: str, media_type: str | None, limits: LoadLimits
) -> CachedDocument | Document:
    """A file as it is stored, else read now.

    Raises:
        DocumentError: it cannot be read.

    """
    bytes_hash = hash_bytes(data)
    return find_stored(cache, data, bytes_hash, name, media_type) or load_document(
        data, source=name, limits=limits, media_type=media_type, bytes_hash=bytes_hash
    )
