"""The models of a machine: what is listed is what a load would give, and nothing is downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder

from featpipe.encoders import checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.inventory import list_models

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache with a fast family, a slow one, one that is refused, and one not downloaded."""
    from encoder_families import FAMILIES, save_family

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(checkpoint, "_download", lambda name: pytest.fail(f"downloads {name}"))
    by_name = {family.name: family for family in FAMILIES}
    for name in ("me--fast", "me--slow", "me--broken", "me--nothing"):
        repository = tmp_path / "hub" / f"models--{name}"
        (repository / "refs").mkdir(parents=True)
        (repository / "refs" / "main").write_text("0f", "utf-8")
    snapshots = [tmp_path / "hub" / f"models--me--{name}" / "snapshots" / "0f"
                 for name in ("fast", "slow", "broken")]  # fmt: skip
    save_encoder(snapshots[0])
    save_family(by_name["T5 (sentence-t5, gtr)"], snapshots[1])
    shutil.copytree(snapshots[0], snapshots[2])
    (snapshots[2] / "model.safetensors").unlink()
    return tmp_path / "hub"


def test_what_is_listed_is_what_a_load_gives(hub: Path) -> None:
    found = {one.name: one for one in list_models()}
    assert list(found) == ["zh-small", "me/broken", "me/fast", "me/slow"]
    assert "has no model.safetensors" in found["me/broken"].problem
    for name, forward, tokenizer in (
        ("zh-small", "own", "own"),
        ("me/fast", "own", "own"),
        ("me/slow", "transformers", "tokenizers"),
    ):
        one, encoder = found[name], Encoder.load(name)
        assert (one.problem, one.forward, one.tokenizer) == ("", forward, tokenizer)
        assert ("run by transformers" in " ".join(encoder.notes)) == (forward != "own")
        assert encoder.tokenizer.is_fast == (tokenizer == "own")
        assert (one.dim, one.window) == (encoder.dim, encoder.spec["max_length"])
        assert (one.pooling, one.is_normalised) == (
            encoder.spec["pooling"],
            encoder.spec["normalise"],
        )
    assert hub.is_dir()


@pytest.mark.usefixtures("hub")
def test_what_is_not_here_is_said_to_be_so() -> None:
    [nowhere, gone] = list_models(["me/nothing", "/no/such/folder"])
    assert "neither a folder nor in the local hub cache" in nowhere.problem
    assert "there is no checkpoint folder" in gone.problem
