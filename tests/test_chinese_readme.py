"""The Chinese README: its code runs as it stands, in its order, and it cannot fall behind."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from waiting import HANG_S

import featpipe

ROOT = Path(__file__).parents[1]
ENGLISH = ROOT / "README.md"
CHINESE = Path(featpipe.__file__).parent / "README.zh.md"
TRANSCRIPT = re.compile(r"<!-- transcript: begin -->.*<!-- transcript: end -->", re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Language and code of every block that can be run, in order."""
    return re.findall(r"```(python|sh)\n(.*?)```", CHINESE.read_text("utf-8"), re.DOTALL)


@pytest.mark.skipif(not ENGLISH.is_file(), reason="the installed package has no documents to read")
def test_every_block_runs(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    printed = []
    # The first one installs featpipe: it is the English README's, which CI runs in a clone.
    for language, code in blocks()[1:]:
        commands = [[sys.executable, "-c", code]]
        if language == "sh":
            lines = [shlex.split(line) for line in code.splitlines()]
            assert all(words[0] == "featpipe" for words in lines)
            commands = [[sys.executable, "-m", *words] for words in lines]
        for command in commands:
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANG_S
            )
            assert done.returncode == 0, f"{code}\n{done.stderr}"
            printed.append(done.stdout)
    whole = "".join(printed)
    assert printed[0].startswith("documents 52 loaded, 0 quarantined; units ")
    assert "report.html: 52 documents of 52, " in whole
    assert "(2, 640)" in whole
    assert printed[-1].startswith("[")


@pytest.mark.skipif(not ENGLISH.is_file(), reason="the installed package has no English README")
def test_it_says_what_the_english_one_says() -> None:
    english, chinese = ENGLISH.read_text("utf-8"), CHINESE.read_text("utf-8")
    # Where they differ: scripts/check_readme.py --transcript renews both.
    assert TRANSCRIPT.findall(chinese) == TRANSCRIPT.findall(english) != []
    installing = re.findall(r"```sh\n(.*?)```", english, re.DOTALL)[0]
    assert blocks()[0] == ("sh", installing)


def test_every_module_it_names_exists() -> None:
    named = re.findall(r"`(featpipe\.[a-z_.]+)`", CHINESE.read_text("utf-8"))
    assert len(named) == 7
    for name in named:
        assert find_spec(name) is not None, name
