"""A folder cache follows its documents and foretells a build as a file of the same ones does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe import Cache, Pipeline, RunReport
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.folder_sync import check_roots
from featpipe.build.jobs import Seat
from featpipe.build.shards.folder_plan import Models
from featpipe.documents.find import Found, find_sources
from featpipe.errors import MissingDocuments, UsageError

if TYPE_CHECKING:
    from featpipe.build.dry_run import DryRunReport

SEAT = Seat(("cpu",), threads=1)


class Idle:
    """An engine that is stopped before its first job."""

    notes: Sequence[str] = ()

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def run(self, *_: object) -> Iterator[object]:
        return iter(())

    def stop_after_current(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Both:
    """A file and a folder, of the same documents."""

    def __init__(self, place: Path, model: Path) -> None:
        self.docs, self.file, self.folder = place / "docs", place / "c.h5", place / "c.fp"
        self.model = model

    def pipeline(self, **options: object) -> FolderPipeline:
        models = Models(self.model, "none")
        return FolderPipeline(self.folder, models, seat=SEAT, n_shards=2, **options)  # type: ignore[arg-type]

    def build(self, *given: Path, sync: bool = False) -> tuple[RunReport, RunReport]:
        paths = given or (self.docs,)
        ours = self.pipeline().build(paths, n_parts=2, sync=sync)
        with Pipeline(self.file, self.model, "none", devices=["cpu"]) as pipeline:
            return ours, pipeline.build(paths, sync=sync)

    def dry_run(self, *, sync: bool = False) -> tuple[DryRunReport, DryRunReport]:
        ours = self.pipeline().dry_run([self.docs], sync=sync)
        with Pipeline(self.file, self.model, "none", devices=["cpu"]) as pipeline:
            return ours, pipeline.dry_run([self.docs], sync=sync)

    def held(self) -> list[list[tuple[str, str, str]]]:
        return [held_by(self.folder), held_by(self.file)]


def held_by(path: Path) -> list[tuple[str, str, str]]:
    with Cache.open(path) as cache:
        return sorted((d.id, d.path, d.text) for d in cache.documents())


@pytest.fixture
def both(tmp_path: Path, encoder_folder: Path) -> Both:
    made = Both(tmp_path, encoder_folder)
    for name in ("a/1.txt", "a/2.txt", "a/3.txt", "b/4.txt", "b/5.txt"):
        (made.docs / name).parent.mkdir(parents=True, exist_ok=True)
        (made.docs / name).write_text(f"文件{name}的内容。合同金额为三万元。", "utf-8")
    lines = [f'{{"id": "r{n}", "text": "第{n}条记录的内容。"}}' for n in range(4)]
    (made.docs / "records.jsonl").write_text("\n".join(lines), "utf-8")
    return made


def counted(report: DryRunReport) -> dict[str, object]:
    return asdict(report) | {"free_bytes": 0}


def test_what_is_gone_leaves_a_folder_as_it_leaves_a_file(both: Both) -> None:
    ours, theirs = both.dry_run()
    assert counted(ours) == counted(theirs)
    assert ours.n_missing
    assert not both.folder.exists()
    both.build()
    assert counted(both.dry_run()[0]) == counted(both.dry_run()[1])

    (both.docs / "a" / "1.txt").unlink()
    (both.docs / "a" / "2.txt").rename(both.docs / "b" / "two.txt")
    (both.docs / "a" / "3.txt").write_text("全新的内容。", "utf-8")
    lines = (both.docs / "records.jsonl").read_text("utf-8").splitlines()
    (both.docs / "records.jsonl").write_text("\n".join(lines[2:]), "utf-8")
    ours, theirs = both.dry_run(sync=True)
    assert counted(ours) == counted(theirs)
    assert sum("would leave" in note for note in ours.notes) == 4

    built, expected = both.build(sync=True)
    assert built.n_departed == expected.n_departed == 4
    held = both.held()
    assert held[0] == held[1]
    assert len(held[0]) == 6
    # The document comes back, and everything is followed only once.
    (both.docs / "a" / "1.txt").write_text("文件a/1.txt的内容。合同金额为三万元。", "utf-8")
    built, expected = both.build(sync=True)
    assert (built.n_departed, built.n_encoded) == (0, 0)
    held = both.held()
    assert held[0] == held[1]
    assert len(held[0]) == 7


def test_nothing_goes_without_sync_where_jobs_are_left_or_a_folder_holds_nothing(
    both: Both,
) -> None:
    both.pipeline().build([both.docs])
    (both.docs / "a" / "1.txt").unlink()
    before = held_by(both.folder)
    assert both.pipeline(on=Idle).build([both.docs], sync=True).was_interrupted
    assert both.pipeline().build([both.docs]).n_departed == 0
    for file in (both.docs / "a").iterdir():
        file.unlink()
    files = sorted(both.folder.rglob("*"))
    for act in (both.pipeline().build, both.pipeline().dry_run):
        with pytest.raises(UsageError, match="holds no document now"):
            act([both.docs / "a", both.docs / "b"], sync=True)
    assert sorted(both.folder.rglob("*")) == files
    assert held_by(both.folder) == before


def test_what_cannot_be_followed_is_said(tmp_path: Path, encoder_folder: Path) -> None:
    with pytest.raises(UsageError, match="in an object store"):
        check_roots("s3://team/c.fp", Found([]))
    with pytest.raises(MissingDocuments):
        Both(tmp_path, encoder_folder).pipeline().dry_run([])


def test_a_folder_cache_among_the_documents_is_passed_over(both: Both) -> None:
    before = both.build()[1]
    both.folder = both.folder.rename(both.docs / "a" / "c.fp")
    both.file = both.docs / "c.h5"
    for _ in range(2):
        for report in both.build():
            assert report.n_documents == before.n_documents
            assert any("that featpipe wrote" in note for note in report.notes)
    with pytest.raises(MissingDocuments, match=r"no documents[\s\S]*passed over \(a cache\)"):
        find_sources([both.folder])
    (both.folder.parent / "cache.json").write_bytes((both.folder / "cache.json").read_bytes())
    assert both.build()[1].n_documents == before.n_documents


def test_a_folder_that_is_named_by_mistake_as_the_cache_stays_as_it_is(both: Both) -> None:
    both.folder = both.docs
    before = sorted(both.docs.rglob("*"))
    with pytest.raises(MissingDocuments, match="the cache to be written"):
        both.pipeline().build([both.docs])
    assert sorted(both.docs.rglob("*")) == before
