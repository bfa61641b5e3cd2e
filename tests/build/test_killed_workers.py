"""kill -9 of every kind of worker in a real build: the cache is that of a quiet one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from cache_contents import contents, differences

from featpipe import Pipeline, RunReport
from featpipe.build.run import Run

if TYPE_CHECKING:
    from featpipe.pool import Outcome

N_KILLS = 3
#: In every document.
SHARED = "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载。"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    for number in range(100, 270):
        text = f"第{number}份附加文件的内容。甲方第{number}次付款{number}元。\n" * 20
        (folder / f"{number}.txt").write_text(SHARED + "\n" + text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def quiet(
    tmp_path_factory: pytest.TempPathFactory, many: Path, encoder_folder: Path, tagger_folder: Path
) -> tuple[RunReport, Any]:
    """The report of a build that nobody disturbs, and what is in its cache."""
    cache = tmp_path_factory.mktemp("quiet") / "c.h5"
    report = build(cache, many, encoder_folder, tagger_folder, "")
    assert report.is_complete
    return report, contents(cache)


class Killer:
    """Kills busy workers of one role, up to three in a run, and at least one.

    A thread waits for one to be busy. Should it miss them all, on a machine where tasks are short
    or threads wait long, the one that gives the role's first answer is killed with that.
    """

    def __init__(self, pipeline: Pipeline, role: str) -> None:
        self._pipeline, self._role = pipeline, role
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._patch = pytest.MonkeyPatch()
        self.pids: set[int] = set()

    def __enter__(self) -> Self:
        take = Run._take

        def take_and_kill(run: Run, outcome: Outcome) -> None:
            if outcome.role == self._role and not self.pids:
                self._kill({"ready", "busy"})
            take(run, outcome)

        self._patch.setattr(Run, "_take", take_and_kill)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._patch.undo()

    def _watch(self) -> None:
        while len(self.pids) < N_KILLS and not self._is_over.wait(0.001):
            self._kill({"busy"})

    def _kill(self, states: set[str]) -> None:
        pool = self._pipeline._pool
        for view in pool.workers() if pool is not None else ():
            is_meant = view.role == self._role and view.state in states
            if is_meant and view.pid is not None and view.pid not in self.pids:
                with suppress(ProcessLookupError):  # it ended since
                    os.kill(view.pid, signal.SIGKILL)
                    self.pids.add(view.pid)


def build(cache: Path, documents: Path, model: Path, tagger: Path, role: str) -> RunReport:
    with Pipeline(cache, model=model, ner=tagger, devices=["cpu"]) as pipeline:
        with Killer(pipeline, role) as killer:
            report = pipeline.build(documents)
        assert bool(killer.pids) == bool(role)
    return report


@pytest.mark.parametrize("role", ["prepare", "encode", "count", "write"])
def test_a_build_whose_workers_are_killed_makes_the_same_cache(
    role: str,
    tmp_path: Path,
    many: Path,
    encoder_folder: Path,
    tagger_folder: Path,
    quiet: tuple[RunReport, Any],
) -> None:
    undisturbed, expected = quiet
    report = build(tmp_path / "c.h5", many, encoder_folder, tagger_folder, role)
    assert report.is_complete, report.summary()
    assert differences(expected, tmp_path / "c.h5") == []
    assert report.units_by_level == undisturbed.units_by_level
