"""Taggers of other architectures: oracle transformers' pipeline with simple aggregation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from test_foreign import SIZES
from test_tagger import EXACT, found_entities, make_sentences, pipeline_entities
from test_weights import rewrite, tokenizer_json
from tiny_checkpoints import LABELS, _spread

from featpipe.encoders.encoder import NO_TOKENS, Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

Text = Callable[[int, int], str]

OPTIONS = {
    "Albert": {"embedding_size": 16},
    "MPNet": {"max_position_embeddings": 66, "pad_token_id": 1},
    "ModernBert": {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 0},
    "DebertaV2": {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p"]},
    "Bloom": {"n_layer": 2, "n_head": 4},  # its config has names of its own for these
}


def save_foreign_tagger(folder: Path, kind: str) -> Path:
    import transformers

    torch.manual_seed(11)
    labels: dict[str, object] = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: number for number, label in enumerate(LABELS)},
    }
    config = getattr(transformers, f"{kind}Config")(**SIZES | labels | OPTIONS[kind])
    model = getattr(transformers, f"{kind}ForTokenClassification")(config)
    _spread(model)
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    options = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64,
        "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    return folder


@pytest.fixture(params=OPTIONS)
def foreign_tagger(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_foreign_tagger(tmp_path, request.param)


def test_entities_are_those_of_transformers(foreign_tagger: Path, write_text: Text) -> None:
    texts = [write_text(seed, 3 + seed % 40) for seed in range(40)]
    expected = pipeline_entities(foreign_tagger, texts)
    tagger = Tagger.load(foreign_tagger, EXACT)
    found = found_entities(tagger, texts)
    assert sum(map(len, expected)) > 60
    for want, have in zip(expected, found, strict=True):
        assert [e[:3] for e in have] == [e[:3] for e in want]
        np.testing.assert_allclose([e[3] for e in have], [e[3] for e in want], atol=1e-5)
    assert not tagger.is_invariant
    assert any("run by transformers" in note for note in tagger.counts)


def test_long_texts_are_seen_to_their_end(foreign_tagger: Path, write_text: Text) -> None:
    """A window that ends where the text does is a text that transformers sees whole."""
    text = make_sentences(write_text, 40)
    last = text[text.rindex("。", 0, -1) + 1 :]
    tagger = Tagger.load(foreign_tagger, EXACT)
    tokens = tagger.tokenizer.encode([text], with_offsets=True)
    windows = tagger._plan_windows([text], tokens)
    assert len(windows.start) > 3
    # Its last window, alone: the entities from where that window begins to own its tokens.
    begin = int(tokens.start[windows.start[-1]])
    own = int(tokens.start[windows.own_start[-1]])
    [alone] = pipeline_entities(foreign_tagger, [text[begin:]])
    [whole] = found_entities(tagger, [text])
    expected = [(a + begin, b + begin, kind) for a, b, kind, _ in alone if a + begin > own]
    assert expected
    assert [e[:3] for e in whole if e[0] > own] == expected
    assert len(last) > 3


def test_mixed_precision_finds_nearly_the_same(tmp_path: Path, write_text: Text) -> None:
    folder = save_foreign_tagger(tmp_path, "ModernBert")
    texts = [write_text(seed, 30) for seed in range(40)]
    exact = {e[:3] for one in found_entities(Tagger.load(folder, EXACT), texts) for e in one}
    mixed = Tagger.load(folder, TaggerSettings(precision="mixed"))
    found = {e[:3] for one in found_entities(mixed, texts) for e in one}
    assert len(exact & found) > 0.8 * len(exact | found)


def test_weights_that_transformers_would_make_up_or_drop_are_listed(tmp_path: Path) -> None:
    folder = save_foreign_tagger(tmp_path, "Albert")
    rewrite(folder, lambda weights: {**weights, "crf.transitions": torch.zeros(5, 5)})
    with pytest.raises(MissingWeights, match=r"left over: crf\.transitions"):
        Tagger.load(folder)
    rewrite(
        folder,
        lambda weights: {
            name: tensor
            for name, tensor in weights.items()
            if not name.startswith(("crf.", "classifier."))
        },
    )
    with pytest.raises(MissingWeights, match=r"missing: classifier\.bias, classifier\.weight"):
        Tagger.load(folder)


HEADS = (
    "project.weight",
    "head.dense.weight",
    "decoder.transitions",
    "classifier.lstm.bias",
    "cls.crf.transitions",
)


@pytest.mark.parametrize("name", HEADS)
def test_layers_of_a_tagger_that_transformers_does_not_compute_are_never_dropped(
    tmp_path: Path, name: str
) -> None:
    folder = save_foreign_tagger(tmp_path, "Albert")
    rewrite(folder, lambda weights: {**weights, "predictions.bias": torch.zeros(5)})
    Tagger.load(folder)
    rewrite(folder, lambda weights: {**weights, name: torch.zeros(5, 5)})
    with pytest.raises(MissingWeights, match=f"left over: {re.escape(name)}"):
        Tagger.load(folder)


@pytest.mark.parametrize("labels", [None, {"0": "O", "1": "B-PER"}])
def test_labels_that_are_not_as_many_as_their_scores_are_an_error(
    tmp_path: Path, labels: dict[str, str] | None
) -> None:
    folder = save_foreign_tagger(tmp_path, "Albert")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"id2label": labels, "num_labels": len(LABELS)}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(CheckpointError, match=f"5 labels, but .* names {len(labels or ())}"):
        Tagger.load(folder)


@pytest.mark.parametrize("kind", ["Albert", "DebertaV2"])
def test_an_empty_text_without_special_tokens_has_no_entities_and_harms_no_other(
    tmp_path: Path, kind: str
) -> None:
    folder = save_foreign_tagger(tmp_path, kind)
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": None}))
    tagger = Tagger.load(folder, EXACT)
    [alone] = found_entities(tagger, ["合同公司"])
    assert alone
    assert found_entities(tagger, ["", "合同公司", " "]) == [[], alone, []]
    assert found_entities(tagger, [""]) == [[]]
    encoder = Encoder.load(folder, EncoderSettings(precision="exact", dtype="float32"))
    for texts in (["", "合同公司"], [""]):
        assert encoder.encode(texts, on_fault="report").faults == {0: NO_TOKENS}


def test_an_architecture_without_a_tagger_is_refused(tmp_path: Path) -> None:
    folder = save_foreign_tagger(tmp_path, "Albert")
    config = (folder / "config.json").read_text("utf-8")
    (folder / "config.json").write_text(config.replace('"albert"', '"clip_text_model"'), "utf-8")
    with pytest.raises(UnsupportedModel, match="is no tagger that transformers can load"):
        Tagger.load(folder)
