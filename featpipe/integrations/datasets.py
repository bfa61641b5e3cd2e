"""Hugging Face ``datasets``: the units and documents of a cache.

::

    dataset = unit_dataset(cache.dictionary(level="sentence"))
    dataset.set_format("numpy"); dataset[0]["vector"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from featpipe.errors import MissingExtra
from featpipe.integrations import arrow

try:
    from datasets import Dataset
    from datasets.table import InMemoryTable
except ImportError as error:
    raise MissingExtra(
        "this needs Hugging Face datasets", hint="pip install 'featpipe[datasets]'"
    ) from error

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary


def unit_dataset(dictionary: Dictionary) -> Dataset:
    """Every distinct text of a space (of its level, if it has one): text, key, vector."""
    return _dataset(arrow.unit_schema(dictionary), arrow.unit_batches(dictionary))


def document_dataset(cache: Cache, tagger: str | None = None) -> Dataset:
    """Every document: id, title, media_type, text, entities."""
    return _dataset(arrow.document_schema(), arrow.document_batches(cache, tagger))


def _dataset(schema: Any, batches: Iterator[Any]) -> Dataset:  # noqa: ANN401 - pyarrow is untyped
    # In memory: a generator would be fingerprinted, written to the home folder and read again.
    return Dataset(InMemoryTable(pa.Table.from_batches(batches, schema)))
