"""A folder cache answers as the file does that one machine makes of the same documents."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from building import build, stored_terms
from flipped_bits import flip, offset_of
from folder_cache import EXACT, SHARED, Pair, build_folder

from featpipe import Cache
from featpipe.build.shards.lost_texts import verify_with_texts
from featpipe.cache import compact_folder as compact_folder_module
from featpipe.cache.compact_folder import compact_folder
from featpipe.cache.forgotten import compact_cache, without_forgotten
from featpipe.cache.levels import level_bits
from featpipe.cache.merge import merge_caches
from featpipe.cache.merge_folder import narrow_folder
from featpipe.cache.repair_folder import repair_folder
from featpipe.cache.search import Hit, SentenceSearch
from featpipe.cache.summary import read_runs, summarise
from featpipe.cache.texts import split_keys
from featpipe.errors import (
    DictionaryChanged,
    DictionaryError,
    UnreadableDictionary,
    UsageError,
    WriteFailed,
)
from featpipe.settings import LEVELS
from featpipe.store import Reader, Writer, backup_folder, open_reader
from featpipe.store.backup_folder import back_up_folder
from featpipe.store.export import export_npy
from featpipe.store.folder_layout import FolderLayout
from featpipe.store.rewrite import equal_rows
from featpipe.store.verify_folder import verify_folder

if TYPE_CHECKING:
    from featpipe.lexical.backend import Backend
    from featpipe.store.backup import Backup
    from featpipe.store.rewrite import Compaction

QUERIES = ("合同金额为万元", "违约方承担违约金", "深圳科技有限公司", "没有这样的词语xyz", "")


@pytest.fixture
def one(pair: Pair) -> Iterator[Cache]:
    with Cache.open(pair.file) as cache:
        yield cache


@pytest.fixture
def folder(pair: Pair) -> Iterator[Cache]:
    with Cache.open(pair.folder) as cache:
        yield cache


def test_it_has_parts_shards_and_additions(pair: Pair) -> None:
    layout = FolderLayout.read(pair.folder)
    assert len({file.name.rpartition("-")[0] for file in layout.part_files()}) == 2  # runs
    assert [len(files) for files in layout.shard_files().values()] == [2] * 4


def test_vectors_and_texts_are_those_of_the_file(one: Cache, folder: Cache) -> None:
    assert folder.spaces() == one.spaces()
    ours, theirs = folder.dictionary(), one.dictionary()
    assert (len(ours), ours.dim, ours.name, ours.spec) == (
        len(theirs),
        theirs.dim,
        theirs.name,
        theirs.spec,
    )
    texts = sorted(theirs.texts())
    assert sorted(ours.texts()) == texts
    for text in texts:
        assert text in ours
        assert ours[text].tobytes() == theirs[text].tobytes()
    asked = ["absent", *texts, SHARED]
    for a, b in zip(ours.lookup(asked), theirs.lookup(asked), strict=True):
        assert a.tobytes() == b.tobytes()
    for level in LEVELS:
        of_level = one.dictionary(level=level).texts()
        assert sorted(folder.dictionary(level=level).texts()) == sorted(of_level)


def test_blocks_hold_each_vector_once(one: Cache, folder: Cache) -> None:
    for level in (None, "sentence"):
        ours, theirs = folder.dictionary(level=level), one.dictionary(level=level)
        rows = np.concatenate([rows for rows, _ in ours.blocks()])
        vectors = np.concatenate([vectors for _, vectors in ours.blocks()])
        assert (np.diff(rows) > 0).all()
        by_key = dict(zip(map(bytes, ours.keys()), map(bytes, vectors), strict=True))
        others = np.concatenate([vectors for _, vectors in theirs.blocks()])
        assert by_key == dict(zip(map(bytes, theirs.keys()), map(bytes, others), strict=True))


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_nearest_texts_have_the_scores_of_the_file(one: Cache, folder: Cache, metric: str) -> None:
    ours, theirs = folder.dictionary(level="sentence"), one.dictionary(level="sentence")
    queries = np.stack([np.asarray(theirs[text], np.float32) for text in list(theirs)[:7]])
    for k in (1, 10, 1000):
        found = ours.nearest(queries, k, metric=metric)
        expected = theirs.nearest(queries, k, metric=metric)
        assert [[hit.score for hit in hits] for hits in found] == [
            [hit.score for hit in hits] for hits in expected
        ]
    assert [set(hits) for hits in found] == [set(hits) for hits in expected]


def test_documents_are_those_of_the_file(one: Cache, folder: Cache) -> None:
    expected = {document.path: document for document in one.documents()}
    found = {document.path: document for document in folder.documents()}
    assert found.keys() == expected.keys()
    for path, document in found.items():
        other = expected[path]
        assert (document.id, document.key, document.text) == (other.id, other.key, other.text)
        assert document.entities() == other.entities()
        for level in LEVELS:
            assert document.units(level) == other.units(level)
            assert np.array_equal(document.keys(level), other.keys(level))
        assert folder.document(document.id).path == path
        content = folder.find_content(str(document.meta["bytes_hash"]))
        assert content is not None
        assert content.text == document.text
    assert any(document.entities() for document in found.values())


def test_it_is_summarised_as_the_file(one: Cache, folder: Cache) -> None:
    ours, theirs = (summarise(cache).as_dict() for cache in (folder, one))
    assert ours.pop("file_bytes") > 0
    for summary in (ours, theirs):
        for name in ("path", "runs", "file_bytes"):
            summary.pop(name, None)
    assert ours == theirs
    assert read_runs(folder)


def in_one_order(hits: list[Hit]) -> list[Hit]:
    """Equal scores stand in the order of rows, which is that in which documents were read."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.path, hit.start))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_searching_has_the_scores_of_the_file(one: Cache, folder: Cache, backend: Backend) -> None:
    if backend == "numba":
        pytest.importorskip("numba")
    ours, theirs = (SentenceSearch(cache, backend=backend) for cache in (folder, one))
    assert ours.n_sentences == theirs.n_sentences
    for query in QUERIES:
        for level in ("sentence", "document"):
            found = (search.search(query, 100, level=level) for search in (ours, theirs))
            assert in_one_order(next(found)) == in_one_order(next(found))


def test_hybrid_search_has_the_scores_of_the_file(one: Cache, folder: Cache) -> None:
    found = []
    for cache in (folder, one):
        dictionary = cache.dictionary()
        vector = np.asarray(dictionary[SHARED], np.float32)
        search = SentenceSearch(cache)
        hits = (search.search_hybrid(q, vector, dictionary, 100) for q in QUERIES)
        found.append([in_one_order(some) for some in hits])
    assert found[0] == found[1]


def test_kept_postings_of_a_folder_are_used_again(pair: Pair) -> None:
    with Cache.open(pair.folder) as cache:
        hits = cache.search(QUERIES[0])
    with Cache.open(pair.folder) as cache:
        assert cache.search(QUERIES[0]) == hits


def test_a_cache_travels_as_its_path(folder: Cache) -> None:
    with pickle.loads(pickle.dumps(folder)) as other:  # noqa: S301 - of this test
        assert other.path == folder.path
        assert SHARED in other.dictionary()


@pytest.fixture
def own(pair: Pair, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(pair.folder, tmp_path / "own.fp"))


@pytest.fixture
def own_file(pair: Pair, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(pair.file, tmp_path / "own.h5"))


def equal_but_for_runs(ours: Path, theirs: Path) -> bool:
    """Whether two caches hold the same rows, those of runs and the marks of logs aside."""
    with open_reader(ours) as a, open_reader(theirs) as b:
        names = [n for n in b.tables() if b.table(n).spec.keyed and n != "places"]
        assert [n for n in a.tables() if n in names] == names
        for name in names:
            one, other = a.table(name), b.table(name)
            if name.endswith("/vocabulary"):
                assert set(split_keys(one.column("keys"))) == set(split_keys(other.column("keys")))
                continue
            rows = one.find(np.asarray(other.column("keys")))
            assert one.n_rows == other.n_rows
            assert (rows >= 0).all()
            if not name.endswith("/units"):
                assert equal_rows(one, rows, other, np.arange(other.n_rows)).all()
    with Cache.open(ours) as cache, Cache.open(theirs) as other_cache:
        assert stored_terms(cache) == stored_terms(other_cache)
        for level in LEVELS:
            texts = sorted(cache.dictionary(level=level).texts())
            assert texts == sorted(other_cache.dictionary(level=level).texts())
    return True


def test_merged_into_one_file_it_is_that_of_one_machine(pair: Pair, tmp_path: Path) -> None:
    merged = merge_caches([pair.folder], tmp_path / "merged.h5")
    assert not merged.conflicts
    assert equal_but_for_runs(tmp_path / "merged.h5", pair.file)
    both = merge_caches([pair.file, pair.folder], tmp_path / "both.h5")
    assert not both.conflicts
    assert equal_but_for_runs(tmp_path / "both.h5", pair.file)
    again = build(tmp_path / "merged.h5", pair.documents, pair.encoder, encoder=EXACT)
    assert again.n_encoded == 0


@pytest.mark.parametrize("n_shards", [1, 2])
def test_joined_into_fewer_shards_it_holds_the_same(
    pair: Pair, tmp_path: Path, n_shards: int
) -> None:
    narrow_folder(pair.folder, tmp_path / "narrow.fp", n_shards)
    assert len(FolderLayout.read(tmp_path / "narrow.fp").shard_files()) == n_shards
    assert equal_but_for_runs(tmp_path / "narrow.fp", pair.file)
    assert verify_folder(tmp_path / "narrow.fp", is_deep=True, asks_libhdf5=False).is_good


def test_it_cannot_be_joined_into_more_shards_or_over_another(pair: Pair, tmp_path: Path) -> None:
    for n_shards in (0, 3, 4, 8):
        with pytest.raises(UsageError, match="4 shards"):
            narrow_folder(pair.folder, tmp_path / "narrow.fp", n_shards)
    (tmp_path / "narrow.fp").mkdir()
    with pytest.raises(DictionaryError, match="exists"):
        narrow_folder(pair.folder, tmp_path / "narrow.fp", 2)


def test_forgotten_documents_are_gone_as_from_the_file(own: Path, own_file: Path) -> None:
    names = ["docs/03.txt", "docs/04.txt", "docs/12.txt"]
    for path in (own, own_file):
        with Cache.open(path) as cache:
            assert len(cache.forget(*names)) == 3
            assert cache.find_document(names[0]) is None
    with Cache.open(own) as ours, Cache.open(own_file) as theirs:
        assert len(list(ours.documents())) == 17
        assert [d.path for d in ours.documents()] == [d.path for d in theirs.documents()]
        assert sorted(ours.dictionary()) == sorted(theirs.dictionary())
        assert ours.search(QUERIES[0], 50) == theirs.search(QUERIES[0], 50)
    (own / ".work").mkdir(exist_ok=True)
    (own / ".work" / "parts-RUN-0000.h5").write_bytes(b"")  # of a job that was killed and dropped
    done = compact_folder(own)
    assert sum(file.n_unwanted for file in done.files) > 0
    assert "left in outbox and lists and .work; remove these folders when" in str(done)
    compact_cache(own_file)
    assert equal_but_for_runs(own, own_file)
    with open_reader(own) as a, open_reader(own_file) as b:
        assert level_bits_by_text(a) == level_bits_by_text(b)
    assert "第12号合同".encode() not in b"".join(
        file.read_bytes() for kind in ("parts", "shards") for file in (own / kind).iterdir()
    )
    assert verify_folder(own, is_deep=True, asks_libhdf5=False).is_good


def level_bits_by_text(reader: Reader) -> dict[bytes, int]:
    keys = split_keys(reader.table("texts").column("keys"))
    return dict(zip(keys, level_bits(reader).tolist(), strict=True))


def test_many_additions_of_a_shard_become_one_file(own: Path, pair: Pair) -> None:
    layout = FolderLayout.read(own)
    base, addition = layout.shard_files()[2]
    for number in range(2, 10):
        Writer.open(layout.shard_file(2, number)).close()
    done = compact_folder(own)
    assert done.n_folded == 9
    assert layout.shard_files()[2] == [base]
    assert layout.shard_files()[1] == [layout.shard_file(1), layout.shard_file(1, 1)]
    assert equal_but_for_runs(own, pair.file)
    assert not addition.exists()


def test_a_forgotten_document_comes_back_whole_though_its_texts_were_freed_before_it(
    own: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact = compact_folder_module._compact

    def killed(file: Path, *rest: Any) -> Compaction:
        if file.parent.name == "parts":
            raise KeyboardInterrupt
        return compact(file, *rest)

    with Cache.open(own) as cache:
        cache.forget("docs/03.txt")
    monkeypatch.setattr(compact_folder_module, "_compact", killed)
    with pytest.raises(KeyboardInterrupt):
        compact_folder(own)
    build_folder(own, pair.documents, pair.models, n_parts=1)
    with Cache.open(own) as ours, Cache.open(pair.file) as theirs:
        assert len(list(ours.documents())) == 20
        assert sorted(ours.dictionary()) == sorted(theirs.dictionary())
        scores = [[hit.score for hit in c.search("第3号合同", 50)] for c in (ours, theirs)]
        assert scores[0] == scores[1]


def test_a_compaction_frees_no_text_of_a_document_that_comes_in_meanwhile(
    own: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_levels = compact_folder_module._levels_by_file

    def build_meanwhile(*args: Any) -> object:
        levels = find_levels(*args)
        build_folder(own, pair.documents, pair.models, n_parts=1)
        return levels

    with Cache.open(own) as cache:
        cache.forget("docs/03.txt")
    with monkeypatch.context() as patch:
        patch.setattr(compact_folder_module, "_levels_by_file", build_meanwhile)
        with pytest.raises(DictionaryChanged, match="no jobs run"):
            compact_folder(own)
    compact_folder(own)
    assert verify_with_texts(own, is_deep=True).is_good
    with Cache.open(own) as ours, Cache.open(pair.file) as theirs:
        assert sorted(ours.dictionary()) == sorted(theirs.dictionary())


def test_an_open_cache_searches_by_the_ids_that_terms_have_after_a_compaction(own: Path) -> None:
    layout, aside = FolderLayout.read(own), own.parent / "aside"
    additions = [own / "shards" / f"{shard}.1.h5" for shard in range(4)]
    additions += sorted((own / "reports").glob("encode-*-0001.done"))
    aside.mkdir()
    for file in additions:
        file.rename(aside / file.name)
    with Cache.open(own) as opened:
        opened.search(QUERIES[0])
        for file in additions:  # their terms get higher ids than those it knows
            (aside / file.name).rename(file)
        before = [opened.search(query, 50) for query in QUERIES]
        for number in range(2, 10):
            Writer.open(layout.shard_file(0, number)).close()
        compact_folder(own)  # now those of shard 0 come before those of the others
        assert [opened.search(query, 50) for query in QUERIES] == before


def test_exported_tables_have_the_rows_of_the_file(pair: Pair, tmp_path: Path) -> None:
    for name, path in (("folder", pair.folder), ("one", pair.file)):
        with without_forgotten(path) as source:
            export_npy(source, tmp_path / name)
    for table in ("documents", "texts"):
        lines = [
            {
                json.dumps({k: v for k, v in json.loads(line).items() if k != "row"})
                for line in (tmp_path / name / table / "rows.jsonl").read_text().splitlines()
            }
            for name in ("folder", "one")
        ]
        assert lines[0] == lines[1]
        ends = np.load(tmp_path / "folder" / table / "text_end.npy")
        assert ends[-1] == len(np.load(tmp_path / "folder" / table / "text.npy"))
        assert (np.diff(ends.astype(np.int64)) >= 0).all()


def test_a_backup_has_every_file_and_follows_its_folder(own: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.fp"
    back_up_folder(own, copy)
    assert equal_but_for_runs(copy, own)
    names = {file.relative_to(own) for file in own.rglob("*") if file.is_file()}
    assert {file.relative_to(copy) for file in copy.rglob("*") if file.is_file()} == names
    layout = FolderLayout.read(own)
    for number in range(2, 11):
        Writer.open(layout.shard_file(2, number)).close()
    compact_folder(own)
    with Cache.open(own) as cache:
        cache.forget("docs/05.txt")
    back_up_folder(own, copy)
    assert equal_but_for_runs(copy, own)
    with Cache.open(copy) as cache:
        assert cache.find_document("docs/05.txt") is None
    [report, *_] = (own / "reports").glob("encode-1-*.done")  # as where a repair lost rows
    report.unlink()
    back_up_folder(own, copy)
    assert not (copy / "reports" / report.name).exists()
    for target in (own, tmp_path, own / "cache.json"):
        with pytest.raises(DictionaryError, match="name another folder"):
            back_up_folder(own, target)


@pytest.mark.parametrize("n_copied", [0, 3])
def test_an_interrupted_backup_is_not_taken_for_a_cache_until_it_was_gone_on_with(
    own: Path, tmp_path: Path, pair: Pair, n_copied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has documents without their texts, which no job would compute."""
    copy, back_up = tmp_path / "copy.fp", backup_folder.back_up_dictionary

    def interrupt() -> None:
        left = iter(range(n_copied))

        def back_up_some(source: Path, target: Path) -> Backup:
            if next(left, None) is None:
                raise WriteFailed("no room")
            return back_up(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(backup_folder, "back_up_dictionary", back_up_some)
            with pytest.raises(WriteFailed):
                back_up_folder(own, copy)

    interrupt()
    with pytest.raises(UnreadableDictionary, match="backup that was interrupted"):
        Cache.open(copy)
    with pytest.raises(UnreadableDictionary, match="backup that was interrupted"):
        build_folder(copy, pair.documents, pair.models)
    back_up_folder(own, copy)
    assert equal_but_for_runs(copy, own)
    assert verify_folder(copy, asks_libhdf5=False).is_good
    interrupt()
    with Cache.open(copy) as cache:  # the earlier one, with some of the new rows
        assert SHARED in cache.dictionary()
    assert "interrupted" in str(verify_folder(copy, asks_libhdf5=False))
    with pytest.raises(UnreadableDictionary, match="backup that was interrupted"):
        build_folder(copy, pair.documents, pair.models)
    back_up_folder(own, copy)
    assert verify_folder(copy, asks_libhdf5=False).is_good
    build_folder(copy, pair.documents, pair.models)


def test_damage_is_named_and_repaired_and_done_again(own: Path, pair: Pair) -> None:
    layout = FolderLayout.read(own)
    damaged = layout.shard_file(1)
    flip(damaged, offset_of(damaged, "texts", "text", 1))
    layout.shard_file(3).unlink()
    layout.shard_file(3, 1).unlink()
    found = verify_folder(own, is_deep=True, asks_libhdf5=False)
    assert not found.is_good
    assert "1.h5: DAMAGED" in str(found)
    assert "3.h5 is missing" in str(found)
    done = repair_folder(own)
    assert not done.is_whole
    assert set(done.again) == {damaged, layout.shard_file(3)}
    build_folder(own, pair.documents, pair.models)
    assert verify_folder(own, is_deep=True, asks_libhdf5=False).is_good
    assert equal_but_for_runs(own, pair.file)
    assert str(repair_folder(own)).endswith("nothing to repair")


def test_rows_of_other_shards_are_named_by_a_deep_check(own: Path) -> None:
    layout = FolderLayout.read(own)
    shutil.copyfile(layout.shard_file(1), layout.shard_file(2, 2))
    shutil.copyfile(layout.shard_file(1), layout.shard_file(1, 2))
    assert verify_folder(own).is_good
    problems = "\n".join(verify_folder(own, is_deep=True, asks_libhdf5=False).problems)
    assert "2.2.h5: texts: " in problems
    assert "belong to other shards" in problems
    assert "1.2.h5: texts: " in problems
    assert "in an earlier file of the shard" in problems


def test_what_needs_one_file_says_so_with_the_next_step(own: Path) -> None:
    with pytest.raises(UnreadableDictionary, match=r"needs a cache in one file[\s\S]*merge"):
        Writer.open(own)
