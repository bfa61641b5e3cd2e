"""A small corpus, small models, and what a run over them gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tiny_checkpoints import CHINESE

SHARED = "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载。"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Twelve documents with shared sentences, in two formats and a sub-folder."""
    chance = random.Random(7)  # noqa: S311 - texts, not secrets
    folder = tmp_path / "docs"
    (folder / "inner").mkdir(parents=True)
    for number in range(12):
        own = "".join(chance.choice(CHINESE[:60]) for _ in range(40))
        body = [f"第{number}号合同", SHARED, own + "。" + SHARED, f"合同金额为{number},000万元。"]
        name = f"{number:02d}"
        if number % 3:
            (folder / f"{name}.txt").write_text("\n".join(body), "utf-8")
        else:
            html = "".join(f"<p>{line}</p>" for line in body)
            (folder / "inner" / f"{name}.html").write_text(f"<html><body>{html}</body></html>")
    return folder
