"""The README's code runs as it stands, in its order, over our own documents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


@pytest.mark.skipif(not README.is_file(), reason="the installed package has no README")
def test_every_python_block_runs(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    outputs = []
    for block in blocks():
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=115,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        outputs.append(done.stdout)
    assert outputs[0].startswith("documents 52 loaded, 0 quarantined; units ")
    assert len(outputs[0].splitlines()) == 53
    assert outputs[-1].startswith("[")
