"""A card that is lost to a process costs the text that it is lost on, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from building import units
from lost_card_role import POISON

from featpipe.build.messages import EncoderPlan, FeatureTask
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.lost_card import ending_with_card
from featpipe.encoders.spec import EncoderSettings
from featpipe.pool import Pool, Role

MIXED = EncoderSettings(precision="mixed")


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda:0",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
            ],
        ),
    ],
)
def test_a_lost_card_costs_the_text_that_it_is_lost_on(encoder_folder: Path, device: str) -> None:
    fingerprint = Encoder.load(encoder_folder, MIXED, device=device).fingerprint
    plan = EncoderPlan("v", str(encoder_folder), MIXED, fingerprint)
    role = Role(
        name="encode",
        target="lost_card_role:LosingRole",
        arguments={"encoder": plan, "tagger": None},
        devices=(device,),
        threads=1,
        preload=("torch", "lost_card_role"),
        bisect="split",
    )
    texts = [f"第{n}号合同" for n in range(12)]
    texts[5] = POISON
    n_rows, lost = 0, []
    with Pool([role]) as pool:
        for at in range(0, len(texts), 4):
            pool.submit("encode", FeatureTask("v", units(texts[at : at + 4])))
        n_open = 3
        while n_open:
            for outcome in pool.completed():
                n_open -= 1
                for part in outcome.parts:
                    if part.error is None:
                        n_rows += len(part.value.rows["keys"])
                    else:
                        lost.append((part.payload.units.texts.strings(), str(part.error)))
    assert n_rows == len(texts) - 1
    [(unit, reason)] = lost
    assert unit == [POISON]
    assert "card computes no more" in reason


def test_other_errors_end_no_process() -> None:
    with pytest.raises(RuntimeError, match="an error"), ending_with_card("cpu"):
        raise RuntimeError("an error")
