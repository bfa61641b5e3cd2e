"""Checkpoints that state nonsense, or more than is looked at: an error that names it, no guess."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_checkpoints import random_crf, save_encoder, save_tagger

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import NO_TOKENS, Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.encoders.tokenizer import load_raw
from featpipe.errors import CheckpointError, EncodingError, UnsupportedModel

FLOAT32 = EncoderSettings(precision="exact", dtype="float32")
EXACT = TaggerSettings(precision="exact")


def edit(folder: Path, name: str, **changes: object) -> Path:
    """Entries of a JSON file; one that becomes ``...`` is taken away."""
    content = json.loads((folder / name).read_text("utf-8")) | changes
    kept = {key: value for key, value in content.items() if value is not ...}
    (folder / name).write_text(json.dumps(kept), "utf-8")
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
    change(weights)
    save_file(weights, folder / "model.safetensors")
    return folder


# --- config.json ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", ...),
        ("vocab_size", None),
        ("max_position_embeddings", ...),
        ("max_position_embeddings", "many"),
        ("hidden_size", "wide"),
        ("hidden_size", 0),
        ("num_attention_heads", ...),
        ("num_attention_heads", 0),
        ("num_attention_heads", 5),
        ("num_hidden_layers", "2"),
        ("model_type", ["bert"]),
        ("model_type", None),
    ],
)
@pytest.mark.parametrize("kind", ["encoder", "tagger"])
def test_a_config_that_makes_no_sense_is_a_checkpoint_error(
    tmp_path: Path, kind: str, name: str, value: object
) -> None:
    folder = save_encoder(tmp_path) if kind == "encoder" else save_tagger(tmp_path)
    edit(folder, "config.json", **{name: value})
    with pytest.raises(CheckpointError):
        Encoder.load(folder, FLOAT32) if kind == "encoder" else Tagger.load(folder, EXACT)


@pytest.mark.parametrize("labels", [{"a": "O"}, {"1": "O", "2": "B-X"}, {"0": "O"}, ["O"], ...])
def test_labels_that_do_not_fit_the_head_are_a_checkpoint_error(
    tmp_path: Path, labels: object
) -> None:
    with pytest.raises(CheckpointError):
        Tagger.load(edit(save_tagger(tmp_path), "config.json", id2label=labels), EXACT)


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_limit_that_leaves_no_room_for_a_text_is_refused(tmp_path: Path, limit: int) -> None:
    """At 2 every text would get the vector of none; at 1 a tagger would cut for ever."""
    folder = save_tagger(tmp_path)
    edit(folder, "tokenizer_config.json", model_max_length=limit)
    for load in (Encoder.load, Tagger.load):
        with pytest.raises(CheckpointError, match=f"sequences of {limit} tokens"):
            load(folder)


def test_an_adapter_beside_the_weights_is_refused(tmp_path: Path) -> None:
    """Whether transformers adds it depends on what else is installed."""
    folder = save_encoder(tmp_path)
    (folder / "adapter_config.json").write_text("{}", "utf-8")
    with pytest.raises(UnsupportedModel, match=r"adapter_config\.json"):
        describe_checkpoint(folder)


# --- numbers that are none ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name",
    ["classifier.weight", "classifier.bias", "crf.transitions", "crf.end_transitions"],
)
def test_a_head_with_nan_or_infinity_is_named(tmp_path: Path, name: str, value: float) -> None:
    """An argmax takes NaN for the best of all: labels would come out, and be wrong."""
    folder = rewrite(save_tagger(tmp_path), lambda weights: weights.update(random_crf()))
    rewrite(folder, lambda weights: weights[name].view(-1)[1:2].fill_(value))
    with pytest.raises(CheckpointError, match=f"{name} holds NaN or infinity"):
        Tagger.load(folder, EXACT)


def test_minus_infinity_forbids_a_transition(tmp_path: Path) -> None:
    folder = rewrite(save_tagger(tmp_path), lambda weights: weights.update(random_crf()))
    rewrite(folder, lambda weights: weights["crf.start_transitions"][1:].fill_(-torch.inf))
    tagger = Tagger.load(folder, EXACT)
    found = tagger.find_entities([text for text in "合同金额公司政府" for _ in range(2)])
    assert not found.lengths.any(), "a text of one token can only be outside"


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last", "weightedmean", "mean_sqrt_len"])
def test_a_text_without_any_token_is_named_and_gets_no_neighbours_vector(
    tmp_path: Path, pooling: str
) -> None:
    folder = save_encoder(tmp_path)
    raw = json.loads(load_raw(describe_checkpoint(folder)).to_str())
    (folder / "tokenizer.json").write_text(json.dumps(raw | {"post_processor": None}), "utf-8")
    settings = EncoderSettings(
        precision="exact",
        dtype="float32",
        pooling=pooling,  # type: ignore[arg-type]
    )
    encoder = Encoder.load(folder, settings)
    texts = ["", "合同", " ", "金额公司", "合", "\n"]
    if len(encoder.tokenizer.prefix):
        pytest.skip("this tokenizer adds special tokens whatever its file says")
    found = encoder.encode(texts, on_fault="report")
    assert found.faults == dict.fromkeys((0, 2, 5), NO_TOKENS)
    with pytest.raises(EncodingError, match=NO_TOKENS):
        encoder.encode_tokens([[7], []])
    assert not found.vectors[[0, 2, 5]].any()
    alone = encoder.encode([texts[1], texts[3], texts[4]]).vectors
    np.testing.assert_array_equal(found.vectors[[1, 3, 4]], alone)


# --- the model's own code -------------------------------------------------------------------------

CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput


class OddConfig(PretrainedConfig):
    model_type = "odd"


class OddModel(PreTrainedModel):
    config_class = OddConfig

    def __init__(self, config):
        super().__init__(config)
        self.words = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self):
        return self.words

    def forward(self, input_ids=None, attention_mask=None, **options):
        return BaseModelOutput(last_hidden_state=self.words(input_ids) * FACTOR)
"""


def save_with_code(folder: Path, factor: int, **config: object) -> Path:
    from tiny_checkpoints import vocabulary, write_tokenizer

    folder.mkdir()
    (folder / "odd.py").write_text(CODE.replace("FACTOR", str(factor)), "utf-8")
    words = torch.arange(len(vocabulary()) * 8).reshape(-1, 8) / 1000
    save_file({"words.weight": words}, folder / "model.safetensors", metadata={"format": "pt"})
    stated = {
        "model_type": "odd",
        "auto_map": {"AutoConfig": "odd.OddConfig", "AutoModel": "odd.OddModel"},
        "vocab_size": len(vocabulary()),
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "max_position_embeddings": 64,
    }
    (folder / "config.json").write_text(json.dumps(stated | config), "utf-8")
    write_tokenizer(folder, vocabulary())
    bert = save_encoder(folder.parent / f"bert{factor}")
    load_raw(describe_checkpoint(bert)).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def private_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that transformers copies stays out of the user's home."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m"))


@pytest.mark.usefixtures("private_modules")
def test_code_that_is_trusted_is_part_of_the_fingerprint_and_other_code_is_not_run(
    tmp_path: Path,
) -> None:
    trusting = EncoderSettings(precision="exact", dtype="float32", trust_remote_code=True)
    first = Encoder.load(save_with_code(tmp_path / "one", 1), trusting)
    second = Encoder.load(save_with_code(tmp_path / "two", 2), trusting)
    vectors = [encoder.encode(["合同"]).vectors for encoder in (first, second)]
    np.testing.assert_allclose(vectors[0] * 2, vectors[1])
    assert first.fingerprint != second.fingerprint
    with pytest.raises(UnsupportedModel, match="custom code"):
        Encoder.load(tmp_path / "one", FLOAT32)


def test_code_that_is_not_in_the_folder_is_refused(tmp_path: Path) -> None:
    elsewhere = {"AutoModel": "somebody/else--odd.OddModel"}
    folder = save_with_code(tmp_path / "one", 1, auto_map=elsewhere)
    trusting = EncoderSettings(precision="exact", dtype="float32", trust_remote_code=True)
    with pytest.raises(UnsupportedModel, match="another repository"):
        Encoder.load(folder, trusting)
