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


def test_other_institutions_are_those_that_no_sample_is_of() -> None:
    from argparse import Namespace

    from eval_institutions import LEARNT_FROM
    from learn_confidence import INSTITUTIONS, tasks_in

    tasks = tasks_in(Namespace(), INSTITUTIONS)
    # Six pairs of four institutions each; kinds that are only measured teach nothing.
    assert [task.name for task in tasks] == [kind for kind in LEARNT_FROM for _ in range(6)]
    for task in tasks:
        own, others = ({row["institution"] for row in part} for part in (task.pool, task.test))
        assert len(own) == len(others) == 2
        assert own.isdisjoint(others)
        assert len(task.pool) + len(task.test) == 14


def test_the_columns_of_a_field_are_those_of_its_likeliest_value() -> None:
    from learn_confidence import judged
    from pages import features_of

    from featpipe.extraction.scoring.confidence import COLUMNS
    from featpipe.extraction.scoring.field_fitting import fit_field, sample_of

    samples = [
        sample_of(features_of(f"公告\n比例：{n}%\n其他：{n + 3}%\n"), [f"{n}%"], "percent")
        for n in (5, 8, 11)
    ]
    model = fit_field(samples, "percent", ("比例",))
    scored = model.score(features_of("公告\n比例：7%\n其他：9%\n"))
    columns, is_right = judged(model, scored, ["7%"])
    row = dict(zip(COLUMNS, columns, strict=True))
    assert is_right
    assert not judged(model, scored, ["9%"])[1]
    assert (row["one"], row["percent"], row["pretrained"]) == (1, 1, 0)
    assert row["few"] == pytest.approx(3**-0.5, abs=1e-4)
