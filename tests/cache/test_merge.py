"""Merged caches: the union, with term ids that mean the same terms."""

from __future__ import annotations

from pathlib import Path

from building import build, contents, stored_terms

from featpipe import Cache
from featpipe.cache.merge import merge_caches


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
