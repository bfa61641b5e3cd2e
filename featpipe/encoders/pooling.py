"""What some models do to a vector after pooling: dense layers, layer norms, normalisation.

Equal to sentence-transformers' modules of the same names, in float32 and on the CPU whatever the
device of the transformer: a few thousand rows of one layer. A vector's bits do not depend on the
others. For a text of several windows the steps follow the windows' combination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from featpipe.encoders.linear import make_linear
from featpipe.encoders.weights import check_complete, read_tensors
from featpipe.errors import MissingWeights

if TYPE_CHECKING:
    from collections.abc import Iterable

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.recipe import Step
    from featpipe.encoders.windows import Vectors

# From token states to one vector per sequence.
#
# A vector depends on its own sequence only, bit for bit: every reduction runs over one sequence's
# tokens in their order, whatever else is in the pack. A sequence without tokens (an empty text,
# where
# the tokenizer adds no special ones) gets a row that is not finite, never a neighbour's.


def pool(states: torch.Tensor, pack: Pack, pooling: str) -> torch.Tensor:
    """Pool each sequence of a pack, special tokens included, as sentence-transformers does.

    ``weightedmean`` weighs the tokens 1, 2, 3 ...; ``mean_sqrt_len`` divides their sum by the root
    of their number.

    Shapes: states (tokens, width) float32 -> (sequences, width) float32. ``last`` takes the last
    token, special or not.
    """
    lengths = torch.from_numpy(pack.lengths).to(states.device)
    if pooling in {"mean", "max"}:
        pooled: torch.Tensor = torch.segment_reduce(
            states, pooling, lengths=lengths, axis=0, unsafe=True
        )
        return pooled
    if pooling in {"weightedmean", "mean_sqrt_len"}:
        if pooling == "weightedmean":
            places = torch.from_numpy(pack.positions + 1).to(states.device)
            states = states * places[:, None].float()
            divisor = (lengths * (lengths + 1) // 2).float()
        else:
            divisor = lengths.float().sqrt()
        total: torch.Tensor = torch.segment_reduce(
            states, "sum", lengths=lengths, axis=0, unsafe=True
        )
        return total / divisor[:, None]
    ends = torch.cumsum(lengths, 0)
    rows = torch.full((len(lengths), states.shape[1]), torch.nan, device=states.device)
    has_tokens = lengths > 0
    at = ends - 1 if pooling == "last" else ends - lengths
    rows[has_tokens] = states[at[has_tokens]]
    return rows


_CPU = torch.device("cpu")


class Layer(Protocol):
    """Shapes: (n, in) -> (n, out), float32."""

    def __call__(self, x: torch.Tensor, /) -> torch.Tensor:
        """The layer's output."""
        ...


class Steps:
    """Loaded steps, in order."""

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self._layers = tuple(layers)

    @classmethod
    def load(cls, steps: Iterable[Step], width: int) -> Steps:
        """Read the weights of `steps`, the first of which gets vectors of `width`.

        Raises:
            MissingWeights: absent, misshapen or left-over tensors.
            CheckpointError: damaged files.
        """
        layers: list[Layer] = []
        for step in steps:
            layers.append(_load(step, width))
            width = step.width or width
        return cls(layers)

    def __call__(self, vectors: Vectors) -> Vectors:
        """Shapes: (n, in) -> (n, out)."""
        if not self._layers:
            return vectors
        x = torch.from_numpy(vectors)
        for layer in self._layers:
            x = layer(x)
        found: Vectors = x.numpy()
        return found


def _load(step: Step, width: int) -> Layer:
    if step.kind == "Normalize":
        return _normalise
    names: dict[str, tuple[int, ...]] = {"norm.weight": (width,), "norm.bias": (width,)}
    if step.kind == "Dense":
        names = {"linear.weight": (step.width, width), "linear.bias": (step.width,)}
        if not step.has_bias:
            del names["linear.bias"]
    if not step.weight_files:
        raise MissingWeights(f"{step.folder} has no model.safetensors or pytorch_model.bin")
    weights = read_tensors(step.weight_files[0])
    check_complete(
        weights, names, leftover=[n for n in weights if n not in names], source=step.folder
    )
    found = [weights[name].detach().clone().float() for name in names]
    if step.kind == "LayerNorm":
        return lambda x: F.layer_norm(x, (width,), found[0], found[1])
    bias = found[1] if step.has_bias else torch.zeros(found[0].shape[0])
    linear = make_linear([found[0]], [bias], dtype=torch.float32, device=_CPU)
    activation: torch.nn.Module = getattr(torch.nn, step.activation)()
    # Row by row: over the whole, the last few numbers of a batch take another path than the others.
    return lambda x: torch.stack([activation(row) for row in linear(x)]) if len(x) else linear(x)


def _normalise(x: torch.Tensor) -> torch.Tensor:
    vectors = x.numpy()
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return torch.from_numpy((vectors / np.maximum(lengths, 1e-12)).astype(np.float32))
