"""`scripts/eval_model.py` scores any model, also a short one, and says what it has no head for."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder, save_tagger

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "eval_model.py"

#: The last is longer than the 64 tokens of a tiny checkpoint.
PAIRS = (("合同金额", "合同金额", 1), ("公司", "政府", 0), ("一" * 90, "二" * 90, 0))


@pytest.mark.parametrize("kind", ["encoder", "tagger"])
def test_any_other_model_is_scored(tmp_path: Path, kind: str) -> None:
    folder = save_encoder(tmp_path) if kind == "encoder" else save_tagger(tmp_path)
    for name, records in (
        ("similarity/simclue_test", [{"a": a, "b": b, "label": label} for a, b, label in PAIRS]),
        ("ner/msra_test", [{"text": "王公司", "entities": [[0, 1, "PER"]], "part": "test"}]),
    ):
        path = tmp_path / "data" / f"{name}.jsonl.xz"
        path.parent.mkdir(parents=True)
        with lzma.open(path, "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in records)
    ended = subprocess.run(
        [sys.executable, SCRIPT, "--data", tmp_path / "data", "--model", folder,
         "--only", "similarity", "msra", "--threads", "1", "--json", tmp_path / "found.json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    figures = json.loads((tmp_path / "found.json").read_text("utf-8"))["figures"]
    assert figures["simclue_spearman"] > 0, "the same text is nearer to itself than another is"
    has_head = kind == "tagger"
    assert ("msra_f1" in figures) == has_head
    assert ("no head for it" in ended.stdout) != has_head
