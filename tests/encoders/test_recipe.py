"""sentence-transformers folders: its own vectors, or a refusal; oracle the library itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tiny_checkpoints import save_encoder

from featpipe.encoders import linear
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, encoder_spec
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel, UsageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TEXTS = ["合同金额为二千元", "the contract", "公司", "一" * 30]
FLOAT32 = EncoderSettings(precision="exact", dtype="float32")


def save_recipe(
    folder: Path, pooling: str, *, normalise: bool, prompt: str = ""
) -> SentenceTransformer:
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    save_encoder(folder / "plain")
    parts = [modules.Transformer(str(folder / "plain"), max_seq_length=40)]
    parts.append(modules.Pooling(32, pooling_mode=pooling))
    parts += [modules.Normalize()] if normalise else []
    options = {"prompts": {"query": prompt}, "default_prompt_name": "query"} if prompt else {}
    model: SentenceTransformer = library.SentenceTransformer(modules=parts, device="cpu", **options)
    model.save(str(folder / "saved"))
    return model


@pytest.mark.parametrize(
    ("pooling", "normalise", "prompt"),
    [
        ("mean", False, ""),
        ("mean", True, ""),
        ("cls", True, "the query: "),
        ("max", False, ""),
        ("lasttoken", False, ""),
        ("weightedmean", True, ""),
        ("mean_sqrt_len_tokens", False, ""),
    ],
)
def test_a_saved_model_gives_the_vectors_of_sentence_transformers(
    tmp_path: Path, pooling: str, normalise: bool, prompt: str
) -> None:
    model = save_recipe(tmp_path, pooling, normalise=normalise, prompt=prompt)
    expected = model.encode(TEXTS)
    encoder = Encoder.load(tmp_path / "saved", FLOAT32)
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, expected, atol=2e-5)
    assert encoder.spec["max_length"] == 40
    assert encoder.spec["prompt"] == prompt


def test_prompts_are_chosen_by_the_names_that_the_model_gives_them(tmp_path: Path) -> None:
    model = save_recipe(tmp_path, "mean", normalise=True, prompt="the query: ")
    model.prompts = {"query": "the query: ", "passage": "the text: ", "document": ""}
    model.save(str(tmp_path / "saved"))
    for name, text in model.prompts.items():
        encoder = Encoder.load(tmp_path / "saved", replace(FLOAT32, prompt_name=name))
        assert encoder.spec["prompt"] == text
        expected = model.encode(TEXTS, prompt_name=name)
        np.testing.assert_allclose(encoder.encode(TEXTS).vectors, expected, atol=2e-5)
    # The text is what counts, not how it was chosen.
    same = Encoder.load(tmp_path / "saved", replace(FLOAT32, prompt="the text: "))
    named = Encoder.load(tmp_path / "saved", replace(FLOAT32, prompt_name="passage"))
    assert named.fingerprint == same.fingerprint
    with pytest.raises(UsageError, match="has no prompt 'question'") as caught:
        Encoder.load(tmp_path / "saved", replace(FLOAT32, prompt_name="question"))
    assert "it has document, passage, query" in str(caught.value)
    with pytest.raises(UsageError, match="leave one of them out"):
        Encoder.load(tmp_path / "saved", replace(FLOAT32, prompt_name="query", prompt="the "))


def test_a_default_prompt_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    save_recipe(tmp_path, "mean", normalise=True)
    options = {"prompts": {"query": "q: "}, "default_prompt_name": "passage"}
    file = tmp_path / "saved" / "config_sentence_transformers.json"
    file.write_text(json.dumps(options), "utf-8")
    with pytest.raises(CheckpointError, match="names the default prompt 'passage'"):
        Encoder.load(tmp_path / "saved")


def write_modules(folder: Path, *kinds: str) -> None:
    modules = [{"idx": n, "path": "", "type": f"models.{kind}"} for n, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")


@pytest.mark.parametrize("kind", ["LSTM", "CNN", "WeightedLayerPooling", "Anything"])
def test_a_module_that_would_change_vectors_is_refused(tmp_path: Path, kind: str) -> None:
    folder = save_encoder(tmp_path)
    write_modules(folder, "Transformer", kind)
    (folder / "modules.json").write_text(
        (folder / "modules.json").read_text("utf-8").replace("models.", "somewhere.models.")
    )
    with pytest.raises(UnsupportedModel, match=f"a {kind} module, which is not reproduced"):
        describe_checkpoint(folder)


@pytest.mark.parametrize(
    "modes",
    [
        {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
        {"pooling_mode": "attention"},
        {"pooling_mode": "mean", "include_prompt": False},
        {},
    ],
    ids=str,
)
def test_a_pooling_that_is_not_reproduced_is_refused(
    tmp_path: Path, modes: dict[str, object]
) -> None:
    folder = save_encoder(tmp_path)
    write_modules(folder, "Transformer", "Pooling")
    (folder / "config.json").write_text(
        json.dumps(json.loads((folder / "config.json").read_text("utf-8")) | modes), "utf-8"
    )
    with pytest.raises(UnsupportedModel):
        describe_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[1]"),
        ("modules.json", "{"),
        ("tokenizer_config.json", "nonsense"),
    ],
)
def test_damaged_json_is_a_checkpoint_error(tmp_path: Path, name: str, content: str) -> None:
    folder = save_encoder(tmp_path)
    (folder / name).write_text(content, "utf-8")
    with pytest.raises(CheckpointError):
        encoder_spec(describe_checkpoint(folder), FLOAT32)


def test_without_the_prepacked_kernels_vectors_are_the_same_and_it_is_said(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Encoder.load(encoder_folder, FLOAT32).encode(TEXTS).vectors
    monkeypatch.setattr(linear, "has_prepacked", lambda: False)
    plain = Encoder.load(encoder_folder, FLOAT32)
    np.testing.assert_allclose(plain.encode(TEXTS).vectors, expected, atol=2e-5)
    assert not plain.is_invariant
    assert "batch-invariant kernels are missing" in plain.notes[0]


def test_mixed_precision_stays_close_to_exact(encoder_folder: Path) -> None:
    exact = Encoder.load(encoder_folder, FLOAT32).encode(TEXTS).vectors
    settings = EncoderSettings(dtype="float32", precision="mixed")
    mixed = Encoder.load(encoder_folder, settings).encode(TEXTS).vectors
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(mixed, axis=1)
    assert ((exact * mixed).sum(axis=1) / lengths).min() > 0.999
    assert not np.array_equal(exact, mixed)


# --- what follows pooling -------------------------------------------------------------------------


def save_with_steps(folder: Path, *kinds: str, activation: str = "Tanh") -> SentenceTransformer:
    """A model whose pooling is followed by modules with weights that show."""
    library = pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers.sentence_transformer import modules

    torch.manual_seed(1)
    save_encoder(folder / "plain")
    parts = [modules.Transformer(str(folder / "plain"), max_seq_length=40), modules.Pooling(32)]
    width = 32
    for number, kind in enumerate(kinds):
        if kind == "Dense":
            after = getattr(torch.nn, activation)()
            out = 48 - 8 * number
            parts.append(modules.Dense(width, out, bias=number == 0, activation_function=after))
            width = out
        elif kind == "LayerNorm":
            parts.append(modules.LayerNorm(width))
            torch.nn.init.normal_(parts[-1].norm.weight)
            torch.nn.init.normal_(parts[-1].norm.bias)
        else:
            parts.append(getattr(modules, kind)())
    model: SentenceTransformer = library.SentenceTransformer(modules=parts, device="cpu")
    model.save(str(folder / "saved"))
    return model


@pytest.mark.parametrize(
    ("kinds", "activation"),
    [
        (("Dense",), "Tanh"),
        (("Dense", "Normalize"), "Identity"),
        (("Dense", "Dense"), "GELU"),
        (("Normalize", "Dense", "LayerNorm"), "ReLU"),
        (("LayerNorm", "Normalize"), ""),
        (("Dropout", "Dense", "Dropout"), "Sigmoid"),
    ],
)
def test_dense_layers_and_norms_after_pooling_are_those_of_sentence_transformers(
    tmp_path: Path, kinds: tuple[str, ...], activation: str
) -> None:
    model = save_with_steps(tmp_path, *kinds, activation=activation)
    expected = model.encode(TEXTS)
    encoder = Encoder.load(tmp_path / "saved", FLOAT32)
    found = encoder.encode(TEXTS).vectors
    np.testing.assert_allclose(found, expected, atol=2e-5)
    checkpoint = describe_checkpoint(tmp_path / "saved")
    assert (encoder.dim, checkpoint.dim) == (expected.shape[1], expected.shape[1])
    alone = [encoder.encode([text]).vectors[0].tobytes() for text in TEXTS]
    assert alone == [row.tobytes() for row in found]


def test_a_dense_layer_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    save_with_steps(tmp_path, "Dense")
    folder = tmp_path / "saved"
    before = encoder_spec(describe_checkpoint(folder), FLOAT32)
    [file] = folder.glob("*_Dense/model.safetensors")
    from safetensors.torch import load_file, save_file

    weights = load_file(file)
    weights["linear.bias"] = weights["linear.bias"] + 1
    save_file(weights, file)
    after = encoder_spec(describe_checkpoint(folder), FLOAT32)
    assert [part for part in before if before[part] != after[part]] == ["steps"]
    assert "steps" not in encoder_spec(describe_checkpoint(tmp_path / "plain"), FLOAT32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "mypackage.Swish"}, "the activation mypackage.Swish"),
        ({"activation_function": "torch.nn.Softmax"}, "the activation torch.nn.Softmax"),
        ({"use_residual": True}, "a residual connection"),
        ({"module_input_name": "token_embeddings"}, "token embeddings"),
    ],
)
def test_a_dense_layer_that_is_not_reproduced_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    save_with_steps(tmp_path, "Dense")
    [file] = (tmp_path / "saved").glob("*_Dense/config.json")
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(UnsupportedModel, match=message):
        describe_checkpoint(tmp_path / "saved")


def test_a_dense_layer_without_its_weights_is_named(tmp_path: Path) -> None:
    save_with_steps(tmp_path, "Dense")
    [file] = (tmp_path / "saved").glob("*_Dense/model.safetensors")
    file.unlink()
    with pytest.raises(MissingWeights, match=r"_Dense has no model\.safetensors"):
        Encoder.load(tmp_path / "saved", FLOAT32)


def test_a_folder_that_was_not_copied_whole_is_named(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    with pytest.raises(CheckpointError, match=r"names 1_Pooling, but .* is not there") as caught:
        describe_checkpoint(folder)
    assert "not copied whole" in str(caught.value.hint)


def test_an_empty_name_is_not_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_encoder(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="the name of a model is empty"):
        describe_checkpoint("")


@pytest.mark.parametrize("name", ["./nothere", "../nothere", "nowhere/at/all", "~/nothere-either"])
def test_a_path_that_does_not_exist_is_a_path_and_no_hub_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_encoder(tmp_path / "models" / "mine")
    monkeypatch.chdir(tmp_path / "models")
    with pytest.raises(CheckpointError, match="there is no checkpoint folder") as caught:
        describe_checkpoint(name)
    if name == "./nothere":
        assert "holds the checkpoints mine" in str(caught.value.hint)
