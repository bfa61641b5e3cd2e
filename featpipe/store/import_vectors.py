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
#: Numbers in a vector; a file of a kilobyte may claim a dataset of terabytes.
_LONGEST = 1 << 16
_TEXTS = TableSpec((Ragged("text", "u1"),))


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


def import_vectors(
    source: str | Path,
    target: str | Path,
    *,
    table: str,
    group: str = "word_emb",
    attributes: Mapping[str, str] | None = None,
) -> Import:
    """Append every vector below ``group`` of ``source`` to ``table`` of the dictionary ``target``.

    Vectors keep their type, except that float64 is stored as float32. The texts go into the table
    ``texts``. Datasets that are not vectors, or not of the length of the first batch's majority,
    are skipped and listed. Raises UnreadableDictionary when ``source`` cannot be read or has no
    such group, and the errors of :meth:`Writer.open`.
    """
    importing = _Importing(table, attributes or {})
    with Writer.open(target) as writer:
        for batch in _batches(Path(source), group, importing.skipped):
            importing.append(writer, batch)
    return Import(
        Path(target), table, importing.n_rows, importing.n_known, tuple(importing.skipped)
    )


class _Importing:
    """An import in progress."""

    def __init__(self, table: str, attributes: Mapping[str, str]) -> None:
        self.table = table
        self.attributes = attributes
        self.column: Column | None = None
        self.n_rows = self.n_known = 0
        self.skipped: list[tuple[str, str]] = []

    def append(self, writer: Writer, batch: list[tuple[str, AnyArray]]) -> None:
        column = self.column = self.column or _most_common_column(batch)
        good = [(text, vector) for text, vector in batch if vector.shape == column.shape]
        self.skipped += [(t, f"shape {v.shape}") for t, v in batch if v.shape != column.shape]
        texts = [text for text, _ in good]
        vectors = np.array([vector for _, vector in good]).reshape(-1, *column.shape)
        keys = keys_of(texts)
        table = writer.table(self.table, TableSpec((column,), attributes=self.attributes))
        n_new = table.append({"keys": keys, "vectors": vectors.astype(column.storage)})
        self.n_rows += n_new
        self.n_known += len(texts) - n_new
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        flat, lengths = np.frombuffer(b"".join(data), np.uint8), [len(part) for part in data]
        writer.table("texts", _TEXTS).append({"keys": keys, "text": (flat, lengths)})
        writer.commit()


def _most_common_column(batch: list[tuple[str, AnyArray]]) -> Column:
    kinds = Counter((vector.shape, vector.dtype.str) for _, vector in batch)
    (shape, dtype), _ = kinds.most_common(1)[0]
    return Column("vectors", "float32" if np.dtype(dtype).itemsize > 4 else dtype, shape)


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
            for text, node in _datasets(file[group], skipped):
                if node.dtype.kind != "f" or node.ndim != 1 or not 0 < node.size <= _LONGEST:
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


def _datasets(
    group: h5py.Group, skipped: list[tuple[str, str]]
) -> Iterator[tuple[str, h5py.Dataset]]:
    """(path below the group, dataset); soft and external links are not followed.

    A group is read once: one that is linked into itself would not end.
    """
    import h5py

    pending, seen = [("", group)], set()
    while pending:
        path, node = pending.pop()
        place = h5py.h5o.get_info(node.id).addr
        if place in seen:
            skipped.append((path, "this group is linked from another place, too"))
            continue
        seen.add(place)
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
