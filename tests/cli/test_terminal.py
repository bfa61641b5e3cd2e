"""What documents and their names hold is printed, never obeyed by a terminal."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from featpipe.cli import terminal
from featpipe.cli.serve import configure_logging
from featpipe.cli.terminal import printable

TITLE = "\x1b]0;owned\x07"


def run_in_a_terminal(*arguments: str, cwd: Path) -> str:
    """All that the command writes; click leaves escape sequences out where it is no terminal."""
    ours, its = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "featpipe", *arguments], cwd=cwd, stdout=its, stderr=its
    )
    os.close(its)
    data = b""
    with suppress(OSError):  # as a terminal ends
        while part := os.read(ours, 1 << 16):
            data += part
    os.close(ours)
    process.wait()
    return data.decode("utf-8", "backslashreplace")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    docs = folder / "docs"
    docs.mkdir()
    (docs / f"good{TITLE}.txt").write_text(f"关于签订重大合同的公告{TITLE}，第一号。", "utf-8")
    (docs / f"bad{TITLE}\r.pdf").write_bytes(b"%PDF-1.4\nbroken")
    Path(os.fsdecode(os.fsencode(docs) + b"/bad\xff.pdf")).write_bytes(b"%PDF-1.4\nbroken")
    return folder


def test_names_of_files_give_a_terminal_no_orders(folder: Path) -> None:
    said = run_in_a_terminal("build-cache", "docs", "--cache", "c.h5", cwd=folder)
    assert TITLE not in said
    assert "bad\\x1b]0;owned\\x07\\x0d.pdf" in said
    assert "bad\\udcff.pdf" in said
    assert "Traceback" not in said
    found = run_in_a_terminal("search", "c.h5", "公告", cwd=folder)
    assert TITLE not in found
    assert "good\\x1b]0;owned\\x07.txt" in found


def test_errors_give_a_terminal_no_orders(folder: Path) -> None:
    said = run_in_a_terminal("inspect", f"docs/good{TITLE}.txt", cwd=folder)
    assert TITLE not in said
    assert "\\u001b]0;owned" in said


def test_commands_print_by_one_function_only() -> None:
    """But for two that write a file's content to a pipe."""
    folder = Path(terminal.__file__).parent
    lines = [
        f"{file.name}: {line.strip()}"
        for file in folder.glob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if re.search(r"\bclick\.s?echo\(", line) and "nl=False" not in line
    ]
    assert lines == ["terminal.py: click.echo(printable(text), err=err, nl=nl)"]


def test_a_printed_json_object_stays_one() -> None:
    value = {"name": "a\x1b\x7f\x9b\u202e\u2069\ud800\n\t合同"}
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value
    assert printable("plain 合同\n\tlines") == "plain 合同\n\tlines"


@pytest.mark.parametrize("encoding", ["latin-1", "gbk"])
def test_what_the_encoding_lacks_is_printed_as_json_writes_it(
    tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "a.txt").write_text("违约责任 😀 ñ", "utf-8")
    environment = os.environ | {"PYTHONIOENCODING": encoding}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "featpipe", *arguments], cwd=tmp_path, env=environment,
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
        return done.stdout.decode(encoding)

    run("build-cache", "a.txt", "--cache", "c.h5", "--ner", "none")
    assert "\\ud83d\\ude00" in run("search", "c.h5", "违约")
    assert json.loads(run("search", "c.h5", "违约", "--json"))["text"] == "违约责任 😀 ñ"


def test_the_log_of_the_service_gives_a_terminal_no_orders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure_logging(as_json=False)
        facts = {"request_id": "find-me", "caller": "search-page", "status": 500}
        logging.getLogger("featpipe.service").warning("%s failed\nso", f"a{TITLE}.txt", extra=facts)
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
    said = capsys.readouterr().err
    assert TITLE not in said
    assert "a\\u001b]0;owned\\u0007.txt failed request_id=find-me caller=search-page\nso\n" in said
