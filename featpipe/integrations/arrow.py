"""Arrow: the units and documents of a cache as record batches, and as Parquet files.

Unlike ``featpipe export``, which writes the tables of the file as they are, these are tables for
people who train and analyse: a text beside its vector, a document beside its entities. Everything
is read in batches, so that memory does not grow with the cache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.errors import MissingExtra, UsageError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("this needs pyarrow", hint="pip install 'featpipe[arrow]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument

    Batches = Callable[[], Iterator[Any]]

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


def unit_schema(dictionary: Dictionary) -> Any:  # noqa: ANN401 - pyarrow is untyped
    """``text``, ``key`` (16 bytes) and ``vector`` (dim numbers); the space stands in the metadata.

    float16 stays what it is; bfloat16, which Arrow lacks, becomes float32, exactly.
    """
    kind = pa.float16() if dictionary.spec.get("dtype") == "float16" else pa.float32()
    fields = [
        ("text", pa.string()),
        ("key", pa.binary(16)),
        ("vector", pa.list_(kind, dictionary.dim)),
    ]
    level = dictionary.level or "all"
    return pa.schema(fields, metadata={"featpipe.space": dictionary.name, "featpipe.level": level})


def unit_batches(dictionary: Dictionary) -> Iterator[Any]:
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


def document_batches(cache: Cache, tagger: str | None = None) -> Iterator[Any]:
    """Every document with its text and entities; a surrogate that UTF-8 cannot hold becomes U+FFFD.

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


def document_schema() -> Any:  # noqa: ANN401 - pyarrow is untyped
    """``id``, ``title``, ``media_type``, ``text`` and ``entities``."""
    return _DOCUMENT


def write_units(dictionary: Dictionary, path: str | Path) -> int:
    """Write a Parquet file of texts and vectors; returns the number of rows."""
    return _write(path, unit_schema(dictionary), unit_batches(dictionary))


def write_documents(cache: Cache, path: str | Path, tagger: str | None = None) -> int:
    """Write a Parquet file of documents; returns the number of rows."""
    return _write(path, _DOCUMENT, document_batches(cache, tagger))


def _write(path: str | Path, schema: Any, batches: Iterator[Any]) -> int:  # noqa: ANN401 - untyped
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
        "entities": [
            {
                "text": _text(entity.text),
                "label": entity.label,
                "start": entity.start,
                "end": entity.end,
                "score": entity.score,
            }
            for entity in document.entities(tagger)
        ],
    }


def _text(text: str | None) -> str | None:
    """As UTF-8 can hold it, and as long as before: offsets in code points hold."""
    return None if text is None else _surrogate.sub("\ufffd", text)
