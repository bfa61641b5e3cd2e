"""The README cannot drift: its commands are extracted for CI, its facts are compared with the code.

``--command N`` prints the N-th fenced ``sh`` block. Without arguments every check is made: each
public name is mentioned, and the ``--help`` texts are those of the program (``--write`` renews them).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
HELP = re.compile(r"<!-- help: (?P<command>[^>]+) -->\n```text\n.*?```", re.DOTALL)


def main() -> int:
    """Print a command, or check; the exit code counts what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", type=int, help="print this fenced sh block")
    parser.add_argument("--write", action="store_true", help="renew the --help texts")
    options = parser.parse_args()
    text = README.read_text("utf-8")
    if options.command:
        print(find_commands(text)[options.command - 1])
        return 0
    renewed = HELP.sub(lambda match: help_block(match["command"]), text)
    if options.write:
        README.write_text(renewed, "utf-8")
        return 0
    faults = [f"README does not mention {name}" for name in missing_names(text)]
    if renewed != text:
        faults.append("README holds an old --help text: run scripts/check_readme.py --write")
    print("\n".join(faults) or "README: commands, names and help texts agree with the code")
    return len(faults)


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
