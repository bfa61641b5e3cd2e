"""kill -9 of every kind of worker in a real build: the cache is that of a quiet one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Self

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from chaos_build import contents, differences

from featpipe import Pipeline, RunReport

N_KILLS = 3


@pytest.fixture
def many(corpus: Path) -> Path:
    for number in range(100, 260):
        text = f"第{number}份附加文件的内容。甲方第{number}次付款{number}元。\n" * 20
        (corpus / f"{number}.txt").write_text(text, "utf-8")
    return corpus


class Killer:
    """Kills busy workers of one role, up to three in a run."""

    def __init__(self, pipeline: Pipeline, role: str) -> None:
        self._pipeline, self._role = pipeline, role
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.pids: set[int] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while len(self.pids) < N_KILLS and not self._is_over.wait(0.001):
            pool = self._pipeline._pool
            for view in pool.workers() if pool is not None else ():
                if view.role == self._role and view.state == "busy" and view.pid not in self.pids:
                    assert view.pid is not None
                    os.kill(view.pid, signal.SIGKILL)
                    self.pids.add(view.pid)


def build(cache: Path, documents: Path, model: Path, tagger: Path, role: str) -> RunReport:
    with Pipeline(cache, model=model, ner=tagger, devices=["cpu"]) as pipeline:
        with Killer(pipeline, role) as killer:
            report = pipeline.build(documents)
        assert bool(killer.pids) == bool(role)
    return report


def test_a_build_whose_workers_are_killed_makes_the_same_cache(
    tmp_path: Path, many: Path, encoder_folder: Path, tagger_folder: Path
) -> None:
    quiet = build(tmp_path / "quiet.h5", many, encoder_folder, tagger_folder, "")
    assert quiet.is_complete
    expected = contents(tmp_path / "quiet.h5")
    for role in ("prepare", "encode", "count", "write"):
        cache = tmp_path / f"{role}.h5"
        report = build(cache, many, encoder_folder, tagger_folder, role)
        assert report.is_complete, (role, report.summary())
        assert differences(expected, cache) == [], role
        assert report.units_by_level == quiet.units_by_level, role
