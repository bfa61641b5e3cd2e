"""Encoder: oracle transformers, float32."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from featpipe.features.encoder import Encoder
from featpipe.features.feature import EncoderSettings

Text = Callable[[int, int], str]


def reference(folder: Path, texts: list[str], pooling: str, layer: int = -1) -> np.ndarray:
    """One text at a time through transformers, so that nothing is padded."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = []
    for text in texts:
        with torch.inference_mode():
            found = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states = found.hidden_states[layer][0]
        pools = {
            "mean": states.mean(0),
            "cls": states[0],
            "max": states.max(0)[0],
            "last": states[-1],
        }
        rows.append(pools[pooling].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
@pytest.mark.parametrize("layer", [-1, -2, 0])
def test_vectors_are_those_of_transformers(
    encoder_folder: Path, write_text: Text, pooling: str, layer: int
) -> None:
    texts = [write_text(seed, length) for seed, length in enumerate((1, 2, 5, 5, 17, 30, 30, 48))]
    settings = EncoderSettings(pooling=pooling, layer=layer, dtype="float32")
    found = Encoder.load(encoder_folder, settings).encode(texts)
    np.testing.assert_allclose(
        found.vectors, reference(encoder_folder, texts, pooling, layer), atol=2e-5
    )
    assert (found.n_windows == 1).all()


def test_a_worker_imports_no_transformers(encoder_folder: Path) -> None:
    code = (
        "import sys; from featpipe.features.encoder import Encoder\n"
        f"Encoder.load({str(encoder_folder)!r}).encode(['合同'])\n"
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
