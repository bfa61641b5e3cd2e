"""The architecture page shows the package as it is: its drawing, its rooms, its files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_layers

import featpipe

PACKAGE = Path(featpipe.__file__).parent
PAGE = (PACKAGE / "guide" / "architecture.md").read_text("utf-8")


def test_the_drawing_is_the_one_that_imports_are_held_against() -> None:
    drawing = str(test_layers.__doc__).split("::\n\n")[1].split("\n\n")[0]
    assert [line.strip() for line in drawing.splitlines()] == [
        line.strip() for line in PAGE.split("```")[1].strip("\n").splitlines()
    ]


@pytest.mark.parametrize("room", sorted(set(test_layers.ALLOWED) - {"__init__", "__main__"}))
def test_every_room_has_a_paragraph(room: str) -> None:
    opening = r"\*\*[a-z_, ]*\b" + room + r"\b[a-z_, ]*\*\*"
    assert re.search(opening, PAGE), f"{room} opens no paragraph"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:\w+/)*\w+\.(?:py|tsv))`", PAGE))))
def test_files_it_names_exist(name: str) -> None:
    root = PACKAGE.parent
    assert any((folder / name).exists() for folder in (root, PACKAGE)), name


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z_]+\.[a-z_]+)`", PAGE))))
def test_modules_it_names_exist(name: str) -> None:
    if not name.endswith((".py", ".tsv", ".loaders")):
        path = PACKAGE / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir(), name
