"""The notebooks run as they stand, one after another, and what they keep of it is small."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from waiting import HANG_S

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "data" / "notebooks"
FILES = sorted(NOTEBOOKS.glob("*.ipynb"))

pytestmark = pytest.mark.skipif(not FILES, reason="the installed package has no notebooks")


@pytest.mark.skipif(
    not all(map(find_spec, ("langchain_core", "llama_index", "faiss"))),
    reason="the libraries of the fourth are not installed",
)
def test_every_cell_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(NOTEBOOKS, data / "notebooks", ignore=shutil.ignore_patterns("work"))
    for name in ("documents", "templates"):
        (data / name).symlink_to(ROOT / "data" / name)
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "run_notebooks.py", data / "notebooks"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{file.name}: ran" for file in FILES]


def test_there_is_one_of_each_kind() -> None:
    assert [file.stem for file in FILES] == [
        "01_first_cache", "02_retrieval", "03_extraction", "04_other_libraries", "05_plain_h5py",
    ]  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_notebook_is_valid_small_and_was_run(file: Path) -> None:
    notebook = json.loads(file.read_text("utf-8"))
    assert file.stat().st_size < 20_000
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert cells[0]["cell_type"] == "markdown"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output["output_type"] == "stream" for cell in code for output in cell["outputs"])
    kept = json.dumps([cell["outputs"] for cell in code])
    assert "/tmp" not in kept  # noqa: S108  # no path of the machine that ran it
    assert "/home" not in kept
