"""Which label follows which: a linear-chain CRF over the scores of the finished model.

The layers stay as they are. Labels chosen token by token tear long names apart; the best path, as
featpipe's taggers choose it, keeps them whole. Lafferty, McCallum, Pereira 2001.
"""

from __future__ import annotations

from itertools import compress
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from small_model.joint import encode_labelled
from small_model.network import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from small_model.labels import Labeller

N_SAMPLES = 6_000
LOT = 64  # samples of one step, of about one length
RATE = 0.05
#: Of a step that no path may take; also that of a label that a token is known not to have.
FORBIDDEN = -10_000.0
UNKNOWN = "?"


class Lot(NamedTuple):
    """Texts side by side; what stands behind the end of one has no meaning.

    Shapes: scores (texts, tokens, labels) float32, wanted (texts, tokens) int64, -100 where the
    label is not known; lengths (texts,) int64, in tokens, special ones left out.
    """

    scores: Tensor
    wanted: Tensor
    lengths: Tensor


class Crf(NamedTuple):
    """Shapes: between (labels, labels), from row to column; start and end (labels,)."""

    between: Tensor
    start: Tensor
    end: Tensor

    def named(self) -> dict[str, Tensor]:
        """By the names of pytorch-crf, which featpipe finds in a checkpoint."""
        values = (self.between, self.start, self.end)
        names = ("transitions", "start_transitions", "end_transitions")
        return {f"crf.{name}": value for name, value in zip(names, values, strict=True)}


def find_forbidden() -> tuple[Tensor, Tensor]:
    """-> (labels, labels) and (labels,) bool: the inside of a name follows its own kind only."""
    inside = torch.tensor([label.startswith("I-") for label in LABELS])
    kinds = [label.partition("-")[2] for label in LABELS]
    alike = torch.tensor([[one == other for other in kinds] for one in kinds])
    return inside & ~alike, inside


def mend(wanted: np.ndarray) -> np.ndarray:
    """Of one text: an inside that follows something else begins, as a token may hold two ends."""
    mended = wanted.copy()
    before = "O"
    for place, number in enumerate(wanted.tolist()):
        label = LABELS[number] if number >= 0 else UNKNOWN
        head, _, kind = label.partition("-")
        if head == "I" and before not in {UNKNOWN, f"B-{kind}", f"I-{kind}"}:
            label = f"B-{kind}"
            mended[place] = LABELS.index(label)
        before = label
    return mended


def add_up(scores: Tensor, lengths: Tensor, crf: Crf) -> Tensor:
    """Logarithm of the sum over all paths of exp(their score): (texts,), as shapes in `Lot`.

    The forward algorithm, one place of all texts at a time.
    """
    reached = crf.start + scores[:, 0]
    for place in range(1, scores.shape[1]):
        going = (place < lengths)[:, None]
        following = torch.logsumexp(reached[:, :, None] + crf.between, dim=1) + scores[:, place]
        reached = torch.where(going, following, reached)
    return torch.logsumexp(reached + crf.end, dim=1)


def loss_of(lot: Lot, crf: Crf) -> Tensor:
    """Negative log likelihood per token of the wanted labels; where none is known, all are."""
    places = torch.arange(len(LABELS))
    fits = (lot.wanted[:, :, None] == places) | (lot.wanted[:, :, None] < 0)
    fitting = lot.scores.masked_fill(~fits, FORBIDDEN)
    every, wanted = (add_up(scores, lot.lengths, crf) for scores in (lot.scores, fitting))
    return (every - wanted).sum() / lot.lengths.sum()


def learn_crf(lots: list[Lot], n_steps: int, seed: int, say: Callable[[str], None]) -> Crf:
    """From nothing, by Adam, its rate falling to nothing; one lot a step."""
    is_forbidden, is_no_start = find_forbidden()
    shapes = (is_forbidden.shape, is_no_start.shape, is_no_start.shape)
    free = [torch.zeros(shape, requires_grad=True) for shape in shapes]

    def bind() -> Crf:
        between, start, end = free
        return Crf(
            between.masked_fill(is_forbidden, FORBIDDEN),
            start.masked_fill(is_no_start, FORBIDDEN),
            end,
        )

    optimiser = torch.optim.Adam(free, lr=RATE)
    rng = np.random.default_rng(seed)
    recent = 0.0
    for step in range(n_steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / n_steps)
        loss = loss_of(lots[int(rng.integers(len(lots)))], bind())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        recent = 0.96 * recent + 0.04 * float(loss.detach()) if step else float(loss.detach())
        if (step + 1) % 50 == 0:
            say(f"transitions {step + 1}/{n_steps}  loss {recent:.4f}")
    return Crf(*(value.detach() for value in bind()))


def score_samples(folder: Path, labeller: Labeller, n_samples: int, seed: int) -> list[Lot]:
    """Samples as the layers learnt from, with the scores of the model as it is written."""
    from tokenizers import Tokenizer
    from transformers import AutoModelForTokenClassification

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).eval()
    rng = Random(seed)  # noqa: S311 - not a secret
    drawn = [labeller.draw(rng) for _ in range(n_samples)]
    has_tokens = [bool(tokenizer.encode(text, add_special_tokens=False).ids) for text, _ in drawn]
    samples = sorted(compress(drawn, has_tokens), key=lambda one: len(one[0]))
    lots = []
    for at in range(0, len(samples), LOT):
        ids, labels, encoded = encode_labelled(samples[at : at + LOT], tokenizer)
        lengths = [len(one.ids) - 2 for one in encoded]  # without [CLS] and [SEP]
        with torch.no_grad():
            scores = model(ids, attention_mask=(ids != 0).long()).logits
        wanted = labels[:, 1:-1].clone()
        for row, length in zip(wanted, lengths, strict=True):
            row[:length] = torch.from_numpy(mend(row[:length].numpy()))
        lots.append(Lot(scores[:, 1:-1], wanted, torch.tensor(lengths)))
    return lots
