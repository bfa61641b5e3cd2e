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
    from learn_confidence import Judged, Table

    pieces = [
        Judged(name, "contract", 5, draw, draw > 0, [[1.0]] * n, [True] * n)
        for name, n in (("sroie", 900), ("fddc_hetong", 4000))
        for draw in range(2)
    ]
    table = Table.of(pieces)
    assert len(table.right) == 2 * 4900
    sums = [table.weights[table.names == name].sum() for name in ("sroie", "fddc_hetong")]
    assert sums[0] == pytest.approx(sums[1])


def test_weights_of_a_group_are_learnt_from_the_others() -> None:
    from learn_confidence import Judged, Table, learn_without

    chance = np.random.default_rng(5)
    pieces = []
    for name, sign in (("cuad", 1.0), ("fddc_hetong", 1.0), ("sroie", -1.0)):
        columns = chance.normal(size=(2000, 1))
        right = (columns[:, 0] * sign > 0).tolist()
        pieces.append(Judged(name, name, 5, 0, False, columns.tolist(), right))
    table = Table.of(pieces)
    logits = learn_without(table, table.columns, table.names)
    signs = np.sign(logits) == np.sign(table.columns[:, 0])
    # Contracts and announcements agree; each of them and receipts do not.
    assert signs[table.names == "sroie"].mean() > 0.95
    assert abs(logits[table.names == "cuad"]).mean() < abs(logits[table.names == "sroie"]).mean()
