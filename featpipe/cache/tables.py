"""The layout of a cache: the names and columns of its tables.

::

    /embeddings/<name>@<fp12>   keyed by unit text      vectors (n, dim)
    /entities/<name>@<fp12>     keyed by paragraph text spans, labels, scores
    /texts                      keyed by unit text      text: every unit text once, UTF-8
    /levels                     log                     at which levels a text occurs; rows add up
    /documents                  keyed by content        text, meta, and per level spans and keys
    /sources                    log                     where a document was found; last row wins;
                                                        a key of zeros: it left this place
    /places                     keyed by name           the index of /sources, by path and id
    /terms/<analyser>@<fp12>/   vocabulary (term, id) and units (ids per text)
    /runs                       log                     one JSON record per run

A vector is a function of (fingerprint, text) alone, so one table serves all levels: a sentence that
is also a paragraph is encoded once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from featpipe.settings import LEVELS
from featpipe.store import Column, Ragged, TableSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    #: Columns to append to a table: values, or (values, lengths) of a ragged one.
    Rows = dict[str, "NDArray[np.generic] | tuple[NDArray[np.generic], NDArray[np.int64]]"]

TEXTS = "texts"
TEXT_LEVELS = "levels"
DOCUMENTS = "documents"
SOURCES = "sources"
PLACES = "places"
RUNS = "runs"

#: Of extraction: values by key, and logs of JSON records.
VALUES = "results/values"
LOG = "results/log"
FACTS = "results/facts"

#: Raised when a table's columns change meaning.
LAYOUT_VERSION = 1

_SHORT = 12


def space_table(name: str, fingerprint: str) -> str:
    """Path of the vectors of one space."""
    return f"embeddings/{name}@{fingerprint[:_SHORT]}"


def entities_table(name: str, fingerprint: str) -> str:
    """Path of the entities that one tagger found."""
    return f"entities/{name}@{fingerprint[:_SHORT]}"


def terms_group(analyser: str, fingerprint: str) -> str:
    """Group of one analyser's vocabulary and per-unit term ids."""
    return f"terms/{analyser}@{fingerprint[:_SHORT]}"


def find_named(names: Iterable[str], asked: str | None) -> list[str]:
    """Of names such as ``zh-small@3f2a9c71b0de`` those asked for, with or without fingerprint.

    None asks for all of them.
    """
    return [name for name in names if asked in (None, name, name.partition("@")[0])]


def vectors_spec(spec: Mapping[str, object], fingerprint: str, dim: int, dtype: str) -> TableSpec:
    """One row per distinct unit text: ``vectors`` (n, dim)."""
    return TableSpec(
        columns=(Column("vectors", dtype, (dim,)),),
        keyed=True,
        attributes=identity(spec, fingerprint),
    )


def entities_spec(spec: Mapping[str, object], fingerprint: str, types: Sequence[str]) -> TableSpec:
    """One row per distinct paragraph: its entities' ``spans`` (m, 2), ``labels``, ``scores``.

    Spans count characters from the paragraph's start; a label is a place in ``types``, the JSON
    list kept as an attribute.
    """
    return TableSpec(
        columns=(
            Ragged("spans", "uint32", (2,)),
            Ragged("labels", "uint16"),
            Ragged("scores", "float32"),
        ),
        keyed=True,
        attributes=identity(spec, fingerprint)
        | {"types": json.dumps(list(types), ensure_ascii=False)},
    )


def texts_spec() -> TableSpec:
    """Every unit text once, as UTF-8 bytes."""
    return TableSpec(columns=(Ragged("text", "uint8"),), keyed=True, attributes={})


def levels_spec() -> TableSpec:
    """A log of (key of a text, bits of the levels at which it occurs): see `cache.levels`."""
    return TableSpec(
        columns=(Column("text", "uint8", (16,)), Column("bits", "uint8")),
        keyed=False,
        attributes={},
    )


def documents_spec() -> TableSpec:
    """One row per distinct content: its text, its meta data (JSON) and its units by level."""
    levels = [
        column
        for level in LEVELS
        for column in (
            Ragged(f"{level}_spans", "uint32", (2,)),
            Ragged(f"{level}_keys", "uint8", (16,)),
        )
    ]
    return TableSpec(
        columns=(Ragged("text", "uint8"), Ragged("meta", "uint8"), *levels),
        keyed=True,
        attributes={"layout": str(LAYOUT_VERSION)},
    )


def sources_spec() -> TableSpec:
    """Where documents were found: a log of (document key, absolute path, readable name)."""
    return TableSpec(
        columns=(
            Column("document", "uint8", (16,)),
            Ragged("path", "uint8"),
            Ragged("id", "uint8"),
        ),
        keyed=False,
        attributes={},
    )


def places_spec() -> TableSpec:
    """The index of ``/sources``: see `cache.place_index`. All but the keys are numbers of rows.

    ``source`` is a row of ``/sources``, ``check`` its checksum; ``listed`` the row by which its
    place has been listed since, ``first`` the first row of this table for the path.
    """
    names = ("source", "listed", "first", "check")
    return TableSpec(tuple(Column(name, "uint32") for name in names), keyed=True, attributes={})


def vocabulary_spec(spec: Mapping[str, object], fingerprint: str) -> TableSpec:
    """Distinct terms and the ids by which ``units`` refer to them.

    The id is stored, not the row number: a table that was compacted keeps its ids.
    """
    return TableSpec(
        columns=(Column("id", "uint32"), Ragged("term", "uint8")),
        keyed=True,
        attributes=identity(spec, fingerprint),
    )


def term_units_spec(spec: Mapping[str, object], fingerprint: str) -> TableSpec:
    """One row per distinct unit text: its term ids in the order of the text."""
    return TableSpec(
        columns=(Ragged("ids", "uint32"),), keyed=True, attributes=identity(spec, fingerprint)
    )


def runs_spec() -> TableSpec:
    """A log of run records, JSON in UTF-8."""
    return TableSpec(columns=(Ragged("record", "uint8"),), keyed=False, attributes={})


def identity(spec: Mapping[str, object], fingerprint: str) -> dict[str, str]:
    """The attributes that identify the model or analyser of a table's rows."""
    return {
        "spec": json.dumps(spec, sort_keys=True, ensure_ascii=False),
        "fingerprint": fingerprint,
    }
