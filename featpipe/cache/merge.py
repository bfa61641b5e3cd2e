"""Rows of other files in a cache, without encoding anything again: merged caches, old vectors.

Vectors, texts, documents and entities are keyed by content, so the store merges them. Term ids are
numbers of one file's vocabulary: they are translated into those of the merged one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from featpipe.cache import tables
from featpipe.cache.derived import complete
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.repair import all_of
from featpipe.cache.texts import Texts
from featpipe.cache.write import TermTables, TermWriter
from featpipe.documents import hash_file
from featpipe.encoders.builtin import space_name
from featpipe.encoders.spec import fingerprint_of
from featpipe.errors import UnreadableDictionary
from featpipe.store import Writer, open_reader
from featpipe.store.import_vectors import Import
from featpipe.store.import_vectors import import_vectors as store_vectors
from featpipe.store.rewrite import Merge, merge_dictionaries, sound_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from featpipe.store import Reader, TableReader


def merge_caches(sources: Sequence[str | Path], output: str | Path) -> Merge:
    """Write the union of ``sources`` to ``output``, which must not exist.

    What is forgotten in one source is not taken from it. Damaged rows are left out and counted,
    and with a term the texts that hold it.

    Raises:
        DictionaryError: ``output`` exists, or a table has another schema in another file.
        UnreadableDictionary: a source that is damaged or not ours.
        WriteFailed: disk full ... With any error, and where the process is killed, there is no
            ``output``.

    """
    n_damaged = 0

    def add_terms(writer: Writer) -> None:
        nonlocal n_damaged
        for source in sources:
            with open_reader(source) as reader:
                for names in _term_tables(reader):
                    n_damaged += _take_terms(reader, names, writer)
        complete(writer)

    merged = merge_dictionaries(
        sources,
        output,
        leave_out=lambda name: name == tables.PLACES or name.startswith("terms/"),
        pick_of=lambda reader: Forgotten(reader).pick,
        complete=add_terms,
    )
    return replace(merged, n_damaged=merged.n_damaged + n_damaged)


def _term_tables(reader: Reader) -> Iterator[TermTables]:
    for name in reader.tables():
        if name.startswith("terms/") and name.endswith("/units"):
            yield TermTables(name.removesuffix("/units") + "/vocabulary", name)


def _take_terms(reader: Reader, names: TermTables, writer: Writer) -> int:
    """Append the terms of one source; how many rows were left out, damaged or of a lost term."""
    vocabulary, units = reader.table(names.vocabulary), reader.table(names.units)
    specs = {names.vocabulary: vocabulary.spec, names.units: units.spec}
    forgotten = Forgotten(reader)
    sound = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in sound_blocks(vocabulary))])
    n_lost = n_left_out = vocabulary.n_rows - len(sound)
    rows = forgotten.kept(vocabulary, sound)
    terms = TermWriter(writer.path, writer, names, specs)
    new_ids = terms.ids_of(Texts(*vocabulary.ragged_many("term", rows)))
    old_ids = np.asarray(vocabulary.gather("id", rows))
    translated = np.zeros(int(old_ids.max(initial=0)) + 1, np.uint32)  # by old id
    translated[old_ids] = new_ids
    target = writer.table(names.units, units.spec)
    for block, n_damaged in sound_blocks(units):
        kept = forgotten.kept(units, block)
        if n_lost:
            is_whole = all_of(*_are_known(units, kept, old_ids))
            n_left_out += int((~is_whole).sum())
            kept = kept[is_whole]
        ids, lengths = units.ragged_many("ids", kept)
        target.append({"keys": units.gather("keys", kept), "ids": (translated[ids], lengths)})
        n_left_out += n_damaged
    writer.commit()
    return n_left_out


def _are_known(
    units: TableReader, rows: NDArray[np.int64], ids: NDArray[np.generic]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Of each term of some units whether its id is one of these; how many terms each has."""
    values, lengths = units.ragged_many("ids", rows)
    return np.isin(values, ids), lengths


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
