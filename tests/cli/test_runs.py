"""``featpipe runs``: which run is the last, and every id that is listed is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_checkpoints import save_encoder

from featpipe import Pipeline
from featpipe.cache.merge import merge_caches
from featpipe.cache.summary import find_run
from featpipe.cli.main import featpipe
from featpipe.errors import UsageError


def test_the_last_run_of_a_merged_cache_is_the_last_that_ran(tmp_path: Path) -> None:
    model = save_encoder(tmp_path / "tiny")
    ids = []
    for name in ("first", "second"):
        (tmp_path / f"{name}.txt").write_text(f"{name}，合同金额为三万元。", "utf-8")
        with Pipeline(tmp_path / f"{name}.h5", model, "none", devices=["cpu"]) as pipeline:
            ids.append(pipeline.build(tmp_path / f"{name}.txt").run_id)
    merged = str(tmp_path / "both.h5")
    merge_caches([tmp_path / "second.h5", tmp_path / "first.h5"], merged)
    listed = CliRunner().invoke(featpipe, ["runs", "list", merged]).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ids
    for name, wanted in (("last", ids[1]), (ids[0], ids[0]), (ids[1], ids[1])):
        shown = CliRunner().invoke(featpipe, ["runs", "show", merged, name])
        assert shown.stdout.splitlines()[0].split() == ["run", wanted]


def test_a_run_is_named_by_its_beginning_if_that_is_enough() -> None:
    ids = ["20260101T-1", "20260101T-12", "20270101T-1"]
    assert find_run(ids, "2027") == "20270101T-1"
    assert find_run(ids, "20260101T-1") == "20260101T-1"
    for name in ("2026", "1999"):
        with pytest.raises(UsageError, match=name):
            find_run(ids, name)
    with pytest.raises(UsageError, match="no run 'last'"):
        find_run([], "last")
