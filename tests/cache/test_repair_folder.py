"""A repaired folder cache and a build give what an undamaged one holds, whichever file was hit."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flipped_bits import damage
from folder_cache import EXACT, Pair, build_folder

from featpipe import Cache
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Seat
from featpipe.build.shards.folder_plan import Models
from featpipe.build.shards.lost_texts import put_back_texts, verify_with_texts
from featpipe.cache.compact_folder import compact_folder
from featpipe.cache.merge_folder import narrow_folder
from featpipe.cache.repair_folder import repair_folder
from featpipe.errors import DictionaryError, DictionaryLocked, UnreadableDictionary
from featpipe.store import Reader, Writer, backup, open_reader
from featpipe.store.backup_folder import back_up_folder
from featpipe.store.folder_layout import FolderLayout


@pytest.fixture
def own(pair: Pair, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(pair.folder, tmp_path / "own.fp"))


def rows_by_key(cache: Path) -> dict[str, dict[bytes, bytes]]:
    """Texts and vectors."""
    found = {}
    with open_reader(cache) as reader:
        for name in reader.tables():
            if name == "texts" or name.startswith("embeddings/"):
                table = reader.table(name)
                keys = [key.tobytes() for key in np.asarray(table.column("keys"))]
                get = table.ragged_of if name == "texts" else table.get
                rows = (get(table.spec.columns[0].name, key) for key in keys)
                found[name] = {
                    k: r.tobytes() for k, r in zip(keys, rows, strict=True) if r is not None
                }
    return found


def levels_by_key(cache: Path) -> dict[bytes, int]:
    """As the files of the shards tell, without the documents: what a further model is given."""
    found: dict[bytes, int] = {}
    for files in FolderLayout.read(cache).shard_files().values():
        for file in files:
            with Reader(file) as reader:
                log = reader.table("levels")
                pairs = zip(np.asarray(log.column("text")), log.column("bits"), strict=True)
                for key, bits in pairs:
                    found[key.tobytes()] = found.get(key.tobytes(), 0) | int(bits)
    return found


@pytest.mark.parametrize("hit", ["text", "vectors"])
def test_what_a_folder_of_two_spaces_lost_is_computed_again(
    own: Path, pair: Pair, hit: str
) -> None:
    pooled = Models(pair.encoder, "none", replace(EXACT, pooling="cls"))
    pipeline = FolderPipeline(own, pooled, seat=Seat(("cpu",), threads=1))
    pipeline.encode_stored()
    before = rows_by_key(own)
    files = FolderLayout.read(own).shard_files()[1]
    if hit == "text":
        damage(files[0], "texts", "text")
    else:  # of the further space, which has the last file
        with Reader(files[-1]) as reader:
            [table] = [name for name in reader.tables() if name.startswith("embeddings/")]
        damage(files[-1], table, "vectors")
    assert len(repair_folder(own).again) == 1
    build_folder(own, pair.documents, pair.models)
    pipeline.encode_stored()
    assert rows_by_key(own) == before


def test_a_missing_file_with_additions_is_done_again(own: Path, pair: Pair) -> None:
    layout, before = FolderLayout.read(own), rows_by_key(own)
    layout.shard_file(1).unlink()
    with pytest.raises(UnreadableDictionary, match=r"1\.h5 is missing[\s\S]*featpipe repair"):
        open_reader(own)
    done = repair_folder(own)
    assert (done.missing, done.again) == ((layout.shard_file(1),),) * 2
    build_folder(own, pair.documents, pair.models)
    assert rows_by_key(own) == before
    assert repair_folder(own).is_whole


def test_an_addition_that_is_gone_without_a_trace_is_named_and_done_again(
    own: Path, pair: Pair
) -> None:
    before, units = rows_by_key(own), levels_by_key(own)
    assert verify_with_texts(own, is_deep=True).is_good
    FolderLayout.read(own).shard_files()[1][-1].unlink()  # as in a copy that lacks it
    found = verify_with_texts(own, is_deep=True)
    assert not found.is_good
    assert "documents have texts that the shards lack" in str(found)
    done = put_back_texts(repair_folder(own))
    assert not done.is_whole
    assert "1.h5: its job is to be done again" in str(done)
    assert put_back_texts(repair_folder(own)).is_whole
    build_folder(own, pair.documents, pair.models)
    assert (rows_by_key(own), levels_by_key(own)) == (before, units)
    assert verify_with_texts(own, is_deep=True).is_good


def test_an_addition_of_a_further_model_that_is_gone_is_named_and_computed_again(
    own: Path, pair: Pair
) -> None:
    pooled = Models(pair.encoder, "none", replace(EXACT, pooling="cls"))
    pipeline = FolderPipeline(own, pooled, seat=Seat(("cpu",), threads=1))
    pipeline.encode_stored()
    before = rows_by_key(own)
    assert verify_with_texts(own, is_deep=True).is_good
    FolderLayout.read(own).shard_files()[1][-1].unlink()  # as in a copy that lacks it
    found = verify_with_texts(own, is_deep=True)
    assert not found.is_good
    assert "shard 1: " in str(found)
    assert "of its texts have no row in embeddings/" in str(found)
    assert "1.h5: its job is to be done again" in str(put_back_texts(repair_folder(own)))
    assert put_back_texts(repair_folder(own)).is_whole
    pipeline.encode_stored()
    assert rows_by_key(own) == before
    assert verify_with_texts(own, is_deep=True).is_good


def test_a_file_that_was_copied_in_part_is_done_again(own: Path, pair: Pair) -> None:
    layout, before = FolderLayout.read(own), rows_by_key(own)
    file = layout.shard_file(1)
    os.truncate(file, file.stat().st_size // 2)  # some tables are gone without a trace
    done = repair_folder(own)
    assert not done.is_whole
    assert done.again == (file,)
    assert "/: its header cannot be read, so tables may be missing" in str(done)
    build_folder(own, pair.documents, pair.models)
    assert rows_by_key(own) == before
    with Cache.open(own) as ours, Cache.open(pair.folder) as theirs:
        assert ours.search("违约金", 50) == theirs.search("违约金", 50)


def test_of_an_empty_file_it_is_said_which_one_is_to_be_moved(own: Path) -> None:
    file = FolderLayout.read(own).shard_file(2)
    file.write_bytes(b"")
    with pytest.raises(UnreadableDictionary, match=r"shards/2\.h5 is empty[\s\S]*move these files"):
        repair_folder(own)


def test_names_that_killed_processes_left_to_published_files_are_removed(own: Path) -> None:
    """Each was killed between the link to the final name and the end of the first one."""
    layout, before = FolderLayout.read(own), rows_by_key(own)
    left = [own / ".work" / "shards-0.h5", own / ".forget-abc" / "part.h5"]
    for name, file in zip(left, (layout.shard_file(0), layout.part_files()[0]), strict=True):
        name.parent.mkdir(exist_ok=True)
        name.hardlink_to(file)
    compact_folder(own)
    assert not any(name.exists() for name in left)
    n_files = len(layout.shard_files()[1])
    layout.shard_file(1, n_files).hardlink_to(layout.shard_file(1, n_files - 1))
    assert "under a second name; featpipe repair" in str(verify_with_texts(own))
    assert repair_folder(own).is_whole
    assert len(layout.shard_files()[1]) == n_files
    assert verify_with_texts(own, is_deep=True).is_good
    compact_folder(own)
    assert rows_by_key(own) == before


def test_repairing_that_ends_early_forgets_no_loss(own: Path, pair: Pair) -> None:
    layout, before = FolderLayout.read(own), rows_by_key(own)
    damage(layout.shard_file(0), "texts", "text")
    with Writer.open(layout.shard_file(2)), pytest.raises(DictionaryLocked):
        repair_folder(own)
    assert repair_folder(own).is_whole
    build_folder(own, pair.documents, pair.models)
    assert rows_by_key(own) == before


def test_a_damaged_folder_is_neither_compacted_nor_backed_up_before_it_is_repaired(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lost rows would not be computed again: the reports call them done."""
    monkeypatch.setattr(backup, "_clone", lambda *_: None)
    damage(FolderLayout.read(own).shard_file(1), "texts", "text")
    with pytest.raises(
        DictionaryError, match=r"1\.h5 has a row[\s\S]*featpipe repair \S*own\.fp\Z"
    ):
        compact_folder(own)
    with pytest.raises(
        DictionaryError, match=r"1\.h5 has a row[\s\S]*featpipe repair \S*own\.fp\Z"
    ):
        back_up_folder(own, own.with_name("copy.fp"))
    repair_folder(own)
    compact_folder(own)
    back_up_folder(own, own.with_name("copy.fp"))


@pytest.mark.parametrize("hit", ["text", "levels", "file"])
@pytest.mark.parametrize("without_outboxes", ["narrowed", "removed"])
def test_a_folder_without_outboxes_gets_lost_texts_from_its_documents(
    own: Path, pair: Pair, hit: str, without_outboxes: str
) -> None:
    before, units = rows_by_key(own), levels_by_key(own)
    if without_outboxes == "narrowed":
        narrow_folder(own, own.with_name("narrow.fp"), 2)
        own = own.with_name("narrow.fp")
    else:
        for name in ("outbox", "lists"):
            shutil.rmtree(own / name)
    file = FolderLayout.read(own).shard_files()[1][-1]
    if hit == "file":
        file.unlink()
    else:
        damage(file, *(("texts", "text") if hit == "text" else ("levels", "bits")))
    done = repair_folder(own)
    assert not put_back_texts(done).is_whole
    assert put_back_texts(repair_folder(own)).is_whole
    # A document that has all its texts is enough to have them encoded.
    build_folder(
        own, pair.documents / "00.txt", pair.models, n_shards=1 << FolderLayout.read(own).bits
    )
    assert (rows_by_key(own), levels_by_key(own)) == (before, units)
