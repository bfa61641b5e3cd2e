"""Texts by portions: a card computes one while the host is busy with those before and behind it.

On a processor all texts are one portion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from featpipe.encoders.forward import CUDA_BUDGET
from featpipe.encoders.packing import cut_portions
from featpipe.encoders.transfer import CPU

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from featpipe.encoders.tokens import Ints

StartedT = TypeVar("StartedT")
FinishedT = TypeVar("FinishedT")

#: Characters of a portion of the texts for a card: 16 full packs of Chinese, 4 of English.
PORTION_CHARACTERS = 16 * CUDA_BUDGET


@dataclass(frozen=True, slots=True)
class Portion:
    """Texts that are computed together."""

    texts: Sequence[str]
    numbers: Ints
    """Of the texts, in the call."""


def portions_for(device: torch.device, texts: Sequence[str]) -> list[Portion]:
    """All texts; the longest first on a card, so that its packs are full."""
    if device == CPU or not texts:
        return [Portion(texts, np.arange(len(texts)))]
    order = np.argsort([-len(text) for text in texts], kind="stable")
    in_order = [texts[at] for at in order.tolist()]
    portions, n_before = [], 0
    for part in cut_portions(in_order, first=CUDA_BUDGET, most=PORTION_CHARACTERS):
        portions.append(Portion(part, order[n_before : n_before + len(part)]))
        n_before += len(part)
    return portions


def places_in(portions: Sequence[Portion]) -> Ints:
    """Where each text of the call is among those of all portions, one after another."""
    return np.argsort(np.concatenate([portion.numbers for portion in portions]))


def overlap(
    portions: Sequence[Portion],
    start: Callable[[Portion], StartedT],
    finish: Callable[[StartedT], FinishedT],
) -> Iterator[FinishedT]:
    """Start each portion, and finish it once the next is started."""
    ahead: list[StartedT] = []
    for portion in portions:
        ahead.append(start(portion))
        if len(ahead) > 1:
            yield finish(ahead.pop(0))
    for started in ahead:
        yield finish(started)
