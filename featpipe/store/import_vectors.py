"""Imports vectors from plain HDF5 files of one dataset per text, such as a ``word_emb`` group.

The text is the dataset's path below the group: a text with a slash in it became nested groups.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import UnreadableDictionary
from featpipe.store.keys import keys_of
from featpipe.store.schema import Column, Ragged, TableSpec
from featpipe.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import h5py

    from featpipe.store.checksum import AnyArray
    from featpipe.store.schema import AnyColumn

_BATCH = 4096
#: Numbers in a vector; a file of a kilobyte may claim a dataset of terabytes.
_LONGEST = 1 << 16
_TEXTS = TableSpec((Ragged("text", "u1"),))

#: Texts that the summary names for each reason.
_MOST_NAMED = 10

NOT_FINITE = "it holds NaN or infinity"
TOO_LARGE = "it is too large for {}"


@dataclass(frozen=True, slots=True)
class Import:
    """Result of an import; ``skipped`` holds (text, reason)."""

    path: Path
    table: str
    n_rows: int
    n_known: int
    skipped: tuple[tuple[str, str], ...]
    n_zero: int = 0
    """Rows whose numbers are all zero."""

    def __str__(self) -> str:
        known = f", {self.n_known:,} known already" if self.n_known else ""
        skipped = f", {len(self.skipped):,} skipped" if self.skipped else ""
        zero = f", {self.n_zero:,} of them all zeros" if self.n_zero else ""
        head = f"{self.path}: {self.n_rows:,} rows into {self.table}{zero}{known}{skipped}"
        return "\n".join([head, *_summarise(self.skipped)])


def _summarise(skipped: Sequence[tuple[str, str]]) -> Iterator[str]:
    """One line per reason, with the number of texts and the first of them."""
    by_reason: dict[str, list[str]] = {}
    for text, reason in skipped:
        by_reason.setdefault(reason, []).append(text)
    for reason, texts in by_reason.items():
        named = ", ".join(repr(text) for text in texts[:_MOST_NAMED])
        yield f"  {len(texts):,} skipped, {reason}: {named}{' ...' if texts[_MOST_NAMED:] else ''}"


def import_vectors(  # noqa: PLR0913  # each is one decision of the caller
    source: str | Path,
    target: str | Path,
    *,
    table: str,
    group: str = "word_emb",
    spec: TableSpec | None = None,
    attributes: Mapping[str, str] | None = None,
    refuse: Callable[[Sequence[str]], Mapping[str, str]] | None = None,
) -> Import:
    """Append every vector below ``group`` of ``source`` to ``table`` of the dictionary ``target``.

    Vectors keep their type, except that float64 is stored as float32, unless ``spec`` states
    another. The texts go into the table ``texts``. Skipped and listed are datasets that are not
    vectors, those not of the length of the first batch's majority, vectors with NaN or infinity, or
    that are too large for the stored type. Of several types the
    widest of the first batch is stored; of a later batch, float32 among float16 is skipped.

    Args:
        source: the old file.
        target: the dictionary; made when missing.
        table: its table.
        group: where the datasets are.
        spec: of the table; by default one column as the vectors are, and ``attributes``.
        attributes: see there.
        refuse: the reasons to skip some of these texts, by text.

    Raises:
        UnreadableDictionary: ``source`` cannot be read, or has no such group, or a name that is not
            UTF-8. As `Writer.open`.
    """
    importing = _Importing(table, spec, attributes or {}, refuse)
    with _opened(Path(source), group):
        pass  # what cannot be read leaves no new file
    with Writer.open(target) as writer:
        for batch in _batches(Path(source), group, importing.skipped):
            importing.append(writer, batch)
    return Import(
        Path(target),
        table,
        importing.n_rows,
        importing.n_known,
        tuple(importing.skipped),
        importing.n_zero,
    )


def read_some(source: Path, group: str, texts: Iterable[str]) -> dict[str, AnyArray]:
    """The vectors of some texts below ``group``, as they are stored."""
    with _opened(source, group) as node:
        return {text: np.asarray(node[text][()]) for text in texts}


def list_texts(source: Path, group: str) -> list[str]:
    """Every text below ``group`` that has a vector, whatever is in it."""
    with _opened(source, group) as node:
        return [text for text, dataset in _datasets(node, []) if _is_vector(dataset)]


class _Importing:
    """An import in progress."""

    def __init__(
        self,
        table: str,
        spec: TableSpec | None,
        attributes: Mapping[str, str],
        refuse: Callable[[Sequence[str]], Mapping[str, str]] | None,
    ) -> None:
        self.table = table
        self.spec = spec
        self.keeps_type = spec is None
        self.attributes = attributes
        self.refuse = refuse
        self.n_rows = self.n_known = self.n_zero = 0
        self.skipped: list[tuple[str, str]] = []

    def append(self, writer: Writer, batch: list[tuple[str, AnyArray]]) -> None:
        if self.spec is None:
            self.spec = TableSpec((_most_common_column(batch),), attributes=self.attributes)
        column = self.spec.columns[0]
        reasons = {text: self._judge(vector, column) for text, vector in batch}
        if self.refuse is not None:
            reasons |= self.refuse([text for text, reason in reasons.items() if not reason])
        self.skipped += [(text, reason) for text, reason in reasons.items() if reason]
        good = [(text, vector) for text, vector in batch if not reasons[text]]
        texts = [text for text, _ in good]
        vectors = np.zeros((len(good), *column.shape), column.storage)
        for row, (_, vector) in enumerate(good):
            vectors[row] = vector
        keys = keys_of(texts)
        n_new = writer.table(self.table, self.spec).append({"keys": keys, "vectors": vectors})
        self.n_rows += n_new
        self.n_known += len(texts) - n_new
        self.n_zero += int((~vectors.any(axis=1)).sum())
        data = [text.encode("utf-8") for text in texts]
        flat, lengths = np.frombuffer(b"".join(data), np.uint8), [len(part) for part in data]
        writer.table("texts", _TEXTS).append({"keys": keys, "text": (flat, lengths)})
        writer.commit()

    def _judge(self, vector: AnyArray, column: AnyColumn) -> str:
        """Why a vector is not taken; empty where it is."""
        if vector.shape != column.shape:
            return f"shape {vector.shape}"
        if not np.isfinite(vector).all():
            return NOT_FINITE
        if self.keeps_type and column.storage.itemsize == 2 < vector.dtype.itemsize:
            return f"it is {vector.dtype}, and those before it are {column.storage}"
        with np.errstate(over="ignore"):
            if not np.isfinite(vector.astype(column.storage)).all():
                return TOO_LARGE.format(column.storage.name)
        return ""


def _most_common_column(batch: list[tuple[str, AnyArray]]) -> Column:
    """Of the most common shape, and of the widest type that has it, float32 at most."""
    [(shape, _)] = Counter(vector.shape for _, vector in batch).most_common(1)
    widest = max(vector.dtype.itemsize for _, vector in batch if vector.shape == shape)
    return Column("vectors", "float16" if widest == 2 else "float32", shape)


def _is_vector(node: h5py.Dataset) -> bool:
    return bool(node.dtype.kind == "f" and node.ndim == 1 and 0 < node.size <= _LONGEST)


@contextmanager
def _opened(source: Path, group: str) -> Iterator[h5py.Group]:
    """The group of the old file; what is wrong with it is said once."""
    import h5py

    try:
        with h5py.File(source, "r", locking=False) as file:
            if not isinstance(file.get(group), h5py.Group):
                raise UnreadableDictionary(
                    f"{source} has no group {group!r}", hint=f"it has: {', '.join(file)}"
                )
            yield file[group]
    except UnicodeDecodeError as error:  # h5py stops at such a name
        raise UnreadableDictionary(
            f"{source} has a name below {group} that is not UTF-8: {error.object!r}",
            hint="rename that dataset, or remove it",
        ) from error
    except (OSError, RuntimeError, KeyError) as error:
        raise UnreadableDictionary(f"{source} cannot be read as HDF5: {error}") from error


def _batches(
    source: Path, group: str, skipped: list[tuple[str, str]]
) -> Iterator[list[tuple[str, AnyArray]]]:
    batch: list[tuple[str, AnyArray]] = []
    with _opened(source, group) as opened:
        for text, node in _datasets(opened, skipped):
            if not _is_vector(node):
                skipped.append((text, f"{node.dtype} of shape {node.shape} is no vector"))
                continue
            batch.append((text, node[()]))
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


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
