"""Checkpoints by any name: the same vectors, or an error that lists what is wrong."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_checkpoints import random_crf, save_encoder, save_tagger, vocabulary, write_tokenizer

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, encoder_spec, fingerprint_of
from featpipe.encoders.tagger import Tagger
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

Weights = dict[str, torch.Tensor]

FLOAT32 = EncoderSettings(precision="exact", dtype="float32")
TEXTS = ["合同金额为二千元", "the contract", "", "公司"]


def vectors_of(folder: Path) -> np.ndarray:
    return Encoder.load(folder, FLOAT32).encode(TEXTS).vectors


def rewrite(folder: Path, change: Callable[[Weights], Weights]) -> None:
    weights = {
        name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(change(weights), folder / "model.safetensors")


def prefixed(prefix: str) -> Callable[[Weights], Weights]:
    return lambda weights: {f"{prefix}{name}": tensor for name, tensor in weights.items()}


def as_tensorflow(weights: Weights) -> Weights:
    def old(name: str) -> str:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )

    return {old(name): tensor for name, tensor in weights.items()}


def with_pretraining_heads(weights: Weights) -> Weights:
    extra = {
        "embeddings.position_ids": torch.arange(64)[None],
        "cls.predictions.bias": torch.zeros(4),
        "cls.seq_relationship.weight": torch.zeros(2, 32),
    }
    return weights | extra


def without_pooler(weights: Weights) -> Weights:
    return {name: tensor for name, tensor in weights.items() if not name.startswith("pooler")}


SPELLINGS: dict[str, Callable[[Weights], Weights]] = {
    "bert.": prefixed("bert."),
    "module.": prefixed("module."),
    "module.bert.": prefixed("module.bert."),
    "_orig_mod.": prefixed("_orig_mod."),
    "_orig_mod.module.bert.": prefixed("_orig_mod.module.bert."),
    "encoder.": prefixed("encoder."),
    "model.": prefixed("model."),
    "gamma and beta": as_tensorflow,
    "bert. with gamma and beta": lambda weights: prefixed("bert.")(as_tensorflow(weights)),
    "pre-training heads": lambda weights: with_pretraining_heads(prefixed("bert.")(weights)),
    "no pooler": without_pooler,
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_names_of_other_times_and_wrappers_are_understood(
    tmp_path: Path, spelling: Callable[[Weights], Weights]
) -> None:
    folder = save_encoder(tmp_path)
    expected = vectors_of(folder)
    rewrite(folder, spelling)
    np.testing.assert_array_equal(vectors_of(folder), expected)


def as_pickle(folder: Path, **options: bool) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin", **options)
    (folder / "model.safetensors").unlink()


def as_legacy_pickle(folder: Path) -> None:
    as_pickle(folder, _use_new_zipfile_serialization=False)


def as_nested_pickle(folder: Path) -> None:
    content = {"state_dict": load_file(folder / "model.safetensors"), "epoch": 3}
    torch.save(content, folder / "best.pt")
    (folder / "model.safetensors").unlink()


def as_shards(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: weights[name].clone() for name in part}, folder / file)
    index = {"weight_map": {name: file for file, part in halves.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("save", [as_pickle, as_legacy_pickle, as_nested_pickle, as_shards])
def test_files_of_any_kind_give_the_same_vectors(
    tmp_path: Path, save: Callable[[Path], None]
) -> None:
    folder = save_encoder(tmp_path)
    expected = vectors_of(folder)
    save(folder)
    np.testing.assert_array_equal(vectors_of(folder), expected)


def test_half_precision_weights_are_computed_in_float32(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    expected = vectors_of(folder)
    rewrite(folder, lambda weights: {name: t.half() for name, t in weights.items()})
    np.testing.assert_allclose(vectors_of(folder), expected, atol=0.05)
    assert vectors_of(folder).dtype == np.float32


# --- what is wrong is listed ----------------------------------------------------------------------


def test_missing_weights_are_listed(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    name = "encoder.layer.1.attention.self.query.weight"
    rewrite(folder, lambda weights: {k: v for k, v in weights.items() if k != name})
    with pytest.raises(MissingWeights, match=f"missing: {name}"):
        Encoder.load(folder)


def test_leftover_weights_are_listed(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    rewrite(folder, lambda weights: weights | {"adapter.down.weight": torch.zeros(2, 2)})
    with pytest.raises(MissingWeights, match=r"left over: adapter\.down\.weight"):
        Encoder.load(folder)


def test_a_config_with_fewer_layers_than_the_weights_is_refused(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}), "utf-8")
    with pytest.raises(MissingWeights, match=r"left over: encoder\.layer\.1"):
        Encoder.load(folder)


def test_misshapen_weights_are_listed(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    name = "embeddings.LayerNorm.weight"
    rewrite(folder, lambda weights: weights | {name: torch.ones(31)})
    with pytest.raises(MissingWeights, match=rf"{name} is \(31,\) instead of \(32,\)"):
        Encoder.load(folder)


def test_two_transformers_in_one_file_are_refused(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    rewrite(
        folder,
        lambda weights: (
            prefixed("query.")(weights)
            | {k: v.clone() for k, v in prefixed("passage.")(weights).items()}
        ),
    )
    with pytest.raises(MissingWeights, match="2 sets of word embeddings"):
        Encoder.load(folder)


def test_nan_in_the_weights_is_named(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)

    def poison(weights: Weights) -> Weights:
        weights["encoder.layer.0.output.dense.bias"][3] = float("nan")
        return weights

    rewrite(folder, poison)
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.0\.output\.dense\.bias holds NaN"):
        Encoder.load(folder)


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


@pytest.mark.parametrize("protocol", ["torch", "plain"])
def test_a_pickle_that_would_run_code_is_refused_and_not_run(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = save_encoder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    content = {"embeddings.word_embeddings.weight": torch.zeros(2, 2), "x": Bomb()}
    if protocol == "torch":
        torch.save(content, folder / "pytorch_model.bin")
    else:
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(content))
    with pytest.raises(CheckpointError, match="run code"):
        Encoder.load(folder)
    assert not Path("exploded").exists()


@pytest.mark.parametrize("keep", [0, 4, 100, 5000])
def test_a_cut_off_file_is_a_checkpoint_error(tmp_path: Path, keep: int) -> None:
    folder = save_encoder(tmp_path)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        describe_checkpoint(folder)


def test_a_folder_without_weights_or_config_says_so(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingWeights, match=r"no model\.safetensors"):
        describe_checkpoint(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        describe_checkpoint(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="is a file"):
        describe_checkpoint(folder / "config.json")
    with pytest.raises(CheckpointError, match="no checkpoint folder"):
        describe_checkpoint(tmp_path / "nowhere")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    as_shards(folder)
    (folder / "b.safetensors").unlink()
    with pytest.raises(MissingWeights, match=r"b\.safetensors"):
        describe_checkpoint(folder)


# --- hub names ------------------------------------------------------------------------------------


def test_a_hub_name_is_found_in_the_local_hub_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "hub" / "models--somebody--tiny"
    save_encoder(repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = describe_checkpoint("somebody/tiny")
    assert found.path == repository / "snapshots" / "abc"
    assert found.kind == "encoder"
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE"):
        describe_checkpoint("somebody/other")


# --- models like BERT -----------------------------------------------------------------------------


def bert_like_models() -> dict[str, Callable[[], Any]]:
    from transformers import (
        CamembertConfig,
        CamembertModel,
        DistilBertConfig,
        DistilBertModel,
        ElectraConfig,
        ElectraModel,
        ErnieConfig,
        ErnieModel,
        RobertaConfig,
        RobertaModel,
        XLMRobertaConfig,
        XLMRobertaModel,
    )

    words = len(vocabulary())
    sizes = {
        "vocab_size": words,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    return {
        "roberta": lambda: RobertaModel(
            RobertaConfig(**sizes, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1)
        ),
        "xlm-roberta": lambda: XLMRobertaModel(
            XLMRobertaConfig(**sizes, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1)
        ),
        "camembert": lambda: CamembertModel(
            CamembertConfig(**sizes, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1)
        ),
        "ernie": lambda: ErnieModel(ErnieConfig(**sizes, max_position_embeddings=64)),
        "electra": lambda: ElectraModel(
            ElectraConfig(**sizes, embedding_size=16, max_position_embeddings=64)
        ),
        "distilbert": lambda: DistilBertModel(
            DistilBertConfig(
                vocab_size=words,
                dim=32,
                n_layers=2,
                n_heads=4,
                hidden_dim=64,
                max_position_embeddings=64,
            )
        ),
    }


KIN = ("roberta", "xlm-roberta", "camembert", "ernie", "electra", "distilbert")


@pytest.mark.parametrize("layer", [-1, 0])
@pytest.mark.parametrize("name", KIN)
def test_kin_of_bert_give_the_vectors_of_transformers(
    tmp_path: Path, name: str, layer: int
) -> None:
    torch.manual_seed(4)
    model = bert_like_models()[name]().eval()
    model.save_pretrained(tmp_path)
    write_tokenizer(tmp_path, vocabulary())
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path, replace(FLOAT32, layer=layer))
    assert encoder.is_invariant, "this should be the packed forward"
    found = encoder.encode(TEXTS).vectors
    tokens = encoder.tokenizer.encode(TEXTS)
    bodies = np.split(tokens.ids, tokens.ends[:-1])
    for body, vector in zip(bodies, found, strict=True):
        ids = torch.tensor([[*encoder.tokenizer.prefix, *body.tolist(), *encoder.tokenizer.suffix]])
        with torch.inference_mode():
            known = model(
                input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True
            )
        states = known.hidden_states[layer][0]
        np.testing.assert_allclose(vector, states.mean(0).numpy(), atol=2e-5)


@pytest.mark.parametrize("name", KIN)
def test_what_a_config_does_not_state_is_as_in_transformers(tmp_path: Path, name: str) -> None:
    from transformers import AutoModel

    torch.manual_seed(4)
    model = bert_like_models()[name]()
    with torch.no_grad():
        for parameter in model.parameters():  # so that each padding row shows
            parameter.normal_(0, 0.2)
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    file = tmp_path / "config.json"
    stated = json.loads(file.read_text("utf-8"))
    sizes = ("size", "layers", "heads", "dim", "max_position_embeddings", "model_type")
    file.write_text(json.dumps({k: v for k, v in stated.items() if k.endswith(sizes)}), "utf-8")
    encoder = Encoder.load(tmp_path, FLOAT32)
    assert encoder.is_invariant, "this should be the packed forward"
    known = AutoModel.from_pretrained(tmp_path).eval()
    ids = torch.tensor([[*encoder.tokenizer.prefix, 7, 8, 9, *encoder.tokenizer.suffix]])
    with torch.inference_mode():
        states = known(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    found = encoder.encode_tokens([(7, 8, 9)]).vectors[0]
    np.testing.assert_allclose(found, states[0].mean(0).numpy(), atol=2e-5)


def test_a_padding_token_is_part_of_the_fingerprint_whether_stated_or_not(tmp_path: Path) -> None:
    bert_like_models()["roberta"]().save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    file = tmp_path / "config.json"
    sizes = json.loads(file.read_text("utf-8"))
    del sizes["pad_token_id"]
    prints = []
    for stated in ({}, {"pad_token_id": 1}, {"pad_token_id": 0}):
        file.write_text(json.dumps(sizes | stated), "utf-8")
        spec = encoder_spec(describe_checkpoint(tmp_path), replace(FLOAT32, max_length=32))
        prints.append(fingerprint_of(spec))
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize("name", KIN)
def test_a_literal_padding_token_has_the_position_that_transformers_gives_it(
    tmp_path: Path, name: str
) -> None:
    torch.manual_seed(4)
    model = bert_like_models()[name]().eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    encoder = Encoder.load(tmp_path, FLOAT32)
    padding = model.config.pad_token_id
    bodies = [
        (7, padding, 8, padding, padding, 9), (padding,), (5, 6, 7), (padding, 5), (5, padding),
    ]  # fmt: skip
    found = encoder.encode_tokens(bodies).vectors
    for body, vector in zip(bodies, found, strict=True):
        ids = torch.tensor([[*encoder.tokenizer.prefix, *body, *encoder.tokenizer.suffix]])
        with torch.inference_mode():
            states = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        np.testing.assert_allclose(vector, states[0].mean(0).numpy(), atol=2e-5)


def tokenizer_json() -> str:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(vocabulary())}
    raw = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))  # noqa: S106 - a token of text
    raw.normalizer = normalizers.BertNormalizer(lowercase=False)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    text: str = raw.to_str()
    return text


# --- BERT-BiLSTM-CRF ------------------------------------------------------------------------------


def add_lstm_and_crf(weights: Weights) -> Weights:
    torch.manual_seed(8)
    lstm = torch.nn.LSTM(32, 12, batch_first=True, bidirectional=True)
    return {
        **{k: v for k, v in weights.items() if not k.startswith("classifier")},
        **{f"bilstm.{name}": tensor.detach().clone() for name, tensor in lstm.named_parameters()},
        "hidden2tag.weight": torch.randn(5, 24),
        "hidden2tag.bias": torch.randn(5),
    } | random_crf()


def test_bert_bilstm_crf_is_read_by_shape_and_decodes_as_pytorch_crf(tmp_path: Path) -> None:
    from torchcrf import CRF
    from transformers import BertConfig, BertModel

    folder = save_tagger(tmp_path)
    rewrite(folder, lambda weights: prefixed("module.")(add_lstm_and_crf(weights)))
    tagger = Tagger.load(folder)
    weights = load_file(folder / "model.safetensors")
    trunk = {k.removeprefix("module.bert."): v for k, v in weights.items() if "module.bert." in k}
    model = BertModel.from_pretrained(
        None, config=BertConfig.from_pretrained(folder), state_dict=trunk
    ).eval()
    lstm = torch.nn.LSTM(32, 12, batch_first=True, bidirectional=True)
    lstm.load_state_dict(
        {k.removeprefix("module.bilstm."): v for k, v in weights.items() if "lstm" in k}
    )
    crf = CRF(5, batch_first=True)
    crf.load_state_dict(
        {k.removeprefix("module.crf."): v for k, v in weights.items() if "crf" in k}
    )
    for text in ("合同金额为二千元", "公司与政府", "一"):
        tokens = tagger.tokenizer.encode([text], with_offsets=True)
        ids = torch.tensor(
            [[*tagger.tokenizer.prefix, *tokens.ids.tolist(), *tagger.tokenizer.suffix]]
        )
        with torch.inference_mode():
            seen = lstm(model(ids).last_hidden_state)[0]
            emissions = (
                seen @ weights["module.hidden2tag.weight"].T + weights["module.hidden2tag.bias"]
            )
            path = crf.decode(emissions[:, 1:-1], torch.ones(1, len(tokens.ids), dtype=torch.bool))[
                0
            ]
        found = tagger.find_entities([text])
        starts = [
            n
            for n, label in enumerate(path)
            if label and (label % 2 or n == 0 or (path[n - 1] + 1) // 2 != (label + 1) // 2)
        ]
        assert found.start.tolist() == [int(tokens.start[n]) for n in starts]  # type: ignore[index]


def test_half_a_crf_is_refused(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path)
    rewrite(
        folder,
        lambda weights: {k: v for k, v in add_lstm_and_crf(weights).items() if "start" not in k},
    )
    with pytest.raises(UnsupportedModel, match="start scores"):
        Tagger.load(folder)


@pytest.mark.parametrize("prefix", ["", "classifier.", "cls."])
def test_a_crf_without_transitions_is_refused(tmp_path: Path, prefix: str) -> None:
    """Also under the name of a head that is otherwise not needed."""
    folder = save_tagger(tmp_path)
    rewrite(
        folder,
        lambda weights: (
            weights | {prefix + k: v for k, v in random_crf().items() if k != "crf.transitions"}
        ),
    )
    named = re.escape(prefix) + r"crf\.end_trans.*, " + re.escape(prefix) + r"crf\.start_trans"
    with pytest.raises(MissingWeights, match=f"left over: {named}"):
        Tagger.load(folder)


@pytest.mark.parametrize("prefix", ["", "module."])
def test_an_encoder_does_without_the_crf_of_a_tagger(tmp_path: Path, prefix: str) -> None:
    folder = save_tagger(tmp_path)
    plain = Encoder.load(folder).encode(["合同金额"]).vectors
    rewrite(folder, lambda weights: prefixed(prefix)(weights | random_crf()))
    encoder = Encoder.load(folder)
    assert encoder.encode(["合同金额"]).vectors.tobytes() == plain.tobytes()
    assert Tagger.load(folder, trunk=encoder.trunk).shares_trunk


def test_a_layer_that_no_head_takes_is_refused(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path)
    rewrite(folder, lambda weights: weights | {"span.weight": torch.zeros(3, 32)})
    with pytest.raises(MissingWeights, match=r"left over: span\.weight"):
        Tagger.load(folder)
