"""Choosing documents of a cache by name, and having them leave it.

Guarantees: all documents of one call leave in one commit, which survives the loss of any process;
killed before it, all are still there. Their rows stay in the file until it is compacted (see
`featpipe.cache.forgotten`), and count again when a build finds the documents again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from featpipe.cache import tables
from featpipe.cache.documents import absolute_name
from featpipe.cache.places import gone_rows
from featpipe.cache.write import CacheWriter
from featpipe.store.disk import Disk, writing
from featpipe.store.folder_layout import FolderLayout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.cache.documents import CachedDocument, StoredDocuments


def choose_documents(stored: StoredDocuments, names: Sequence[str]) -> list[CachedDocument]:
    """The documents of these names, each once, in the order of the cache; all without names.

    Args:
        stored: of the cache.
        names: ids, paths, ends of ids, folders, and patterns of the shell over ids and paths.

    Raises:
        MissingDocuments: a name that no document has, or an end that several have.

    """
    every = list(stored)
    if not names:
        return every
    chosen = {document.path for name in names for document in _named(stored, every, name)}
    return [document for document in every if document.path in chosen]


def _named(
    stored: StoredDocuments, every: Sequence[CachedDocument], name: str
) -> Iterator[CachedDocument]:
    if stored.find(name) is None:
        # A folder first, since its name may look like a pattern: 合同[2024].
        for matched in (
            _in_folder(every, name),
            _in_folder(every, name and absolute_name(name)),
            [d for d in every if _has_pattern(d, name)],
        ):
            if matched:
                yield from matched
                return
    yield stored.require(name)


def _in_folder(every: Sequence[CachedDocument], name: str) -> list[CachedDocument]:
    folder = f"{name.rstrip('/')}/"
    return [d for d in every if name and (d.id.startswith(folder) or d.path.startswith(folder))]


def _has_pattern(document: CachedDocument, name: str) -> bool:
    return has_magic(name) and any(fnmatchcase(s, name) for s in (document.id, document.path))


def forget_documents(
    cache: Path, documents: Sequence[CachedDocument], *, wait_s: float = 0.0
) -> None:
    """Have documents leave a cache; durable when this returns.

    Raises:
        DictionaryLocked: another process writes the cache for longer than ``wait_s`` seconds.
        WriteFailed: disk full, read-only ...; nothing has left.

    """
    forget_places(cache, {document.path: document.id for document in documents}, wait_s=wait_s)


def forget_places(cache: Path, places: Mapping[str, str], *, wait_s: float = 0.0) -> None:
    """As `forget_documents`, by path -> id of each document."""
    if not places:
        return
    if cache.is_dir():
        _publish_part(FolderLayout.read(cache), places)
    else:
        _append(cache, places, wait_s)


def _append(file: Path, places: Mapping[str, str], wait_s: float) -> None:
    specs = {tables.SOURCES: tables.sources_spec()}
    with CacheWriter.open(file, specs, wait_s=wait_s) as writer:
        writer.append({tables.SOURCES: gone_rows(places)})


def _publish_part(layout: FolderLayout, places: Mapping[str, str]) -> None:
    """A part of its own, after all others: published files are not written any more."""
    with writing(layout.path):
        place = TemporaryDirectory(prefix=".forget-", dir=layout.path)
    with place as folder:
        written = Path(folder) / "part.h5"
        _append(written, places, 0.0)
        part = layout.next_part(f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}Z")
        with writing(part):
            part.parent.mkdir(exist_ok=True)
            Disk().link(written, part)  # fails where another process has just taken the name
            Disk().sync_directory(part.parent)
