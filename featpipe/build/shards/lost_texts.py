"""Texts and features that a shard of a folder has lost, to be put back or computed again.

A file may have lost rows, or be gone without a trace, as an addition that a copy lacks. Where there
is an outbox, it still has the texts. It may be removed when all shards are done, and a folder that
was made narrower has none: then one is made anew, of the documents that lack a text. Vectors and
entities that are gone alone, as an addition by a further model, are those of a job that is done
and whose shard has texts without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from featpipe.build.publish import LocalFolder
from featpipe.build.shards.encode import Listing, Shard
from featpipe.build.shards.folder_plan import FolderPlan, list_spaces
from featpipe.build.shards.job import Job, JobReport, Seat
from featpipe.build.shards.outbox import write_outbox
from featpipe.build.shards.prepare import left_parts
from featpipe.build.shards.work_file import discard, work_file
from featpipe.cache import tables
from featpipe.cache.forgotten import Forgotten
from featpipe.cache.levels import blocks_of, logged_bits
from featpipe.cache.repair_folder import have_done_again
from featpipe.cache.texts import LEVEL_BIT
from featpipe.errors import UsageError
from featpipe.store import FolderReader, Reader
from featpipe.store.folder_layout import OUTBOX, PARTS, FolderLayout, shard_of
from featpipe.store.verify_folder import FolderVerification, verify_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from featpipe.cache.repair_folder import FolderRepair
    from featpipe.cache.texts import Units


def put_back_texts(repaired: FolderRepair) -> FolderRepair:
    """Have what shards lost encoded again; what this adds to the repair.

    Killed at any point, repairing the folder again does the rest.

    Raises:
        UnreadableDictionary: a file of the folder.
        DictionaryLocked, WriteFailed: what was put back before stays so.
    """
    layout = FolderLayout.read(repaired.path)
    again, made = list(repaired.again), []
    for lost in _lacking(layout):
        # First: reports tell of outboxes by their names, which were used before.
        for shard in lost.shards:
            have_done_again(layout, layout.shard_file(shard), again)
        outbox = layout.path / OUTBOX / lost.part.name
        if not outbox.exists():
            _write_outbox(layout, lost)
            made.append(outbox)
    for shard, _, _ in _lost_rows(layout):
        have_done_again(layout, layout.shard_file(shard), again)
    return replace(repaired, again=tuple(dict.fromkeys(again)), put_back=tuple(made))


def verify_with_texts(path: str | Path, *, is_deep: bool = False) -> FolderVerification:
    """As `verify_folder`; deep: documents are held against texts, and texts against features, too.

    Raises:
        UnreadableDictionary, NewerDictionary: the folder is not a cache.
    """
    found = verify_folder(path, is_deep=is_deep)
    if not is_deep or not found.is_good:
        return found
    layout = FolderLayout.read(path)
    try:
        return replace(found, problems=tuple(_lost(layout)))
    except OSError as error:  # of a report: LocalFolder reads it as it is
        reason = f"{error.filename} cannot be read: {error.strerror}"
        return replace(found, unread=(*found.unread, reason))


def _lost(layout: FolderLayout) -> Iterator[str]:
    """What is lost, for people."""
    for lost in _lacking(layout):
        yield (
            f"{lost.part}: {len(lost.rows):,} of its documents have texts that the shards lack,"
            f" and no job is left to compute; featpipe repair {layout.path}"
        )
    for shard, table, n in _lost_rows(layout):
        yield (
            f"shard {layout.shard_name(shard)}: {n:,} of its texts have no row in {table}, and no"
            f" job is left to compute it; featpipe repair {layout.path}"
        )


def require_encoded(path: str | Path) -> None:
    """Refuse a folder of which jobs are left that a copy without its outboxes could not do.

    Raises:
        UsageError: texts of documents that were read are still to be encoded.
        UnreadableDictionary, NewerDictionary: the folder is not a cache.
    """
    layout = FolderLayout.read(path)
    folder = LocalFolder(layout.path)
    left = left_parts(folder, folder.list(PARTS))
    if left or _Reports(layout, folder).are_any_left():
        raise UsageError(
            f"{layout.path} has texts that are still to be encoded",
            hint=f"build it to the end first: featpipe shard status {layout.path}",
        )


class _Lost(NamedTuple):
    """A part, the rows of its documents whose texts are lost, and the shards that lack these."""

    part: Path
    rows: NDArray[np.int64]
    shards: list[int]


def _write_outbox(layout: FolderLayout, lost: _Lost) -> None:
    folder, name = LocalFolder(layout.path), f"{OUTBOX}/{lost.part.name}"
    with work_file(folder, Seat(), name) as work:
        write_outbox(lost.part, layout.bits, work, lost.rows)
        folder.publish(work, name)
        discard(work)


def _lacking(layout: FolderLayout) -> list[_Lost]:
    """Of each part that lacks some; texts that jobs are still to compute are not lost."""
    folder = LocalFolder(layout.path)
    parts = {f"{PARTS}/{part.name}": part for part in layout.part_files()}
    left = left_parts(folder, list(parts))
    reports = _Reports(layout, folder)
    found = []
    with FolderReader(layout.path) as reader:
        forgotten, bits = Forgotten(reader), logged_bits(reader)
        for name in parts.keys() - left:
            rows, shards = _of_part(parts[name], reader, forgotten, bits)
            is_lost = np.isin(shards, reports.done(parts[name], np.unique(shards).tolist()))
            if is_lost.any():
                lacking = np.unique(shards[is_lost]).tolist()
                found.append(_Lost(parts[name], np.unique(rows[is_lost]), lacking))
    return sorted(found, key=lambda lost: lost.part)


def _lost_rows(layout: FolderLayout) -> Iterator[tuple[int, str, int]]:
    """Shard, table and number of the rows that are gone of jobs that are done."""
    folder = LocalFolder(layout.path)
    listing = Listing.of(folder)
    plan = FolderPlan.read(folder)
    with FolderReader(layout.path) as reader:
        forgotten = Forgotten(reader)
        for space in ("", *list_spaces(folder)):
            mine = plan.for_space(folder, space)
            for number in range(layout.n_shards):
                shard = Shard(folder, mine, Job("encode", number, "", space), listing)
                if (report := shard.done()) is None:
                    continue
                for table in (m.table for m in (mine.encoder, mine.tagger) if m is not None):
                    failed = (f.n_units for f in report.run.failed if f.table == table)
                    n = sum(_n_kept(some, reader, forgotten) for some in shard.lacking(table))
                    if (n_lost := n - sum(failed)) > 0:
                        yield number, table, n_lost


def _n_kept(units: Units, reader: FolderReader, forgotten: Forgotten) -> int:
    """How many units are of documents that are kept."""
    texts = reader.table(tables.TEXTS)
    return len(forgotten.kept(texts, texts.find(units.keys)))


class _Reports:
    """Tells which shards have computed the texts of a part, by the reports of their jobs."""

    def __init__(self, layout: FolderLayout, folder: LocalFolder) -> None:
        self._layout, self._folder = layout, folder
        self._listing = Listing.of(folder)
        self._covered: dict[int, set[str]] = {}

    def done(self, part: Path, shards: Sequence[int]) -> list[int]:
        """Of these shards those in which no job is left on the part's outbox, if it has one."""
        name = f"{OUTBOX}/{part.name}"
        if name not in self._listing.outboxes:
            return list(shards)
        return [shard for shard in shards if name in self._covered_in(shard)]

    def are_any_left(self) -> bool:
        """Whether an outbox has texts that a shard has not computed."""
        outboxes = set(self._listing.outboxes)
        return any(outboxes - self._covered_in(shard) for shard in range(self._layout.n_shards))

    def _covered_in(self, shard: int) -> set[str]:
        if shard not in self._covered:
            stem = f"encode-{self._layout.shard_name(shard)}"
            covered = self._covered[shard] = set()
            for names in self._listing.reports_below(stem).values():
                _, facts = JobReport.from_json(self._folder.read(names[-1]))
                covered.update(cast("list[str]", facts["outboxes"]))
        return self._covered[shard]


def _of_part(
    part: Path, reader: FolderReader, forgotten: Forgotten, bits: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each place of a text that is lacking, the document's row and the text's shard."""
    lacking, shards = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    with Reader(part) as own:
        if tables.DOCUMENTS not in own:
            return lacking[0], shards[0]
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
                shards.append(shard_of(keys[is_lost], reader.layout.bits))
    return np.concatenate(lacking), np.concatenate(shards)
