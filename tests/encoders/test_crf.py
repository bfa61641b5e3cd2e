"""Viterbi against pytorch-crf, and against trying every path."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torchcrf import CRF

from featpipe.encoders.viterbi import (
    Transitions,
    find_best_paths,
    step_by_label,
    step_by_pair,
)


def make(seed: int, n_labels: int) -> tuple[CRF, Transitions]:
    torch.manual_seed(seed)
    crf = CRF(n_labels, batch_first=True)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_()
    arrays = (
        p.detach().numpy() for p in (crf.transitions, crf.start_transitions, crf.end_transitions)
    )
    return crf, Transitions(*arrays)


@pytest.mark.parametrize("seed", range(20))
def test_paths_are_those_of_pytorch_crf(seed: int) -> None:
    chance = np.random.default_rng(seed)
    n_labels = int(chance.integers(2, 12))
    crf, transitions = make(seed, n_labels)
    lengths = chance.integers(1, 40, size=int(chance.integers(1, 30)))
    emissions = chance.standard_normal((int(lengths.sum()), n_labels)).astype(np.float32)
    found = np.split(find_best_paths(emissions, lengths, transitions), np.cumsum(lengths)[:-1])
    padded = torch.zeros(len(lengths), int(lengths.max()), n_labels)
    mask = torch.zeros(len(lengths), int(lengths.max()), dtype=torch.bool)
    for row, part in enumerate(np.split(emissions, np.cumsum(lengths)[:-1])):
        padded[row, : len(part)] = torch.from_numpy(part)
        mask[row, : len(part)] = True
    assert [path.tolist() for path in found] == crf.decode(padded, mask)


@pytest.mark.parametrize("n_labels", [1, 2, 15, 130])
def test_both_ways_of_a_step_give_the_same(n_labels: int) -> None:
    """Also of equally good labels, of which rounded numbers have many, and of forbidden ones."""
    chance = np.random.default_rng(n_labels)
    score, emitted = (chance.standard_normal((n_labels, 50)).round() for _ in range(2))
    between = chance.standard_normal((n_labels, n_labels)).round()
    between[chance.random(between.shape) < 0.2] = -np.inf
    given = [array.astype(np.float32) for array in (score, between, emitted)]
    for found, expected in zip(step_by_label(*given), step_by_pair(*given), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_text_among_many_has_the_path_that_it_has_alone() -> None:
    """More than are computed together, so that all ways are taken."""
    _, transitions = make(1, 5)
    chance = np.random.default_rng(1)
    lengths = chance.integers(0, 9, 5000)
    emissions = chance.standard_normal((int(lengths.sum()), 5)).round(1).astype(np.float32)
    together = find_best_paths(emissions, lengths, transitions)
    ends = np.cumsum(lengths)
    for text in range(0, 5000, 7):
        part = slice(ends[text] - lengths[text], ends[text])
        alone = find_best_paths(emissions[part], lengths[text : text + 1], transitions)
        np.testing.assert_array_equal(alone, together[part])


def test_no_path_is_better() -> None:
    _, transitions = make(3, 3)
    emissions = np.random.default_rng(3).standard_normal((6, 3)).astype(np.float32)

    def score(path: tuple[int, ...]) -> float:
        between = sum(transitions.between[a, b] for a, b in pairwise(path))
        return float(
            transitions.start[path[0]]
            + emissions[range(6), path].sum()
            + between
            + transitions.end[path[-1]]
        )

    best = max(product(range(3), repeat=6), key=score)
    assert find_best_paths(emissions, np.array([6]), transitions).tolist() == list(best)


def test_empty_texts_take_no_step() -> None:
    _, transitions = make(0, 4)
    emissions = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    alone = find_best_paths(emissions, np.array([5]), transitions)
    among = find_best_paths(emissions, np.array([0, 5, 0]), transitions)
    assert among.tolist() == alone.tolist()
    assert find_best_paths(emissions[:0], np.array([0, 0]), transitions).tolist() == []
