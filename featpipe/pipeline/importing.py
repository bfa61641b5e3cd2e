"""Vectors of former files, as a space of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.documents import hash_bytes
from featpipe.errors import UnreadableDictionary
from featpipe.features.feature import fingerprint_of
from featpipe.pipeline import layout
from featpipe.pipeline.models import space_name
from featpipe.store.import_old import Import, import_old

if TYPE_CHECKING:
    from collections.abc import Mapping


def import_vectors(
    source: str | Path, cache: str | Path, *, group: str = "word_emb", name: str | None = None
) -> Import:
    """Append every vector below ``group`` of ``source`` to a space of the cache.

    Nobody knows which weights made them, so the fingerprint covers the file's bytes: the space is
    never mistaken for a model's.

    Raises:
        UnreadableDictionary: no such file, not HDF5, or without such a group.
        DictionaryLocked: another process writes the cache.

    """
    source = Path(source)
    try:
        content = hash_bytes(source.read_bytes())
    except OSError as error:
        raise UnreadableDictionary(f"{source} cannot be read: {error.strerror}") from error
    spec: Mapping[str, object] = {"feature": "imported", "file": content, "group": group}
    fingerprint = fingerprint_of(spec)
    return import_old(
        source,
        cache,
        table=layout.space_table(space_name(name or source.stem), fingerprint),
        group=group,
        attributes=layout.identity(spec, fingerprint),
        texts_table=layout.TEXTS,
    )
