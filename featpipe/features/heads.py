"""What turns hidden states into labels, found in a checkpoint by shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from featpipe.errors import MissingWeights
from featpipe.features.linear import make_linear
from featpipe.features.weights import Weights, is_unused

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.features.packing import Pack
    from featpipe.features.tokens import Ints

Logits = npt.NDArray[np.float32]


class Head:
    """A linear layer from hidden states to one score per label."""

    def __init__(self, weights: Weights, name: str, device: torch.device) -> None:
        self.names = frozenset({f"{name}.weight", f"{name}.bias"})
        self._linear = make_linear(
            [weights[f"{name}.weight"]],
            [weights[f"{name}.bias"]],
            dtype=torch.float32,
            device=device,
        )

    def score(self, states: torch.Tensor, pack: Pack) -> torch.Tensor:  # noqa: ARG002 - other heads look at sequences
        """Shapes: states (tokens, width) -> (tokens, labels) float32."""
        return self._linear(states)

    def choose(
        self,
        logits: Logits,
        lengths: Ints,  # noqa: ARG002 - other heads decode text by text
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Label and its probability per token. Shapes: (tokens, labels) -> (tokens,), (tokens,)."""
        labels = logits.argmax(axis=1)
        return labels, probability_of(logits, labels)


def probability_of(logits: Logits, labels: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
    """Softmax probability of the chosen label per token."""
    if not len(logits):
        return np.empty(0, np.float32)
    above = np.exp((logits - logits.max(axis=1, keepdims=True)).astype(np.float64))
    chosen = np.take_along_axis(above, labels[:, None], axis=1)[:, 0]
    return np.asarray(chosen / above.sum(axis=1), np.float32)


def load_head(weights: Weights, *, n_labels: int, source: Path, device: torch.device) -> Head:
    """The head among the tensors outside the trunk.

    Raises:
        MissingWeights: none, or several, fit.
    """
    names = [
        name.removesuffix(".weight")
        for name, tensor in weights.items()
        if name.endswith(".weight")
        and tensor.dim() == 2
        and tensor.shape[0] == n_labels
        and (name == "classifier.weight" or not is_unused(name))
    ]
    if len(names) != 1 or f"{names[0]}.bias" not in weights:
        raise MissingWeights(
            f"{source} has {len(names)} layers with {n_labels} labels instead of one: {names}"
        )
    return Head(weights, names[0], device)
