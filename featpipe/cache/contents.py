"""Contents by the hash of their file's bytes, the first of a document's stored properties."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache.texts import decode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.store import TableReader

_FRONT = np.frombuffer(b'{"bytes_hash":"', np.uint8)
_HEAD = 8  #: characters of a hash that are compared first
_BLOCK = 4096


class ContentIndex:
    """The first characters of every content's hash: 8 bytes a document, read when asked for."""

    def __init__(self) -> None:
        self._documents: TableReader | None = None
        self._heads = np.zeros(0, np.uint64)

    def find(
        self, documents: TableReader, bytes_hash: str, media_type: str | None
    ) -> dict[bytes, str]:
        """Keys of the documents whose file has these bytes, with the media type of each.

        Args:
            documents: the table ``/documents`` as it is now.
            bytes_hash: of the file.
            media_type: that they were read as; None for any.

        """
        self._extend(documents)
        found = {}
        for row in np.flatnonzero(self._heads == _head(bytes_hash)).tolist():
            meta = json.loads(decode(documents.ragged("meta", row)))
            kind = str(meta["media_type"])
            if meta["bytes_hash"] == bytes_hash and media_type in {None, kind}:
                found[np.asarray(documents.row("keys", row)).tobytes()] = kind
        return found

    def _extend(self, documents: TableReader) -> None:
        if documents is not self._documents:  # the file was replaced
            self._documents, self._heads = documents, np.zeros(0, np.uint64)
        known, n_rows = len(self._heads), documents.n_rows
        blocks = [
            _heads_of(documents, np.arange(start, min(start + _BLOCK, n_rows)))
            for start in range(known, n_rows, _BLOCK)
        ]
        self._heads = np.concatenate([self._heads, *blocks])


def _heads_of(documents: TableReader, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    values, lengths = documents.ragged_many("meta", rows)
    starts = np.cumsum(lengths) - lengths
    size = len(_FRONT) + _HEAD
    if len(lengths) and lengths.min() >= size:
        fronts = np.asarray(values, np.uint8)[starts[:, None] + np.arange(size)]
        if (fronts[:, : len(_FRONT)] == _FRONT).all():
            return np.ascontiguousarray(fronts[:, len(_FRONT) :]).view(np.uint64).reshape(-1)
    metas = (json.loads(decode(documents.ragged("meta", row))) for row in rows.tolist())
    return np.array([_head(str(meta.get("bytes_hash", ""))) for meta in metas], np.uint64)


def _head(bytes_hash: str) -> np.uint64:
    return np.uint64(int.from_bytes(bytes_hash.encode()[:_HEAD].ljust(_HEAD), "little"))
