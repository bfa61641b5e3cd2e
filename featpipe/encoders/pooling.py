"""One vector per sequence from its tokens' states, and the modules that may follow.

Both equal sentence-transformers' modules of the same names. A vector's bits depend on its own
sequence only: every reduction runs over one sequence's tokens in their order, whatever else is in
the pack. On a card the host is not made to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from featpipe.encoders.linear import make_linear
from featpipe.encoders.transfer import CPU, send
from featpipe.encoders.weights import check_complete, read_tensors
from featpipe.errors import MissingWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.recipe import Step
    from featpipe.encoders.tokens import Ints
    from featpipe.encoders.windows import Vectors

    Layer = Callable[[torch.Tensor], torch.Tensor]
    """Shapes: (n, in) -> (n, out), float32."""


def pool(states: torch.Tensor, pack: Pack, pooling: str) -> torch.Tensor:
    """Pool each sequence of a pack, special tokens included.

    ``weightedmean`` weighs the tokens 1, 2, 3 ...; ``mean_sqrt_len`` divides their sum by the root
    of their number; ``last`` takes the last token, special or not. A sequence without tokens (an
    empty text, where the tokenizer adds no special ones) gets a row that is not finite.

    Shapes: states (tokens, width) float32 -> (sequences, width) float32.
    """
    single = find_single(pack, pooling)
    if single is not None:
        return _take_one(states, pack, single)
    lengths = send(pack.lengths, states.device)
    if pooling in {"mean", "max"}:
        return _reduce(states, pooling, lengths)
    if pooling == "weightedmean":
        places = send(pack.positions + 1, states.device)
        total = _reduce(states * places[:, None].float(), "sum", lengths)
        return total / (lengths * (lengths + 1) // 2).float()[:, None]
    return _reduce(states, "sum", lengths) / lengths.float().sqrt()[:, None]


def find_single(pack: Pack, pooling: str) -> Ints | None:
    """The one row (sequences,) of each sequence that `pool` takes; None where it takes more.

    That of a sequence without tokens is another's.
    """
    if pooling not in {"cls", "last"}:
        return None
    ends = np.cumsum(pack.lengths)
    return ends - 1 if pooling == "last" else ends - pack.lengths


def _take_one(states: torch.Tensor, pack: Pack, at: Ints) -> torch.Tensor:
    """The first or last state of each; chosen on the host, which need not wait for the states."""
    is_empty = pack.lengths == 0
    if is_empty.any():
        at[is_empty] = len(states)
        states = F.pad(states, (0, 0, 0, 1), value=torch.nan)
    return states.index_select(0, send(at, states.device))


def _reduce(states: torch.Tensor, how: str, lengths: torch.Tensor) -> torch.Tensor:
    reduced: torch.Tensor = torch.segment_reduce(states, how, lengths=lengths, axis=0, unsafe=True)
    return reduced


class Steps:
    """The modules after pooling, in order; none for most models.

    Computed in float32 on the CPU for any device of the transformer: few rows of few layers. For a
    text of several windows they follow the windows' combination.
    """

    def __init__(self, width: int, layers: Iterable[Layer] = ()) -> None:
        self.width = width
        """Of the vectors that leave the last step."""
        self._layers = tuple(layers)

    @classmethod
    def load(cls, steps: Iterable[Step], width: int) -> Steps:
        """Read the weights of `steps`; the first one's input is `width` wide.

        Raises:
            MissingWeights: absent, misshapen or left-over tensors.
            CheckpointError: damaged files.
        """
        layers: list[Layer] = []
        for step in steps:
            layers.append(_load(step, width))
            width = step.width or width
        return cls(width, layers)

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
        return lambda x: torch.from_numpy(normalise(x.numpy()))
    found = _read_weights(step, width)
    if step.kind == "LayerNorm":
        return lambda x: F.layer_norm(x, (width,), found[0], found[1])
    bias = found[1] if step.has_bias else torch.zeros(found[0].shape[0])
    linear = make_linear([found[0]], [bias], dtype=torch.float32, device=CPU)
    activation: torch.nn.Module = getattr(torch.nn, step.activation)()
    # Row by row: over a batch, the kernel computes its last few numbers in another way.
    return lambda x: torch.stack([activation(row) for row in linear(x)]) if len(x) else linear(x)


def _read_weights(step: Step, width: int) -> list[torch.Tensor]:
    """Weight, and bias if there is one, of a step whose input is `width` wide."""
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
    return [weights[name].detach().clone().float() for name in names]


def normalise(vectors: Vectors) -> Vectors:
    """Scale each row to length 1, in float64, so that the sum's order changes no bit kept."""
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
