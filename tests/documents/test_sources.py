"""Finding files: everything once, in one order, nothing unsaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from featpipe.documents import find_sources
from featpipe.errors import MissingDocuments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.html", "sub/c.txt", "sub/deep/d.pdf", ".git/config", "~$lock.docx"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, "utf-8")
    return tmp_path / "docs"


def ids(*paths: Path | str, **patterns: list[str]) -> list[str]:
    return [source.id for source in find_sources(list(paths), **patterns)]


def test_a_folder_is_searched_to_the_bottom_and_hidden_files_are_left(folder: Path) -> None:
    assert ids(folder) == ["a.html", "b.txt", "sub/c.txt", "sub/deep/d.pdf"]


def test_patterns_choose_by_name_and_by_path(folder: Path) -> None:
    assert ids(folder, include=["*.txt"]) == ["b.txt", "sub/c.txt"]
    assert ids(folder, exclude=["sub/deep", "*.html"]) == ["b.txt", "sub/c.txt"]
    assert ids(folder, include=["sub/*"]) == ["sub/c.txt", "sub/deep/d.pdf"]


def test_globs_and_files_are_taken_once(folder: Path) -> None:
    assert ids(f"{folder}/**/*.txt", folder / "b.txt") == ["b.txt", "sub/c.txt"]


def test_the_same_path_below_two_folders_stays_two_documents(tmp_path: Path) -> None:
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name, "utf-8")
    found = find_sources([tmp_path / "x", tmp_path / "y"])
    assert len({source.id for source in found}) == 2
    assert [source.path.parent.name for source in found] == ["x", "y"]


def test_links_in_a_circle_end(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to(folder, target_is_directory=True)
    assert ids(folder) == ["a.html", "b.txt", "sub/c.txt", "sub/deep/d.pdf"]


@pytest.mark.parametrize("path", ["absent", "absent/*.txt", "empty"])
def test_what_is_not_there_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingDocuments, match=path.replace("*", r"\*")):
        find_sources([tmp_path / path])
