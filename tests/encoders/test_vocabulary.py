"""A folder without the words of its tokenizer, or with another model's, is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_checkpoints import save_encoder, save_tagger, vocabulary

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.encoders.tagger import Tagger
from featpipe.encoders.tokenizer import Tokenizer, load_raw
from featpipe.errors import CheckpointError, UnsupportedModel

FLOAT32 = EncoderSettings(precision="exact", dtype="float32")


def edit(file: Path, **changes: object) -> None:
    content = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(content | changes), "utf-8")


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [save_encoder, save_tagger])
def test_a_folder_without_its_vocabulary_names_the_missing_file(
    tmp_path: Path, save: Callable[[Path], Path]
) -> None:
    """What is left, tokenizer_config.json, is enough for transformers to make up five tokens."""
    folder = save(tmp_path)
    (folder / "vocab.txt").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing, and so is vocab\.txt"):
        describe_checkpoint(folder)


@pytest.mark.parametrize(
    ("architecture", "left", "missing"),
    [
        ("roberta", "vocab.json", "merges.txt"),
        ("roberta", "merges.txt", "vocab.json"),
        ("xlm-roberta", "special_tokens_map.json", "sentencepiece.bpe.model"),
        ("albert", "added_tokens.json", "spiece.model"),
        ("deberta-v2", "tokenizer_config.json", "spm.model"),
        ("never-heard-of", "tokenizer_config.json", "tokenizer.json"),
    ],
)
def test_each_family_names_its_own_file(
    tmp_path: Path, architecture: str, left: str, missing: str
) -> None:
    folder = save_encoder(tmp_path)
    (folder / "vocab.txt").unlink()
    edit(folder / "config.json", model_type=architecture)
    edit(folder / left)
    with pytest.raises(CheckpointError, match=missing):
        describe_checkpoint(folder)


@pytest.mark.parametrize("kind", ["BertJapaneseTokenizer", "RoFormerTokenizer"])
def test_words_of_a_tokenizer_that_cuts_otherwise_are_not_read_as_berts(
    tmp_path: Path, kind: str
) -> None:
    """Checkpoints for Japanese are BERT's in all but the cutting of words."""
    folder = save_encoder(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    edit(folder / "config.json", tokenizer_class=kind)
    with pytest.raises(UnsupportedModel, match="cannot be loaded"):
        Encoder.load(folder, FLOAT32)


# --- sizes ----------------------------------------------------------------------------------------


def cut_words(folder: Path, n_left: int) -> None:
    (folder / "vocab.txt").write_text("\n".join(vocabulary()[:n_left]), "utf-8")


def add_words(folder: Path, n_more: int) -> None:
    more = [f"word{number}" for number in range(n_more)]
    (folder / "vocab.txt").write_text("\n".join([*vocabulary(), *more]), "utf-8")


@pytest.mark.parametrize("load", [Encoder.load, Tagger.load], ids=["encoder", "tagger"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: cut_words(folder, 30), "has 30 tokens, and its model knows 61"),
        (lambda folder: cut_words(folder, 450), "has 450 tokens"),
        (lambda folder: add_words(folder, 400), "400 tokens of its tokenizer are beyond"),
    ],
    ids=["a few", "cut off", "of a larger model"],
)
def test_a_tokenizer_of_another_size_is_refused(
    tmp_path: Path,
    load: Callable[[Path], object],
    change: Callable[[Path], None],
    message: str,
) -> None:
    folder = save_tagger(tmp_path)
    change(folder)
    with pytest.raises(CheckpointError, match="is not that of its model") as caught:
        load(folder)
    assert message in str(caught.value)


def pad_rows(folder: Path, n_rows: int) -> None:
    weights = dict(load_file(folder / "model.safetensors"))
    name = "embeddings.word_embeddings.weight"
    weights[name] = torch.cat([weights[name], torch.ones(n_rows - len(weights[name]), 32)])
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    edit(folder / "config.json", vocab_size=n_rows)


@pytest.mark.parametrize("multiple", [64, 128])
def test_rows_that_pad_the_matrix_need_no_token(tmp_path: Path, multiple: int) -> None:
    folder = save_encoder(tmp_path)
    expected = Encoder.load(folder, FLOAT32).encode(["合同"]).vectors
    pad_rows(folder, -(-len(vocabulary()) // multiple) * multiple)
    assert Encoder.load(folder, FLOAT32).encode(["合同"]).vectors.tobytes() == expected.tobytes()


#: (tokens, rows of the word embeddings) of published checkpoints.
PUBLISHED = {
    "bert-base-chinese": (21_128, 21_128),
    "Qwen3-Embedding-0.6B": (151_669, 151_936),
    "ModernBERT-base": (50_280, 50_368),
    "nomic-embed-text-v1.5": (30_522, 30_528),
    "deberta-v3-base": (128_001, 128_100),
    "nystromformer-512": (30_000, 30_522),
    "Phi-2": (50_295, 51_200),
    "deepseek-llm": (100_015, 102_400),
    "ESM C": (33, 64),
    "embeddinggemma": (262_145, 262_144),
    "M2M100": (128_112, 128_104),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_are_taken(name: str) -> None:
    n_tokens, n_rows = PUBLISHED[name]
    made_of(n_tokens).check_fits(n_rows, Path("folder"))


@pytest.mark.parametrize(("n_tokens", "n_rows"), [(5, 21_128), (21_128, 30_522), (28_996, 21_128)])
def test_sizes_of_two_models_are_refused(n_tokens: int, n_rows: int) -> None:
    with pytest.raises(CheckpointError, match="is not that of its model"):
        made_of(n_tokens).check_fits(n_rows, Path("folder"))


def made_of(n_tokens: int) -> Tokenizer:
    from tokenizers import Tokenizer as RawTokenizer
    from tokenizers import models

    words = {"[UNK]": 0, "a": 1} | {f"w{number}": number for number in range(2, n_tokens)}
    return Tokenizer(RawTokenizer(models.WordPiece(words, unk_token="[UNK]")))  # noqa: S106 - a token of text


def test_a_special_token_without_an_embedding_is_refused(tmp_path: Path) -> None:
    """It stands around every text."""
    folder = save_encoder(tmp_path)
    raw = json.loads(load_raw(describe_checkpoint(folder)).to_str())
    text = json.dumps(raw).replace('"ids": [3]', f'"ids": [{len(vocabulary()) + 5}]')
    (folder / "tokenizer.json").write_text(text, "utf-8")
    edit(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    with pytest.raises(CheckpointError, match=f"special token {len(vocabulary()) + 5} is beyond"):
        Encoder.load(folder, FLOAT32)


def test_a_few_added_tokens_beyond_the_matrix_cost_only_their_texts(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path)
    expected = Encoder.load(folder, FLOAT32).encode(["合同"]).vectors
    edit(folder / "added_tokens.json", **{"[X1]": len(vocabulary())})
    found = Encoder.load(folder, FLOAT32).encode(["合同", "合[X1]同"], on_fault="report")
    assert list(found.faults) == [1]
    np.testing.assert_array_equal(found.vectors[0], expected[0])


# --- parts of a sentence-transformers folder ------------------------------------------------------


@pytest.mark.parametrize("name", ["config_sentence_transformers.json", "1_Pooling/config.json"])
def test_a_recipe_without_its_list_of_modules_is_refused(tmp_path: Path, name: str) -> None:
    """Read as a plain folder it would be pooled by mean, and not normalised."""
    folder = save_encoder(tmp_path)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("{}", "utf-8")
    with pytest.raises(CheckpointError, match=r"modules\.json, which belongs to it, is missing"):
        describe_checkpoint(folder)


def test_one_module_of_a_folder_is_refused(tmp_path: Path) -> None:
    save_encoder(tmp_path / "0_Transformer")
    modules = [{"idx": 0, "path": "0_Transformer", "type": "models.Transformer"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules), "utf-8")
    with pytest.raises(CheckpointError, match="is one module of the model in") as caught:
        describe_checkpoint(tmp_path / "0_Transformer")
    assert str(caught.value.hint) == f"name {tmp_path}"


@pytest.mark.parametrize(
    "modules", [[], {}, [{"idx": 0, "path": "", "type": "models.Transformer"}]]
)
def test_modules_without_a_pooling_are_refused(tmp_path: Path, modules: object) -> None:
    folder = save_encoder(tmp_path)
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    with pytest.raises(CheckpointError, match=r"modules\.json"):
        describe_checkpoint(folder)


# --- labels ---------------------------------------------------------------------------------------


def test_labels_without_names_are_refused(tmp_path: Path) -> None:
    """Which of them means no entity is not known: all of a text would be entities."""
    folder = save_tagger(tmp_path, labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(CheckpointError, match=r"does not name its labels \(LABEL_0"):
        Tagger.load(folder)
