"""Opens a cache for reading, whatever it stands in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.store.fetched_folder import FetchedFolderReader, local_folder
from featpipe.store.folder_layout import fetched_from
from featpipe.store.folder_reader import FolderReader
from featpipe.store.object_store import is_url
from featpipe.store.reader import Reader

if TYPE_CHECKING:
    from featpipe.store.reader import NameRows


def open_reader(
    path: str | Path, *, checks_rows: bool = True, name_rows: NameRows | None = None
) -> Reader:
    """A reader of a cache in one file, in a folder, or in an object store (by its URL).

    Arguments as of `Reader`.

    Raises:
        UnreadableDictionary, NewerDictionary: as `Reader` and `FolderReader`.
        StoreUnreachable, MissingExtra, WriteFailed: as `local_folder`.
    """
    path = local_path(path)
    kind = Reader
    if path.is_dir():
        kind = FolderReader if fetched_from(path) is None else FetchedFolderReader
    return kind(path, checks_rows=checks_rows, name_rows=name_rows)


def local_path(path: str | Path, local: str | Path | None = None) -> Path:
    """The path by which a cache is opened: for a URL, the folder of :func:`local_folder`."""
    return local_folder(str(path), local) if is_url(path) else Path(path)
