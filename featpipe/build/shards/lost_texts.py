"""Texts that a shard of a folder has lost, put back from the documents that hold them.

Where there is an outbox, it still has them. It may be removed when all shards are done, and a
folder that was made narrower has none: then one is made anew, of the documents that lack a text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.publish import LocalFolder
from featpipe.build.shards.job import Seat
from featpipe.build.shards.outbox import write_outbox
from featpipe.build.shards.work_file import discard, work_file
from featpipe.cache import tables
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.levels import blocks_of, logged_bits
from featpipe.cache.repair_folder import have_done_again
from featpipe.cache.texts import LEVEL_BIT
from featpipe.store import FolderReader, Reader
from featpipe.store.folder_layout import OUTBOX, FolderLayout, shard_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.cache.repair_folder import FolderRepair


def put_back_texts(repaired: FolderRepair) -> FolderRepair:
    """Have what shards lost encoded again where no outbox has it; what this adds to the repair.

    Killed at any point, repairing the folder again does the rest.

    Raises:
        UnreadableDictionary: a file of the folder.
        DictionaryLocked, WriteFailed: what was put back before stays so.
    """
    layout = FolderLayout.read(repaired.path)
    again, made = list(repaired.again), []
    for part, rows, shards in _lacking(layout):
        # First: reports tell of outboxes by their names, which were used before.
        for shard in shards:
            have_done_again(layout, layout.shard_file(shard), again)
        folder, name = LocalFolder(layout.path), f"{OUTBOX}/{part.name}"
        with work_file(folder, Seat(), name) as work:
            write_outbox(part, layout.bits, work, rows)
            folder.publish(work, name)
            discard(work)
        made.append(layout.path / name)
    return replace(repaired, again=tuple(dict.fromkeys(again)), put_back=tuple(made))


def _lacking(layout: FolderLayout) -> list[tuple[Path, NDArray[np.int64], list[int]]]:
    """Parts without an outbox: the rows of documents whose texts shards lack, and these shards."""
    parts = [p for p in layout.part_files() if not (layout.path / OUTBOX / p.name).exists()]
    if not parts:
        return []
    with FolderReader(layout.path) as reader:
        forgotten, bits = Forgotten(reader), logged_bits(reader)
        found = [(part, *_of_part(part, reader, forgotten, bits)) for part in parts]
    return [(part, rows, shards) for part, rows, shards in found if len(rows)]


def _of_part(
    part: Path, reader: FolderReader, forgotten: Forgotten, bits: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], list[int]]:
    lacking, shards = [np.zeros(0, np.int64)], set[int]()
    with Reader(part) as own:
        if tables.DOCUMENTS not in own:
            return lacking[0], []
        documents = own.table(tables.DOCUMENTS)
        for level, bit in LEVEL_BIT.items():
            for rows in blocks_of(documents, f"{level}_keys"):
                kept = forgotten.kept(documents, rows)
                values, lengths = documents.ragged_many(f"{level}_keys", kept)
                keys = np.asarray(values, np.uint8).reshape(-1, 16)
                is_lost = np.ones(len(keys), np.bool_)
                if tables.TEXTS in reader:
                    at = reader.table(tables.TEXTS).find(keys)
                    is_lost = (at < 0) | (np.append(bits, 0)[at] & bit == 0)
                lacking.append(np.repeat(kept, lengths)[is_lost])
                shards.update(shard_of(keys[is_lost], reader.layout.bits).tolist())
    return np.unique(np.concatenate(lacking)), sorted(shards)
