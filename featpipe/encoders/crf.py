"""The part of a tagger that turns hidden states into labels.

An optional bidirectional LSTM, one linear layer with a row per label, and an optional CRF (square
transitions, a start and an end vector). They are found by the shapes of the checkpoint's tensors,
because names differ between authors. `Head.names` lists the tensors used, so that the caller can
refuse the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from featpipe.encoders.fused import has_kernels
from featpipe.encoders.linear import Linear, make_linear
from featpipe.encoders.transfer import CPU, computing_first, send
from featpipe.encoders.viterbi import Transitions, find_best_paths
from featpipe.encoders.weights import Weights, is_unused
from featpipe.errors import CheckpointError, MissingWeights, UnsupportedModel

if TYPE_CHECKING:
    from pathlib import Path

    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints
    from featpipe.encoders.viterbi import Labels, Scores

#: Tokens whose probabilities are computed together: they stay in the processor's cache.
_TOKENS_AT_ONCE = 2048

_LSTM = re.compile(r"(?P<prefix>(.*\.)?)(weight|bias)_(ih|hh)_l\d+(_reverse)?")


@dataclass(frozen=True, slots=True)
class Head:
    """Scores each token's labels and chooses among them."""

    linear: Linear | None = None
    """None: the states are scores already, of a model with its own last layer."""
    lstm: torch.nn.LSTM | None = None
    transitions: Transitions | None = None
    names: frozenset[str] = frozenset()
    """The checkpoint's tensors that this head is made of."""
    device: torch.device = CPU
    """That of the layers; a card with our kernels also finds the paths."""

    def score(self, states: torch.Tensor, pack: Pack) -> torch.Tensor:
        """Shapes: states (tokens, width) -> (tokens, labels) float32."""
        if self.linear is None:
            return states
        if self.lstm is None:
            # On a card as many rows as the pack has: kernels are chosen by it.
            n_more = max(pack.n_rows - len(states), 0)
            return self.linear(F.pad(states, (0, 0, 0, n_more)))[: len(states)]
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
            found = self._choose_on_card(scores, lengths, self.transitions)
            if found is not None:
                return found
            labels = find_best_paths(scores, lengths, self.transitions)
        return labels, _probability_of(scores, labels)

    def _choose_on_card(
        self, scores: Scores, lengths: Ints, transitions: Transitions
    ) -> tuple[Labels, Scores] | None:
        """By a kernel: paths take a processor longer than all else that it does for a card.

        While the card is busy with other texts, which are not waited for.
        None where there is no such card, or its memory is too small.
        """
        if not len(scores) or not has_kernels(self.device):
            return None
        from featpipe.encoders.card_kernels import best_paths

        edges = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        parts = scores, edges, transitions.between, transitions.start, transitions.end
        try:
            with computing_first(self.device):
                there, ends, *sums = (send(part, self.device) for part in parts)
                labels = best_paths(there, ends, (sums[0], sums[1], sums[2]))
                odds = torch.softmax(there.double(), 1).gather(1, labels[:, None].long())[:, 0]
                return labels.cpu().numpy().astype(np.intp), odds.float().cpu().numpy()
        except torch.OutOfMemoryError:
            return None


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
    return Head(linear, lstm, transitions, frozenset(is_good), device)


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
    out = np.empty(len(scores), np.float32)
    for at in range(0, len(scores), _TOKENS_AT_ONCE):
        some = slice(at, at + _TOKENS_AT_ONCE)
        above = np.ascontiguousarray(scores[some].T)  # numpy is slow where it reduces short rows
        above -= above.max(axis=0)
        odds = np.exp(above.astype(np.float64))
        chosen = odds[labels[some], np.arange(odds.shape[1])]
        out[some] = chosen / np.ascontiguousarray(odds.T).sum(axis=1)
    return out
