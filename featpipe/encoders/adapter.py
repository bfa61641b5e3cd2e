"""LoRA adapters: small files that change a model's weights; they are merged when it is loaded.

A folder by PEFT holds ``adapter_config.json``, which names the base model, and
``adapter_model.safetensors``. A matrix W (out, in) of the base becomes ``W + scale * B @ A`` with
A (rank, in) and B (out, rank); ``scale`` is ``lora_alpha / r``, or over the root of r (rsLoRA).
Source: https://huggingface.co/docs/peft/developer_guides/lora

Every pair must belong to one matrix of the base. Whatever changes more than such matrices (DoRA,
trained biases or whole layers, other kinds of adapters) is refused. Reading imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.encoders.fingerprint import digest_file, digest_text
from featpipe.encoders.recipe import read_json_object
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import torch

CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"

#: Options that change more than ``B @ A`` says, and the values with which they do not.
_PLAIN: dict[str, tuple[object, ...]] = {
    "bias": (None, "none"),
    "use_dora": (None, False),
    "lora_bias": (None, False),
    "modules_to_save": (None, []),
    "trainable_token_indices": (None, [], {}),
    "layer_replication": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "megatron_config": (None,),
    "use_qalora": (None, False),
    "alora_invocation_tokens": (None,),
    "target_parameters": (None, []),
}

#: Weights of a whole model.
_WHOLE = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")

_PAIR = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.\w+)?\.weight")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's files, and what they say."""

    folder: Path
    base: str
    """Folder or hub name of the model that it changes."""
    scale: float
    is_transposed: bool = False
    """Whether the base keeps its matrices as (in, out)."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All that a vector depends on."""
        return self.folder / CONFIG, self.folder / _WEIGHTS

    def digest(self, of_base: str) -> str:
        """Digest of the merged weights, from that of the base's."""
        own = digest_file(self.folder / _WEIGHTS)
        return digest_text(f"{of_base} lora {own} {self.scale!r} {self.is_transposed}")

    def merge_into(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The matrices that change, by their names in ``weights``, changed, in float32.

        Raises:
            MissingWeights: half a pair, or one that belongs to no matrix or to several.
        """
        pairs: dict[str, dict[str, torch.Tensor]] = {}
        for name, tensor in _read(self.folder / _WEIGHTS).items():
            found = _PAIR.fullmatch(name)
            if found is None:
                raise UnsupportedModel(f"{self.folder} changes more than matrices: {name}")
            pairs.setdefault(found[1], {})[found[2]] = tensor.float()
        return dict(self._merge(module, pair, weights) for module, pair in sorted(pairs.items()))

    def _merge(
        self,
        module: str,
        pair: Mapping[str, torch.Tensor],
        weights: Mapping[str, torch.Tensor],
    ) -> tuple[str, torch.Tensor]:
        name = _find_matrix(module, weights)
        if name is None or pair.keys() != {"A", "B"}:
            raise MissingWeights(
                f"the adapter in {self.folder} is not for {self.base}: {module} is no matrix of it"
            )
        change = pair["B"] @ pair["A"] * self.scale
        change = change.T if self.is_transposed else change
        if change.shape != weights[name].shape:
            raise MissingWeights(
                f"the adapter in {self.folder} is not for {self.base}: it changes {name} as if it"
                f" were {tuple(change.shape)} instead of {tuple(weights[name].shape)}"
            )
        return name, weights[name].float() + change


def read_adapter(folder: Path) -> Adapter | None:
    """The adapter in a folder; None without one.

    Raises:
        UnsupportedModel: it is no LoRA, changes more than matrices, or lies beside a whole model.
        CheckpointError: it names no base, or its weights are missing.
    """
    if not (folder / CONFIG).exists():
        return None
    config = read_json_object(folder / CONFIG)
    if any((folder / name).exists() for name in _WHOLE):
        raise UnsupportedModel(
            f"{folder} holds an adapter ({CONFIG}) beside the model",
            hint="merge the adapter into the weights (peft: merge_and_unload) and save the model",
        )
    kind = config.get("peft_type", "LORA")
    changed = [name for name, plain in _PLAIN.items() if config.get(name) not in plain]
    if kind != "LORA" or changed:
        what = f"{kind} adapter" if kind != "LORA" else f"LoRA adapter with {', '.join(changed)}"
        raise UnsupportedModel(
            f"{folder / CONFIG} describes a {what}, which is not merged here",
            hint="merge it into the weights (peft: merge_and_unload) and save the model",
        )
    return _read_lora(folder, config)


def _read_lora(folder: Path, config: Mapping[str, object]) -> Adapter:
    rank, alpha = config.get("r"), config.get("lora_alpha")
    base = config.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise CheckpointError(f"{folder / CONFIG} does not name its base model")
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise CheckpointError(f"{folder / CONFIG} does not state r and lora_alpha")
    if not (folder / _WEIGHTS).exists():
        raise MissingWeights(f"{folder} has no {_WEIGHTS}")
    divisor = rank**0.5 if config.get("use_rslora") else rank
    return Adapter(folder, base, alpha / divisor, bool(config.get("fan_in_fan_out")))


def _find_matrix(module: str, weights: Mapping[str, torch.Tensor]) -> str | None:
    """The one matrix that a module's name means; names may begin further out or further in."""
    parts = module.split(".")
    for start in range(min(3, len(parts))):
        end = ".".join(parts[start:]) + ".weight"
        names = [name for name in weights if name == end or name.endswith(f".{end}")]
        if names:
            return names[0] if len(names) == 1 else None
    return None


def _read(file: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    try:
        return dict(load_file(str(file)))
    except Exception as error:  # safetensors' own error class is private to its Rust module
        raise CheckpointError(f"{file} is not a whole safetensors file: {error}") from error
