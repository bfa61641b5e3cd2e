"""The README cannot drift: its commands are extracted for CI, its facts are compared with the code.

``--command N`` prints the N-th fenced ``sh`` block. Without arguments every check is made: each
public name is mentioned, the ``--help`` texts are those of the program (``--write`` renews
them), and both READMEs show one transcript. ``--transcript`` runs the main job, again, and again
after a kill, and writes what it printed into the README and the Chinese one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

README = Path(__file__).parents[1] / "README.md"
CHINESE = README.parent / "featpipe" / "README.zh.md"
TRANSCRIPT = re.compile(r"<!-- transcript: begin -->.*<!-- transcript: end -->", re.DOTALL)
HELP = re.compile(r"<!-- help: (?P<command>[^>]+) -->\n```text\n.*?```", re.DOTALL)


def main() -> int:
    """Print a command, or check; the exit code counts what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", type=int, help="print this fenced sh block")
    parser.add_argument("--write", action="store_true", help="renew the --help texts")
    parser.add_argument("--transcript", action="store_true", help="renew the transcript")
    options = parser.parse_args()
    text = README.read_text("utf-8")
    if options.command:
        print(find_commands(text)[options.command - 1])
        return 0
    if options.transcript:
        shown = transcript()
        for file in (README, CHINESE):
            renewed = TRANSCRIPT.sub(lambda _: shown, file.read_text("utf-8"))
            file.write_text(renewed, "utf-8")
        return 0
    renewed = HELP.sub(lambda match: help_block(match["command"]), text)
    if options.write:
        README.write_text(renewed, "utf-8")
        return 0
    faults = [f"README does not mention {name}" for name in missing_names(text)]
    if "\ndocuments " not in TRANSCRIPT.findall(text)[0]:
        faults.append("README's transcript is empty: run scripts/check_readme.py --transcript")
    if TRANSCRIPT.findall(CHINESE.read_text("utf-8")) != TRANSCRIPT.findall(text):
        faults.append("the READMEs show two transcripts: run scripts/check_readme.py --transcript")
    if renewed != text:
        faults.append("README holds an old --help text: run scripts/check_readme.py --write")
    print("\n".join(faults) or "README: commands, names and help texts agree with the code")
    return len(faults)


def transcript() -> str:
    """The main job, once more, and after a kill: commands with what they print."""
    build = "featpipe build-cache data/documents --cache cache.h5"
    command = [sys.executable, "-m", *build.split()]
    lines = []
    with TemporaryDirectory() as folder:
        (Path(folder) / "data").symlink_to(README.parent / "data")
        for _ in range(2):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            lines += [f"$ {build}", done.stdout.splitlines()[-1]]
        (Path(folder) / "cache.h5").unlink()
        with subprocess.Popen(
            [*command, "--json"], cwd=folder, stdout=subprocess.PIPE, text=True
        ) as run:
            for event in run.stdout or ():
                if json.loads(event).get("n_encoded", 0) > 1000:
                    run.kill()
                    break
        lines += [f"$ rm cache.h5; {build} &", "$ kill -9 $!   # once a thousand units are done"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        lines += [f"$ {build}", done.stdout.splitlines()[-1]]
    shown = "\n".join(lines)
    return f"<!-- transcript: begin -->\n```text\n{shown}\n```\n<!-- transcript: end -->"


def find_commands(text: str) -> list[str]:
    """All fenced ``sh`` blocks, in order."""
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def missing_names(text: str) -> list[str]:
    """Public names that the README never shows."""
    import featpipe

    return [name for name in featpipe.__all__ if name not in text]


def help_block(command: str) -> str:
    """The fenced help text of one command, as a terminal of 88 columns shows it."""
    done = subprocess.run(
        [sys.executable, "-m", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "88", "TERMINAL_WIDTH": "88"},
    )
    shown = done.stdout.replace("python -m featpipe", "featpipe").rstrip()
    return f"<!-- help: {command} -->\n```text\n{shown}\n```"


if __name__ == "__main__":
    sys.exit(main())
