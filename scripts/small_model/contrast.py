"""A table learns which texts belong together: InfoNCE both ways (van den Oord et al. 2018).

The rows of a text's ids, averaged and brought to length one, are its vector. All pairs of a step
are each other's negatives.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Callable

    Ids = np.ndarray
    DrawStep = Callable[[np.random.Generator, int], tuple[list[Ids], list[Ids]]]


class Plan(NamedTuple):
    """What a table needs to learn well; `stream` keeps its samples apart from those of others."""

    name: str
    stream: int
    rate: float
    temperature: float
    n_warm: int
    betas: tuple[float, float]


class Lesson(NamedTuple):
    """How long, on how many pairs at a time, drawn from which seed."""

    n_steps: int
    n_pairs: int
    seed: int


def learn_pairs(
    table: np.ndarray, draw_step: DrawStep, plan: Plan, lesson: Lesson, say: Callable[[str], None]
) -> np.ndarray:
    """(ids, width) float32 -> the same, trained.

    Args:
        table: where it begins.
        draw_step: gives so many first and as many second texts, as ids.
        plan: rate, temperature and the like.
        lesson: length and seed.
        say: a line for whoever waits.

    """
    weights = torch.nn.Parameter(torch.tensor(table))
    optimiser = torch.optim.Adam([weights], lr=plan.rate, betas=plan.betas)
    wanted = torch.arange(lesson.n_pairs)
    for step in range(lesson.n_steps):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate * min(1, (step + 1) / plan.n_warm) * (1 - step / lesson.n_steps)
        chance = np.random.default_rng([lesson.seed, plan.stream, step])
        first, second = draw_step(chance, lesson.n_pairs)
        near = _mean_vectors(weights, first) @ _mean_vectors(weights, second).T / plan.temperature
        loss = functional.cross_entropy(near, wanted) + functional.cross_entropy(near.T, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if (step + 1) % 100 == 0:
            found = float((near.argmax(-1) == wanted).float().mean())
            so_far = f"{plan.name} {step + 1}/{lesson.n_steps}"
            say(f"{so_far}  loss {float(loss.detach()):.3f}  found {found:.3f}")
    return weights.detach().numpy()


def _mean_vectors(table: torch.Tensor, texts: list[Ids]) -> torch.Tensor:
    """Means of the rows of each text, to length one: (texts, width)."""
    starts = np.array([0, *accumulate(map(len, texts))][:-1])
    ids = torch.from_numpy(np.concatenate(texts))
    bags = functional.embedding_bag(ids, table, torch.from_numpy(starts), mode="mean")
    return functional.normalize(bags, dim=-1)
