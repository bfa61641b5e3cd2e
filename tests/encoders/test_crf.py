"""Viterbi against pytorch-crf, and against trying every path."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from torchcrf import CRF

from featpipe.encoders.crf import Transitions, find_best_paths


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
