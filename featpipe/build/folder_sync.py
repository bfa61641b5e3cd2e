"""A folder cache held against its documents by one process: what is gone from them, and leaves.

The jobs of a build see a part of the documents each, so that none of them can tell what is gone.
The process that had them done lists all documents once more, after the last job: what was read by a
job and is still there is never taken for gone. Its memory grows with documents, some 500 bytes
each.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.build.departures import Addresses, find_departed, refuse_empty_roots
from featpipe.cache.forget import forget_places
from featpipe.documents import Source
from featpipe.documents.find import Found, at_absolute_paths, search
from featpipe.documents.source import expanded
from featpipe.errors import UsageError
from featpipe.store import open_reader
from featpipe.store.object_store import is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.store import Reader


def list_documents(
    folder: str,
    documents: Sequence[str | Path | Source],
    include: Sequence[str],
    exclude: Sequence[str],
) -> Found:
    """Every document of a run, with members of archives and records, at absolute paths.

    Raises:
        MissingDocuments: a path that does not exist, or nothing to read.

    """
    paths = [one for one in documents if not isinstance(one, Source)]
    given = [part for one in documents if isinstance(one, Source) for part in expanded(one)]
    own = None if is_url(folder) else Path(folder)
    found = (
        search(paths, include, exclude, expand=True, own=own) if paths or not given else Found([])
    )
    sources = list(at_absolute_paths([*given, *found.sources]))
    return Found(sources, found.notes, found.roots)


def check_roots(folder: str, found: Found) -> None:
    """Before anything is done: whether a folder's cache can follow what was given.

    Raises:
        UsageError: a folder that holds no document while the cache has some from there; or a cache
            in an object store.

    """
    if is_url(folder):
        raise UsageError(
            f"{folder} cannot follow folders: it is in an object store",
            hint="copy it to a local folder, and follow with that",
        )
    if Path(folder).is_dir():
        with open_reader(folder) as reader:
            refuse_empty_roots(reader, found.sources, found.roots)


def find_gone(reader: Reader, found: Found) -> dict[str, str]:
    """Address -> id of the documents of a cache that are gone from what was given."""
    given = Addresses(source.address for source in found.sources)
    return find_departed(reader, found.sources, given, found.roots)


def let_go(folder: str, found: Found) -> int:
    """Have what is gone leave the cache; durable when this returns. How many they are.

    Raises:
        UsageError: as `check_roots`; nothing has left.
        WriteFailed: disk full, read-only ...; nothing has left.

    """
    check_roots(folder, found)
    with open_reader(folder) as reader:
        departed = find_gone(reader, found)
    forget_places(Path(folder), departed)
    return len(departed)
