"""The lists of a run: every document is in one part, large files in several."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from featpipe.build.publish import LocalFolder
from featpipe.build.shards import part_lists
from featpipe.build.shards.part_lists import RunPlan, plan_run, read_list, read_run_plans
from featpipe.documents.find import search
from featpipe.errors import UnreadableDictionary
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.documents import Source


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "c.fp")


def plan(folder: LocalFolder, docs: Path, *, n: int | None, unfinished: bool = False) -> RunPlan:
    return plan_run(
        folder,
        search([docs]).sources,
        BuildSettings(),
        is_unfinished=lambda _: unfinished,
        n_parts_asked=n,
    )


def documents_of(folder: LocalFolder, run: RunPlan) -> list[list[Source]]:
    return [read_list(folder, run, part) for part in range(run.n_parts)]


def test_parts_hold_every_document_once_and_share_large_files(
    tmp_path: Path, folder: LocalFolder
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(5):
        (docs / f"{number}.txt").write_text("合同" * 100, "utf-8")
    lines = [json.dumps({"id": number, "text": "合同" * 500}) for number in range(60)]
    (docs / "many.jsonl").write_text("\n".join(lines), "utf-8")
    (docs / "byte\udcff.txt").write_text("合同", "utf-8")
    whole = search([docs], expand=True).sources
    for n in (1, 3, 8):
        run = plan(folder, docs, n=n)
        parts = documents_of(folder, run)
        assert sorted(one for part in parts for one in part) == sorted(whole)
        assert run.n_parts == n
        assert all(parts)
        if n > 1:
            assert sum(any(s.part is not None for s in part) for part in parts) > 1


def test_a_run_takes_the_place_of_an_unfinished_one_over_the_same_files(
    tmp_path: Path, folder: LocalFolder
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("合同", "utf-8")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "b.txt").write_text("合同", "utf-8")
    first = plan(folder, tmp_path / "docs", n=1)
    other = plan(folder, tmp_path / "others", n=1, unfinished=True)
    finished = plan(folder, tmp_path / "docs", n=1)
    assert [run.id for run in read_run_plans(folder)] == [first.id, other.id, finished.id]
    again = plan(folder, tmp_path / "docs", n=1, unfinished=True)
    assert again.supersedes == (first.id, finished.id)
    assert [run.id for run in read_run_plans(folder)] == [other.id, again.id]


def test_a_later_run_has_a_later_id_whatever_the_clock_says(
    tmp_path: Path, folder: LocalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("合同", "utf-8")

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> Clock:  # noqa: ARG003  # as datetime's
            return cls(2020, 1, 1, tzinfo=UTC)

    ids = [plan(folder, tmp_path / "docs", n=1).id]
    monkeypatch.setattr(part_lists, "datetime", Clock)
    ids += [plan(folder, tmp_path / "docs", n=1).id for _ in range(3)]
    assert ids == sorted(set(ids))
    # A part that forgets documents, by a clock ahead; further attempts belong to a run.
    for part in ("20991231T000000.000000Z-0000", "20991231T000000.000000Z.2-0001"):
        folder.write(f"parts/{part}.h5", b"")
    ids = [plan(folder, tmp_path / "docs", n=1).id for _ in range(12)]
    assert ids == sorted(set(ids))
    assert {len(id_) for id_ in ids} == {len("20991231T000000.000000Z100000")}


class RivalFolder(LocalFolder):
    """Another planner is as far as this one just before it publishes."""

    def __init__(self, path: Path, rival: Callable[[], RunPlan]) -> None:
        super().__init__(path)
        self.rivals = [rival]
        self.other: RunPlan | None = None

    def write(self, name: str, content: bytes) -> bool:
        if self.rivals:
            self.other = self.rivals.pop()()
        return super().write(name, content)


def test_of_two_planners_whose_clocks_agree_each_has_lists_of_its_own(
    tmp_path: Path, folder: LocalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> Clock:  # noqa: ARG003  # as datetime's
            return cls(2020, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(part_lists, "datetime", Clock)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("合同", "utf-8")
    rival = RivalFolder(folder.path, lambda: plan(folder, tmp_path / "b", n=1))
    mine = plan(rival, tmp_path / "a", n=1)
    assert rival.other is not None
    assert read_run_plans(folder) == [rival.other, mine]
    for run, name in ((mine, "a"), (rival.other, "b")):
        [[source]] = documents_of(folder, run)
        assert source.path == tmp_path / name / "x.txt"


def test_lists_of_a_planner_that_died_are_ignored_and_a_lost_list_is_named(
    tmp_path: Path, folder: LocalFolder
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("合同", "utf-8")
    run = plan(folder, tmp_path / "docs", n=1)
    description = folder.path / "lists" / f"{run.id}.json"
    kept = description.read_bytes()
    description.unlink()
    assert read_run_plans(folder) == []
    description.write_bytes(kept)
    (folder.path / run.list_name(0)).unlink()
    with pytest.raises(UnreadableDictionary, match="lacks lists/"):
        read_list(folder, run, 0)
