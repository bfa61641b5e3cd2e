"""Documents of a cache by id, path and content, as the writer commits them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from building import build
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.documents import hash_bytes
from featpipe.errors import MissingDocuments
from featpipe.settings import BuildSettings


def test_a_document_is_found_by_id_and_by_path(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"a.txt": ["甲。"], "b.txt": ["乙。"]})
    with Cache.open(tmp_path / "c.h5") as cache:
        for document in cache.documents():
            for name in (document.id, document.path, Path(document.path)):
                found = cache.document(name)
                assert (found.id, found.text, found.key) == (
                    document.id, document.text, document.key,
                )  # fmt: skip
        assert cache.find_document("c.txt") is None


def test_a_document_that_is_missing_is_named_with_near_ones(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"lease_2024.txt": ["甲。"], "b.txt": ["乙。"]})
    with Cache.open(tmp_path / "c.h5") as cache:
        with pytest.raises(MissingDocuments, match=r"'lease_2023.txt'") as raised:
            cache.document("lease_2023.txt")
        assert raised.value.hint == "nearest: lease_2024.txt"
        with pytest.raises(MissingDocuments, match="but 2 others") as raised:
            cache.document("zzz")
        assert "build-cache" in raised.value.hint


def test_what_the_writer_commits_is_found_at_once(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"a.txt": ["甲。"]})
    with Cache.open(tmp_path / "c.h5") as cache:
        assert cache.find_document("b.txt") is None
        write_documents(tmp_path / "c.h5", {"b.txt": ["乙。"]})
        assert cache.document("b.txt").text == "乙。"


def test_documents_and_their_cache_have_short_reprs_and_pickle_as_paths(tmp_path: Path) -> None:
    write_documents(tmp_path / "c.h5", {"a.txt": ["甲。"]})
    with Cache.open(tmp_path / "c.h5") as cache:
        document = cache.document("a.txt")
        assert repr(document) == f"<CachedDocument 'a.txt' at {document.path}>"
        copy = pickle.loads(pickle.dumps(document))  # noqa: S301 - our own bytes
    assert copy.text == "甲。"


def test_a_document_is_found_by_its_bytes_wherever_they_lie(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    cache = tmp_path / "c.h5"
    settings = BuildSettings(levels=("paragraph",))
    build(cache, corpus, encoder_folder, settings=settings)
    data = (corpus / "01.txt").read_bytes()
    new = "新增补充条款也有效。".encode()
    with Cache.open(cache) as opened:
        for _ in range(2):
            found = opened.find_content(hash_bytes(data))
            assert found is not None
            assert found.id == "docs/01.txt"
        assert opened.find_content(hash_bytes(new)) is None
        (corpus / "new.txt").write_bytes(new)
        build(cache, corpus, encoder_folder, settings=settings)
        found = opened.find_content(hash_bytes(new))
        assert found is not None
        assert (found.id, found.text) == ("docs/new.txt", new.decode())
