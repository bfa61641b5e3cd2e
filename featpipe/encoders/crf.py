"""The part of a tagger that turns hidden states into labels, and the decoding of a CRF.

An optional bidirectional LSTM, one linear layer with a row per label, and an optional CRF (square
transitions, a start and an end vector). They are found by the shapes of the checkpoint's tensors,
because names differ between authors. `Head.names` lists the tensors used, so that the caller can
refuse the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

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

Scores: TypeAlias = npt.NDArray[np.float32]
"""Shape (tokens, labels), not normalised; or part of that."""
Labels: TypeAlias = npt.NDArray[np.intp]

_LSTM = re.compile(r"(?P<prefix>(.*\.)?)(weight|bias)_(ih|hh)_l\d+(_reverse)?")


@dataclass(frozen=True, slots=True)
class Transitions:
    """Scores of a linear-chain CRF. Shapes: between (k, k) from row to column; start, end (k,)."""

    between: Scores
    start: Scores
    end: Scores


@dataclass(frozen=True, slots=True)
class Head:
    """Scores each token's labels and chooses among them."""

    linear: Linear | None = None
    """None: the states are scores already, of a model with its own last layer."""
    lstm: torch.nn.LSTM | None = None
    transitions: Transitions | None = None
    names: frozenset[str] = frozenset()
    """The checkpoint's tensors that this head is made of."""

    def score(self, states: torch.Tensor, pack: Pack) -> torch.Tensor:
        """Shapes: states (tokens, width) -> (tokens, labels) float32."""
        if self.linear is None:
            return states
        if self.lstm is None:
            return self.linear(states)
        # One sequence at a time: in a batch its bits would depend on the others.
        sequences = torch.split(states, pack.lengths.tolist())
        return self.linear(torch.cat([self.lstm(one[None])[0][0] for one in sequences]))

    def choose(self, scores: Scores, lengths: Ints) -> tuple[Labels, Scores]:
        """Label per token, and that label's softmax probability.

        Shapes: scores (tokens, labels), lengths (texts,) -> (tokens,), (tokens,). With a CRF the
        labels of a text are its best path; the probability is still that of the token alone.
        """
        if self.transitions is None:
            labels = scores.argmax(axis=1)
        else:
            labels = find_best_paths(scores, lengths, self.transitions)
        return labels, _probability_of(scores, labels)


def load_head(weights: Weights, *, n_labels: int, source: Path, device: torch.device) -> Head:
    """Build the head from the tensors outside the trunk.

    Raises:
        MissingWeights: no layer, or several, with a row per label.
        CheckpointError: a tensor with NaN or infinity.
        UnsupportedModel: a CRF without start and end scores: the direction of its transitions is
            unknown. Start and end scores without transitions are not in `Head.names`.
    """
    lstm, lstm_names = _load_lstm(weights, source, device)
    weight, bias = _find_last_layer(weights, n_labels, source)
    linear = make_linear([weights[weight]], [weights[bias]], dtype=torch.float32, device=device)
    taken = {weight, bias, *lstm_names}
    rest = {name: tensor for name, tensor in weights.items() if name not in taken}
    transitions, crf_names = _load_crf(rest, n_labels, source)
    is_good = {name: bool(torch.isfinite(weights[name]).all()) for name in sorted(taken)}
    # Minus infinity forbids a transition.
    is_good |= {name: bool((weights[name] < torch.inf).all()) for name in crf_names}
    for name in is_good:
        if not is_good[name]:
            raise CheckpointError(f"{source}: {name} holds NaN or infinity")
    return Head(linear, lstm, transitions, frozenset(is_good))


def _find_last_layer(weights: Weights, n_labels: int, source: Path) -> tuple[str, str]:
    """Names of the weight and bias of the only layer with `n_labels` rows."""
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
    return f"{names[0]}.weight", f"{names[0]}.bias"


def _load_lstm(
    weights: Weights, source: Path, device: torch.device
) -> tuple[torch.nn.LSTM | None, list[str]]:
    names = [name for name in weights if _LSTM.fullmatch(name)]
    if not names:
        return None, []
    prefix, *others = {match["prefix"] for name in names if (match := _LSTM.fullmatch(name))}
    if others:
        raise UnsupportedModel(f"{source} has {1 + len(others)} LSTMs; one is supported")
    lstm = _make_lstm(names, weights[f"{prefix}weight_ih_l0"].shape)
    try:
        lstm.load_state_dict({name.removeprefix(prefix): weights[name].float() for name in names})
    except RuntimeError as error:
        raise MissingWeights(
            f"{source}: the LSTM's weights do not fit together: {error}"
        ) from error
    return lstm.to(device).eval(), names


def _make_lstm(names: list[str], first: torch.Size) -> torch.nn.LSTM:
    """An LSTM of the size that its tensors' names and the first one's shape state."""
    return torch.nn.LSTM(
        input_size=first[1],
        hidden_size=first[0] // 4,
        num_layers=sum(bool(re.search(r"weight_ih_l\d+$", name)) for name in names),
        bidirectional=any(name.endswith("_reverse") for name in names),
        batch_first=True,
    )


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
            " one of each is supported",
            hint="pytorch-crf's layout, in which transitions lead from row to column",
        )
    names = [square[0], start[0], end[0]]
    between, begin, finish = (weights[n].detach().float().cpu().numpy().copy() for n in names)
    return Transitions(between, begin, finish), names


def _probability_of(scores: Scores, labels: Labels) -> Scores:
    """Softmax probability of the chosen label per token."""
    if not len(scores):
        return np.empty(0, np.float32)
    above = np.exp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64))
    chosen = np.take_along_axis(above, labels[:, None], axis=1)[:, 0]
    return np.asarray(chosen / above.sum(axis=1), np.float32)


def find_best_paths(emissions: Scores, lengths: Ints, transitions: Transitions) -> Labels:
    """The best path of each text through a linear-chain CRF (Viterbi). Oracle: pytorch-crf.

    The score of a path is start[first] + its emissions + its between[from, to] + end[last]. Each
    step computes all texts that have not ended; the sums are pytorch-crf's, in its order and in
    float32. Of equally good labels the first is chosen.

    Shapes: emissions (tokens, k), texts one after another; lengths (n,) -> (tokens,).
    """
    n_labels = emissions.shape[1]
    order = np.argsort(-lengths, kind="stable")  # texts that have not ended are then the first rows
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
