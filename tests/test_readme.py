"""The README's code runs as it stands, in its order, over our own documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from waiting import HANG_S

from featpipe.extraction.values.values import read_value

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)


def extracted(output: str) -> dict[str, str]:
    """Field -> the meaning of its value, as the README's loop prints them."""
    rows = [line.split() for line in output.splitlines()]
    return {row[0]: " ".join(row[2:-3]) for row in rows}


def expected(document: str, template: str) -> dict[str, str]:
    """Likewise, as `expected.jsonl` lists them."""
    templates = ROOT / "data" / "templates"
    fields = tomllib.loads((templates / template).read_text("utf-8"))["fields"]
    lines = map(json.loads, (templates / "expected.jsonl").read_text("utf-8").splitlines())
    (values,) = (line["fields"] for line in lines if line["document"] == document)
    return {f["name"]: read_value(values[f["name"]][0], f["type"]).key for f in fields}


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
            timeout=HANG_S,
        )
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        outputs.append(done.stdout)
    assert extracted(outputs[1]) == expected("contracts/loan_bridge.md", "loan.toml")
    assert outputs[0].startswith("documents 52 loaded, 0 quarantined; units ")
    assert len(outputs[0].splitlines()) == 53
    assert outputs[-1].startswith("[")
