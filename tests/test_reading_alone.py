"""A cache is read with numpy alone: the light install, and what it says it cannot do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest

import featpipe

ROOT = Path(__file__).parents[1]
LIGHT = ROOT / "scripts" / "requirements-reading.txt"

TEXT = "甲方与乙方签订合同。合同金额为三万元。违约责任由双方承担。"
READ = """
import json
from featpipe import Cache

with Cache.open("c.h5") as cache:
    dictionary = cache.dictionary()
    (document,) = cache.documents()
    texts = [unit.text for unit in document.units("sentence")]
    vectors, found = dictionary.lookup(texts)
    nearest = dictionary.nearest(vectors, 1)
    hits = cache.sentence_search().search("违约责任", 1)
    print(json.dumps({
        "texts": texts, "found": found.tolist(), "shape": list(vectors.shape),
        "nearest": [row[0].text for row in nearest], "hit": hits[0].text,
        "document": document.text,
    }))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> Path:
    from building import build

    folder = tmp_path_factory.mktemp("light")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text(TEXT, "utf-8")
    assert build(folder / "c.h5", folder / "docs", encoder_folder).is_complete
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages in which there is numpy and featpipe, and nothing else."""
    import numpy as np

    folder = tmp_path_factory.mktemp("packages")
    installed = Path(np.__file__).parent
    (folder / "featpipe").symlink_to(Path(featpipe.__file__).parent)
    for part in (installed, installed.with_name("numpy.libs")):
        (folder / part.name).symlink_to(part)
    return folder


def run(home: Path, alone: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Without site-packages: only what ``alone`` holds can be imported."""
    start = f"import sys; sys.path.insert(0, {str(alone)!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code],
        cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_cache_is_read_with_numpy_alone(home: Path, alone: Path) -> None:
    done = run(home, alone, READ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    sentences = [f"{part}。" for part in TEXT.split("。")[:-1]]
    assert found["texts"] == found["nearest"] == sentences
    assert found["found"] == [True] * len(sentences)
    assert found["hit"] == sentences[2]
    assert found["document"] == TEXT


def test_computing_a_vector_names_what_is_missing(
    home: Path, alone: Path, encoder_folder: Path
) -> None:
    opening = f"Pipeline('d.h5', {str(encoder_folder)!r}, 'none', devices=['cpu'])"
    code = f"from featpipe import Pipeline\n{opening}.build('docs')\n"
    done = run(home, alone, code)
    assert done.returncode == 1
    assert "MissingExtra: computing vectors needs torch" in done.stderr
    assert not (home / "d.h5").exists()


@pytest.mark.parametrize("words", [[], ["--help"], ["guide"], ["inspect", "c.h5"]])
def test_a_command_names_what_is_missing(home: Path, alone: Path, words: list[str]) -> None:
    code = f"sys.argv[1:] = {words!r}\nfrom featpipe.__main__ import main\nmain()\n"
    done = run(home, alone, code)
    assert (done.returncode, done.stdout) == (2, "")
    said, step = done.stderr.splitlines()
    assert said.startswith("error: this command needs click, which is not installed")
    assert step.startswith("  pip install featpipe ")


def test_so_does_a_command_that_gets_further(home: Path, alone: Path, tmp_path: Path) -> None:
    """Where further packages were installed by hand, such as click."""
    import click

    packages = tmp_path / "packages"
    packages.mkdir()
    for name in alone.iterdir():
        (packages / name.name).symlink_to(name)
    (packages / "click").symlink_to(Path(click.__file__).parent)
    code = "sys.argv[1:] = {0}\nfrom featpipe.__main__ import main\nmain()\n"
    shown = run(home, packages, code.format(["guide", "start"]))
    assert shown.stdout.startswith("# Start here\n"), shown.stderr
    done = run(home, packages, code.format(["guide", "how", "to", "delete"]))
    assert done.returncode == 2
    assert done.stderr.startswith("error: this command needs pydantic, which is not installed")
    looked = run(home, packages, code.format(["doctor"]))
    assert looked.returncode == 1
    assert looked.stdout.count("-> pip install featpipe\n") >= 1
    assert "report it" not in looked.stdout


def test_a_module_of_our_own_that_is_missing_is_a_fault(home: Path, alone: Path) -> None:
    code = "sys.modules['featpipe.cli.main'] = None\nfrom featpipe.__main__ import main\nmain()\n"
    done = run(home, alone, code)
    assert "ModuleNotFoundError" in done.stderr


@pytest.mark.skipif(not LIGHT.is_file(), reason="the installed package has no scripts")
def test_the_light_requirements_are_what_was_allowed() -> None:
    lines = LIGHT.read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["numpy>=1.26"]


def test_every_hint_names_an_extra_that_exists() -> None:
    project = ROOT / "pyproject.toml"
    if project.is_file():  # an editable install may have the metadata of before
        listed = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]
    else:
        listed = metadata("featpipe").get_all("Provides-Extra") or ()
    extras = set(listed)
    package = Path(featpipe.__file__).parent
    named = {
        extra
        for path in package.rglob("*.py")
        for found in re.findall(r"featpipe\[([a-z,]+)\]", path.read_text("utf-8"))
        for extra in found.split(",")
    }
    assert len(named) > 8
    assert named <= extras


def test_the_hints_work_before_the_package_is_on_an_index() -> None:
    """Pip takes the installed featpipe, and asks an index for the extra's packages only."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps",
         "--disable-pip-version-check", "featpipe[serve]"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "No module named pip" in done.stderr:
        pytest.skip("no pip in this environment")
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied: featpipe[serve]" in done.stdout


FAKE = """#!/bin/sh
echo "$@" >> "$LOG"
case "$*" in *index-url*) exit "$FAULT";; esac
"""


@pytest.mark.skipif(not LIGHT.is_file(), reason="the installed package has no scripts")
@pytest.mark.parametrize(("card", "fault"), [("none", 0), ("none", 1), ("one", 0)])
def test_the_processor_build_of_torch_is_taken_where_no_card_is(
    tmp_path: Path, card: str, fault: int
) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a card")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    python, smi = tmp_path / "venv" / "bin" / "python", tmp_path / "bin" / "nvidia-smi"
    python.write_text(FAKE)
    smi.write_text(f"#!/bin/sh\nexit {int(card == 'none')}\n")
    for file in (python, smi):
        file.chmod(0o755)
    done = subprocess.run(
        [ROOT / "scripts" / "install", tmp_path / "venv", "-e", ".[dev]"],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "LOG": str(tmp_path / "log"),
             "FAULT": str(fault)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *first, last = (tmp_path / "log").read_text().splitlines()
    assert last.endswith("-c scripts/constraints.txt -e .[dev]")
    assert len(first) == (0 if card == "one" else 1)
    if first:
        pinned = re.search(
            r"^torch==.*$", (ROOT / "scripts/constraints.txt").read_text(), re.MULTILINE
        )
        assert pinned is not None
        assert f"--no-deps --retries 0 --timeout 15 {pinned[0]} --index-url https" in first[0]
        assert ("cannot be reached" in done.stderr) == bool(fault)
