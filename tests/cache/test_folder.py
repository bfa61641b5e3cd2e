"""A folder cache answers as the file does that one machine makes of the same documents."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from folder_cache import SHARED, Pair, build_pair

from featpipe import Cache
from featpipe.cache.search import SentenceSearch
from featpipe.cache.summary import read_runs, summarise
from featpipe.settings import LEVELS
from featpipe.store.folder_layout import FolderLayout

if TYPE_CHECKING:
    from featpipe.lexical.backend import Backend

QUERIES = ("合同金额为万元", "违约方承担违约金", "深圳科技有限公司", "没有这样的词语xyz", "")


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path, tagger_folder: Path
) -> Pair:
    return build_pair(tmp_path_factory.mktemp("pair"), encoder_folder, tagger_folder)


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


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_searching_has_the_scores_of_the_file(one: Cache, folder: Cache, backend: Backend) -> None:
    if backend == "numba":
        pytest.importorskip("numba")
    ours, theirs = (SentenceSearch(cache, backend=backend) for cache in (folder, one))
    assert ours.n_sentences == theirs.n_sentences
    for query in QUERIES:
        for level in ("sentence", "document"):
            assert ours.search(query, 100, level=level) == theirs.search(query, 100, level=level)


def test_hybrid_search_has_the_scores_of_the_file(one: Cache, folder: Cache) -> None:
    found = []
    for cache in (folder, one):
        dictionary = cache.dictionary()
        vector = np.asarray(dictionary[SHARED], np.float32)
        search = SentenceSearch(cache)
        found.append([search.search_hybrid(q, vector, dictionary, 100) for q in QUERIES])
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
