"""The figures of `scripts/eval_retrieval.py`, on rankings that are scored by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from eval_retrieval import Task

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def make_task(n_passages: int, *positives: set[int]) -> Task:
    from eval_retrieval import Task

    passages = [f"p{number}" for number in range(n_passages)]
    return Task(passages, [f"q{number}" for number in range(len(positives))], list(positives))


def test_recall_and_reciprocal_rank_of_each_question() -> None:
    task = make_task(20, {3}, {1, 19}, {7})
    rows = np.array([[3, *range(10, 19)], [4, 1, *range(10, 18)], [*range(10, 20)]])
    recall, reciprocal = task.measure(rows).tolist()
    assert recall == [1, 0.5, 0]
    assert reciprocal == [1, 0.5, 0]


def test_the_head_keeps_what_its_questions_need() -> None:
    head = make_task(20, {3}, {1, 19}, {7}).head(2)
    assert head.questions == ["q0", "q1"]
    assert head.passages == ["p0", "p1", "p3", "p19"]
    assert head.positives == [{2}, {1, 3}]


def test_equal_scores_go_by_position() -> None:
    from eval_retrieval import best_rows

    assert best_rows(np.array([[1.0] * 11 + [2.0]])).tolist() == [[11, *range(9)]]


def test_a_weight_is_chosen_by_other_questions_than_it_is_scored_on() -> None:
    """Even questions are answered by words alone, odd ones by vectors alone.

    A weight chosen by the questions it is scored on would never do worse than the better of both
    for all of them; one chosen by others does, for whichever kind its half has more of.
    """
    from eval_retrieval import WEIGHTS, measure_weights, score_tuned

    n = 12
    task = make_task(40, *({number} for number in range(n)))
    right = np.zeros((n, 40))
    right[np.arange(n), np.arange(n)] = 1
    wrong = np.zeros((n, 40))
    wrong[:, 20:] = 1
    by_words = (np.arange(n) % 2 == 0)[:, None]
    by_weight = measure_weights(
        task, np.where(by_words, right, wrong), np.where(by_words, wrong, right)
    )
    assert by_weight.shape == (len(WEIGHTS), 2, n)
    assert by_weight[0, 0].tolist() == [0, 1] * (n // 2)
    assert by_weight[-1, 0].tolist() == [1, 0] * (n // 2)
    recall, _ = score_tuned(by_weight)
    assert recall < by_weight[:, 0].mean(axis=1).max()
    alike = np.repeat(by_weight[:, :, :1], n, axis=2)
    assert score_tuned(alike).tolist() == [1, 1]
