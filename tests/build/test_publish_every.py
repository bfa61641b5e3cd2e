"""A job that encodes for long publishes what it has, and goes on; the next attempt goes on, too."""

from __future__ import annotations

import shutil
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe.build import queue, run
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Job, JobReport, Seat, SeatJobs, list_jobs
from featpipe.build.publish import LocalFolder
from featpipe.build.shards.folder_plan import Models
from featpipe.build.shards.status import read_status
from featpipe.encoders.spec import EncoderSettings
from featpipe.store import Reader
from tests.build.folder_contents import folder_differences
from tests.building import build

if TYPE_CHECKING:
    from featpipe.build.progress import Progress

N_DOCUMENTS = 4
JOB = Job("encode", 0)
#: A precision that is chosen depends on the texts.
EXACT = EncoderSettings(precision="exact")


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TICK_S", 0.0)
    monkeypatch.setattr(queue, "_LEAST_BYTES", 32)
    monkeypatch.setattr(queue, "_FIRST_BYTES", 32)
    # Three batches, which one worker has in hand, are less than half of the texts.
    monkeypatch.setattr(queue, "_MOST_BYTES", 128)


def write_documents(docs: Path) -> Path:
    docs.mkdir()
    for number in range(N_DOCUMENTS):
        text = f"第{number}号合同\n本合同一式两份。合同金额为{number},000万元。\n本合同一式两份。"
        (docs / f"{number}.txt").write_text(text, "utf-8")
    return docs


def prepare(folder: Path, documents: Path, models: Models) -> None:
    """A folder of one shard, which is left to do."""
    seat = Seat(("cpu",), threads=1)
    FolderPipeline(folder, models, n_shards=1, seat=seat).plan_documents([documents], n_parts=1)
    with SeatJobs(folder, seat) as jobs:
        for job in list_jobs(folder, "prepare"):
            jobs.run(job)


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> Path:
    """What one machine makes; beside it a folder that is prepared."""
    place = tmp_path_factory.mktemp("one")
    documents = write_documents(place / "docs")
    build(place / "one.h5", documents, encoder_folder, encoder=EXACT)
    prepare(place / "c.fp", documents, Models(encoder_folder, "none", EXACT))
    return place / "one.h5"


@pytest.fixture
def files(one_machine: Path, tmp_path: Path) -> LocalFolder:
    return LocalFolder(shutil.copytree(one_machine.with_name("c.fp"), tmp_path / "c.fp"))


def encode(files: LocalFolder, seat: Seat, seen: list[Progress] | None = None) -> JobReport:
    """The job by a clock on which ten minutes pass between any two looks."""
    listen = None if seen is None else seen.append
    with SeatJobs(files, seat, listen, clock=count(0, 600).__next__) as jobs:
        return jobs.run(JOB)


def on_scratch(place: Path, every_s: float = 600.0) -> Seat:
    return Seat(("cpu",), threads=1, scratch=str(place), publish_every_s=every_s)


def n_vectors(files: LocalFolder, name: str) -> int:
    with Reader(files.fetch(name)) as reader:
        tables = [name for name in reader.tables() if name.startswith("embeddings/")]
        return sum(reader.table(name).n_rows for name in tables)


def test_a_long_job_publishes_what_it_has_every_ten_minutes_and_goes_on(
    files: LocalFolder, one_machine: Path, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    done = encode(files, on_scratch(tmp_path / "scratch"), seen)
    assert done.is_done
    assert sorted(done.files) == files.list("shards")
    by_file = [n_vectors(files, name) for name in done.files]
    assert sum(n > 0 for n in by_file) >= 2
    assert (done.run.n_hits, done.run.n_encoded) == (0, sum(by_file))
    assert done.run.n_unique == done.run.n_encoded
    assert [p.n_encoded for p in seen] == sorted(p.n_encoded for p in seen)
    assert all(p.n_unique == p.n_hits + p.n_encoded + p.n_waiting for p in seen)
    assert folder_differences(files.path, one_machine) == []
    assert read_status(files).is_done
    assert [p for p in (tmp_path / "scratch").rglob("*") if p.is_file()] == []


class LostMachine(BaseException):
    """Stands for its end, with its scratch folder."""


class LosingFolder(LocalFolder):
    """The machine is lost when it is to publish vectors for the second time."""

    n_published = 0

    def publish(self, file: Path, name: str) -> bool:
        n = n_vectors(LocalFolder(file.parent), file.name)
        if n and self.n_published:
            raise LostMachine
        self.n_published += n
        return super().publish(file, name)


def test_another_machine_goes_on_from_what_a_lost_one_had_published(
    files: LocalFolder, one_machine: Path, tmp_path: Path
) -> None:
    losing = LosingFolder(files.path)
    with pytest.raises(LostMachine):
        encode(losing, on_scratch(tmp_path / "lost"))
    before = files.list("shards")
    assert not read_status(files).is_done
    done = encode(files, on_scratch(tmp_path / "other", inf))
    assert files.list("shards") == sorted([*before, *done.files])
    assert len(done.files) == 1
    assert done.run.n_hits == losing.n_published > 0
    assert done.run.n_encoded == n_vectors(files, *done.files) > 0
    assert folder_differences(files.path, one_machine) == []
    assert read_status(files).is_done


def test_in_place_a_job_publishes_at_its_end(files: LocalFolder) -> None:
    done = encode(files, Seat(("cpu",), threads=1))
    assert done.is_done
    assert done.files == ("shards/0.h5",)


def test_texts_that_cannot_be_computed_do_not_have_a_job_publish_for_ever(
    tmp_path: Path, encoder_folder: Path
) -> None:
    documents = write_documents(tmp_path / "docs")
    (documents / "long.txt").write_text("甲乙丙丁戊己庚辛" * 400, "utf-8")
    strict = EncoderSettings(precision="exact", on_truncate="error")
    prepare(tmp_path / "c.fp", documents, Models(encoder_folder, "none", strict))
    files = LocalFolder(tmp_path / "c.fp")
    done = encode(files, on_scratch(tmp_path / "scratch"))
    n_failed = sum(failed.n_units for failed in done.run.failed)
    assert done.is_done
    assert n_failed > 0
    assert done.run.n_unique == done.run.n_encoded + n_failed
    assert done.run.n_encoded == sum(n_vectors(files, name) for name in done.files)
