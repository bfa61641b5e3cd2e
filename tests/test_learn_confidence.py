"""Weights of confidence, learnt from values whose probabilities are known."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def test_learnt_weights_give_the_probabilities_that_values_were_drawn_with() -> None:
    from learn_confidence import learn

    from featpipe.extraction.scoring.logistic import sigmoid

    chance = np.random.default_rng(4)
    terms = chance.normal(size=(20_000, 2)) * [1.0, 30.0]
    truth = sigmoid(terms @ [2.0, -0.03] + 0.5)
    right = chance.random(len(truth)) < truth
    learnt = learn(terms, right, np.ones(len(truth)))
    assert np.abs(sigmoid(learnt.logits(terms)) - truth).mean() < 0.02


def test_every_set_counts_the_same_however_many_values_it_has() -> None:
    from learn_confidence import Reported, Table

    pieces = [
        Reported(name, 5, draw, [[1.0]] * n, [True] * n)
        for name, n in (("sroie", 900), ("fddc_hetong", 4000))
        for draw in range(2)
    ]
    table = Table.of(pieces)
    assert len(table.right) == 2 * 4900
    sums = [table.weights[table.names == name].sum() for name in ("sroie", "fddc_hetong")]
    assert sums[0] == pytest.approx(sums[1])
