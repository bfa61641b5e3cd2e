"""Rows of other files in a cache, without encoding anything again: merged caches, old vectors.

Vectors, texts, documents and entities are keyed by content, so the store merges them. Term ids are
numbers of one file's vocabulary: they are translated into those of the merged one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.derived import complete
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.texts import Texts
from featpipe.cache.write import TermTables, TermWriter
from featpipe.documents import hash_file
from featpipe.encoders.builtin import space_name
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import UnreadableDictionary
from featpipe.store import Writer, open_reader
from featpipe.store.import_vectors import Import
from featpipe.store.import_vectors import import_vectors as store_vectors
from featpipe.store.rewrite import Merge, merge_dictionaries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.store import Reader

_BLOCK = 8192


def merge_caches(sources: Sequence[str | Path], output: str | Path) -> Merge:
    """Write the union of ``sources`` to ``output``, which must not exist.

    What is forgotten in one source is not taken from it.

    Raises:
        DictionaryError: ``output`` exists, or a table has another schema in another file.
        UnreadableDictionary: a source that is damaged or not ours.
        WriteFailed: disk full ...; ``output`` is removed then.

    """
    merged = merge_dictionaries(
        sources,
        output,
        leave_out=lambda name: name == tables.PLACES or name.startswith("terms/"),
        pick_of=lambda reader: Forgotten(reader).pick,
    )
    with Writer.open(output) as writer:
        for source in sources:
            with open_reader(source) as reader:
                for names in _term_tables(reader):
                    _take_terms(reader, names, Path(output), writer)
        complete(writer)
    return merged


def _term_tables(reader: Reader) -> Iterator[TermTables]:
    for name in reader.tables():
        if name.startswith("terms/") and name.endswith("/units"):
            yield TermTables(name.removesuffix("/units") + "/vocabulary", name)


def _take_terms(reader: Reader, names: TermTables, output: Path, writer: Writer) -> None:
    vocabulary, units = reader.table(names.vocabulary), reader.table(names.units)
    specs = {names.vocabulary: vocabulary.spec, names.units: units.spec}
    forgotten = Forgotten(reader)
    rows = forgotten.kept_rows(vocabulary)
    terms = TermWriter(output, writer, names, specs)
    new_ids = terms.ids_of(Texts(*vocabulary.ragged_many("term", rows)))
    old_ids = np.asarray(vocabulary.gather("id", rows))
    translated = np.zeros(int(old_ids.max(initial=0)) + 1, np.uint32)  # by old id
    translated[old_ids] = new_ids
    target = writer.table(names.units, units.spec)
    for start in range(0, units.n_rows, _BLOCK):
        block = forgotten.kept(units, np.arange(start, min(start + _BLOCK, units.n_rows)))
        ids, lengths = units.ragged_many("ids", block)
        target.append({"keys": units.gather("keys", block), "ids": (translated[ids], lengths)})
    writer.commit()


def import_vectors(
    source: str | Path, cache: str | Path, *, group: str = "word_emb", name: str | None = None
) -> Import:
    """Append every vector below ``group`` of a file with one dataset per text to a space.

    The weights that made the vectors are unknown, so the fingerprint covers the file's bytes: the
    space is never mistaken for a model's.

    Raises:
        UnreadableDictionary: no such file, not HDF5, or without such a group.
        DictionaryLocked: another process writes the cache.

    """
    source = Path(source)
    try:
        content = hash_file(source)
    except OSError as error:
        raise UnreadableDictionary(f"{source} cannot be read: {error.strerror}") from error
    spec: Mapping[str, object] = {"feature": "imported", "file": content, "group": group}
    fingerprint = fingerprint_of(spec)
    return store_vectors(
        source,
        cache,
        table=tables.space_table(space_name(name or source.stem), fingerprint),
        group=group,
        attributes=tables.identity(spec, fingerprint),
    )
