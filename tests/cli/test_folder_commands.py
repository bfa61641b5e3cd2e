"""Commands take a folder cache wherever they take a file, and answer as of that file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner, Result
from flipped_bits import flip, offset_of

from featpipe import Cache
from featpipe.cli.main import featpipe
from featpipe.errors import DamagedRows, UsageError
from featpipe.store import Reader, Writer
from featpipe.store.rewrite import rows_of

if TYPE_CHECKING:
    from folder_cache import Pair

QUERY = "合同金额为万元"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


@pytest.fixture
def own(pair: Pair, tmp_path: Path) -> Path:
    """A copy of the folder, to be changed."""
    return Path(shutil.copytree(pair.folder, tmp_path / "own.fp"))


@pytest.mark.parametrize(
    "command",
    [
        ("search", "CACHE", QUERY, "--json"),
        ("search", "CACHE", QUERY, "--level", "document", "-k", "3"),
        ("documents", "list", "CACHE", "--json"),
        ("documents", "list", "CACHE", "*0.txt"),
        ("documents", "show", "CACHE", "docs/07.txt", "--json"),
    ],
    ids=lambda command: " ".join(command[:2]) + command[-1],
)
def test_answers_are_those_of_the_file(pair: Pair, command: tuple[str, ...]) -> None:
    ours, theirs = (
        run(*(str(path) if word == "CACHE" else word for word in command))
        for path in (pair.folder, pair.file)
    )
    assert ours.exit_code == theirs.exit_code == 0, ours.output
    assert ours.output == theirs.output
    assert ours.output.strip()


def test_a_file_is_not_made_a_folder(pair: Pair) -> None:
    before = pair.file.read_bytes()
    done = run("build-cache", "docs", "--cache", pair.file, "--shards", "4")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == (
        f"{pair.file} is a file, and --shards and --on make a folder\n"
        f"  name another --cache; --also {pair.file} has it take over what the file holds"
    )
    assert pair.file.read_bytes() == before


def test_a_folder_is_inspected_and_its_runs_are_listed(pair: Pair) -> None:
    ours, theirs = (
        json.loads(run("inspect", p, "--json").output) for p in (pair.folder, pair.file)
    )
    for name in ("path", "file_bytes", "runs"):
        ours.pop(name)
        theirs.pop(name)
    assert ours == theirs
    listed = run("runs", "list", pair.folder)
    assert listed.output.count("build-cache") >= 2
    assert run("runs", "show", pair.folder, "last").exit_code == 0


def test_a_folder_is_verified_compacted_backed_up_and_repaired(own: Path, tmp_path: Path) -> None:
    for command in (
        ("verify", own),
        ("compact", own),
        ("backup", own, tmp_path / "copy.fp"),
        ("backup", own, tmp_path / "copy.fp"),
        ("repair", tmp_path / "copy.fp"),
        ("verify", tmp_path / "copy.fp"),
    ):
        done = run(*command)
        assert done.exit_code == 0, done.output
    assert "good (structure only)" in done.output


def test_damage_is_told_by_the_exit_code(own: Path) -> None:
    shutil.copy(own / "shards" / "1.h5", own / "shards" / "9.h5")
    found = run("verify", own)
    assert found.exit_code == 1
    assert "9.h5 is no file of this cache" in found.output


def test_a_file_that_may_not_be_opened_hides_no_damage_of_others(own: Path) -> None:
    """Its reason is told, it is not called damaged, and every other file is checked."""
    locked, foreign, flipped = (own / "shards" / f"{number}.h5" for number in (0, 1, 2))
    locked.chmod(0)
    found = verify_without_rights(own)
    assert found.returncode == 1, found.stderr
    assert f"{own}: NOT WHOLLY CHECKED" in found.stdout
    assert "; 1 more could not be opened\n" in found.stdout
    assert "DAMAGED" not in found.stdout
    with foreign.open("r+b") as file:
        file.write(bytes(96))
    flip(flipped, offset_of(flipped, "texts", "text", 1))
    found = verify_without_rights(own, "--deep")
    assert found.returncode == 1, found.stderr
    assert f"{own}: DAMAGED" in found.stdout
    assert f"{locked}: NOT CHECKED\n{locked} cannot be opened: Permission denied" in found.stdout
    assert f"{foreign} is not an HDF5 file" in found.stdout
    assert f"{flipped}: DAMAGED" in found.stdout
    locked.chmod(0o600)


def test_a_folder_of_files_that_may_not_be_listed_is_named(own: Path) -> None:
    for mode, what in ((0, "cannot be listed"), (0o600, "0.h5 cannot be opened")):
        (own / "shards").chmod(mode)
        found = verify_without_rights(own, "--deep")
        assert found.returncode == 1, found.stderr
        assert f"{what}: Permission denied" in found.stdout
        assert "DAMAGED" not in found.stdout
    (own / "shards").chmod(0o700)


def verify_without_rights(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """As a user who is not root: for root, without the rights to pass over modes."""
    command = [sys.executable, "-m", "featpipe", "verify", str(folder), *options]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything, and there is no setpriv")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_what_is_no_file_is_named_and_not_waited_for(own: Path) -> None:
    """libhdf5 opens a pipe, and waits for what will be written to it."""
    os.mkfifo(own / "shards" / "0.9.h5")
    (own / "shards" / "1.h5").unlink()
    (own / "shards" / "1.h5").symlink_to("1.h5")
    found = run("verify", own, "--deep")
    assert found.exit_code == 1
    assert "is missing, and 0.9.h5 is an addition to it" in found.output
    (own / "shards" / "0.9.h5").rename(own / "parts" / "run-0000.h5")
    found = run("verify", own, "--deep")
    assert found.exit_code == 1
    assert "run-0000.h5 is no regular file" in found.output
    assert "1.h5 cannot be opened: Too many levels of symbolic links" in found.output


def test_damage_names_the_folder_to_repair_and_its_files_are_not_repaired_one_by_one(
    own: Path,
) -> None:
    """A file repaired by itself would lack rows that the reports of the folder call done."""
    file = own / "shards" / "1.h5"
    flip(file, offset_of(file, "texts", "text", 1))
    with Cache.open(own) as cache, pytest.raises(DamagedRows) as raised:
        list(cache.dictionary().texts())
    assert "1.h5 is damaged" in str(raised.value)
    assert raised.value.hint == f"featpipe repair {own}"
    for command in ("repair", "compact"):
        refused = run(command, own / "shards" / "1.h5")
        assert str(refused.exception) == (
            f"{own / 'shards' / '1.h5'} is a file of the cache {own}\n  featpipe {command} {own}"
        )
    assert run("repair", own).exit_code == 1


def test_a_folder_with_texts_to_encode_is_not_narrowed(own: Path, tmp_path: Path) -> None:
    """Its outboxes stay behind, and documents that are known are not read again."""
    for report in (own / "reports").glob("encode-1-*.done"):
        report.unlink()
    refused = run("merge", own, "-o", tmp_path / "two.fp", "--into", 2)
    assert "texts that are still to be encoded" in str(refused.exception)
    assert not (tmp_path / "two.fp").exists()


def test_a_folder_is_merged_and_narrowed(pair: Pair, tmp_path: Path) -> None:
    assert run("merge", pair.folder, "-o", tmp_path / "one.h5").exit_code == 0
    assert run("merge", pair.folder, "-o", tmp_path / "two.fp", "--into", 2).exit_code == 0
    for path in (tmp_path / "one.h5", tmp_path / "two.fp"):
        assert run("search", path, QUERY).output == run("search", pair.file, QUERY).output
    refused = run("merge", pair.folder, "-o", tmp_path / "x.fp", "--into", 3)
    assert "cannot have 3" in str(refused.exception)
    both = run("merge", pair.folder, pair.file, "-o", tmp_path / "x.fp", "--into", 2)
    assert both.exit_code == 2
    assert "one folder" in both.output


def test_documents_are_forgotten(own: Path) -> None:
    assert run("documents", "forget", own, "docs/0?.txt", "--yes").exit_code == 0
    assert len(run("documents", "list", own).output.splitlines()) == 10
    assert run("compact", own).exit_code == 0
    assert len(run("documents", "list", own).output.splitlines()) == 10
    again = run("documents", "forget", own, "docs/10.txt")
    assert again.exit_code == 0
    assert len(run("documents", "list", own).output.splitlines()) == 9


def test_a_folder_is_exported(pair: Pair, tmp_path: Path) -> None:
    assert run("export", pair.folder, tmp_path / "out", "--table", "texts").exit_code == 0
    texts = (tmp_path / "out" / "texts" / "rows.jsonl").read_text("utf-8").splitlines()
    assert len({json.loads(line)["text"] for line in texts}) == len(texts) > 50


def test_vectors_are_not_imported_into_a_folder(own: Path, pair: Pair) -> None:
    done = run("import", pair.file, "--cache", own, "--group", "texts")
    assert done.exit_code
    assert "needs a cache in one file" in str(done.exception)
    assert "featpipe merge" in str(done.exception)


def test_commands_over_samples_take_one_of_several_spaces(pair: Pair, tmp_path: Path) -> None:
    file, template = tmp_path / "two.h5", tmp_path / "t.toml"
    shutil.copyfile(pair.file, file)
    with Reader(file) as reader, Writer.open(file) as writer:
        [name] = [name for name in reader.tables() if name.startswith("embeddings/")]
        space, table = name.removeprefix("embeddings/"), reader.table(name)
        other = writer.table("embeddings/other@000000000000", table.spec)
        other.append(rows_of(table, np.arange(table.n_rows)))
    drafted = run("template", "new", pair.documents / "01.txt", "--name", "t").stdout
    extra = '[[fields]]\nname = "金额"\ntype = "money"\n[[samples]]\n'
    sample = 'document = "docs/02.txt"\n[samples.fields]\n"金额" = "2,000万元"\n'
    template.write_text(drafted.partition("[[")[0] + extra + sample, "utf-8")
    for command in (
        ("template", "check", template, "--cache", file),
        ("template", "suggest", template, "--cache", file),
        ("template", "export", template, "--cache", file, "--to", "doccano"),
    ):
        unnamed = run(*command)
        assert "a space must be named" in str(unnamed.exception)
        named = run(*command, "--space", space)
        assert named.exit_code == 0, (named.output, named.exception)
