"""Jobs on a Ray cluster of two nodes, whose seats are killed, told to end, frozen, or fail."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytest.importorskip("ray", reason="ray is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from building import build
from compare_folder import compare_folder
from encode_counts import HOLD_VARIABLE, LOG_PATH, LOG_VARIABLE, n_computed
from ray_cluster import Nodes, running_cluster
from ray_stub import Opening, StubJob, StubReport
from tiny_checkpoints import CHINESE
from waiting import descendants

from featpipe.build.jobs import Seat
from featpipe.build.shards.folder_plan import Models
from featpipe.errors import DictionaryLocked, WriteFailed
from featpipe.integrations import ray as on_ray
from featpipe.integrations.ray_engine import RayEngine

SEAT = Seat(threads=1, scratch=tempfile.gettempdir())


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> None:
    """A cluster keeps idle workers for what comes next: what is left is looked at in its end."""


@pytest.fixture(scope="module", autouse=True)
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    before = {child.pid for child in descendants()}
    log = tmp_path_factory.mktemp("computed") / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOG_VARIABLE, str(log))
        patch.setenv(HOLD_VARIABLE, str(log.with_name("hold")))
        paths = [LOG_PATH, Path(__file__).parents[1]]
        with running_cluster(paths=paths) as nodes:
            handler = signal.getsignal(signal.SIGTERM)
            with on_ray.connected():
                assert signal.getsignal(signal.SIGTERM) is handler
                yield nodes
    left = [child for child in descendants() if child.pid not in before]
    _, alive = psutil.wait_procs(left, timeout=60)
    assert not alive, f"child processes left behind: {alive}"


def jobs(n: int, **what: int) -> list[StubJob]:
    """``n`` jobs; of some, by their number, what they do."""
    names = {number: name for name, number in what.items()}
    return [StubJob(number, names.get(number, "")) for number in range(n)]


def numbers(reports: list[StubReport]) -> list[int]:
    return sorted(report.job.number for report in reports)


def wait_until(holds: Callable[[], bool], run: Future[object]) -> None:
    """Until something holds, or a run that it should have come before has ended."""
    while not holds():
        with suppress(TimeoutError):
            pytest.fail(f"it ended too early: {run.result(timeout=0.02)}")


def test_seats_have_cores_of_their_own_and_keep_their_workers(tmp_path: Path) -> None:
    todo = [StubJob(0, "meets_another_seat"), StubJob(1, "meets_another_seat"), *jobs(9)[2:]]
    engine = RayEngine(Opening(tmp_path))
    reports = list(engine.run(todo, SEAT))
    assert numbers(reports) == list(range(9))
    facts = [report.facts for report in reports]
    cores = {fact["pid"]: fact["cores"] for fact in facts}
    assert [len(own) for own in cores.values()] == [1, 1]
    assert len(set.union(*cores.values())) == 2
    for pid in cores:
        own = [fact["n_done"] for fact in facts if fact["pid"] == pid]
        assert own == list(range(1, len(own) + 1))
    seat = facts[0]["seat"]
    assert (seat.devices, seat.threads) == (("cpu",), 1)
    assert seat.memory > 1 << 20
    assert Path(seat.scratch).is_dir()
    assert engine.notes == []


def test_jobs_of_seats_that_are_killed_or_told_to_end_are_done_by_others(tmp_path: Path) -> None:
    engine = RayEngine(Opening(tmp_path))
    todo = jobs(8, is_killed_once=2, is_told_to_end_once=4)
    assert numbers(list(engine.run(todo, SEAT))) == list(range(8))
    assert engine.notes == [
        "1 seats were lost and replaced",
        "1 seats were told to end, published what they had, and were replaced",
    ]


def test_a_seat_that_fails_is_left_out_and_named(tmp_path: Path) -> None:
    engine = RayEngine(Opening(tmp_path))
    assert numbers(list(engine.run(jobs(6, fails_once=2), SEAT))) == list(range(6))
    (note,) = engine.notes
    assert note.endswith(f"was left out: {tmp_path}: the disk is full")


def test_a_job_that_fails_everywhere_is_raised_when_the_others_have_ended(tmp_path: Path) -> None:
    reports: list[StubReport] = []
    with pytest.raises(WriteFailed, match=r"job 2: .*the disk is full"):
        reports.extend(RayEngine(Opening(tmp_path)).run(jobs(6, fails=2), SEAT))
    assert numbers(reports) == [0, 1, 3, 4, 5]


def test_a_run_that_is_stopped_ends_with_what_seats_have(tmp_path: Path) -> None:
    engine = RayEngine(Opening(tmp_path), workers=1)
    todo = jobs(4, waits_for_the_signal_to_stop=0)
    with ThreadPoolExecutor(1) as beside:
        run = beside.submit(lambda: list(engine.run(todo, SEAT)))
        wait_until((tmp_path / "0.begun").exists, run)
        engine.stop_after_current()
        reports = run.result()
    assert [(report.job.number, report.is_done) for report in reports] == [(0, False)]


def test_a_job_on_a_frozen_node_is_done_by_an_idle_seat(nodes: Nodes, tmp_path: Path) -> None:
    todo = [
        StubJob(0, "meets_another_seat"),
        StubJob(1, "meets_another_seat"),
        StubJob(2, "is_frozen_once"),
    ]
    engine = RayEngine(Opening(tmp_path), patience_s=2.0)
    begun = tmp_path / "2.begun"
    with ThreadPoolExecutor(1) as beside:
        run = beside.submit(lambda: list(engine.run(todo, SEAT)))
        wait_until(lambda: begun.exists() and bool(begun.read_text()), run)
        with nodes.frozen(nodes.of_process(int(begun.read_text()))):
            assert numbers(run.result()) == [0, 1, 2]


def test_of_two_builds_of_one_folder_the_second_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_ray, "_LEASE_WAIT_S", 0.0)
    with (
        on_ray.leased("/data/corpus.fp"),
        on_ray.leased("/data/other.fp"),
        pytest.raises(DictionaryLocked, match=r"/data/corpus\.fp is being built .* by process"),
        on_ray.leased("/data/corpus.fp"),
    ):
        pass
    monkeypatch.undo()
    with on_ray.leased("/data/corpus.fp"):
        pass


def write_documents(folder: Path) -> Path:
    """Some thousand different texts."""
    chance = random.Random(11)  # noqa: S311 - texts, not secrets
    folder.mkdir()
    for number in range(12):
        lines = ("".join(chance.choices(CHINESE[:200], k=30)) + "。" for _ in range(40))
        (folder / f"{number:02d}.txt").write_text("\n".join(lines), "utf-8")
    return folder


def is_encoding(nodes: Nodes, number: int, log: Path) -> bool:
    """Whether the seat of a node has an encode worker: one has the log of computed texts open."""
    seat = nodes.seat(number)
    with suppress(psutil.Error, FileNotFoundError):
        workers = [] if seat is None else seat.children(recursive=True)
        return any(log.samefile(file.path) for one in workers for file in one.open_files())
    return False


def test_a_build_one_of_whose_nodes_is_killed_has_the_rows_of_one_machine(
    nodes: Nodes, tmp_path: Path, encoder_folder: Path
) -> None:
    documents = write_documents(tmp_path / "docs")
    build(tmp_path / "one.h5", documents, encoder_folder)

    hold = Path(os.environ[HOLD_VARIABLE])
    hold.touch()  # so that both seats are in the middle of a shard
    log, folder = Path(os.environ[LOG_VARIABLE]), tmp_path / "corpus.fp"
    with ThreadPoolExecutor(1) as beside:
        run = beside.submit(
            on_ray.build, documents, folder, shards=4, workers=2,
            models=Models(encoder_folder, "none"),
        )  # fmt: skip
        wait_until(lambda: n_computed(log) > 0, run)
        wait_until(lambda: all(is_encoding(nodes, n, log) for n in nodes.alive), run)
        first = nodes.alive[0]
        seat = nodes.seat(first)
        assert seat is not None
        nodes.kill(first)
        seat.wait(timeout=60)  # its process outlives the node by seconds, and might do all there is
        hold.unlink()
        nodes.add()
        report = run.result()
    assert report.is_complete
    assert report.n_loaded == 12
    assert any("seats were lost and replaced" in note for note in report.notes)
    assert compare_folder(folder, tmp_path / "one.h5").words == []
