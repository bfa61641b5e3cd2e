"""Imports vectors from plain HDF5 files of one dataset per text, such as a ``word_emb`` group.

The text is the dataset's path below the group: a text with a slash in it became nested groups.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UnreadableDictionary
from featpipe.store.keys import keys_of
from featpipe.store.schema import Column, Ragged, TableSpec
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import h5py

    from featpipe.store.checksum import AnyArray

_BATCH = 4096


@dataclass(frozen=True, slots=True)
class Import:
    """Result of an import; ``skipped`` holds (text, reason)."""

    path: Path
    table: str
    n_rows: int
    n_known: int
    skipped: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        known = f", {self.n_known:,} known already" if self.n_known else ""
        skipped = f", {len(self.skipped):,} skipped" if self.skipped else ""
        return f"{self.path}: {self.n_rows:,} rows into {self.table}{known}{skipped}"


def import_vectors(  # noqa: PLR0913  # a public call: one keyword for each choice
    source: str | Path,
    target: str | Path,
    *,
    table: str,
    group: str = "word_emb",
    attributes: Mapping[str, str] | None = None,
    dtype: str | None = None,
    texts_table: str | None = "texts",
) -> Import:
    """Append every vector below ``group`` of ``source`` to ``table`` of the dictionary ``target``.

    Vectors are stored as ``dtype``, by default their own, float64 as float32. The texts go into
    ``texts_table`` (keys, text) unless None. Datasets that are not vectors, or not of the length of
    the first batch's majority, are skipped and listed. Raises UnreadableDictionary when ``source``
    cannot be read or has no such group, and the errors of :meth:`Writer.open`.
    """
    importing = _Importing(table, attributes or {}, dtype, texts_table)
    with Writer.open(target) as writer:
        for batch in _batches(Path(source), group, importing.skipped):
            importing.take(writer, batch)
    return Import(
        Path(target), table, importing.n_rows, importing.n_known, tuple(importing.skipped)
    )


class _Importing:
    """An import in progress."""

    def __init__(
        self, table: str, attributes: Mapping[str, str], dtype: str | None, texts_table: str | None
    ) -> None:
        self.table = table
        self.attributes = attributes
        self.dtype = dtype
        self.texts_table = texts_table
        self.shape: tuple[int, ...] | None = None
        self.n_rows = self.n_known = 0
        self.skipped: list[tuple[str, str]] = []

    def take(self, writer: Writer, batch: list[tuple[str, AnyArray]]) -> None:
        if self.shape is None:
            kinds = Counter((vector.shape, vector.dtype.str) for _, vector in batch)
            (self.shape, stored), _ = kinds.most_common(1)[0]
            self.dtype = self.dtype or ("float32" if np.dtype(stored).itemsize > 4 else stored)
        good = [(text, vector) for text, vector in batch if vector.shape == self.shape]
        self.skipped += [(t, f"shape {v.shape}") for t, v in batch if v.shape != self.shape]
        texts = [text for text, _ in good]
        column = Column("vectors", self.dtype or "float32", self.shape)
        vectors = np.array([vector for _, vector in good]).reshape(-1, *self.shape)
        if column.dtype != "bfloat16":
            vectors = vectors.astype(column.storage)
        keys = keys_of(texts)
        table = writer.table(self.table, TableSpec((column,), attributes=self.attributes))
        n_new = table.append({"keys": keys, "vectors": vectors})
        self.n_rows += n_new
        self.n_known += len(texts) - n_new
        if self.texts_table is not None:
            data = [text.encode("utf-8", "surrogatepass") for text in texts]
            flat = np.frombuffer(b"".join(data), np.uint8)
            spec = TableSpec((Ragged("text", "u1"),))
            lengths = [len(part) for part in data]
            writer.table(self.texts_table, spec).append({"keys": keys, "text": (flat, lengths)})
        writer.commit()


def _batches(
    source: Path, group: str, skipped: list[tuple[str, str]]
) -> Iterator[list[tuple[str, AnyArray]]]:
    import h5py

    try:
        with h5py.File(source, "r", locking=False) as file:
            if not isinstance(file.get(group), h5py.Group):
                raise UnreadableDictionary(
                    f"{source} has no group {group!r}", hint=f"it has: {', '.join(file)}"
                )
            batch = []
            for text, node in _datasets(file[group]):
                if node.dtype.kind != "f" or node.ndim != 1 or not node.size:
                    skipped.append((text, f"{node.dtype} of shape {node.shape} is no vector"))
                    continue
                batch.append((text, node[()]))
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
            if batch:
                yield batch
    except (OSError, RuntimeError, KeyError) as error:
        raise UnreadableDictionary(f"{source} cannot be read as HDF5: {error}") from error


def _datasets(group: h5py.Group) -> Iterator[tuple[str, h5py.Dataset]]:
    """(path below the group, dataset); soft and external links are not followed."""
    import h5py

    pending = [("", group)]
    while pending:
        path, node = pending.pop()
        for name in node:
            if not isinstance(node.get(name, getlink=True), h5py.HardLink):
                continue
            label = f"{path}/{name}" if path else name
            child = node[name]
            if isinstance(child, h5py.Dataset):
                if child.external is None and not child.is_virtual:
                    yield label, child
            else:
                pending.append((label, child))
