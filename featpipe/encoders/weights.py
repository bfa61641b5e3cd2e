"""Weights of a checkpoint under canonical (BERT) names, with nothing missing or left over.

`load_weights` maps safetensors (no copy), or unpickles with ``weights_only`` and memory mapping.
`split_trunk` finds the transformer by its word embeddings, in whatever module it is nested, and
splits the weights into trunk and head.
"""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from featpipe.errors import CheckpointError, MissingWeights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from featpipe.encoders.checkpoint import Checkpoint

Weights = dict[str, torch.Tensor]

#: Old or foreign spelling -> BERT's, applied in order to every name.
_RENAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(^|\.)(module|_orig_mod)\.", r"\1"),  # DataParallel, torch.compile; also nested
        (r"\.gamma$", ".weight"),  # LayerNorm as TensorFlow named it
        (r"\.beta$", ".bias"),
        (r"(^|\.)transformer\.layer\.(\d+)\.", r"\1encoder.layer.\2."),  # DistilBERT
        (r"\.attention\.q_lin\.", ".attention.self.query."),
        (r"\.attention\.k_lin\.", ".attention.self.key."),
        (r"\.attention\.v_lin\.", ".attention.self.value."),
        (r"\.attention\.out_lin\.", ".attention.output.dense."),
        (r"\.sa_layer_norm\.", ".attention.output.LayerNorm."),
        (r"\.ffn\.lin1\.", ".intermediate.dense."),
        (r"\.ffn\.lin2\.", ".output.dense."),
        (r"\.output_layer_norm\.", ".output.LayerNorm."),
    )
)

_WORDS = "embeddings.word_embeddings.weight"
_TRUNK = ("embeddings.", "encoder.layer.", "embeddings_project.", "pooler.")

#: Tensors that neither an encoder nor a tagger uses; any other left-over one is an error.
_UNUSED = re.compile(
    r"(.*\.)?(position_ids|token_type_ids)$|pooler\.|cls\.|lm_head\.|vocab_(transform|layer_norm|projector)\."
    r"|discriminator_predictions\.|generator_(predictions|lm_head)\.|classifier\.|qa_outputs\.|pre_classifier\."
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A checkpoint's tensors, split."""

    trunk: Weights
    head: Weights
    """All tensors outside the trunk, by renamed names with their prefixes."""


def load_weights(checkpoint: Checkpoint) -> Weights:
    """All tensors of a checkpoint by renamed names, on the CPU, mapped rather than read.

    Raises:
        CheckpointError: damaged files, a pickle that holds more than tensors, a repeated name.
        MissingWeights: an adapter that is not this model's.
    """
    found: Weights = {}
    for file in checkpoint.weight_files:
        for name, tensor in read_tensors(file).items():
            modern = rename(name)
            if modern in found:
                raise CheckpointError(f"{file} holds two tensors that are both {modern}")
            found[modern] = tensor
    if checkpoint.adapter is not None:
        found |= checkpoint.adapter.merge_into(found)
    return found


def read_tensors(file: Path) -> Weights:
    """All tensors of one file by the file's names, mapped rather than read.

    Raises:
        CheckpointError: a damaged file, or a pickle that holds more than tensors.
    """
    return _read_safetensors(file) if file.suffix == ".safetensors" else _read_pickle(file)


def rename(name: str) -> str:
    """Canonical spelling of a tensor's name; prefixes other than those of wrappers stay."""
    before = ""
    while name != before:
        before = name
        for pattern, replacement in _RENAMES:
            name = pattern.sub(replacement, name)
    return name


def split_trunk(weights: Weights, *, source: Path) -> Parts:
    """Find the transformer in `weights` by its word embeddings.

    Raises:
        MissingWeights: no word embeddings, or more than one transformer.
    """
    anchors = [name for name in weights if name == _WORDS or name.endswith(f".{_WORDS}")]
    if len(anchors) != 1:
        raise MissingWeights(
            f"{source} holds {len(anchors)} sets of word embeddings instead of one",
            hint=f"its tensors begin with {sorted({name.split('.')[0] for name in weights})}",
        )
    prefix = anchors[0].removesuffix(_WORDS)
    trunk: Weights = {}
    head: Weights = {}
    for name, tensor in weights.items():
        inner = name.removeprefix(prefix)
        is_inside = name.startswith(prefix) and inner.startswith(_TRUNK)
        (trunk if is_inside else head)[inner if is_inside else name] = tensor
    return Parts(trunk, head)


def is_unused(name: str) -> bool:
    """Whether a left-over tensor belongs to a head that is known to be unneeded."""
    return _UNUSED.match(name) is not None


def check_complete(
    found: Mapping[str, torch.Tensor],
    needed: Mapping[str, tuple[int, ...]],
    *,
    leftover: Iterable[str],
    source: Path,
) -> None:
    """Check that every needed tensor is there, in its shape and finite, and none is left over.

    Raises:
        MissingWeights: lists what is missing, misshapen and left over.
        CheckpointError: a tensor with NaN or infinity.
    """
    absent = sorted(name for name in needed if name not in found)
    misshapen = [
        f"{name} is {tuple(found[name].shape)} instead of {shape}"
        for name, shape in needed.items()
        if name in found and tuple(found[name].shape) != shape
    ]
    refuse_wrong(source, missing=absent, misshapen=misshapen, extra=sorted(leftover))
    for name in needed:
        if not bool(torch.isfinite(found[name]).all()):
            raise CheckpointError(f"{source}: {name} holds NaN or infinity")


def refuse_wrong(
    source: Path, *, missing: Sequence[str], misshapen: Sequence[str], extra: Sequence[str]
) -> None:
    """Raise MissingWeights, which lists the names, unless all three are empty."""
    listed = [
        f"{what}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if names[8:] else ''}"
        for what, names in (("missing", missing), ("misshapen", misshapen), ("left over", extra))
        if names
    ]
    if listed:
        raise MissingWeights(
            f"the weights in {source} are not this model's ({'; '.join(listed)})",
            hint="the config and the weights must belong together",
        )


def _read_safetensors(file: Path) -> Weights:
    from safetensors.torch import load_file

    try:
        return dict(load_file(str(file)))
    except Exception as error:  # safetensors' own error class is private to its Rust module
        raise CheckpointError(f"{file} is not a whole safetensors file: {error}") from error


def _read_pickle(file: Path) -> Weights:
    content = _unpickle(file)
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise CheckpointError(f"{file} holds something other than named tensors")
    return dict(content)


def _unpickle(file: Path) -> object:
    try:
        with warnings.catch_warnings():
            # Newer pickle protocols are read, or refused below; the warning is redundant.
            warnings.filterwarnings("ignore", message="Detected pickle protocol")
            return torch.load(file, map_location="cpu", weights_only=True, mmap=_is_zip(file))
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{file} is a pickle that would run code, or is damaged",
            hint="save the weights as safetensors",
        ) from error
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from error


def _is_zip(file: Path) -> bool:
    """Whether this is torch's zip format; the legacy one cannot be mapped."""
    with file.open("rb") as stream:
        return stream.read(4) == b"PK\x03\x04"
