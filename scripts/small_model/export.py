# ruff: noqa: E501 - patterns and lists
"""The folder that users load: weights, config, tokenizer, pooling."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import torch

from small_model.shape import KEPT, MEANT, WIDTH

if TYPE_CHECKING:
    from pathlib import Path

    from small_model.network import Network

QUIETER = 0.125  # a power of two: exact

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {
        "idx": 2,
        "name": "2",
        "path": "2_Normalize",
        "type": "sentence_transformers.models.Normalize",
    },
]


def write_model(out: Path, network: Network, tokenizer_folder: Path) -> None:
    """Write one checkpoint: trunk, entity head, masked-word head, as float16."""
    (out / "1_Pooling").mkdir(parents=True, exist_ok=True)
    state = {
        name.removeprefix("masked."): value.detach().to("cpu", torch.float16).contiguous()
        for name, value in network.state_dict().items()
    }
    quiet = torch.arange(WIDTH) >= KEPT
    if network.is_meaning_heard:
        quiet[MEANT] = False
    last = f"bert.encoder.layer.{network.masked.config.num_hidden_layers - 1}.output"
    _turn_down(state, last, quiet)
    # The masked-word decoder shares the embedding matrix and its bias: stored once.
    for name in ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"):
        state.pop(name, None)
    state.pop("bert.embeddings.position_ids", None)
    # The masked-word head lies beside the model, where loading for other uses does not meet it.
    head = {name: state.pop(name) for name in list(state) if name.startswith("cls.")}
    _save_tensors(state, out / "model.safetensors")
    (out / "masked_words").mkdir(exist_ok=True)
    _save_tensors(head, out / "masked_words" / "head.safetensors")
    config = network.masked.config.to_dict()
    kept = (
        "attention_probs_dropout_prob", "hidden_act", "hidden_dropout_prob", "hidden_size", "id2label",
        "initializer_range", "intermediate_size", "label2id", "layer_norm_eps", "max_position_embeddings",
        "model_type", "num_attention_heads", "num_hidden_layers", "pad_token_id", "type_vocab_size", "vocab_size",
    )  # fmt: skip
    settings = {"architectures": ["BertForTokenClassification"], "dtype": "float16"}
    settings |= {name: config[name] for name in kept}
    _write_json(out / "config.json", settings)
    _write_json(out / "modules.json", MODULES)
    pooling = {"word_embedding_dimension": config["hidden_size"], "pooling_mode_mean_tokens": True,
               "pooling_mode_cls_token": False, "pooling_mode_max_tokens": False}  # fmt: skip
    _write_json(out / "1_Pooling" / "config.json", pooling)
    _write_json(out / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer_folder / name, out / name)


def add_tensors(weights: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Put these, as float16, into a file that is written already, in place of any of their names."""
    from safetensors.torch import load_file

    state = load_file(weights)
    state |= {name: value.to("cpu", torch.float16) for name, value in tensors.items()}
    aside = weights.with_suffix(".part")
    _save_tensors(state, aside)
    aside.rename(weights)


def _save_tensors(state: dict[str, torch.Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(state, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors writes for the owner alone


def _turn_down(state: dict[str, torch.Tensor], last: str, quiet: torch.Tensor) -> None:
    """Make `quiet` dimensions quieter still in the last states, and their readers louder as much.

    Entities and masked words stay what they are; sentence vectors hear less of them.
    """
    state[f"{last}.LayerNorm.weight"][quiet] *= QUIETER
    for reader in ("classifier.weight", "cls.predictions.transform.dense.weight"):
        state[reader][:, quiet] /= QUIETER


def _write_json(path: Path, content: object) -> None:
    path.write_bytes((json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode())
