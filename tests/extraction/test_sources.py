"""What a build reads, extraction reads: archives, records, and the same refusals."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from featpipe import Cache, Extractor, LoadLimits, Pipeline, Source
from featpipe.cli.main import featpipe
from featpipe.documents import find_sources, hash_bytes, hash_file
from featpipe.errors import (
    DocumentError,
    DocumentTooLarge,
    MissingDocuments,
    UnreadableDocument,
    WriteFailed,
)
from featpipe.extraction.results import Extraction
from featpipe.extraction.results_file import write_extractions
from featpipe.report import Quarantined

NEW = "出租方：汉口置业有限公司\n承租方：张三\n月租金：3,500元\n"


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (os.mkfifo, UnreadableDocument),
        (Path.mkdir, UnreadableDocument),
        (str, UnreadableDocument),
        (lambda path: path.write_bytes(b"a" * 2000), DocumentTooLarge),
    ],
    ids=["pipe", "folder", "missing", "large"],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_path_that_cannot_be_read_is_refused_at_once(
    cache: Path, templates: Path, tmp_path: Path, make: Callable[[Path], object],
    error: type[DocumentError], workers: int,
) -> None:  # fmt: skip
    path = tmp_path / "odd.txt"
    make(path)
    with Extractor(templates, cache, limits=LoadLimits(max_bytes=1000)) as extractor:
        for given in (path, Source(str(path), path)):
            with pytest.raises(error, match=r"odd\.txt: ") as raised:
                extractor.extract(given, "租赁合同")
            assert raised.value.hint
            [lost] = extractor.extract_many([given], "租赁合同", workers=workers)
            assert isinstance(lost, Quarantined)
            assert (lost.error, raised.value.hint in lost.reason) == (error.__name__, True)


def test_a_draft_of_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    result = CliRunner().invoke(featpipe, ["template", "new", str(tmp_path / "pipe.txt")])
    assert isinstance(result.exception, UnreadableDocument)


@pytest.fixture
def containers(documents: Path, tmp_path: Path) -> Path:
    """A folder: an archive of two leases, and three records, two of them with the same text."""
    folder = tmp_path / "given"
    folder.mkdir()
    with zipfile.ZipFile(folder / "leases.zip", "w") as archive:
        for name in ("lease_shop.txt", "lease_office.md"):
            archive.write(documents / "contracts" / name, f"合同/{name}")
    texts = {"甲": NEW, "乙": NEW, "丙": NEW.replace("3,500", "4,800")}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (folder / "records.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.fixture
def holding(built: Path, containers: Path, tmp_path: Path) -> Path:
    """A cache that holds the documents of the containers."""
    path = Path(shutil.copy(built, tmp_path / "holding.h5"))
    with Pipeline(path, built.parent / "tiny", "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(containers).is_complete
    return path


def rows(cache: Path, templates: Path, *given: object) -> list[tuple[str, object]]:
    result = CliRunner().invoke(
        featpipe,
        ["extract", *map(str, given), "--cache", str(cache), "--template", "租赁合同",
         "--templates", str(templates), "--model", str(cache.parent / "tiny"), "--ner", "none"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return [(row["document"], row["fields"]["月租金"]) for row in found]


def test_members_and_records_have_the_names_that_the_build_gives(
    cache: Path, holding: Path, built: Path, templates: Path, containers: Path
) -> None:
    shutil.copytree(built.parent / "tiny", cache.parent / "tiny")
    lease = templates / "lease.toml"  # meant for every document of a folder
    lease.write_text(lease.read_text("utf-8").replace('documents = ["*lease_*"]', ""), "utf-8")
    names = ["given/leases.zip/合同/lease_office.md", "given/leases.zip/合同/lease_shop.txt",
             *(f"given/records.jsonl/{name}" for name in "丙乙甲")]  # fmt: skip
    with Cache.open(holding) as opened:
        assert {document.id for document in opened.documents()} >= set(names)
    for given in ([containers], [containers / "leases.zip", containers / "records.jsonl"]):
        new, known = rows(cache, templates, *given), rows(holding, templates, *given)
        assert [name for name, _ in new] == [name for name, _ in known] == names
        assert new == known


def test_files_keep_the_order_in_which_they_are_named(
    cache: Path, built: Path, templates: Path, containers: Path, tmp_path: Path
) -> None:
    shutil.copytree(built.parent / "tiny", cache.parent / "tiny")
    other = tmp_path / "other" / "leases.zip"
    other.parent.mkdir()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("neu.txt", NEW)
    (tmp_path / "plain.txt").write_text(NEW, "utf-8")
    given = (tmp_path / "plain.txt", other, "contracts/lease_shop.txt", containers / "leases.zip")
    first, second, third, *rest = (name for name, _ in rows(cache, templates, *given))
    assert (first, third) == (str(tmp_path / "plain.txt"), "documents/contracts/lease_shop.txt")
    # As in a build of both: two archives of one name are told apart by their folders.
    built_as = [s.id for s in find_sources([other, containers / "leases.zip"], expand=True)]
    assert sorted([second, *rest]) == built_as


def test_a_document_that_is_named_twice_or_with_its_folder_has_one_result(
    cache: Path, built: Path, templates: Path, containers: Path
) -> None:
    shutil.copytree(built.parent / "tiny", cache.parent / "tiny")
    lease = templates / "lease.toml"
    lease.write_text(lease.read_text("utf-8").replace('documents = ["*lease_*"]', ""), "utf-8")
    archive, cached = containers / "leases.zip", "contracts/lease_shop.txt"
    whole = [name for name, _ in rows(cache, templates, cached, archive, containers)]
    assert len(whole) == len({*whole}) == 6
    again = rows(cache, templates, cached, archive, containers, archive, f"documents/{cached}")
    assert [name for name, _ in again] == whole


def test_a_name_that_is_nowhere_is_a_usage_error(cache: Path, templates: Path) -> None:
    result = CliRunner().invoke(
        featpipe, ["extract", "gone.pdf", "--cache", str(cache), "--templates", str(templates)]
    )
    assert isinstance(result.exception, MissingDocuments)
    assert "gone.pdf does not exist, and the cache holds no document" in str(result.exception)


def test_sources_travel_to_workers(cache: Path, templates: Path, containers: Path) -> None:
    given = find_sources([containers], expand=True)
    with Extractor(templates, cache, checkpoints="none") as extractor:
        here = list(extractor.extract_many(given, "租赁合同"))
        there = list(extractor.extract_many(given, "租赁合同", workers=1))
        assert extractor.extract(given[0], "租赁合同") == here[0]
    assert there == here
    assert [one.document for one in here if isinstance(one, Extraction)] == [s.id for s in given]


def test_a_file_is_hashed_in_blocks(tmp_path: Path) -> None:
    for size in (0, 1, 3_000_000):
        data = os.urandom(size)
        (tmp_path / "f").write_bytes(data)
        assert hash_file(tmp_path / "f") == hash_bytes(data)


def test_results_replace_a_file_only_when_they_are_complete(
    cache: Path, templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Extractor(templates, cache, checkpoints="none") as extractor:
        found = [extractor.extract("contracts/lease_shop.txt", "租赁合同")]
    out, link = tmp_path / "out.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(out)
    assert write_extractions(found, link).n_extractions == 1
    before = out.read_bytes()
    assert link.is_symlink()

    def fail(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(WriteFailed, match=r"out\.jsonl cannot be written: No space left"):
            write_extractions([], out)
    assert out.read_bytes() == before
    assert {path.name for path in tmp_path.glob("*out*")} == {"out.jsonl"}


def test_results_are_written_to_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    reader = os.open(tmp_path / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(reader, "rb") as pipe:
        write_extractions([], tmp_path / "pipe.csv")
        assert pipe.read().startswith("\ufeffdocument,".encode())
    assert (tmp_path / "pipe.csv").is_fifo()
