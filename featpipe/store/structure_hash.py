"""Checksums over a file's structure: names, addresses, schemas and the places of chunks.

Every group of layout 2 has the attribute ``structure``: 16 hexadecimal digits over the group itself
(its own attributes and links), and in a table 16 more for each of its datasets, in the order of
their names (type, shape, chunks). Each is BLAKE2b of 64 bits. What other programs add to a group,
attributes and objects of their own, is not covered. Lengths of columns change in place and are not
covered either: see :func:`featpipe.store.views.settled_length`.

The group's digits also cover the generation of the structure, a count of its changes: a stale copy
of a group, which copy-on-write leaves in the file, is never taken for the present one.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from featpipe.store import hdf5_format as hdf5
from featpipe.store.schema import (
    COLUMNS_ATTRIBUTE,
    GENERATION_ATTRIBUTE,
    SALT_ATTRIBUTE,
    STRUCTURE_ATTRIBUTE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

#: Digits of one checksum.
DIGITS = 16

_GROUP_ATTRIBUTES = frozenset({"format", "version", "created", GENERATION_ATTRIBUTE})
_TABLE_NUMBERS = frozenset({SALT_ATTRIBUTE, GENERATION_ATTRIBUTE})

Attributes = dict[str, "str | int"]


def hash_dataset(
    datatype: bytes,
    tail: Sequence[int],
    chunk: Sequence[int],
    places: Sequence[int] | NDArray[np.int64],
) -> str:
    """Of a dataset with this datatype message, shape but for the rows, chunk shape and places.

    ``places`` are the offsets of its chunks, or the address and size of a contiguous one.
    """
    head = json.dumps([hdf5.pad8(datatype).hex(), list(tail), list(chunk)]).encode()
    return _digest(head + np.asarray(places, "<i8").tobytes())


def hash_group(attributes: Mapping[str, str | int], links: Mapping[str, int], rest: str) -> str:
    """Of a group; ``rest`` are the checksums of its datasets, in the order of their names."""
    content = [sorted(covered(attributes).items()), sorted(links.items()), rest]
    return _digest(json.dumps(content).encode())


def covered(attributes: Mapping[str, str | int]) -> Attributes:
    """The attributes that featpipe writes; in a table every text is part of its identity."""
    is_table = COLUMNS_ATTRIBUTE in attributes
    return {
        name: value
        for name, value in attributes.items()
        if name != STRUCTURE_ATTRIBUTE
        and (
            (isinstance(value, str) or name in _TABLE_NUMBERS)
            if is_table
            else name in _GROUP_ATTRIBUTES
        )
    }


def renewed(extras: Sequence[hdf5.Message], changes: Mapping[str, str | int]) -> list[hdf5.Message]:
    """The messages of a header with these attributes in place of those of the same names."""
    kept = [m for m in extras if m.kind != hdf5.ATTRIBUTE or _name_of(m) not in changes]
    return kept + [hdf5.attribute(name, value) for name, value in changes.items()]


def _name_of(message: hdf5.Message) -> str:
    size = int.from_bytes(message.body[2:4], "little")
    start = 9 if message.body[0] == 3 else 8
    return message.body[start : start + size].split(b"\0")[0].decode("utf-8", "replace")


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=DIGITS // 2, person=b"featpipe-struct").hexdigest()
