"""Encoders of other architectures: oracle transformers, one text at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from test_weights import prefixed, rewrite, tokenizer_json
from tiny_checkpoints import vocabulary

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import MissingWeights, UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SIZES = {
    "vocab_size": len(vocabulary()),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def albert() -> PreTrainedModel:
    from transformers import AlbertConfig, AlbertModel

    return AlbertModel(AlbertConfig(**SIZES, embedding_size=16))


def mpnet() -> PreTrainedModel:
    from transformers import MPNetConfig, MPNetModel

    return MPNetModel(MPNetConfig(**SIZES | {"max_position_embeddings": 66}, pad_token_id=1))


def modernbert() -> PreTrainedModel:
    from transformers import ModernBertConfig, ModernBertModel

    options = {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0}
    return ModernBertModel(ModernBertConfig(**SIZES, **options))


def deberta() -> PreTrainedModel:
    from transformers import DebertaV2Config, DebertaV2Model

    return DebertaV2Model(DebertaV2Config(**SIZES, relative_attention=True, position_buckets=8))


@pytest.mark.parametrize("make", [albert, mpnet, modernbert, deberta])
@pytest.mark.parametrize("layer", [-1, 1])
def test_other_architectures_give_the_vectors_of_transformers(
    tmp_path: Path,
    make: Callable[[], PreTrainedModel],
    layer: int,
    write_text: Callable[[int, int], str],
) -> None:
    torch.manual_seed(6)
    model = make().eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    texts = [
        write_text(seed, length).replace("[", "") for seed, length in enumerate((1, 4, 4, 20, 50))
    ]
    encoder = Encoder.load(
        tmp_path, EncoderSettings(precision="exact", dtype="float32", layer=layer)
    )
    found = encoder.encode(texts).vectors
    assert "run by transformers" in encoder.notes[0]
    tokens = encoder.tokenizer.encode(texts)
    for body, vector in zip(np.split(tokens.ids, tokens.ends[:-1]), found, strict=True):
        ids = torch.tensor([[*encoder.tokenizer.prefix, *body.tolist(), *encoder.tokenizer.suffix]])
        with torch.inference_mode():
            known = model(
                input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True
            )
        states = (known.last_hidden_state if layer == -1 else known.hidden_states[layer])[0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), atol=5e-5)


def test_the_hook_serves_models_whose_attention_can_be_replaced(tmp_path: Path) -> None:
    albert().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    assert "its own attention replaced" in Encoder.load(tmp_path).notes[0]


def save_modernbert(folder: Path, *, local_attention: int) -> PreTrainedModel:
    from transformers import ModernBertConfig, ModernBertModel

    torch.manual_seed(6)
    options = {"global_attn_every_n_layers": 2, "pad_token_id": 0, "max_position_embeddings": 512}
    config = ModernBertConfig(**SIZES | options, local_attention=local_attention)
    model = ModernBertModel(config).eval()
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    return model


def test_local_attention_is_kept_however_wide_it_is(
    tmp_path: Path, write_text: Callable[[int, int], str]
) -> None:
    """Wider than the sequences on which hooked and plain states are compared at load."""
    model = save_modernbert(tmp_path, local_attention=640)
    encoder = Encoder.load(tmp_path, EncoderSettings(precision="exact", dtype="float32"))
    tokens = encoder.tokenizer.encode([write_text(3, 480).replace("[", "")])
    ids = [*encoder.tokenizer.prefix, *tokens.ids.tolist(), *encoder.tokenizer.suffix]
    assert 400 < len(ids) <= 512
    with torch.inference_mode():
        states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
    [found] = encoder.encode_tokens([tokens.ids.tolist()]).vectors
    np.testing.assert_allclose(found, states.mean(0).numpy(), atol=5e-6)


def test_positions_that_depend_on_the_longest_text_are_computed_apart(tmp_path: Path) -> None:
    """Longer, too, than the sequences that are compared at load."""
    import transformers

    rope = {
        "rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 400,
        "short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "factor": 2.0,
    }  # fmt: skip
    torch.manual_seed(6)
    sizes = SIZES | {"max_position_embeddings": 512, "pad_token_id": 0}
    config = transformers.EuroBertConfig(**sizes, rope_parameters=rope)
    transformers.EuroBertModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path, EncoderSettings(precision="exact", dtype="float32"))
    [alone] = encoder.encode(["合同甲方"]).vectors
    with_others = encoder.encode(["合同甲方", "合同" * 225]).vectors[0]
    np.testing.assert_allclose(with_others, alone, atol=1e-5)


def test_two_encoders_in_two_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    albert().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    here, there = Encoder.load(tmp_path), Encoder.load(tmp_path)
    # As many tokens in both packs, cut elsewhere.
    texts, others = ["合" * 4, "同" * 8], ["合" * 2, "同" * 10]
    expected = here.encode(texts).vectors

    def encode_others(*_: object) -> None:
        handle.remove()
        thread = threading.Thread(target=there.encode, args=[others])
        thread.start()
        thread.join()

    # In the middle of the one's forward, between its embeddings and its attention.
    handle = here.trunk.model.embeddings.register_forward_hook(encode_others)  # type: ignore[attr-defined]  # a foreign trunk's
    np.testing.assert_array_equal(here.encode(texts).vectors, expected)


def test_a_model_that_is_no_encoder_is_refused(tmp_path: Path) -> None:
    albert().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    config = (tmp_path / "config.json").read_text("utf-8")
    (tmp_path / "config.json").write_text(config.replace('"albert"', '"never-heard-of"'), "utf-8")
    with pytest.raises(UnsupportedModel, match="never-heard-of"):
        Encoder.load(tmp_path)


# --- weights that are not the model's -------------------------------------------------------------


@pytest.fixture
def mpnet_folder(tmp_path: Path) -> Path:
    mpnet().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    return tmp_path


LAST = "encoder.layer.1.output.dense.weight"

WRONG = {
    f"missing: {LAST}": lambda weights: {k: v for k, v in weights.items() if k != LAST},
    r"left over: adapter\.down": lambda weights: weights | {"adapter.down": torch.zeros(2, 2)},
    r"left over: encoder\.layer\.2\.": lambda weights: (
        weights | {LAST.replace("1", "2"): weights[LAST].clone()}
    ),
    rf"misshapen: {LAST} is \(3, 3\)": lambda weights: weights | {LAST: torch.zeros(3, 3)},
}


@pytest.mark.parametrize("message", WRONG)
def test_weights_that_transformers_would_make_up_or_drop_are_listed(
    mpnet_folder: Path, message: str
) -> None:
    rewrite(mpnet_folder, WRONG[message])
    with pytest.raises(MissingWeights, match=message):
        Encoder.load(mpnet_folder)


def test_heads_of_other_tasks_and_the_models_own_prefix_are_understood(mpnet_folder: Path) -> None:
    plain = Encoder.load(mpnet_folder).encode(["合同"]).vectors
    heads = {"lm_head.bias": torch.zeros(4), "classifier.out_proj.weight": torch.zeros(2, 32)}
    heads |= {"crf.transitions": torch.zeros(2, 2), "ner_CRF.start": torch.zeros(2)}
    rewrite(mpnet_folder, lambda weights: prefixed("mpnet.")(weights) | heads)
    np.testing.assert_array_equal(Encoder.load(mpnet_folder).encode(["合同"]).vectors, plain)


@pytest.mark.parametrize("kind", ["Data2VecText", "IBert", "RobertaPreLayerNorm"])
def test_windows_end_where_positions_do_that_count_from_the_padding(
    tmp_path: Path, kind: str
) -> None:
    import transformers

    config = getattr(transformers, f"{kind}Config")(**SIZES, pad_token_id=1)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path)
    assert encoder.spec["max_length"] == SIZES["max_position_embeddings"] - 2
    assert encoder.encode(["合" * 100]).n_windows.tolist() == [2]


@pytest.mark.parametrize(("n_positions", "n_windows"), [(64, 2), (1024, 1)])
def test_windows_are_as_long_as_gpt_has_positions(
    tmp_path: Path, n_positions: int, n_windows: int
) -> None:
    from transformers import GPT2Config, GPT2Model

    sizes = {"n_embd": 32, "n_layer": 1, "n_head": 4, "vocab_size": len(vocabulary())}
    GPT2Model(GPT2Config(**sizes, n_positions=n_positions)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path)
    assert encoder.spec["max_length"] == n_positions
    assert encoder.encode(["合" * 100]).n_windows.tolist() == [n_windows]


def test_a_model_of_pictures_is_refused(tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ViTModel(ViTConfig(**sizes, intermediate_size=32, image_size=32)).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    with pytest.raises(UnsupportedModel, match="no encoder of texts"):
        Encoder.load(tmp_path)


@pytest.mark.parametrize("option", ["softcap", "position_bias"])
def test_changes_of_the_scores_that_the_hook_does_not_make_are_refused(option: str) -> None:
    from featpipe.encoders.foreign import _attend_in_model

    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(ValueError, match=option):
        _attend_in_model(None, x, x, x, None, **{option: 30.0})


def test_a_decoder_is_computed_packed_and_keeps_to_what_came_before(
    tmp_path: Path, write_text: Callable[[int, int], str]
) -> None:
    from transformers import Qwen3Config, Qwen3Model

    torch.manual_seed(6)
    heads = {"head_dim": 8, "num_key_value_heads": 2}
    model = Qwen3Model(Qwen3Config(**SIZES | heads)).eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path, EncoderSettings(precision="exact", dtype="float32"))
    assert "its own attention replaced" in encoder.notes[0]
    texts = [write_text(seed, length).replace("[", "") for seed, length in enumerate((3, 9, 40))]
    found = encoder.encode(texts).vectors
    for text, vector in zip(texts, found, strict=True):
        body = encoder.tokenizer.encode([text]).ids.tolist()
        ids = torch.tensor([[*encoder.tokenizer.prefix, *body, *encoder.tokenizer.suffix]])
        with torch.inference_mode():
            states = model(input_ids=ids, use_cache=False).last_hidden_state[0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), atol=5e-5)
