"""The pages of the guide show the package as it is: its drawing, its rooms, its files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import test_layers
from click.testing import CliRunner

import featpipe
from featpipe.cli.main import featpipe as featpipe_command

PACKAGE = Path(featpipe.__file__).parent
PAGE = (PACKAGE / "guide" / "architecture.md").read_text("utf-8")


def test_the_drawing_is_the_one_that_imports_are_held_against() -> None:
    drawing = str(test_layers.__doc__).split("::\n\n")[1].split("\n\n")[0]
    assert [line.strip() for line in drawing.splitlines()] == [
        line.strip() for line in PAGE.split("```")[1].removeprefix("text").strip("\n").splitlines()
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


SECURITY = (PACKAGE / "guide" / "security.md").read_text("utf-8")


@pytest.mark.parametrize("heading", ["What is defended", "What is not"])
def test_the_page_on_security_has_both_sides(heading: str) -> None:
    assert f"\n## {heading}\n" in SECURITY


@pytest.mark.parametrize(
    "command", sorted(set(re.findall(r"`([a-z-]+)(?: --([a-z]+))?`", SECURITY)))
)
def test_options_the_page_on_security_names_exist(command: tuple[str, str]) -> None:
    name, option = command
    found = CliRunner().invoke(featpipe_command, [name, "--help"]) if option else None
    assert found is None or f"--{option}" in found.output
