"""Query prompts: whose prompt a query gets, and that its vector is that of prompt and text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_checkpoints import save_encoder

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.prompts import find_passage_prompt, find_query_prompt
from featpipe.encoders.spec import EncoderSettings

BGE = "为这个句子生成表示以用于检索相关文章："
EXACT = EncoderSettings(precision="exact", dtype="float32")
TEXTS = ["合同金额为二千元", "the contract", "", "一" * 80]


def save(
    folder: Path, *, vocab_size: int | None = None, prompts: dict[str, str] | None = None
) -> Path:
    """A sentence-transformers folder that states this size of its vocabulary and these prompts."""
    save_encoder(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if vocab_size is not None:
        config["vocab_size"] = vocab_size
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(
            json.dumps({"prompts": prompts, "default_prompt_name": None}), "utf-8"
        )
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1", "type": "sentence_transformers.models.Pooling"},
        ]
        (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
        (folder / "1").mkdir()
        (folder / "1" / "config.json").write_text('{"pooling_mode_cls_token": true}', "utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "vocab_size", "prompts", "query"),
    [
        ("bge-small-zh-v1.5", 21128, None, BGE),
        ("models--BAAI--bge-large-zh/snapshots/0f", 21128, None, BGE),
        # An empty prompt is what sentence-transformers writes into whatever it saves.
        ("bge-base-zh", 21128, {"query": "", "document": ""}, BGE),
        ("bge-base-zh", 21128, {"query": "问："}, "问："),
        ("gte-large-zh", 21128, None, ""),
        ("e5-base-v2", 30522, None, "query: "),
        ("unknown", 21128, {"retrieval.query": "Q: ", "passage": "P: "}, "Q: "),
        # A model of that name with another vocabulary is another model; so is another name.
        ("bge-small-zh-v1.5", 30522, None, "as passages "),
        ("my-bge-small-zh", 21128, None, "as passages "),
    ],
)
def test_whose_prompt_a_query_gets(
    tmp_path: Path,
    name: str,
    vocab_size: int,
    prompts: dict[str, str] | None,
    query: str,
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    checkpoint = describe_checkpoint(save(tmp_path / name, vocab_size=vocab_size, prompts=prompts))
    found = find_query_prompt(checkpoint, "as passages ")
    assert found.text == query
    assert found.source
    assert find_query_prompt(checkpoint, "as passages ", "") == type(found)("", "as given")


@pytest.mark.parametrize(
    ("name", "vocab_size", "prompts", "passage"),
    [
        ("e5-small", 30522, None, "passage: "),
        ("bge-small-zh", 21128, None, ""),
        ("unknown", 21128, {"query": "Q: ", "document": "D: "}, "D: "),
        ("unknown", 21128, None, None),
    ],
)
def test_what_a_model_expects_before_passages(
    tmp_path: Path,
    name: str,
    vocab_size: int,
    prompts: dict[str, str] | None,
    passage: str | None,
) -> None:
    checkpoint = describe_checkpoint(save(tmp_path / name, vocab_size=vocab_size, prompts=prompts))
    found = find_passage_prompt(checkpoint)
    assert (None if found is None else found.text) == passage


@pytest.mark.parametrize("of_space", ["", "the text: "])
@pytest.mark.parametrize("of_query", ["", "合同：", "the query: "])
def test_a_query_has_the_vector_of_a_text_with_its_prompt(
    tmp_path: Path, of_space: str, of_query: str
) -> None:
    save_encoder(tmp_path / "tiny")
    settings = EncoderSettings(precision="exact", dtype="float32", prompt=of_space)
    encoder = Encoder.load(tmp_path / "tiny", settings)
    plain = Encoder.load(tmp_path / "tiny", EXACT)
    found = encoder.encode(TEXTS, prompt=of_query)
    expected = plain.encode([of_query + text for text in TEXTS])
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    np.testing.assert_array_equal(found.n_tokens, expected.n_tokens)
    passages = plain.encode([of_space + text for text in TEXTS])
    np.testing.assert_array_equal(encoder.encode(TEXTS).vectors, passages.vectors)
    ids = plain.tokenizer.encode(TEXTS[:1]).ids.tolist()
    by_ids = encoder.encode_tokens([ids], prompt=of_query)
    np.testing.assert_array_equal(by_ids.vectors, found.vectors[:1])
