"""`featpipe guide`: contents, pages, sections, search; Markdown where no terminal is."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.guide.pages import topics


def guide(*words: str, **environment: str) -> Result:
    return CliRunner(env={"LC_ALL": "C.UTF-8", **environment}).invoke(
        featpipe_command, ["guide", *words]
    )


def test_the_contents_name_every_page() -> None:
    shown = guide().stdout
    assert [line.split("`")[1] for line in shown.splitlines() if line.startswith("- ")] == topics()


@pytest.mark.parametrize("topic", topics())
def test_every_page_is_shown_in_both_languages(topic: str) -> None:
    english, chinese = guide(topic, "--lang", "en"), guide(topic, "--lang", "zh")
    assert english.exit_code == chinese.exit_code == 0
    assert english.stdout.startswith("# ")
    assert any("\u4e00" <= letter <= "\u9fff" for letter in chinese.stdout.splitlines()[0])


def test_the_language_is_that_of_the_terminal_or_of_the_words() -> None:
    assert guide("start", LC_ALL="zh_CN.UTF-8").stdout.startswith("# 从这里开始")
    assert guide("start").stdout.startswith("# Start here")
    assert "删除文档" in guide("删除文档").stdout


def test_unknown_topics_give_the_nearest_headings() -> None:
    for words in (["vektor"], ["tempalte"], ["documnets", "delet"]):
        found = guide(*words)
        assert found.exit_code == 0
        assert found.stdout.startswith("featpipe guide ")
    assert "featpipe guide templates" in guide("tempalte").stdout


def test_what_is_nowhere_is_a_wrong_argument() -> None:
    found = guide("--search", "qqqq")
    assert "nothing on 'qqqq'" in str(found.exception)
    assert "no section 'x'" in str(guide("start#x").exception)


def test_in_a_terminal_pages_are_rendered() -> None:
    """Headings without their marks, links as the command that follows them."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "80",
                   "LC_ALL": "C.UTF-8"}  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "featpipe", "guide", "concepts"], stdout=theirs, env=environment
    ) as shown:
        os.close(theirs)
        printed = b""
        try:
            while piece := os.read(ours, 65536):
                printed += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", printed.decode()).split())
    assert shown.returncode == 0
    assert "# Concepts" not in text
    assert "documents (featpipe guide documents)" in text
