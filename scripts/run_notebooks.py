"""Run the code of the notebooks of ``data/notebooks``, all in this process, one after another.

Each has a namespace of its own and the folder of the notebooks as working folder; a cell that
raises ends the run with its notebook and number. ``--write`` keeps what the cells printed in the
files. No Jupyter is needed; magics are not understood.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "data" / "notebooks"
#: Characters of a cell's output that are kept.
_MOST = 2000


def main() -> int:
    """Run all; the exit code is 1 when a cell raised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=NOTEBOOKS)
    parser.add_argument("--write", action="store_true", help="keep what was printed")
    options = parser.parse_args()
    files = sorted(options.folder.resolve().glob("*.ipynb"))
    os.chdir(options.folder)
    for file in files:
        notebook = json.loads(file.read_text("utf-8"))
        if not run(file.name, notebook):
            return 1
        if options.write:
            file.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")
        print(f"{file.name}: ran")
    return 0


def run(name: str, notebook: dict[str, Any]) -> bool:
    """Run the code cells, and put what they print into their outputs."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        printed = StringIO()
        try:
            with redirect_stdout(printed):
                source = "".join(cell["source"])
                exec(compile(source, f"{name}, cell {number}", "exec"), names)  # noqa: S102  # ours
        except Exception:
            print(f"{name}, code cell {number}:\n{traceback.format_exc()}", file=sys.stderr)
            return False
        text = printed.getvalue()[:_MOST]
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["execution_count"], cell["outputs"] = number, [stream] if text else []
    return True


if __name__ == "__main__":
    sys.exit(main())
