"""What turns hidden states into labels, found in a checkpoint by the shapes of its tensors.

Optional bidirectional LSTM, one linear layer with as many rows as there are labels, optional CRF
(square transitions, a start and an end vector). Names differ from author to author and are not
looked at beyond that; `load_head` says which tensors it took, so that the rest can be refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from featpipe.encoders.linear import Linear, make_linear
from featpipe.encoders.weights import Weights, is_unused
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints

# The best path through a linear-chain CRF, for many texts at once. Oracle: pytorch-crf.
#
# A path's score is start[y0] + sum of emissions + sum of transitions[from, to] + end[y_last].


Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Transitions:
    """Shapes: between (k, k) from row to column; start and end (k,)."""

    between: Scores
    start: Scores
    end: Scores


def find_best_paths(
    emissions: Scores, lengths: Ints, transitions: Transitions
) -> npt.NDArray[np.intp]:
    """Label per token.

    Shapes: emissions (tokens, k), texts one after another; lengths (n,) -> (tokens,). Each step is
    taken by all texts still going on; the sums are pytorch-crf's, in its order and in float32. Of
    equally good labels the first wins.
    """
    n_labels = emissions.shape[1]
    order = np.argsort(-lengths, kind="stable")  # texts still going on are then the first rows
    first = (np.cumsum(lengths) - lengths)[order]
    sizes = lengths[order]
    n_texts = int(np.count_nonzero(sizes))
    path = np.empty(len(emissions), np.intp)
    if not n_texts:
        return path
    score = transitions.start + emissions[first[:n_texts]]
    came_from = np.empty((len(emissions), n_labels), np.int16 if n_labels < 1 << 15 else np.int32)
    for step in range(1, int(sizes[0])):
        going = int(np.searchsorted(-sizes, -step, side="left"))
        rows = first[:going] + step
        reached = score[:going, :, None] + transitions.between + emissions[rows][:, None, :]
        came_from[rows] = reached.argmax(axis=1)
        score[:going] = reached.max(axis=1)
    best = (score + transitions.end).argmax(axis=1)
    for step in range(int(sizes[0]) - 1, -1, -1):
        going = int(np.searchsorted(-sizes, -step, side="left"))
        rows = first[:going] + step
        path[rows] = best[:going]
        if step:
            best[:going] = came_from[rows, best[:going]]
    return path


Logits = npt.NDArray[np.float32]

_LSTM = re.compile(r"(?P<prefix>(.*\.)?)(weight|bias)_(ih|hh)_l\d+(_reverse)?")


@dataclass(frozen=True, slots=True)
class Head:
    """Scores per token and label, and the choice among them."""

    linear: Linear | None = None
    """None: what comes are scores already, of a model that has its own last layer."""
    lstm: torch.nn.LSTM | None = None
    transitions: Transitions | None = None
    names: frozenset[str] = frozenset()
    """Tensors of the checkpoint that this head is made of."""

    def score(self, states: torch.Tensor, pack: Pack) -> torch.Tensor:
        """Shapes: states (tokens, width) -> (tokens, labels) float32."""
        if self.linear is None:
            return states
        if self.lstm is None:
            return self.linear(states)
        # One sequence at a time: in a batch its bits would depend on the others.
        parts = torch.split(states, pack.lengths.tolist())
        seen = [self.lstm(part[None])[0][0] for part in parts]
        return self.linear(torch.cat(seen))

    def choose(
        self, logits: Logits, lengths: Ints
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]:
        """Label per token, and that label's softmax probability.

        Shapes: logits (tokens, labels), lengths (texts,) -> (tokens,), (tokens,). With a CRF the
        labels of a text are its best path; the probability is still the token's own.
        """
        if self.transitions is None:
            labels = logits.argmax(axis=1)
        else:
            labels = find_best_paths(logits, lengths, self.transitions)
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
        MissingWeights: no layer, or several, fit.
        CheckpointError: a tensor with NaN or infinity.
        UnsupportedModel: a CRF without start and end scores, whose direction cannot be told. These
            without transitions are left over, for the caller to refuse.
    """
    lstm, lstm_names = _load_lstm(weights, source, device)
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
            f"{source} has {len(names)} layers with {n_labels} labels instead of one: {names}",
            hint=f"outside the transformer it holds {sorted(weights)[:12]}",
        )
    linear = make_linear(
        [weights[f"{names[0]}.weight"]],
        [weights[f"{names[0]}.bias"]],
        dtype=torch.float32,
        device=device,
    )
    taken = {f"{names[0]}.weight", f"{names[0]}.bias", *lstm_names}
    rest = {name: tensor for name, tensor in weights.items() if name not in taken}
    transitions, crf_names = _load_crf(rest, n_labels, source)
    for name in sorted(taken):
        if not bool(torch.isfinite(weights[name]).all()):
            raise CheckpointError(f"{source}: {name} holds NaN or infinity")
    for name in crf_names:  # minus infinity forbids a transition
        if not bool((weights[name] < torch.inf).all()):
            raise CheckpointError(f"{source}: {name} holds NaN or infinity")
    return Head(linear, lstm, transitions, frozenset({*taken, *crf_names}))


def _load_lstm(
    weights: Weights, source: Path, device: torch.device
) -> tuple[torch.nn.LSTM | None, list[str]]:
    names = [name for name in weights if _LSTM.fullmatch(name)]
    if not names:
        return None, []
    prefixes = {match["prefix"] for name in names if (match := _LSTM.fullmatch(name))}
    if len(prefixes) != 1:
        raise UnsupportedModel(f"{source} has {len(prefixes)} LSTMs; one is understood")
    prefix = prefixes.pop()
    first = weights[f"{prefix}weight_ih_l0"]
    lstm = torch.nn.LSTM(
        input_size=first.shape[1],
        hidden_size=first.shape[0] // 4,
        num_layers=sum(bool(re.search(r"weight_ih_l\d+$", name)) for name in names),
        bidirectional=any(name.endswith("_reverse") for name in names),
        batch_first=True,
    )
    state = {name.removeprefix(prefix): weights[name].float() for name in names}
    try:
        lstm.load_state_dict(state)
    except RuntimeError as error:
        raise MissingWeights(
            f"{source}: the LSTM's weights do not fit together: {error}"
        ) from error
    return lstm.to(device).eval(), names


def _load_crf(
    weights: Weights, n_labels: int, source: Path
) -> tuple[Transitions | None, list[str]]:
    square = [n for n, t in weights.items() if tuple(t.shape) == (n_labels, n_labels)]
    vectors = [n for n, t in weights.items() if tuple(t.shape) == (n_labels,)]
    if not square:
        return None, []
    start = [name for name in vectors if "start" in name.lower()]
    end = [name for name in vectors if "end" in name.lower()]
    if len(square) != 1 or len(start) != 1 or len(end) != 1:
        raise UnsupportedModel(
            f"{source} has transitions {square} with start scores {start} and end scores {end};"
            " one of each is understood",
            hint="pytorch-crf's layout, in which transitions lead from row to column",
        )
    names = [square[0], start[0], end[0]]
    between, begin, finish = (weights[n].detach().float().cpu().numpy().copy() for n in names)
    return Transitions(between, begin, finish), names
