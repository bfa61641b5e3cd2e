"""Merged caches: the union, with term ids that mean the same terms."""

from __future__ import annotations

from pathlib import Path

import pytest
from building import build, contents, stored_terms
from flipped_bits import damage
from sentence_cache import write_documents

from featpipe import Cache
from featpipe.cache.merge import merge_caches
from featpipe.cache.write import TermWriter
from featpipe.errors import WriteFailed
from featpipe.store import Reader


def test_a_merged_cache_answers_like_one_built_over_everything(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    files = sorted(path for path in corpus.rglob("*") if path.is_file())
    build(tmp_path / "a.h5", files[:7], encoder_folder)
    build(tmp_path / "b.h5", files[5:], encoder_folder)
    whole = build(tmp_path / "whole.h5", files, encoder_folder)
    merged = merge_caches([tmp_path / "a.h5", tmp_path / "b.h5"], tmp_path / "merged.h5")
    assert not merged.conflicts
    assert contents(tmp_path / "merged.h5") == contents(tmp_path / "whole.h5")
    with Cache.open(tmp_path / "merged.h5") as one, Cache.open(tmp_path / "whole.h5") as other:
        assert stored_terms(one) == stored_terms(other)
        assert {d.path for d in one.documents()} == {d.path for d in other.documents()}
    again = build(tmp_path / "merged.h5", files, encoder_folder)
    assert (again.n_encoded, again.n_hits) == (0, whole.n_unique)


def test_a_damaged_term_is_left_out_with_the_texts_that_need_it(tmp_path: Path) -> None:
    one, other, merged = (tmp_path / f"{name}.h5" for name in ("one", "other", "merged"))
    write_documents(one, {"a.txt": ["天气很好。", "合同金额。"]})
    write_documents(other, {"b.txt": ["违约责任。"]})
    with Reader(one) as reader:
        [name] = [name for name in reader.tables() if name.endswith("/vocabulary")]
        last = reader.table(name).n_rows - 1  # of the second sentence
    damage(one, name, "term", last)
    done = merge_caches([one, other], merged)
    assert done.n_damaged == 2
    with Cache.open(merged) as cache:
        assert [hit.text for hit in cache.search("天气")] == ["天气很好。"]
        assert [hit.text for hit in cache.search("违约")] == ["违约责任。"]
        assert cache.search("合同") == []


def test_a_merge_that_fails_at_the_terms_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise WriteFailed("no room")

    write_documents(tmp_path / "a.h5", {"a.txt": ["天气很好。"]})
    monkeypatch.setattr(TermWriter, "ids_of", fail)
    with pytest.raises(WriteFailed):
        merge_caches([tmp_path / "a.h5"], tmp_path / "merged.h5")
    assert [file.name for file in tmp_path.iterdir()] == ["a.h5"]
