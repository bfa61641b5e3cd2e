"""The models of this machine: which there are, and how each would be loaded.

No weights are loaded, and nothing is downloaded: what is said is read from the files. Whether the
weights are whole, and how fast they are, shows ``featpipe doctor --model``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.encoders.builtin import BUILTIN, find_builtin_model
from featpipe.encoders.checkpoint import describe_checkpoint, list_hub_cache
from featpipe.encoders.precision import find_precision
from featpipe.encoders.prompts import find_passage_prompt, find_query_prompt
from featpipe.errors import FeatpipeError, UnsupportedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.encoders.checkpoint import Checkpoint

#: Files beside a dense model that hold further outputs, which are not read.
_OTHER_HEADS = {"sparse_linear.pt": "sparse weights", "colbert_linear.pt": "a vector per token"}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model, and how it would be loaded; beyond ``problem`` all is empty where it would not be.

    Attributes:
        name: to be given as ``--model``.
        origin: ``built-in``, ``hub cache`` or ``named``.
        folder: where it is.
        problem: why it cannot be loaded; empty otherwise.
        family: ``model_type`` of its configuration.
        kind: ``encoder`` or ``tagger``; both give vectors.
        forward: ``own``, the packed forward, or ``transformers``.
        tokenizer: ``own``, vectorised, or ``tokenizers``.
        precision: what ``auto`` is here on the processor.
        dim, n_layers, window: numbers in a vector, layers, and tokens of a window.
        pooling, is_normalised: how token states become a vector.
        query_prompt, passage_prompt: what it expects before each; None where it is not known.
        notes: what else there is to know.
    """

    name: str
    origin: str
    folder: str = ""
    problem: str = ""
    family: str = ""
    kind: str = ""
    forward: str = ""
    tokenizer: str = ""
    precision: str = ""
    dim: int = 0
    n_layers: int = 0
    window: int = 0
    pooling: str = ""
    is_normalised: bool = False
    query_prompt: str | None = None
    passage_prompt: str | None = None
    notes: tuple[str, ...] = ()


def list_models(names: Sequence[str] = ()) -> Iterator[ModelFacts]:
    """The named models; without names the built-in one and those of the local hub cache."""
    if names:
        yield from (examine_model(name) for name in names)
        return
    yield examine_model(BUILTIN, "built-in", find_builtin_model())
    for name, folder in list_hub_cache().items():
        yield examine_model(name, "hub cache", folder)


def examine_model(name: str, origin: str = "named", folder: Path | None = None) -> ModelFacts:
    """How a model would be loaded; no error is raised for one that cannot be."""
    try:
        return _examine(name, origin, describe_checkpoint(folder or name, may_download=False))
    except FeatpipeError as error:
        return ModelFacts(name, origin, str(folder or ""), problem=error.message.splitlines()[0])


def _examine(name: str, origin: str, checkpoint: Checkpoint) -> ModelFacts:
    from featpipe.encoders.tokenizer import Tokenizer

    forward = _choose_forward(checkpoint)
    recipe = checkpoint.recipe
    query = find_query_prompt(checkpoint, recipe.default_prompt)
    passage = find_passage_prompt(checkpoint)
    is_known = passage is not None or query.text != recipe.default_prompt
    return ModelFacts(
        name,
        origin,
        str(checkpoint.folder),
        family=checkpoint.architecture,
        kind=checkpoint.kind,
        forward=forward,
        tokenizer="own" if Tokenizer.load(checkpoint).is_fast else "tokenizers",
        precision=find_precision("auto") or "not measured yet",
        dim=checkpoint.dim,
        n_layers=checkpoint.n_layers,
        window=checkpoint.max_length,
        pooling=recipe.pooling or "mean",
        is_normalised=recipe.normalise,
        query_prompt=query.text if is_known else None,
        passage_prompt=None if passage is None else passage.text,
        notes=tuple(_notes(checkpoint)),
    )


def _choose_forward(checkpoint: Checkpoint) -> str:
    """Which forward computes it.

    Raises:
        UnsupportedModel: none does, as far as the configuration tells.
    """
    from featpipe.encoders.foreign import refuse_decoder
    from featpipe.encoders.trunk import has_packed_forward

    if has_packed_forward(checkpoint):
        return "own"
    from transformers import CONFIG_MAPPING

    if checkpoint.architecture not in CONFIG_MAPPING and not checkpoint.config.get("auto_map"):
        kind = checkpoint.architecture or "no model_type"
        raise UnsupportedModel(f"{checkpoint.path} ({kind}) is unknown to transformers")
    refuse_decoder(checkpoint)
    return "transformers"


def _notes(checkpoint: Checkpoint) -> Iterator[str]:
    if checkpoint.adapter is not None:
        yield f"a LoRA adapter of {checkpoint.adapter.base}, merged when it is loaded"
    if checkpoint.recipe.steps:
        kinds = ", ".join(step.kind for step in checkpoint.recipe.steps)
        yield f"after pooling: {kinds}"
    heads = [what for file, what in _OTHER_HEADS.items() if (checkpoint.path / file).exists()]
    if heads:
        yield f"its dense vector alone is read, not {' or '.join(heads)}"
    passage = find_passage_prompt(checkpoint)
    if passage is not None and passage.text != checkpoint.recipe.default_prompt:
        yield f"it expects {passage.text!r} before passages: build-cache --prompt {passage.text!r}"
    if checkpoint.config.get("auto_map"):
        yield "it has Python code of its own, which runs only with trust_remote_code"
