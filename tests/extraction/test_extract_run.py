"""Runs of ``featpipe extract``: interrupted at any time, gone on with, refused, left out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from waiting import HANG_S

from featpipe import Cache, Extractor
from featpipe.cli.main import featpipe
from featpipe.errors import MissingExtra, UsageError
from featpipe.extraction.extract_run import Asked, ExtractRun, select_documents
from featpipe.extraction.messages import Done
from featpipe.extraction.partial_results import PartialResults
from featpipe.extraction.results import Extraction, FieldResult, Provenance


@pytest.fixture(scope="module")
def copies(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 240 leases, by few contents, and one file that cannot be read."""
    folder = tmp_path_factory.mktemp("copies") / "many"
    folder.mkdir()
    known = sorted((documents / "contracts").glob("lease_*"))
    for number in range(240):
        file = known[number % len(known)]
        shutil.copy(file, folder / f"lease_{number:03}{file.suffix}")
    (folder / "lease_100b.bin").write_bytes(b"\x00\x01\x02")
    return folder


@pytest.fixture
def words(cache: Path, templates: Path, copies: Path) -> list[str]:
    """The command without its output."""
    named = str(copies.parent / "many")
    return ["extract", named, "--cache", str(cache), "--templates", str(templates)]


#: The command, but that each line it keeps takes a while: no machine ends before it is interrupted.
SLOWLY = """
import time
from featpipe.cli.main import main
from featpipe.extraction.partial_results import PartialResults

append = PartialResults.append

def append_slowly(self, done):
    append(self, done)
    time.sleep(0.04)

PartialResults.append = append_slowly
main()
"""


@contextmanager
def started(words: list[str], *more: str) -> Iterator[subprocess.Popen[str]]:
    """A real process in a session of its own, as a terminal has it."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *words, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def n_lines(partial: Path) -> int:
    """Whole lines after the conditions of the run."""
    return max(partial.read_bytes().count(b"\n") - 1, 0) if partial.exists() else 0


def wait_for_lines(process: subprocess.Popen[str], partial: Path, n: int) -> None:
    until = time.monotonic() + HANG_S
    while n_lines(partial) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)


def finish(words: list[str], *more: str) -> str:
    """Run to the end; what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "featpipe", *words, *more],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr  # one file is quarantined
    assert "quarantined" in done.stderr
    assert "lease_100b.bin" in done.stderr
    return done.stderr


@pytest.fixture
def expected(words: list[str], tmp_path: Path) -> Path:
    """What an uninterrupted run writes."""
    finish(words, "-o", str(tmp_path / "whole.jsonl"))
    return tmp_path / "whole.jsonl"


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_that_is_killed_keeps_its_first_documents_and_goes_on(
    words: list[str], expected: Path, tmp_path: Path, workers: str
) -> None:
    partial = tmp_path / "out.jsonl.partial"
    command = [*words, "-o", str(tmp_path / "out.jsonl"), "--workers", workers]
    n_before = 0
    for _ in range(3):  # each goes on from the one before
        with started(command) as process:
            wait_for_lines(process, partial, n_before + 20)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        assert not (tmp_path / "out.jsonl").exists()
        lines = partial.read_bytes().split(b"\n")[1:-1]
        names = [json.loads(json.loads(line)["document"])[0].rpartition("/")[2] for line in lines]
        assert names == sorted(names)
        assert len(names) >= n_before + 20
        n_before = len(names)
    said = finish(command)
    assert "kept by an interrupted run" in said
    assert (tmp_path / "out.jsonl").read_bytes() == expected.read_bytes()
    assert not partial.exists()


def test_a_workbook_of_a_killed_run_is_that_of_a_whole_one(
    words: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("xlsxwriter")
    finish(words, "-o", str(tmp_path / "whole.xlsx"))
    out = tmp_path / "out.xlsx"
    with started(words, "-o", str(out)) as process:
        wait_for_lines(process, tmp_path / "out.xlsx.partial", 5)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finish(words, "-o", str(out))
    assert out.read_bytes() == (tmp_path / "whole.xlsx").read_bytes()


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_interrupt_tells_the_truth_about_what_is_kept(
    words: list[str], expected: Path, tmp_path: Path, workers: str
) -> None:
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    out.write_text("earlier results\n", "utf-8")
    command = [*words, "-o", str(out), "--workers", workers]
    with started(command) as process:
        wait_for_lines(process, partial, 10)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, errors
    n = n_lines(partial)
    assert f"interrupted: {n} of 241 documents are kept in {partial}" in errors
    assert "Traceback" not in errors
    assert out.read_text("utf-8") == "earlier results\n"
    assert f"documents {n}/241 ({n} kept by an interrupted run)" in finish(command)
    assert out.read_bytes() == expected.read_bytes()


def test_an_interrupt_before_the_first_document_stops_at_once(cache: Path, templates: Path) -> None:
    with Extractor(templates, cache, checkpoints="none") as extractor:
        run = ExtractRun(extractor, select_documents(extractor.engine, [Asked(LEASES[0])]))
        assert run.stop() is False
        assert list(run.extractions(lambda _: None)) == []


# ---- in this process


def invoke(*words: object) -> tuple[int, str]:
    """Exit code and what was said, as `main` maps errors."""
    result = CliRunner().invoke(featpipe, list(map(str, words)))
    if isinstance(result.exception, UsageError):
        return 2, str(result.exception)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stderr


LEASES = ["contracts/lease_factory.txt", "contracts/lease_office.md", "contracts/lease_shop.txt"]


@pytest.fixture
def interrupted(cache: Path, templates: Path, tmp_path: Path) -> list[str]:
    """A command, after whose first two documents a run was cut off in the middle of a line."""
    command = ["extract", *LEASES, "--cache", str(cache), "--templates", str(templates),
               "-o", str(tmp_path / "o.jsonl")]  # fmt: skip
    kept: list[bytes] = []

    def keep(self: PartialResults) -> None:
        kept.append(self.path.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartialResults, "remove", keep)
        assert invoke(*command)[0] == 0
    whole = (tmp_path / "o.jsonl").read_bytes()
    (tmp_path / "whole.jsonl").write_bytes(whole)
    (tmp_path / "o.jsonl").unlink()
    lines = kept[0].splitlines(keepends=True)
    (tmp_path / "o.jsonl.partial").write_bytes(b"".join(lines[:3]) + lines[3][:-40])
    return command


def test_half_a_line_is_cut_off(interrupted: list[str], tmp_path: Path) -> None:
    code, said = invoke(*interrupted)
    assert (code, "documents 2/3 (2 kept" in said) == (0, True)
    assert (tmp_path / "o.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("change", ["template", "cache", "choice"])
def test_results_of_two_conditions_are_never_in_one_file(
    interrupted: list[str], tmp_path: Path, change: str
) -> None:
    partial = tmp_path / "o.jsonl.partial"
    before = partial.read_bytes()
    command = list(interrupted)
    if change == "template":
        file = tmp_path / "templates" / "lease.toml"
        file.write_text(file.read_text("utf-8").replace('aliases = ["出租人"]', ""), "utf-8")
        expected = "templates 租赁合同 changed"
    elif change == "cache":
        command[command.index("--cache") + 1] = str(
            shutil.copy(tmp_path / "c.h5", tmp_path / "d.h5")
        )
        expected = "cache was '"
    else:
        command += ["--template", "租赁合同"]
        expected = "choice of templates was '*', is '租赁合同'"
    code, said = invoke(*command)
    assert code == 2
    assert expected in said
    assert "--restart" in said
    assert partial.read_bytes() == before
    assert not (tmp_path / "o.jsonl").exists()
    assert invoke(*command, "--restart")[0] == 0
    assert len((tmp_path / "o.jsonl").read_text("utf-8").splitlines()) == 3
    assert not partial.exists()


def test_a_document_that_changed_is_done_again_with_all_that_follow(
    cache: Path, documents: Path, templates: Path, tmp_path: Path
) -> None:
    files = []
    for name in (LEASES[1], LEASES[0], LEASES[2]):
        files.append(str(tmp_path / Path(name).name))
        shutil.copy(documents / name, files[-1])
    command = ["extract", *files, "--cache", str(cache), "--templates", str(templates),
               "-o", str(tmp_path / "o.jsonl")]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartialResults, "remove", lambda _: None)
        assert invoke(*command)[0] == 0
    shutil.copy(documents / LEASES[2], files[1])
    code, said = invoke(*command)
    assert code == 0
    assert "documents 1/3 (1 kept" in said
    assert f"{files[1]} and what follows are new since the interruption" in said
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text("utf-8").splitlines()]
    assert [row["document"] for row in rows] == files
    assert rows[1]["fields"] == rows[2]["fields"]


def test_one_run_at_a_time_writes_an_output(interrupted: list[str], tmp_path: Path) -> None:
    partial = PartialResults(tmp_path / "other.jsonl", {}, ["a"])
    interrupted[-1] = str(tmp_path / "other.jsonl")
    with partial:
        code, said = invoke(*interrupted)
    assert (code, "is in use" in said) == (2, True)


def test_a_file_of_another_program_is_left_alone(interrupted: list[str], tmp_path: Path) -> None:
    partial = tmp_path / "o.jsonl.partial"
    partial.write_text("my notes\n", "utf-8")
    code, said = invoke(*interrupted)
    assert (code, "is in the way" in said) == (2, True)
    assert partial.read_text("utf-8") == "my notes\n"


def test_what_is_kept_is_restored_as_it_was(cache: Path, templates: Path, tmp_path: Path) -> None:
    with Extractor(templates, cache, checkpoints="none") as extractor:
        found = [one for one in extractor.extract_many(extractor.cache.documents(), "*")
                 if isinstance(one, Extraction)]  # fmt: skip
    assert any(one.records for one in found)
    odd = Extraction("\ud800.txt", {"f": FieldResult()}, (), Provenance("t", "f", "", "s", "c"))
    found.append(odd)
    with PartialResults(tmp_path / "o", {}, [str(n) for n in range(len(found))]) as partial:
        for one in found:
            partial.append(Done("d", (one,)))
        assert list(partial.extractions()) == found
    assert odd.as_json().encode()
    assert json.loads(odd.as_json())["document"] == "\ud800.txt"


# ---- the output is checked before work begins


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone/o.jsonl", "there is no folder"),
        ("folder", "is a folder"),
        ("o.xls", r".xls is no format of results"),
        ("o", "the name has no suffix"),
        ("file.txt/o.jsonl", "there is no folder"),
    ],
)
@pytest.mark.parametrize("command", ["extract", "reprocess"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    templates: Path, tmp_path: Path, name: str, words: str, command: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("a", "utf-8")
    code, said = invoke(command, "--cache", tmp_path / "no.h5", "--templates", templates,
                        "-o", tmp_path / name)  # fmt: skip
    assert code == 2
    assert words in said
    if "suffix" in said:
        assert ".jsonl, .json, .csv, .tsv, .parquet, .xlsx" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(templates: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    code, said = invoke("extract", "--cache", tmp_path / "no.h5", "--templates", templates,
                        "-o", tmp_path / "locked" / "o.jsonl")  # fmt: skip
    assert (code, "cannot be written" in said) == (2, True)


def test_a_format_whose_package_is_missing_is_refused_before_the_work(
    templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtra, match="needs xlsxwriter") as raised:
        CliRunner().invoke(
            featpipe,
            ["extract", "--cache", "no.h5", "--templates", str(templates),
             "-o", str(tmp_path / "o.xlsx")],
            catch_exceptions=False,
        )  # fmt: skip
    assert "featpipe[xlsx]" in str(raised.value)


# ---- patterns of templates


@pytest.fixture
def lease(templates: Path) -> Path:
    return templates / "lease.toml"


@pytest.fixture
def strange(documents: Path, tmp_path: Path) -> Path:
    """A lease whose name matches no pattern."""
    (tmp_path / "strange").mkdir()
    return Path(shutil.copy(documents / LEASES[0], tmp_path / "strange" / "vertrag.txt"))


def test_no_match_is_said_with_the_patterns_and_the_way_out(
    cache: Path, lease: Path, strange: Path, tmp_path: Path
) -> None:
    for named in ([], ["--template", "租赁合同"]):
        code, said = invoke("extract", strange.parent, "--cache", cache, "--templates", lease,
                            *named, "-o", tmp_path / "o.jsonl")  # fmt: skip
        assert code == 0
        assert "0 extractions in" in said
        assert "1 of 1 documents are left out, such as" in said
        assert "租赁合同: 0 of 1 match *lease_*" in said
        assert "--template NAME" in said


@pytest.mark.parametrize("named", [["--template", "租赁合同"], []])
def test_a_named_file_is_extracted_under_a_named_template_whatever_the_patterns(
    cache: Path, lease: Path, strange: Path, tmp_path: Path, named: list[str]
) -> None:
    """The template is named by its name, or by its file."""
    templates = lease.parent if named else lease
    code, said = invoke("extract", strange, "--cache", cache, "--templates", templates, *named,
                        "-o", tmp_path / "o.jsonl")  # fmt: skip
    assert (code, "left out" in said) == (0, False)
    [row] = (tmp_path / "o.jsonl").read_text("utf-8").splitlines()
    assert json.loads(row)["document"] == str(strange)


def test_a_named_file_without_a_named_template_goes_by_the_patterns(
    cache: Path, templates: Path, strange: Path
) -> None:
    code, said = invoke("extract", strange, "--cache", cache, "--templates", templates)
    assert code == 0
    assert "1 of 1 documents are left out" in said


def test_folders_and_the_whole_cache_go_by_the_patterns_of_a_named_template(
    cache: Path, templates: Path, documents: Path, tmp_path: Path
) -> None:
    n = sum(file.is_file() for file in documents.rglob("*"))
    for given in ([documents], []):
        code, said = invoke("extract", *given, "--cache", cache, "--templates", templates,
                            "--template", "租赁合同", "-o", tmp_path / "o.jsonl")  # fmt: skip
        assert code == 0
        rows = (tmp_path / "o.jsonl").read_text("utf-8").splitlines()
        names = [json.loads(row)["document"] for row in rows]
        assert names
        assert all("lease_" in name for name in names)
        assert f"{n - len(names)} of {n} documents are left out" in said


def test_auto_and_templates_without_patterns_leave_nothing_out(
    cache: Path, lease: Path, strange: Path
) -> None:
    lease.write_text(lease.read_text("utf-8").replace('documents = ["*lease_*"]', ""), "utf-8")
    with Extractor(lease.parent, cache, checkpoints="none") as extractor:
        for template in ("auto", None, "*"):
            chosen = select_documents(extractor.engine, [Asked(strange)], template)
            assert (len(chosen.documents), list(chosen.lines())) == (1, [])
        with pytest.raises(UsageError, match="no template 'nein'"):
            select_documents(extractor.engine, [Asked(strange)], "nein")


def test_the_library_says_how_many_matched_nothing(
    cache: Path, lease: Path, strange: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Extractor(lease, cache, checkpoints="none") as extractor:
        assert list(extractor.extract_many([strange], "*")) == []
        assert len(list(extractor.extract_many([strange]))) == 1
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if line.startswith("1 of 1 documents match")]


def test_reprocess_and_check_say_which_template_is_meant_for_no_document(
    cache: Path, lease: Path
) -> None:
    lease.write_text(lease.read_text("utf-8").replace("*lease_*", "*nothing_*"), "utf-8")
    words = ["--cache", cache, "--templates", lease]
    with Cache.open(cache) as opened:
        n = len(list(opened.documents()))
    expected = (
        f"租赁合同: 0 of {n} documents of the cache match its `documents` patterns *nothing_*"
    )
    assert expected in invoke("reprocess", *words)[1]
    for command in (["reprocess", *words, "--dry-run"], ["template", "check", lease, *words[:2]]):
        result = CliRunner().invoke(featpipe, list(map(str, command)))
        assert expected in result.stdout


def test_results_take_the_place_of_no_document(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    source = tmp_path / "leases.jsonl"
    source.write_text(json.dumps({"id": "a", "text": "租赁合同"}, ensure_ascii=False) + "\n")
    before = source.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(source)
    for given in (source, tmp_path):
        for out in (source, link):
            words = ["extract", str(given), "--cache", str(cache), "--templates", str(templates)]
            done = CliRunner().invoke(featpipe, [*words, "-o", str(out)])
            assert isinstance(done.exception, UsageError)
            assert "would be lost" in str(done.exception)
            assert source.read_bytes() == before
