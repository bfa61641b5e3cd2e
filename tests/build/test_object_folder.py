"""A folder cache in an object store: the rows of one machine, whatever dies; read in pieces."""

from __future__ import annotations

import logging
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from building import build
from folder_cache import write_documents
from served_store import s3_bucket

pytest.importorskip("fsspec", reason="fsspec is not installed")
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from click.testing import CliRunner
from compare_folder import compare_folder

from featpipe import Cache
from featpipe.build.jobs import Job, JobReport, Seat, SeatJobs
from featpipe.build.object_folder import ObjectFolder
from featpipe.build.publish import LocalFolder, open_folder
from featpipe.build.shards import outbox_index
from featpipe.build.shards.folder_plan import Models, plan_folder
from featpipe.build.shards.part_lists import RunPlan, plan_run
from featpipe.cli.main import featpipe
from featpipe.documents.find import search
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UnreadableDictionary, UsageError
from featpipe.settings import BuildSettings
from featpipe.store import fetched, fetched_folder, key_of
from featpipe.store.fetched import FetchedFiles
from featpipe.store.folder_layout import shard_of_one
from featpipe.store.object_store import ObjectStore

__all__ = ["s3_bucket"]  # a fixture

N_SHARDS = 4
EXACT = EncoderSettings(precision="exact")


@dataclass(frozen=True)
class Built:
    """The same documents in an object store and in one file."""

    url: str
    file: Path
    reports: list[JobReport]
    scratch: Path


def plan(url: str, documents: Path, models: Models) -> RunPlan:
    folder, settings = open_folder(url), BuildSettings()
    plan_folder(folder, models, settings, ("cpu",), N_SHARDS)
    sources = search([documents]).sources
    return plan_run(folder, sources, settings, n_parts_asked=2, is_unfinished=lambda _: False)


def seat(scratch: Path) -> Seat:
    return Seat(("cpu",), threads=1, scratch=str(scratch))


def kill_while_it_publishes(url: str, scratch: Path) -> None:
    """A process that has encoded a shard and begins to put it."""
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
    done = subprocess.run([sys.executable, "-c", code, url, str(scratch)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert ObjectStore(url).list("shards") == {}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, s3_bucket: str, encoder_folder: Path) -> Built:
    folder = tmp_path_factory.mktemp("built")
    url, scratch, documents = f"{s3_bucket}/corpus.fp", folder / "scratch", folder / "docs"
    write_documents(documents, range(8))
    run = plan(url, documents, Models(encoder_folder, "none", EXACT))
    with SeatJobs(url, seat(scratch)) as jobs:
        reports = [jobs.run(Job("prepare", number, run.id)) for number in range(run.n_parts)]
    kill_while_it_publishes(url, scratch)
    for copy in scratch.rglob("outbox/*"):  # whole, since they are small
        copy.unlink()
    with SeatJobs(url, seat(scratch)) as jobs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox_index, "NEAR_BYTES", 0)  # else small outboxes are fetched whole
        patch.setattr(outbox_index, "_MOST_OF_ALL", 1.0)
        patch.setattr(fetched, "_MUCH", float("inf"))
        reports += [jobs.run(Job("encode", number)) for number in range(N_SHARDS)]
    build(folder / "one.h5", documents, encoder_folder, encoder=EXACT)
    return Built(url, folder / "one.h5", reports, scratch)


def shard_file(text: str) -> str:
    return f"{shard_of_one(key_of(text), 2)}.h5"


def test_rows_are_those_of_one_machine_though_a_job_was_killed_while_it_published(
    built: Built, tmp_path: Path
) -> None:
    assert all(report.is_done for report in built.reports)
    files = FetchedFiles(ObjectStore(built.url), tmp_path)
    for name in files.listing:
        files.path(name)
    assert compare_folder(files.folder, built.file).words == []
    work = [path for path in built.scratch.rglob("*.h5*") if "featpipe-" in str(path)]
    assert work == []
    outboxes = [path for path in built.scratch.rglob("*.h5") if path.parent.name == "outbox"]
    assert {path.parts[-4] for path in outboxes} == {".some"}  # the rows of each shard alone
    assert {path.parts[-3] for path in outboxes} == {"0", "1", "2", "3"}


def test_it_is_read_as_the_file_is(built: Built, tmp_path: Path) -> None:
    with Cache.open(built.url, local=tmp_path) as ours, Cache.open(built.file) as theirs:
        dictionary = theirs.dictionary()
        for text in dictionary.texts():
            assert ours.dictionary()[text].tobytes() == dictionary[text].tobytes()
        assert [d.text for d in ours.documents()] == [d.text for d in theirs.documents()]


def test_it_is_exported_as_a_folder_is(built: Built, tmp_path: Path) -> None:
    command = ["export", built.url, str(tmp_path / "out"), "--table", "texts"]
    done = CliRunner().invoke(featpipe, command)
    assert done.exit_code == 0, done.exception
    with Cache.open(built.file) as theirs:
        n_texts = theirs.reader.table("texts").n_rows
    assert len((tmp_path / "out" / "texts" / "rows.jsonl").read_text().splitlines()) == n_texts


def test_one_text_costs_one_shard_and_the_next_process_fetches_nothing(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetched_folder, "_FEW_FILES", 0)
    with Cache.open(built.url, local=tmp_path) as cache, Cache.open(built.file) as theirs:
        assert list(cache.path.rglob("*.h5")) == []
        dictionary = cache.dictionary()
        typical = {path.name for path in cache.path.rglob("*.h5")}
        assert len(typical) == 2  # a part and a shard, whose tables are those of the cache
        text = next(t for t in theirs.dictionary().texts() if shard_file(t) not in typical)
        assert dictionary[text].tobytes() == theirs.dictionary()[text].tobytes()
        fetched = {path.name for path in cache.path.rglob("*.h5")}
        assert fetched == {*typical, shard_file(text)}
        n_documents, n_texts = len(list(cache.documents())), len(list(dictionary.texts()))
    code = (
        "import pickle, sys; from featpipe.store.object_store import ObjectStore\n"
        "def fetch(self, name, to): raise SystemExit(f'fetched {name}')\n"
        "ObjectStore.fetch = fetch\n"
        "cache = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print(len(list(cache.documents())), len(list(cache.dictionary().texts())))\n"
        "cache.close()"
    )
    with Cache.open(built.url, local=tmp_path) as cache:
        command = [sys.executable, "-c", code, pickle.dumps(cache).hex()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(n_documents), str(n_texts)], done.stderr


def test_what_is_published_later_is_seen_after_a_refresh(built: Built, tmp_path: Path) -> None:
    source, store = ObjectStore(built.url), ObjectStore(f"memory://bucket/{uuid4().hex}")
    names = list(source.list())
    late = next(name for name in names if name.startswith("parts/"))
    for name in names:
        if name != late and not name.startswith("reports/"):
            store.put_new(name, source.read(name))
    with Cache.open(store.url, local=tmp_path) as cache:
        n_before = len(list(cache.documents()))
        store.put_new(late, source.read(late))
        cache.refresh()
        assert n_before < len(list(cache.documents())) == 8


def test_another_model_is_encoded_from_the_shards_in_the_store(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiny_checkpoints import save_encoder

    source, store = ObjectStore(built.url), ObjectStore(f"memory://bucket/{uuid4().hex}")
    for name in source.list():
        store.put_new(name, source.read(name))
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    other = save_encoder(tmp_path / "other", seed=5)
    command = ["build-cache", store.url, "--model", str(other), "--device", "cpu"]
    done = CliRunner().invoke(featpipe, [*command, "--scratch", str(tmp_path / "scratch")])
    assert done.exit_code == 0, done.output
    with Cache.open(store.url, local=tmp_path) as ours, Cache.open(built.file) as theirs:
        assert sorted(ours.dictionary("other").texts()) == sorted(theirs.dictionary().texts())


def test_local_copies_are_not_written_to(built: Built, tmp_path: Path) -> None:
    with (
        Cache.open(built.url, local=tmp_path) as cache,
        pytest.raises(UsageError, match="holds local copies of some files of s3://bucket"),
    ):
        cache.forget(next(iter(cache.documents())).path)


def test_a_url_without_a_cache_is_named(tmp_path: Path) -> None:
    url = f"memory://bucket/{uuid4().hex}"
    with pytest.raises(UnreadableDictionary, match=f"{url} has no cache.json"):
        Cache.open(url, local=tmp_path)


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
