"""A folder cache in an object store is built by the same jobs, of the same rows, whatever dies."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from building import build
from served_store import s3_bucket

pytest.importorskip("fsspec", reason="fsspec is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from featpipe.build.jobs import Job, JobReport, Seat, SeatJobs
from featpipe.build.object_folder import ObjectFolder
from featpipe.build.publish import LocalFolder, open_folder
from featpipe.build.shards.folder_plan import Models, plan_folder
from featpipe.build.shards.part_lists import RunPlan, plan_run
from featpipe.documents.find import search
from featpipe.settings import BuildSettings
from featpipe.store.fetched import FetchedFiles
from featpipe.store.object_store import ObjectStore
from tests.build.folder_contents import folder_differences

__all__ = ["s3_bucket"]  # a fixture

N_SHARDS = 2


@pytest.fixture
def models(encoder_folder: Path) -> Models:
    return Models(encoder_folder, "none")


def plan(url: str, documents: Path, models: Models) -> RunPlan:
    folder = open_folder(url)
    plan_folder(folder, models, BuildSettings(), ("cpu",), N_SHARDS)
    return plan_run(
        folder,
        search([documents]).sources,
        BuildSettings(),
        n_parts_asked=2,
        is_unfinished=lambda _: False,
    )


def run_all(url: str, run: RunPlan, scratch: Path) -> list[JobReport]:
    with SeatJobs(url, Seat(("cpu",), threads=1, scratch=str(scratch))) as jobs:
        reports = [jobs.run(Job("prepare", number, run.id)) for number in range(run.n_parts)]
        return reports + [jobs.run(Job("encode", number)) for number in range(N_SHARDS)]


def fetch_all(url: str, to: Path) -> Path:
    files = FetchedFiles(ObjectStore(url), to)
    for name in files.listing:
        files.path(name)
    return files.folder


def test_rows_are_those_of_one_machine_though_jobs_are_killed_while_they_publish(
    s3_bucket: str, tmp_path: Path, corpus: Path, models: Models
) -> None:
    url, scratch = f"{s3_bucket}/{uuid4().hex}/corpus.fp", tmp_path / "scratch"
    run = plan(url, corpus, models)
    code = (
        "import os, signal, sys\n"
        "from featpipe.build.jobs import Job, Seat, SeatJobs\n"
        "from featpipe.store.object_store import ObjectStore\n"
        "put = ObjectStore.put_new\n"
        "def put_new(self, name, content):\n"
        "    if name.startswith('shards/'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return put(self, name, content)\n"
        "ObjectStore.put_new = put_new\n"
        "with SeatJobs(sys.argv[1], Seat(('cpu',), threads=1, scratch=sys.argv[2])) as jobs:\n"
        "    jobs.run(Job('encode', 0))\n"
    )
    with SeatJobs(url, Seat(("cpu",), threads=1, scratch=str(scratch))) as jobs:
        for number in range(run.n_parts):
            jobs.run(Job("prepare", number, run.id))
    command = [sys.executable, "-c", code, url, str(scratch)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert ObjectStore(url).list("shards") == {}
    reports = run_all(url, run, scratch)
    assert all(report.is_done for report in reports)
    build(tmp_path / "one.h5", corpus, Path(str(models.model)), ner="none")
    assert folder_differences(fetch_all(url, tmp_path / "copy"), tmp_path / "one.h5") == []
    left = [path for path in scratch.rglob("*.h5*") if "featpipe-" in str(path)]
    assert left == []


def test_a_store_without_conditional_writes_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ObjectFolder(f"memory://bucket/{uuid4().hex}")
    with caplog.at_level(logging.WARNING):
        assert folder.write("cache.json", b"{}")
        assert not caplog.records
    other = ObjectFolder(folder.address)
    put = other._store._files.pipe_file  # which takes every name
    monkeypatch.setattr(other._store, "_put", lambda path, content, **_: put(path, content))
    with caplog.at_level(logging.WARNING):
        assert other.write("lists/a.json", b"{}")
    assert "has no conditional writes (If-None-Match)" in caplog.text


def test_addresses_are_opened_as_what_they_are(tmp_path: Path) -> None:
    assert isinstance(open_folder(f"memory://bucket/{uuid4().hex}"), ObjectFolder)
    for local in (tmp_path, str(tmp_path), f"file://{tmp_path}"):
        folder = open_folder(local)
        assert isinstance(folder, LocalFolder)
        assert folder.address == str(tmp_path)
