"""The scripts' one harness: arguments, time in turns, and the last line."""

from __future__ import annotations

import argparse
import ast
import json
import lzma
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
MEASURING = sorted([*SCRIPTS.glob("bench_*.py"), *SCRIPTS.glob("eval_*.py")])

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def options_of(file: Path | None) -> argparse.Namespace:
    return argparse.Namespace(quick=True, json=file)


@pytest.mark.parametrize("path", MEASURING, ids=lambda path: path.stem)
def test_every_benchmark_and_evaluation_uses_it(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    taken = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "harness"
        for alias in node.names
    }
    assert taken & {"Report", "finish"}, "its last line is its own"
    parsers = [n for n in ast.walk(tree) if getattr(n, "attr", "") == "ArgumentParser"]
    assert not parsers, "its arguments are its own"


def test_the_last_line_is_one_object_and_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness import Report

    report = Report("bench_x", options_of(tmp_path / "x.json"))
    report.row("reading", [2.0, 4.0, 9.0], [1.0, 1.0, 3.0], "read_vs_peer")
    report.note("lost", 0)
    report.finish()
    last = capsys.readouterr().out.splitlines()[-1]
    expected = {"bench": "bench_x", "quick": True, "figures": {"read_vs_peer": 3.0, "lost": 0.0}}
    assert json.loads(last) == expected
    assert json.loads((tmp_path / "x.json").read_text()) == expected


def test_contestants_take_turns_and_the_first_round_does_not_count() -> None:
    from harness import interleave

    order: list[str] = []
    ticks = iter(range(100))
    seconds = interleave(
        2, clock=lambda: next(ticks), peer=lambda: order.append("p"), we=lambda: order.append("w")
    )
    assert order == ["p", "w"] * 3
    assert seconds == {"peer": [1, 1], "we": [1, 1]}


def test_without_rounds_the_first_one_counts() -> None:
    from harness import interleave

    assert len(interleave(0, we=lambda: None)["we"]) == 1


def test_rows_are_read_as_far_as_asked(tmp_path: Path) -> None:
    from harness import read_lines

    rows = [{"text": "甲方"}, {"text": "乙方"}]
    with lzma.open(tmp_path / "rows.jsonl.xz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    assert list(read_lines(tmp_path / "rows.jsonl.xz")) == rows
    assert list(read_lines(tmp_path / "rows.jsonl.xz", 1)) == rows[:1]
