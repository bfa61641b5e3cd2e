"""Ids are the same from any working folder, by any spelling, and beside any other folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from featpipe.documents import find_sources


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("one/A/x.txt", "one/A/sub/y.txt", "one/B/x.txt", "two/A/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
    return tmp_path


def ids(*paths: Path | str) -> list[str]:
    return [source.id for source in find_sources(list(paths))]


def test_every_way_of_writing_a_folder_gives_the_same_ids(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / "one" / "A"
    (place / "link").symlink_to(folder, target_is_directory=True)
    expected = ["A/sub/y.txt", "A/x.txt"]
    monkeypatch.chdir(place / "one")
    assert ids("A") == ids("./A") == ids("A/") == ids("../one/A") == ids(folder) == expected
    assert ids(place / "link") == ids("A/**") == expected
    monkeypatch.chdir(folder)
    assert ids(".") == ids("../A") == expected
    assert ids("x.txt") == ids(folder / "x.txt") == ["A/x.txt"]


def test_other_folders_beside_it_change_nothing(place: Path) -> None:
    a, b = place / "one" / "A", place / "one" / "B"
    assert ids(a, b) == ids(b, a) == ["A/sub/y.txt", "A/x.txt", "B/x.txt"]
    assert ids(b) == ["B/x.txt"]
    assert ids(a / "sub", a) == ids(a, a / "sub") == ids(a)


def test_folders_of_one_name_are_told_apart_by_those_above(place: Path) -> None:
    found = find_sources([place / "one" / "A", place / "two" / "A"])
    assert [source.id for source in found] == ["A/sub/y.txt", "one/A/x.txt", "two/A/x.txt"]
    assert [source.path.read_text("utf-8") for source in found[1:]] == [s.id for s in found[1:]]


def test_a_moved_folder_keeps_its_ids(place: Path) -> None:
    before = ids(place / "one" / "A")
    shutil.move(place / "one" / "A", place / "elsewhere" / "A")
    assert ids(place / "elsewhere" / "A") == before
