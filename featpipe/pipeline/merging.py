"""Several caches into one, without encoding anything again.

Vectors, texts, documents and entities are keyed by content, so their union is that of the store.
Term ids are numbers of one file's vocabulary: they are translated into those of the merged one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.pipeline.messages import TermTables
from featpipe.pipeline.term_writer import TermWriter
from featpipe.pipeline.units import Texts
from featpipe.store import Reader, Writer
from featpipe.store.merge import Merge, merge_dictionaries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_BLOCK = 8192


def merge_caches(sources: Sequence[str | Path], output: str | Path) -> Merge:
    """Write the union of ``sources`` to ``output``, which must not exist.

    Raises:
        DictionaryError: ``output`` exists, or a table has another schema in another file.
        UnreadableDictionary: a source that is damaged or not ours.
        WriteFailed: disk full ...; ``output`` is removed then.

    """
    merged = merge_dictionaries(sources, output, leave_out=lambda name: name.startswith("terms/"))
    with Writer.open(output) as writer:
        for source in sources:
            with Reader(source) as reader:
                for tables in _term_tables(reader):
                    _take_terms(reader, tables, Path(output), writer)
    return merged


def _term_tables(reader: Reader) -> Iterator[TermTables]:
    for name in reader.tables():
        if name.startswith("terms/") and name.endswith("/units"):
            yield TermTables(name.removesuffix("/units") + "/vocabulary", name)


def _take_terms(reader: Reader, tables: TermTables, output: Path, writer: Writer) -> None:
    vocabulary, units = reader.table(tables.vocabulary), reader.table(tables.units)
    specs = {tables.vocabulary: vocabulary.spec, tables.units: units.spec}
    rows = np.arange(vocabulary.n_rows)
    terms = TermWriter(output, writer, tables, specs)
    new_ids = terms.ids_of(Texts(*vocabulary.ragged_many("term", rows)))
    translated = _by_old_id(np.asarray(vocabulary.gather("id", rows)), new_ids)
    target = writer.table(tables.units, units.spec)
    for start in range(0, units.n_rows, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, units.n_rows))
        ids, lengths = units.ragged_many("ids", block)
        target.append({"keys": units.gather("keys", block), "ids": (translated[ids], lengths)})
    writer.commit()


def _by_old_id(old: NDArray[np.uint32], new: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A table to translate by: ``table[old[i]] == new[i]``."""
    table = np.zeros(int(old.max(initial=0)) + 1, np.uint32)
    table[old] = new
    return table
