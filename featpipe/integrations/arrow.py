"""Arrow: units and documents of a cache as record batches, Parquet files and Hugging Face datasets.

Guarantees: a text stands beside its vector, a document beside its entities; batches are read one
at a time, so that memory does not grow with the cache (a dataset is held in memory). A surrogate,
which UTF-8 cannot hold, becomes U+FFFD, so that offsets in code points stay right. ``featpipe
export``, in contrast, writes the tables of the file as they are.

::

    write_units(cache.dictionary(level="sentence"), "sentences.parquet")
    dataset = unit_dataset(cache.dictionary(level="sentence"))
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from featpipe.errors import MissingExtra, UsageError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("this needs pyarrow", hint="pip install 'featpipe[arrow]'") from error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from datasets import Dataset

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument, Entity

_DOCUMENTS = 64
_surrogate = re.compile("[\ud800-\udfff]")

_ENTITY = pa.struct(
    [
        ("text", pa.string()),
        ("label", pa.string()),
        ("start", pa.uint32()),
        ("end", pa.uint32()),
        ("score", pa.float32()),
    ]
)
_DOCUMENT = pa.schema(
    [
        ("id", pa.string()),
        ("title", pa.string()),
        ("media_type", pa.string()),
        ("text", pa.string()),
        ("entities", pa.list_(_ENTITY)),
    ]
)


def unit_schema(dictionary: Dictionary) -> pa.Schema:
    """``text``, ``key`` (16 bytes) and ``vector`` (dim numbers); the metadata names the space.

    float16 stays float16; bfloat16, which Arrow lacks, becomes float32, exactly.
    """
    kind = pa.float16() if dictionary.spec.get("dtype") == "float16" else pa.float32()
    fields = [
        ("text", pa.string()),
        ("key", pa.binary(16)),
        ("vector", pa.list_(kind, dictionary.dim)),
    ]
    level = dictionary.level or "all"
    return pa.schema(fields, metadata={"featpipe.space": dictionary.name, "featpipe.level": level})


def unit_batches(dictionary: Dictionary) -> Iterator[pa.RecordBatch]:
    """Every distinct text of a space (of its level, if it has one) with its vector."""
    schema = unit_schema(dictionary)
    kind = schema.field("vector").type.value_type
    keys, at = dictionary.keys(), 0
    for rows, vectors in dictionary.blocks():
        some = keys[at : at + len(rows)]
        at += len(rows)
        values = vectors.astype(np.float16 if kind == pa.float16() else np.float32)
        columns = [
            pa.array([_text(dictionary.text_of(key.tobytes())) for key in some], pa.string()),
            pa.array([key.tobytes() for key in some], pa.binary(16)),
            pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1), kind), dictionary.dim),
        ]
        yield pa.record_batch(columns, schema=schema)


def document_batches(cache: Cache, tagger: str | None = None) -> Iterator[pa.RecordBatch]:
    """Every document with its text and entities.

    Raises:
        UnknownSpace: several taggers, and none named.

    """
    some: list[dict[str, object]] = []
    for document in cache.documents():
        some.append(_plain(document, tagger))
        if len(some) == _DOCUMENTS:
            yield pa.RecordBatch.from_pylist(some, schema=_DOCUMENT)
            some = []
    if some:
        yield pa.RecordBatch.from_pylist(some, schema=_DOCUMENT)


def document_schema() -> pa.Schema:
    """``id``, ``title``, ``media_type``, ``text`` and ``entities``."""
    return _DOCUMENT


def write_units(dictionary: Dictionary, path: str | Path) -> int:
    """Write a Parquet file of texts and vectors; returns the number of rows."""
    return _write(path, unit_schema(dictionary), unit_batches(dictionary))


def write_documents(cache: Cache, path: str | Path, tagger: str | None = None) -> int:
    """Write a Parquet file of documents; returns the number of rows."""
    return _write(path, _DOCUMENT, document_batches(cache, tagger))


def unit_dataset(dictionary: Dictionary) -> Dataset:
    """A Hugging Face dataset with the rows of `unit_batches`, in memory.

    Raises:
        MissingExtra: ``datasets`` is not installed.

    """
    return _dataset(unit_schema(dictionary), unit_batches(dictionary))


def document_dataset(cache: Cache, tagger: str | None = None) -> Dataset:
    """A Hugging Face dataset with the rows of `document_batches`, in memory.

    Raises:
        MissingExtra: ``datasets`` is not installed.

    """
    return _dataset(_DOCUMENT, document_batches(cache, tagger))


def _dataset(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Dataset:
    try:
        from datasets import Dataset
        from datasets.table import InMemoryTable
    except ImportError as error:
        raise MissingExtra(
            "this needs Hugging Face datasets", hint="pip install 'featpipe[datasets]'"
        ) from error
    # Dataset.from_generator would hash the generator, and write the rows to the home folder.
    return Dataset(InMemoryTable(pa.Table.from_batches(batches, schema)))


def _write(path: str | Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    n_rows = 0
    try:
        with pq.ParquetWriter(path, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                n_rows += batch.num_rows
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}") from error
    return n_rows


def _plain(document: CachedDocument, tagger: str | None) -> dict[str, object]:
    return {
        "id": _text(document.id),
        "title": _text(str(document.meta.get("title") or "")),
        "media_type": str(document.meta.get("media_type") or ""),
        "text": _text(document.text),
        "entities": [_plain_entity(entity) for entity in document.entities(tagger)],
    }


def _plain_entity(entity: Entity) -> dict[str, object]:
    return {
        "text": _text(entity.text),
        "label": entity.label,
        "start": entity.start,
        "end": entity.end,
        "score": entity.score,
    }


def _text(text: str | None) -> str | None:
    """As UTF-8 can hold it, with the same number of code points."""
    return None if text is None else _surrogate.sub("\ufffd", text)
