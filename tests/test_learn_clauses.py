"""Prior weights of clauses, learnt from rows whose weights are known."""

from __future__ import annotations

import numpy as np
import pytest
from pages import features_of

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def test_learnt_weights_are_those_that_labels_were_drawn_with() -> None:
    from learn_clauses import Rows, learn

    from featpipe.extraction.scoring.columns import MEASURED
    from featpipe.extraction.scoring.logistic import sigmoid
    from featpipe.extraction.scoring.priors import SCALE, prior_weights

    chance = np.random.default_rng(5)
    prior = prior_weights(20)
    true = prior.copy()
    true[MEASURED.index("sentence odds")], true[MEASURED.index("log length")] = 2.5, -1.5
    parts = []
    for _ in range(4):
        measured = chance.normal(size=(5000, len(MEASURED)))
        labels = chance.random(5000) < sigmoid(measured @ true - 4.0)
        parts.append(Rows(measured, labels, np.ones(5000)))
    assert np.abs(learn(parts) * SCALE - true).max() < 0.3


def test_all_values_and_some_other_candidates_of_a_document_are_chosen() -> None:
    from learn_clauses import chosen

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.columns import hashed_rows
    from featpipe.extraction.scoring.mentions import TrainingRows

    n = 1000
    labels, overlaps = np.arange(n) < 2, (np.arange(n) >= 2) & (np.arange(n) < 10)
    measured = np.arange(n, dtype=float)[:, None]
    hashed = hashed_rows(features_of("甲方"), Candidates.gathered([]))
    rows = chosen(TrainingRows(hashed, measured, labels, overlaps), np.random.default_rng(0))
    numbers = rows.measured[:, 0]
    assert set(range(10)) <= set(numbers.tolist())
    assert len(set(numbers.tolist())) == len(numbers) == 90
    assert rows.labels.sum() == 2
    assert rows.weights[rows.labels].tolist() == [1.5, 1.5]
    assert set(rows.weights[numbers >= 10].tolist()) == {4.0}
    assert set(rows.weights[(numbers >= 2) & (numbers < 10)].tolist()) == {1.0}
