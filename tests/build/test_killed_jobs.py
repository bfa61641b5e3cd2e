"""Jobs that are killed, stopped, repeated or run twice at once make the rows of a quiet run."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING

import pytest
from waiting import HANG_S

from featpipe.build import queue, run
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Job, JobReport, Seat, SeatJobs, list_jobs
from featpipe.build.publish import LocalFolder
from featpipe.build.shards import prepare
from featpipe.build.shards.folder_plan import Models
from featpipe.build.shards.status import read_status
from featpipe.build.shards.work_file import work_file
from featpipe.cache import write
from featpipe.errors import WriteFailed
from tests.build.folder_contents import folder_differences
from tests.building import build
from tests.store.crashing_disk import CountingDisk, FailingDisk

if TYPE_CHECKING:
    from featpipe.build.progress import Progress

IN_PLACE = Seat(("cpu",), threads=1)
PROGRAM = Path(__file__).with_name("job_program.py")


class Killed(BaseException):
    """Stands for the end of the process."""


class DyingDisk(CountingDisk):
    """Ends at the n-th write-like call of a publication, which has no effect."""

    def __init__(self, die_at: int) -> None:
        super().__init__()
        self.die_at = die_at

    def before(self, kind: str) -> None:
        super().before(kind)
        if self.n_points == self.die_at:
            raise Killed


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> tuple[Path, Path]:
    """A folder with two parts and two shards to do, and what one machine makes of them."""
    place = tmp_path_factory.mktemp("jobs")
    docs = place / "docs"
    docs.mkdir()
    for number in range(12):
        text = f"第{number}号合同\n本合同一式两份。合同金额为{number},000万元。\n本合同一式两份。"
        (docs / f"{number:02d}.txt").write_text(text, "utf-8")
    build(place / "one.h5", docs, encoder_folder)
    pipeline = FolderPipeline(
        place / "c.fp", Models(encoder_folder, "none"), n_shards=2, seat=IN_PLACE
    )
    pipeline.plan_documents([docs], n_parts=2)
    return place / "c.fp", place / "one.h5"


@pytest.fixture
def folder(planned: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(planned[0], tmp_path / "c.fp"))


@pytest.fixture
def one_machine(planned: tuple[Path, Path]) -> Path:
    return planned[1]


def finish(folder: Path, jobs: SeatJobs) -> list[JobReport]:
    every = [*list_jobs(folder, "prepare"), *list_jobs(folder, "encode")]
    return [jobs.run(job) for job in every]


@pytest.mark.parametrize("scratch", [False, True])
def test_jobs_that_die_at_any_step_of_publishing_are_done_by_the_next_attempt(
    folder: Path, one_machine: Path, tmp_path: Path, scratch: bool
) -> None:
    seat = Seat(("cpu",), threads=1, scratch=str(tmp_path / "scratch") if scratch else None)
    files = LocalFolder(folder)
    n_deaths = dict.fromkeys(("prepare", "encode"), 0)
    with SeatJobs(files, seat) as jobs:
        for job in (list_jobs(folder, "prepare")[0], Job("encode", 0)):
            for point in count(1):
                files._disk = DyingDisk(point)
                try:
                    assert jobs.run(job).is_done
                    break
                except Killed:
                    n_deaths[job.kind] += 1
            files._disk = CountingDisk()
        finish(folder, jobs)
    assert min(n_deaths.values()) >= 5, n_deaths
    assert folder_differences(folder, one_machine) == []
    assert read_status(files).is_done


def test_a_full_disk_leaves_the_folder_good_and_the_job_to_be_done(
    folder: Path, one_machine: Path, tmp_path: Path
) -> None:
    seat = Seat(("cpu",), threads=1, scratch=str(tmp_path / "scratch"))
    files = LocalFolder(folder)
    with SeatJobs(files, seat) as jobs:
        for job in (list_jobs(folder, "prepare")[0], Job("encode", 0)):
            published = {path for path in folder.rglob("*") if path.is_file()}
            for point in count(1):
                files._disk = disk = FailingDisk(errno.ENOSPC, point, n_times=1000)
                with suppress(WriteFailed):
                    jobs.run(job)
                if disk.n_points < point:
                    break
                hidden = [p for p in folder.rglob(".*") if p.is_file()]
                assert hidden == []
            files._disk = CountingDisk()
            assert published <= {path for path in folder.rglob("*") if path.is_file()}
        finish(folder, jobs)
    assert folder_differences(folder, one_machine) == []


@pytest.mark.parametrize("scratch", ["none", "scratch"])
def test_jobs_killed_in_the_middle_are_finished_by_two_processes_at_once(
    folder: Path, one_machine: Path, tmp_path: Path, scratch: str
) -> None:
    place = scratch if scratch == "none" else str(tmp_path / scratch)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def start(kill: str) -> subprocess.Popen[str]:
        command = [sys.executable, PROGRAM, folder, place, kill]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    for kind in ("prepare", "encode"):
        with start(kind) as killed:
            _, errors = killed.communicate(timeout=HANG_S)
        assert killed.returncode == -SIGKILL, errors
        assert not read_status(LocalFolder(folder)).is_done
    with start("never") as one, start("never") as other:
        errors = [process.communicate(timeout=HANG_S)[1] for process in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0), errors
    assert folder_differences(folder, one_machine) == []
    assert read_status(LocalFolder(folder)).is_done


@pytest.mark.parametrize("scratch", ["none", "scratch"])
def test_files_of_a_killed_job_whose_run_was_dropped_are_removed(
    folder: Path, planned: tuple[Path, Path], encoder_folder: Path, tmp_path: Path, scratch: str
) -> None:
    place = scratch if scratch == "none" else str(tmp_path / scratch)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, PROGRAM, folder, place, "prepare"]
    killed = subprocess.run(command, env=environment, timeout=HANG_S, check=False)
    assert killed.returncode == -SIGKILL
    work = folder / ".work" if scratch == "none" else next((tmp_path / scratch).iterdir())
    assert list(work.glob("parts-*.h5"))
    seat = replace(IN_PLACE, scratch=None if scratch == "none" else place)
    pipeline = FolderPipeline(folder, Models(encoder_folder, "none"), seat=seat)
    with work_file(pipeline.folder, seat, "parts/of-a-running-job-0000.h5") as running:
        running.touch()
        (work / "77777-shards-1.h5").touch()
        assert pipeline.build([planned[0].parent / "docs"], n_parts=2).is_complete
        assert sorted(work.iterdir()) == [running, running.with_name(f"{running.name}.lock")]


def test_a_stopped_job_publishes_what_it_has_and_the_next_attempt_does_the_rest(
    folder: Path, one_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_TICK_S", 0.0)
    # Nothing is handed out while rows wait to be written: else all may be, before the first are.
    monkeypatch.setattr(write, "_MOST_OPEN", 1)
    monkeypatch.setattr(queue, "_LEAST_BYTES", 32)
    monkeypatch.setattr(queue, "_FIRST_BYTES", 32)
    monkeypatch.setattr(queue, "_MOST_BYTES", 128)

    def stop_when(is_enough: Callable[[Progress], bool]) -> JobReport:
        def listen(progress: Progress) -> None:
            if is_enough(progress):
                stopped.stop_after_current()

        with SeatJobs(folder, IN_PLACE, listen) as stopped:
            return stopped.run(job)

    with SeatJobs(folder, IN_PLACE) as jobs:
        for job in list_jobs(folder, "prepare"):
            jobs.run(job)
    job = Job("encode", 0)
    first = stop_when(lambda progress: progress.n_encoded > 0)
    assert not first.is_done
    assert first.files == ("shards/0.h5",)
    assert not read_status(LocalFolder(folder)).is_done
    with SeatJobs(folder, IN_PLACE) as jobs:
        [*_, rest, _] = finish(folder, jobs)
    assert rest.files == ("shards/0.1.h5",)
    assert rest.run.n_hits == first.run.n_encoded > 0
    assert folder_differences(folder, one_machine) == []


@pytest.mark.parametrize("end", ["stopped", "full disk"])
def test_documents_of_a_job_that_ended_before_its_outbox_are_encoded_by_the_next_build(
    folder: Path,
    one_machine: Path,
    encoder_folder: Path,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows them from the part that was published, and the job itself is never done."""
    monkeypatch.setattr(run, "_TICK_S", 0.0)
    documents = sorted((one_machine.parent / "docs").iterdir())
    pipeline = FolderPipeline(folder, Models(encoder_folder, "none"), seat=IN_PLACE)

    def stop(progress: Progress) -> None:
        if end == "stopped" and progress.n_units:
            pipeline.stop_after_current()

    def fail(*_: object) -> int:
        raise WriteFailed("no room")

    for some in (documents[:8], documents):
        with monkeypatch.context() as patch, suppress(WriteFailed):
            patch.setattr(prepare, "write_outbox", fail)
            assert pipeline.build(some, listen=stop).was_interrupted
    assert list((folder / "parts").iterdir())
    assert not (folder / "outbox").exists()
    report = pipeline.build(documents)
    assert (report.n_unchanged, report.n_hits) == (12, 0)
    assert report.n_encoded == report.n_unique > 0
    assert folder_differences(folder, one_machine) == []


class RivalFolder(LocalFolder):
    """Just before a shard is published, another attempt's file is."""

    rival: Path | None = None

    def publish(self, file: Path, name: str) -> bool:
        if name.startswith("shards/") and self.rival is not None:
            rival, self.rival = self.rival, None
            shutil.copyfile(rival, self.path / name)
        return super().publish(file, name)


def test_rows_of_an_attempt_that_came_second_are_kept_and_not_computed_again(
    folder: Path, one_machine: Path, tmp_path: Path
) -> None:
    files = RivalFolder(folder)
    first, second = list_jobs(folder, "prepare")
    job = Job("encode", 0)
    with SeatJobs(files, IN_PLACE) as jobs:
        jobs.run(first)
        copy = Path(shutil.copytree(folder, tmp_path / "rival.fp"))
        with SeatJobs(copy, IN_PLACE) as rivals:
            rival = rivals.run(job)
        files.rival = copy / "shards" / "0.h5"
        (folder / "shards").mkdir()
        jobs.run(second)
        report = jobs.run(job)
        assert report.files == ("shards/0.1.h5",)
        assert report.run.n_encoded == 0
        assert report.run.n_hits == report.run.n_unique > rival.run.n_encoded
        finish(folder, jobs)
    assert folder_differences(folder, one_machine) == []
