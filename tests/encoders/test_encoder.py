"""Encoder: oracle transformers, float32."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_checkpoints import save_encoder, vocabulary

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import EncodingError

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
    settings = EncoderSettings(pooling=pooling, layer=layer, dtype="float32", precision="exact")
    found = Encoder.load(encoder_folder, settings).encode(texts)
    np.testing.assert_allclose(
        found.vectors, reference(encoder_folder, texts, pooling, layer), atol=2e-5
    )
    assert (found.n_windows == 1).all()


def test_a_worker_imports_no_transformers(encoder_folder: Path) -> None:
    code = (
        "import sys; from featpipe.encoders.encoder import Encoder\n"
        f"Encoder.load({str(encoder_folder)!r}).encode(['合同'])\n"
        "assert 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# --- long texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_a_long_text_is_pooled_over_windows_by_the_stated_rule(
    encoder_folder: Path, write_text: Text, pooling: str
) -> None:
    """Windows of 30 tokens every 20; each weighs as much as it holds tokens not seen before."""
    from transformers import AutoModel, AutoTokenizer

    text = write_text(3, 110)
    settings = EncoderSettings(
        pooling=pooling, max_length=32, stride=20, dtype="float32", precision="exact"
    )
    found = Encoder.load(encoder_folder, settings).encode([text, "短"])
    model = AutoModel.from_pretrained(encoder_folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    body = tokenizer(text, add_special_tokens=False, truncation=False)["input_ids"]
    vectors, weights, seen = [], [], 0
    for start in range(0, max(1, len(body) - 30 + 20), 20):
        piece = body[start : start + 30]
        ids = torch.tensor([[tokenizer.cls_token_id, *piece, tokenizer.sep_token_id]])
        with torch.inference_mode():
            states = model(ids).last_hidden_state[0]
        pools = {
            "mean": states.mean(0),
            "cls": states[0],
            "max": states.max(0)[0],
            "last": states[-1],
        }
        vectors.append(pools[pooling].numpy())
        weights.append(start + len(piece) - seen)
        seen = start + len(piece)
    assert seen == len(body) == sum(weights)
    expected = {
        "max": np.max(vectors, axis=0),
        "last": vectors[-1],
    }.get(pooling, np.average(vectors, axis=0, weights=weights))
    np.testing.assert_allclose(found.vectors[0], expected, atol=2e-5)
    assert found.n_windows.tolist() == [len(vectors), 1]
    assert found.n_tokens.tolist() == [len(body) + 2, 3]


def test_the_last_word_of_a_very_long_text_still_counts(encoder_folder: Path) -> None:
    encoder = Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
    text = "合" * 999_999
    found = encoder.encode([text + "同", text + "金", "合"])
    assert found.n_tokens[0] == 1_000_002
    assert found.n_windows[0] > 10_000
    assert not np.array_equal(found.vectors[0], found.vectors[1])
    np.testing.assert_array_equal(found.vectors[2], encoder.encode(["合"]).vectors[0])


def test_a_prompt_is_part_of_the_text(encoder_folder: Path) -> None:
    prompted = Encoder.load(encoder_folder, EncoderSettings(prompt="the contract:"))
    plain = Encoder.load(encoder_folder)
    np.testing.assert_array_equal(
        prompted.encode(["金额"]).vectors, plain.encode(["the contract:金额"]).vectors
    )


# --- what a vector is stored as -------------------------------------------------------------------


def test_stored_dtypes_round_the_float32_vector_to_nearest(
    encoder_folder: Path, write_text: Text
) -> None:
    texts = [write_text(seed, 20) for seed in range(40)]
    exact = (
        Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
        .encode(texts)
        .vectors
    )
    half = (
        Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float16"))
        .encode(texts)
        .vectors
    )
    brain = (
        Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="bfloat16"))
        .encode(texts)
        .vectors
    )
    assert (half.dtype, brain.dtype) == (np.float16, np.uint16)
    np.testing.assert_array_equal(half, exact.astype(np.float16))
    expected = torch.from_numpy(exact).to(torch.bfloat16).view(torch.uint16).numpy()
    np.testing.assert_array_equal(brain, expected)


def test_normalised_vectors_have_length_one(encoder_folder: Path, write_text: Text) -> None:
    texts = [write_text(seed, 20) for seed in range(10)]
    settings = EncoderSettings(precision="exact", dtype="float32", normalise=True)
    vectors = Encoder.load(encoder_folder, settings).encode(texts).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


# --- odd and bad input ----------------------------------------------------------------------------

ODD = {
    "empty": "",
    "blank": " \t\n\u3000",
    "a lone surrogate": "合\ud800同",
    "NUL": "合\x00同",
    "emoji": "合同👨‍👩‍👧🇨🇳",
    "right to left": "العقد שלום",
    "a literal special token": "前[SEP]后[MASK]",
    "unknown to the vocabulary": "鿿龥ﷺ𓀀",
    "one endless word": "a" * 1_000_000,
    "only control characters": "\x01\x02\x1f",
}


def test_odd_texts_have_vectors_and_leave_others_alone(encoder_folder: Path) -> None:
    encoder = Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
    good = ["合同金额", "the contract"]
    alone = encoder.encode(good).vectors
    found = encoder.encode([good[0], *ODD.values(), good[1]])
    assert np.isfinite(found.vectors).all()
    assert found.faults == {}
    np.testing.assert_array_equal(found.vectors[[0, -1]], alone)
    for text, vector in zip(ODD.values(), found.vectors[1:-1], strict=True):
        np.testing.assert_array_equal(encoder.encode([text]).vectors[0], vector)


def test_odd_texts_are_read_as_transformers_reads_them(encoder_folder: Path) -> None:
    texts = [text for text in ODD.values() if "\ud800" not in text and len(text) < 60]
    found = Encoder.load(
        encoder_folder, EncoderSettings(precision="exact", dtype="float32")
    ).encode(texts)
    np.testing.assert_allclose(found.vectors, reference(encoder_folder, texts, "mean"), atol=2e-5)


def test_no_texts_are_no_vectors(encoder_folder: Path) -> None:
    encoder = Encoder.load(encoder_folder)
    assert encoder.encode([]).vectors.shape == (0, encoder.dim)


@pytest.fixture
def folder_with_a_bad_word(tmp_path: Path) -> Path:
    """Finite weights, but the word 合 overflows on its way through the model."""
    folder = save_encoder(tmp_path)
    weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
    weights["embeddings.word_embeddings.weight"][vocabulary().index("合")] = 3e38
    save_file(weights, folder / "model.safetensors")
    return folder


def test_a_unit_that_overflows_is_named_and_the_others_are_encoded(
    folder_with_a_bad_word: Path,
) -> None:
    encoder = Encoder.load(folder_with_a_bad_word)
    texts = ["金额", "合同", "公司", "合"]
    with pytest.raises(EncodingError, match=r"2 unit.* NaN or infinity") as caught:
        encoder.encode(texts)
    assert caught.value.units == (1, 3)
    found = encoder.encode(texts, on_fault="report")
    assert found.faults.keys() == {1, 3}
    good = encoder.encode(["金额", "公司"]).vectors
    np.testing.assert_array_equal(found.vectors[[0, 2]], good)
    assert not found.vectors[[1, 3]].any()


@pytest.mark.parametrize(("dtype", "bias"), [("float16", 1e6), ("bfloat16", 3.4e38)])
def test_a_vector_too_large_for_its_dtype_is_not_stored_as_infinity(
    tmp_path: Path, dtype: Literal["float16", "bfloat16"], bias: float
) -> None:
    folder = save_encoder(tmp_path)
    weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
    weights["encoder.layer.1.output.LayerNorm.bias"][3] = bias
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(EncodingError, match=f"too large for {dtype}"):
        Encoder.load(folder, EncoderSettings(dtype=dtype, pooling="cls")).encode(["合同"])
    assert np.isfinite(
        Encoder.load(folder, EncoderSettings(precision="exact", dtype="float32", pooling="cls"))
        .encode(["合同"])
        .vectors
    ).all()


def test_a_token_without_an_embedding_costs_only_its_unit(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    with (folder / "vocab.txt").open("a", encoding="utf-8") as stream:
        stream.write("鑫\n")
    encoder = Encoder.load(folder)
    found = encoder.encode(["合同", "鑫", "合鑫同"], on_fault="report")
    assert found.faults.keys() == {1, 2}
    np.testing.assert_array_equal(found.vectors[0], encoder.encode(["合同"]).vectors[0])


def test_errors_survive_their_way_out_of_a_worker(folder_with_a_bad_word: Path) -> None:
    with pytest.raises(EncodingError) as caught:
        Encoder.load(folder_with_a_bad_word).encode(["合同"])
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (again.units, again.message) == ((0,), caught.value.message)


@pytest.mark.parametrize("prompt", ["", "公司"])
def test_token_ids_are_encoded_as_their_text_would_be(
    encoder_folder: Path, write_text: Text, prompt: str
) -> None:
    texts = [write_text(seed, length) for seed, length in enumerate((1, 5, 5, 30, 200))]
    encoder = Encoder.load(encoder_folder, EncoderSettings(prompt=prompt))
    tokens = encoder.tokenizer.encode(texts)
    sequences = [part.tolist() for part in np.split(tokens.ids, tokens.ends[:-1])]
    expected, found = encoder.encode(texts), encoder.encode_tokens(sequences)
    assert found.vectors.tobytes() == expected.vectors.tobytes()
    assert found.n_tokens.tolist() == expected.n_tokens.tolist()
    assert encoder.count_tokens(texts).tolist() == expected.n_tokens.tolist()
    assert len(encoder.encode_tokens([]).vectors) == 0


@pytest.mark.parametrize("bad", [-1, 10**9])
def test_a_token_id_beyond_the_vocabulary_is_named(encoder_folder: Path, bad: int) -> None:
    encoder = Encoder.load(encoder_folder)
    with pytest.raises(EncodingError) as caught:
        encoder.encode_tokens([[5, 6], [5, bad], [7]])
    assert caught.value.units == (1,)


# --- texts longer than a window -------------------------------------------------------------------


def test_long_texts_are_refused_where_asked_and_others_are_encoded(
    encoder_folder: Path, write_text: Text
) -> None:
    texts = ["短", write_text(1, 300), "合同"]
    plain = Encoder.load(encoder_folder, EncoderSettings(max_length=32))
    strict = Encoder.load(encoder_folder, EncoderSettings(max_length=32, on_truncate="error"))
    assert strict.fingerprint == plain.fingerprint
    found = strict.encode(texts, on_fault="report")
    assert list(found.faults) == [1]
    assert re.fullmatch(r"it has \d+ tokens, more than the 32 of one window", found.faults[1])
    expected = plain.encode(texts).vectors
    assert found.vectors[[0, 2]].tobytes() == expected[[0, 2]].tobytes()
    assert not found.vectors[1].any()
    with pytest.raises(EncodingError, match="more than the 32 of one window"):
        strict.encode(texts)


def test_long_texts_are_cut_where_asked_as_transformers_cuts_them(
    encoder_folder: Path, write_text: Text
) -> None:
    texts = ["短", write_text(1, 300)]
    settings = EncoderSettings(
        max_length=32, on_truncate="warn", dtype="float32", precision="exact"
    )
    encoder = Encoder.load(encoder_folder, settings)
    assert encoder.fingerprint != Encoder.load(encoder_folder).fingerprint
    found = encoder.encode(texts)
    assert found.n_windows.tolist() == [1, 1]
    assert found.n_tokens[1] > 200
    # The oracle is given what is left of the text: the same tokens, in one window.
    ends = encoder.tokenizer.encode(texts[1:], with_offsets=True)
    assert ends.stop is not None
    kept = texts[1][: ends.stop[29]]
    np.testing.assert_allclose(
        found.vectors, reference(encoder_folder, ["短", kept], "mean"), atol=2e-5
    )
