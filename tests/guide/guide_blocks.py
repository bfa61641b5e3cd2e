"""The code blocks of the guide's pages, and how each kind is run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from click.testing import CliRunner
from waiting import HANG_S, free_port

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.extraction.template_file import check_template

_FENCE = re.compile(
    r"^```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL
)
#: A command without pipes and the like, and perhaps a file for what it prints.
_COMMAND = re.compile(r"featpipe (?P<words>[^|&;<>$`]*?)(?: > (?P<target>\S+))?")
#: Where the pages have the service.
ADDRESS = "localhost:8080"


@dataclass(frozen=True)
class Block:
    language: str
    info: str
    code: str

    @property
    def reason(self) -> str:
        """Why it is not run; empty where it is."""
        return self.info.partition("not-run:")[2].strip()

    @property
    def bare(self) -> str:
        """Without comments, which are translated; drawings may be translated as a whole."""
        lines = (re.sub(r"(^|\s+)# .*", "", line).rstrip() for line in self.code.splitlines())
        return "\n".join(lines) if self.language != "text" else ""


def blocks_of(text: str) -> list[Block]:
    return [Block(f["language"], f["info"].strip(), f["code"]) for f in _FENCE.finditer(text)]


def run(block: Block, home: Path, address: str) -> None:
    """Run or parse a block in the current folder, ``home``."""
    if block.language == "sh":
        for line in filter(None, map(str.strip, block.code.splitlines())):
            _run_line(re.sub(r"\s+# .*$", "", line), home, address)
    elif block.language == "python":
        exec(compile(block.code, "guide", "exec"), {"__name__": "guide"})  # noqa: S102  # the test
    elif block.language == "toml":
        check_template(tomllib.loads(block.code), block.code, Path("guide.toml"))
    else:
        json.loads(block.code)


def _run_line(line: str, home: Path, address: str) -> None:
    command = _COMMAND.fullmatch(line)
    if command:
        result = CliRunner().invoke(featpipe_command, shlex.split(command["words"]))
        assert result.exit_code == 0, f"{line}\n{result.output}{result.exception}"
        if command["target"]:
            (home / command["target"]).write_text(result.stdout, "utf-8")
        return
    line = line.replace(ADDRESS, address)
    line = line.replace("curl -s", "curl -sS --fail-with-body --noproxy '*'")
    done = subprocess.run(
        ["bash", "-euc", line],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@contextmanager
def serving(home: Path) -> Iterator[str]:
    """A service over the workspace; the address it listens at, once it is ready."""
    port = free_port()
    options = ["--cache", "cache.h5", "--templates", "templates", "--port", str(port)]
    service = subprocess.Popen(
        [sys.executable, "-m", "featpipe", "serve", *options, "--device", "cpu"],
        cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    watchdog = Timer(HANG_S, service.kill)
    watchdog.start()
    try:
        assert service.stdout is not None
        printed = ""
        for line in service.stdout:
            printed += line
            if "embed is ready" in printed and "extract is ready" in printed:
                break
        else:
            raise AssertionError(f"the service ended: {printed}")
        yield f"127.0.0.1:{port}"
    finally:
        watchdog.cancel()
        service.terminate()
        service.communicate(timeout=HANG_S)
