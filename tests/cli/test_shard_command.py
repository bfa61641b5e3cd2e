"""``featpipe shard``: exit codes and words of each step, as a scheduler sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from featpipe.cli.main import featpipe
from featpipe.cli.seat_options import read_share
from featpipe.errors import UsageError

if TYPE_CHECKING:
    from folder_cache import Pair


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"第{number}号合同。一式两份。", "utf-8")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


def test_a_folder_is_planned_prepared_encoded_and_done(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    (docs / "bad.bin").write_bytes(bytes(range(256)))
    folder = tmp_path / "c.fp"
    planned = run("shard", "plan", folder, docs, "--shards", 2, "--parts", 2, "--json",
                  "--model", encoder_folder, "--ner", "none", "--device", "cpu")  # fmt: skip
    counts = json.loads(planned.stdout)
    assert (counts["files"], counts["prepare"], counts["encode"]) == (5, 2, 2)

    status = run("shard", "status", folder)
    assert status.exit_code == 1
    assert "parts: 0 of 2 prepared; missing: " in status.stdout
    assert "0 of 2 done; missing: 0, 1" in status.stdout

    here = ("--cpus", 1, "--scratch", "none")
    first = run("shard", "prepare", folder, "--job", "0/2", *here)
    second = run("shard", "prepare", folder, "--job", "1/2", *here)
    assert sorted([first.exit_code, second.exit_code]) == [0, 1]
    assert "quarantined docs/bad.bin: " in first.stderr + second.stderr
    priced = run("shard", "status", folder, "--tokens-per-s", 10, "--json")
    [space] = json.loads(priced.stdout)["spaces"]
    assert priced.exit_code == 1

    every = ("--publish-every", "inf")
    encoded = run("shard", "encode", folder, "--device", "cpu", "--json", *every, *here)
    assert encoded.exit_code == 0, encoded.stderr
    reports = [json.loads(line) for line in encoded.stdout.splitlines()]
    assert sum(report["run"]["n_encoded"] for report in reports) == space["n_texts"]
    assert run("shard", "status", folder).exit_code == 0

    again = run("build-cache", docs, "--cache", folder, "--device", "cpu", "--json")
    report = json.loads(again.stdout.splitlines()[-1])
    assert (again.exit_code, report["n_encoded"], report["n_unchanged"]) == (1, 0, 4)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_why_a_folder_has_its_precision_is_printed(
    tmp_path: Path, docs: Path, encoder_folder: Path, form: tuple[str, ...]
) -> None:
    command = ("shard", "plan", tmp_path / "c.fp", docs, "--device", "cpu", *form)
    run(*command, "--model", encoder_folder, "--ner", "none")
    described = tmp_path / "c.fp" / "cache.json"
    plan = json.loads(described.read_text("utf-8"))
    plan["encoder"]["note"] = "vectors in mixed precision"
    described.write_text(json.dumps(plan), "utf-8")
    assert "vectors in mixed precision" in run(*command).output


def test_encoding_before_all_is_prepared_says_so(
    tmp_path: Path, docs: Path, encoder_folder: Path
) -> None:
    folder = tmp_path / "c.fp"
    run("shard", "plan", folder, docs, "--shards", 1, "--parts", 1, "--model", encoder_folder,
        "--ner", "none", "--device", "cpu")  # fmt: skip
    encoded = run("shard", "encode", folder, "--device", "cpu", "--scratch", "none")
    assert encoded.exit_code == 1
    assert "note 1 parts were not prepared: " in encoded.stderr


@pytest.mark.parametrize("text", ["4/4", "-1/4", "1", "a/b", "1/0", ""])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no share of the jobs"):
        read_share(text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--shards", "3"), "3 is no number of shards"),
        (("--on", "nothing"), "no engine 'nothing'"),
    ],
)
def test_what_a_folder_cannot_do_is_said(
    tmp_path: Path, docs: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run("build-cache", docs, "--cache", tmp_path / "c.fp", *arguments)
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)
    assert not (tmp_path / "c.fp").exists()


def test_documents_without_a_cache_are_refused(docs: Path) -> None:
    done = run("build-cache", docs)
    assert isinstance(done.exception, UsageError)
    assert "--cache is missing" in str(done.exception)


def test_a_dry_run_of_another_model_names_the_next_step(pair: Pair) -> None:
    for cache in (pair.file, pair.folder):
        done = run("build-cache", cache, "--model", pair.encoder, "--dry-run")
        assert isinstance(done.exception, UsageError)
        assert f"{cache} is a cache" in str(done.exception)
        assert f"featpipe inspect {cache}" in str(done.exception)
