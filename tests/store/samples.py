"""Tables and rows that the store's tests write, and the plain dict they are held against."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import Column, Ragged, TableSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIM = 8

VECTORS = TableSpec((Column("vectors", "f2", (DIM,)),), attributes={"spec": '{"model": "a"}'})
TEXTS = TableSpec((Ragged("text", "u1"),), attributes={"kind": "文本"})
DOCUMENTS = TableSpec(
    (
        Ragged("text", "u1"),
        Ragged("spans", "u4", (2,)),
        Ragged("weights", "f4"),
        Column("n_pages", "i4"),
        Column("mean", "bfloat16", (3,)),
    )
)
RUNS = TableSpec((Ragged("record", "u1"),), keyed=False)


@lru_cache(maxsize=100_000)
def vector_of(text: str) -> NDArray[np.float16]:
    """A vector computed from the text."""
    digest = hashlib.blake2b(text.encode(), digest_size=DIM).digest()
    return np.frombuffer(digest, np.int8).astype(np.float16) / np.float16(7)


def vectors_of(texts: list[str]) -> NDArray[np.float16]:
    return np.array([vector_of(text) for text in texts], np.float16).reshape(-1, DIM)


def ragged_text(texts: list[str]) -> tuple[NDArray[np.uint8], list[int]]:
    data = [text.encode() for text in texts]
    return np.frombuffer(b"".join(data), np.uint8), [len(part) for part in data]
