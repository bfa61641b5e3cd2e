"""Queries by onnxruntime: the vectors of torch for any family, length and pooling, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_checkpoints import save_encoder, vocabulary, write_tokenizer

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.query_backend import check_query_backend, onnx_encoder
from featpipe.encoders.spec import EncoderSettings, explain_difference
from featpipe.errors import CheckpointError, MissingExtra, UnsupportedModel, UsageError

EXACT = EncoderSettings(precision="exact", dtype="float32")
SIZES = {
    "vocab_size": len(vocabulary()),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
#: Rounding of two computations in float32; the vectors' numbers are about 1.
ROUNDING = 2e-5


@pytest.fixture(autouse=True)
def _has_packages() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")


def check_equal(encoder: Encoder, texts: list[str], prompt: str | None = None) -> None:
    expected = encoder.encode(texts, on_fault="report", prompt=prompt)
    found = onnx_encoder(encoder).encode(texts, on_fault="report", prompt=prompt)
    np.testing.assert_allclose(found.vectors, expected.vectors, rtol=0, atol=ROUNDING)
    np.testing.assert_array_equal(found.n_tokens, expected.n_tokens)
    np.testing.assert_array_equal(found.n_windows, expected.n_windows)
    assert found.faults == expected.faults


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last", "weightedmean", "mean_sqrt_len"])
def test_texts_of_all_lengths_have_the_vectors_of_torch(
    encoder_folder: Path, write_text: Callable[[int, int], str], pooling: str
) -> None:
    settings = EncoderSettings(pooling=pooling, precision="exact", dtype="float32")  # type: ignore[arg-type]
    texts = [write_text(length, length) for length in (0, 1, 7, 30, 62, 63, 200, 700)]
    check_equal(Encoder.load(encoder_folder, settings), texts, prompt="合同：")


@pytest.mark.parametrize("layer", [0, 1, -1])
def test_every_layer_can_be_the_last(encoder_folder: Path, layer: int) -> None:
    settings = EncoderSettings(layer=layer, precision="exact", dtype="float32")
    check_equal(Encoder.load(encoder_folder, settings), ["甲方应当通知。", ""])


def save_family(folder: Path, family: str) -> Path:
    import torch
    import transformers

    kinds = {
        "roberta": {"max_position_embeddings": 66, "pad_token_id": 0, "hidden_act": "gelu_new"},
        "electra": {"embedding_size": 16, "max_position_embeddings": 64, "hidden_act": "relu"},
        "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64,
                       "max_position_embeddings": 64, "vocab_size": len(vocabulary())},
    }  # fmt: skip
    torch.manual_seed(3)
    sizes = {} if family == "distilbert" else SIZES
    config = transformers.AutoConfig.for_model(family, **sizes, **kinds[family])
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    write_tokenizer(folder, vocabulary())
    return folder


@pytest.mark.parametrize("family", ["roberta", "electra", "distilbert"])
def test_each_family_of_the_packed_forward_has_a_graph(
    tmp_path: Path, write_text: Callable[[int, int], str], family: str
) -> None:
    texts = [write_text(length, length) for length in (0, 5, 40, 90)]
    check_equal(Encoder.load(save_family(tmp_path, family), EXACT), [*texts, "甲[PAD]方"])


def test_a_text_alone_has_the_bytes_that_it_has_in_company(
    encoder_folder: Path, write_text: Callable[[int, int], str]
) -> None:
    encoder = onnx_encoder(Encoder.load(encoder_folder, EXACT, threads=2))
    texts = [write_text(number, 10 + number * 17 % 50) for number in range(60)]
    together = encoder.encode(texts).vectors
    alone = np.concatenate([encoder.encode([text]).vectors for text in texts])
    np.testing.assert_array_equal(alone, together)


def test_its_vectors_have_a_fingerprint_of_their_own(encoder_folder: Path) -> None:
    encoder = Encoder.load(encoder_folder, EXACT)
    other = onnx_encoder(encoder)
    assert other.fingerprint != encoder.fingerprint
    [line] = explain_difference(encoder.spec, other.spec)
    assert "onnxruntime" in line


def test_an_encoder_in_mixed_precision_is_held_against_float32(encoder_folder: Path) -> None:
    mixed = Encoder.load(encoder_folder, EncoderSettings(precision="mixed", dtype="float32"))
    found = onnx_encoder(mixed).encode(["甲方应当通知。"]).vectors
    expected = Encoder.load(encoder_folder, EXACT).encode(["甲方应当通知。"]).vectors
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("encoder.layer.1.attention.self.query.weight", 1.01),
        ("encoder.layer.1.output.LayerNorm.bias", 1.01),
        ("positions", -1.0),
        ("encoder.layer.0.intermediate.dense.bias", float("nan")),
    ],
)
def test_a_graph_with_a_wrong_weight_is_refused(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, factor: float
) -> None:
    from featpipe.encoders import onnx_trunk

    build = onnx_trunk.build_graph

    def spoil(*arguments: object) -> object:
        graph = build(*arguments)  # type: ignore[arg-type]
        graph.weights[name] = graph.weights[name] * np.float32(factor)
        return graph

    encoder = Encoder.load(encoder_folder, EXACT)
    monkeypatch.setattr(onnx_trunk, "build_graph", spoil)
    with pytest.raises(UnsupportedModel, match="differ from those of torch"):
        onnx_encoder(encoder)


def test_weights_overwritten_in_place_change_no_vector(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    torch_encoder = Encoder.load(folder, EXACT)
    encoder = onnx_encoder(torch_encoder)
    expected = encoder.encode(["甲方应当通知。"]).vectors
    file = folder / "model.safetensors"
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 4)
        stream.write(bytes(file.stat().st_size // 2))
    np.testing.assert_array_equal(encoder.encode(["甲方应当通知。"]).vectors, expected)
    with pytest.raises(CheckpointError, match="overwritten"):
        onnx_encoder(torch_encoder)


def test_models_without_a_graph_are_refused(tmp_path: Path, encoder_folder: Path) -> None:
    import torch
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    config = MPNetConfig(**SIZES, max_position_embeddings=66, pad_token_id=1)
    MPNetModel(config).save_pretrained(tmp_path)
    write_tokenizer(tmp_path, vocabulary())
    with pytest.raises(UnsupportedModel, match="mpnet"):
        onnx_encoder(Encoder.load(tmp_path, EXACT))
    approx = Encoder.load(encoder_folder, EncoderSettings(precision="approx"))
    with pytest.raises(UnsupportedModel, match="int8"):
        onnx_encoder(approx)


def test_what_the_caller_asks_wrongly_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_query_backend("torch", "cuda:0")
    check_query_backend("onnx")
    with pytest.raises(UsageError, match="'openvino' is none of torch, onnx"):
        check_query_backend("openvino")
    with pytest.raises(UsageError, match="not on cuda:0"):
        check_query_backend("onnx", "cuda:0")
    from featpipe.encoders import query_backend

    monkeypatch.setattr(query_backend, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="onnx and onnxruntime") as raised:
        check_query_backend("onnx")
    assert raised.value.hint == "pip install 'featpipe[onnx]'"
