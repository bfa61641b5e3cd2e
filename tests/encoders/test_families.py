"""Families of encoders: ids and vectors are those of transformers, or a refusal that names why.

The oracle runs each text alone through transformers, and pools it as the family's files say. Where
sentence-transformers is installed, its own vectors are held against ours, too.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
import torch

from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel, UsageError

if TYPE_CHECKING:
    from encoder_families import Family

pytestmark = pytest.mark.usefixtures("scripts_are_importable")

EXACT = EncoderSettings(precision="exact", dtype="float32")
NAMES = (
    "bge", "text2vec, m3e, MiniLM", "stella, conan", "LaBSE", "Dense chain", "DistilBERT",
    "RoBERTa", "bge-m3", "multilingual e5", "MPNet", "ALBERT", "DeBERTa", "nomic", "jina v3", "gte",
    "ModernBERT", "EuroBERT", "Qwen2 (gte-Qwen2)", "Qwen3", "Gemma embeddings",
    "Mistral (e5-mistral)", "T5 (sentence-t5, gtr)", "T5 with its decoder", "mT5", "GPT-2 (SGPT)",
    "LoRA on BERT", "LoRA on Qwen3",
)  # fmt: skip

#: Those of the packed forward; the others say that bits may depend on the batch.
PACKED = (
    "bge", "text2vec, m3e, MiniLM", "stella, conan", "LaBSE", "Dense chain", "DistilBERT",
    "RoBERTa", "bge-m3", "multilingual e5", "LoRA on BERT",
)  # fmt: skip


def family_of(name: str) -> Family:
    from encoder_families import FAMILIES

    return next(family for family in FAMILIES if family.name == name)


def test_every_family_is_tested() -> None:
    from encoder_families import FAMILIES

    assert tuple(family.name for family in FAMILIES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_vectors_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    from encoder_families import TEXTS, read_by_transformers, save_family
    from transformers import AutoTokenizer

    family = family_of(name)
    folder = save_family(family, tmp_path / "model")
    encoder = Encoder.load(folder, EXACT)
    tokens = encoder.tokenizer.encode(TEXTS)
    known = AutoTokenizer.from_pretrained(describe_checkpoint(folder).path)
    for text, ids in zip(TEXTS, np.split(tokens.ids, tokens.ends[:-1]), strict=True):
        assert [*encoder.tokenizer.prefix, *ids, *encoder.tokenizer.suffix] == known(text)[
            "input_ids"
        ]
    expected = np.stack([read_by_transformers(family, folder)(text) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS).vectors, expected, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, name: str) -> None:
    library = pytest.importorskip("sentence_transformers")
    from encoder_families import TEXTS, save_family

    if "LoRA" in name:
        pytest.importorskip("peft")
    folder = save_family(family_of(name), tmp_path / "model")
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(list(TEXTS))
    np.testing.assert_allclose(
        Encoder.load(folder, EXACT).encode(TEXTS).vectors, expected, atol=2e-5
    )


@pytest.mark.parametrize("precision", ["exact", "mixed"])
@pytest.mark.parametrize("name", PACKED)
def test_a_text_alone_has_the_bytes_that_it_has_in_company(
    tmp_path: Path, name: str, precision: Literal["exact", "mixed"]
) -> None:
    from encoder_families import TEXTS, save_family

    settings = EncoderSettings(precision=precision, dtype="float32")
    encoder = Encoder.load(save_family(family_of(name), tmp_path / "model"), settings)
    assert encoder.is_invariant
    together = encoder.encode(TEXTS).vectors
    for threads in (1, 2):
        encoder.threads = threads
        alone = [encoder.encode([text]).vectors[0].tobytes() for text in TEXTS]
        assert alone == [vector.tobytes() for vector in together]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize(("precision", "least"), [("exact", 0.999999), ("mixed", 0.9999)])
@pytest.mark.parametrize("name", NAMES)
def test_a_card_gives_the_vectors_of_the_cpu(
    tmp_path: Path, name: str, precision: Literal["exact", "mixed"], least: float
) -> None:
    from encoder_families import TEXTS, save_family

    folder = save_family(family_of(name), tmp_path / "model")
    settings = EncoderSettings(precision=precision, dtype="float32")
    expected = Encoder.load(folder, EXACT).encode(TEXTS).vectors
    found = Encoder.load(folder, settings, device="cuda:0").encode(TEXTS).vectors
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    assert ((expected * found).sum(1) / lengths).min() >= least


def without_limits(folder: Path, *entries: str) -> Path:
    """The checkpoint without these entries, as many are that have the default."""
    for name, gone in (("config.json", entries), ("tokenizer_config.json", ("model_max_length",))):
        told = json.loads((folder / name).read_text("utf-8"))
        kept = {key: value for key, value in told.items() if key not in gone}
        (folder / name).write_text(json.dumps(kept), "utf-8")
    (folder / "sentence_bert_config.json").unlink(missing_ok=True)
    return folder


def test_relative_positions_allow_any_window(tmp_path: Path) -> None:
    from encoder_families import TEXTS, read_by_transformers, save_family

    family = family_of("T5 (sentence-t5, gtr)")
    folder = without_limits(save_family(family, tmp_path / "model"), "max_position_embeddings")
    assert describe_checkpoint(folder).max_length == 512
    encoder = Encoder.load(folder, replace(EXACT, max_length=2000))
    text = "".join(TEXTS) * 5
    [n_tokens] = encoder.tokenizer.encode([text]).lengths
    assert 512 < n_tokens < 1990
    expected = read_by_transformers(family, folder)(text)
    np.testing.assert_allclose(encoder.encode([text]).vectors[0], expected, atol=2e-5)


def test_positions_that_count_from_padding_are_fewer_than_the_rows_by_default(
    tmp_path: Path,
) -> None:
    from encoder_families import TEXTS, save_family

    family = family_of("MPNet")
    changes = family.changes | {"max_position_embeddings": 512}
    saved = save_family(replace(family, changes=changes), tmp_path / "model")
    folder = without_limits(saved, "max_position_embeddings")
    encoder = Encoder.load(folder, EXACT)
    assert encoder.spec["max_length"] == 510
    assert np.isfinite(encoder.encode(["".join(TEXTS) * 60]).vectors).all()
    with pytest.raises(UsageError, match="the model's 510 tokens"):
        Encoder.load(folder, replace(EXACT, max_length=511))


# --- adapters -------------------------------------------------------------------------------------


@pytest.fixture
def adapted(tmp_path: Path) -> Path:
    from encoder_families import save_family

    return save_family(family_of("LoRA on BERT"), tmp_path / "model")


def edit(folder: Path, **changes: object) -> None:
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def test_an_adapter_is_part_of_the_fingerprint_and_without_recipe_has_the_bases(
    adapted: Path,
) -> None:
    prints = {Encoder.load(adapted, EXACT).fingerprint, Encoder.load(adapted / "base").fingerprint}
    edit(adapted, lora_alpha=6)
    prints.add(Encoder.load(adapted, EXACT).fingerprint)
    edit(adapted, use_rslora=True)
    prints.add(Encoder.load(adapted, EXACT).fingerprint)
    assert len(prints) == 4
    (adapted / "modules.json").rename(adapted / "base" / "modules.json")
    (adapted / "1_Pooling").rename(adapted / "base" / "1_Pooling")
    assert describe_checkpoint(adapted).recipe.pooling == "cls"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"peft_type": "IA3"}, "IA3 adapter"),
        ({"use_dora": True}, "use_dora"),
        ({"bias": "lora_only"}, "bias"),
        ({"modules_to_save": ["embeddings"]}, "modules_to_save"),
        ({"rank_pattern": {"query": 8}}, "rank_pattern"),
    ],
)
def test_what_is_more_than_a_change_of_matrices_is_refused_by_name(
    adapted: Path, changes: dict[str, object], named: str
) -> None:
    edit(adapted, **changes)
    with pytest.raises(UnsupportedModel, match=named):
        describe_checkpoint(adapted)


def test_an_adapter_of_another_model_is_refused(adapted: Path, tmp_path: Path) -> None:
    from encoder_families import save_family

    for name, error, message in (
        ("RoBERTa", UnsupportedModel, "another tokenizer"),
        ("MPNet", MissingWeights, "is no matrix of it"),
    ):
        other = save_family(family_of(name), tmp_path / name)
        edit(adapted, base_model_name_or_path=str(other))
        with pytest.raises(error, match=message):
            Encoder.load(adapted)
        (adapted / "tokenizer.json").unlink(missing_ok=True)  # the base's is used in any case
    edit(adapted, base_model_name_or_path=str(tmp_path / "gone"))
    with pytest.raises(CheckpointError, match="no checkpoint folder"):
        describe_checkpoint(adapted)


# --- what is refused ------------------------------------------------------------------------------


def test_an_encoder_with_a_decoder_whose_states_would_be_the_decoders_is_refused(
    tmp_path: Path,
) -> None:
    from encoder_families import train_tokenizer
    from transformers import BartConfig, BartModel

    tokenizer = train_tokenizer("byte-level")
    config = BartConfig(
        vocab_size=tokenizer.get_vocab_size(), d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, max_position_embeddings=64,
    )  # fmt: skip
    BartModel(config).save_pretrained(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    told = json.loads((tmp_path / "config.json").read_text("utf-8")) | {"num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(told), "utf-8")
    with pytest.raises(UnsupportedModel, match=r"\(bart\) has a decoder"):
        Encoder.load(tmp_path)
