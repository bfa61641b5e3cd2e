"""Two rankings made one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from featpipe.errors import UsageError
from featpipe.lexical.fusion import combine, fuse_ranks, normalise

SCORES = arrays(np.float64, (3, 7), elements=st.floats(-50, 50, allow_subnormal=False))


def test_normalised_scores_reach_from_zero_to_one() -> None:
    assert normalise(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 5.0]])).tolist() == [
        [0, 1, 0.5],
        [0, 0, 0],
    ]
    assert normalise(np.zeros((2, 0))).shape == (2, 0)


@given(SCORES, SCORES)
def test_a_weight_at_an_end_is_that_ranking_alone(words: np.ndarray, vectors: np.ndarray) -> None:
    assert np.array_equal(combine(words, vectors, 1.0), normalise(words))
    assert np.array_equal(combine(words, vectors, 0.0), normalise(vectors))


def test_a_weight_beyond_is_refused() -> None:
    with pytest.raises(UsageError, match="within 0 and 1"):
        combine(np.zeros(2), np.zeros(2), 1.5)


def test_reciprocal_ranks_add_up_over_rankings() -> None:
    fused = fuse_ranks([np.array([7, 3, 5]), np.array([3, 9])], k=60)
    assert [candidate for candidate, _ in fused] == [3, 7, 9, 5]
    assert fused[0][1] == 1 / 62 + 1 / 61
    assert fused[1][1] == 1 / 61


def test_candidates_of_equal_reciprocal_rank_go_by_number() -> None:
    assert [each for each, _ in fuse_ranks([np.array([2]), np.array([1])])] == [1, 2]
