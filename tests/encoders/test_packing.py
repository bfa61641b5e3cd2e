"""Which sequences are computed together: counted out against the plan's promises."""

from __future__ import annotations

import numpy as np
import pytest

from featpipe.encoders.packing import LEAST_SHARE, Sequences, plan_packs


@pytest.mark.parametrize("shares", [1, 2, 3, 16])
@pytest.mark.parametrize("budget", [1, 40, 700, 4096])
def test_a_plan_holds_every_sequence_once_within_its_budget(shares: int, budget: int) -> None:
    random = np.random.default_rng(budget + shares)
    for n in (0, 1, 2, 7, 300):
        lengths = random.integers(2, 512, n)
        plan = plan_packs(lengths, budget=budget, shares=shares)
        assert all(len(part) for part in plan)
        assert sorted(np.concatenate([*plan, np.zeros(0, int)]).tolist()) == list(range(n))
        ordered = [lengths[at] for part in plan for at in part]
        assert ordered == sorted(ordered, reverse=True)
        slack = lengths.max() if n and shares > 1 else 0
        assert all(lengths[p].sum() <= budget + slack or len(p) == 1 for p in plan)


@pytest.mark.parametrize("shares", [2, 3, 16])
def test_shares_are_alike(shares: int) -> None:
    lengths = np.random.default_rng(shares).integers(2, 40, 3000)
    plan = plan_packs(lengths, budget=4096, shares=shares)
    assert len(plan) % shares == 0
    sizes = [int(lengths[part].sum()) for part in plan]
    assert max(sizes) - min(sizes) < 2 * 40


def test_a_few_tokens_are_not_shared_out() -> None:
    lengths = np.full(40, 20)
    assert lengths.sum() < LEAST_SHARE * 2
    assert len(plan_packs(lengths, budget=4096, shares=2)) == 1


def test_equal_lengths_keep_their_order() -> None:
    [pack] = plan_packs(np.array([3, 9, 3, 9, 9]), budget=100)
    assert pack.tolist() == [1, 3, 4, 0, 2]


@pytest.mark.parametrize(("prefix", "suffix"), [((), ()), ((101,), (102,)), ((1, 2), (3,))])
def test_a_sequence_alone_is_packed_as_in_company(
    prefix: tuple[int, ...], suffix: tuple[int, ...]
) -> None:
    lengths = np.array([5, 0, 1, 40])
    ids = np.random.default_rng(0).integers(0, 1000, lengths.sum()).astype(np.int32)
    sequences = Sequences(ids, np.cumsum(lengths) - lengths, lengths, prefix, suffix)
    together = sequences.pack(np.arange(4))
    parts = np.split(together.ids, np.cumsum(together.lengths)[:-1])
    for number, expected in enumerate(parts):
        alone = sequences.pack(np.array([number]))
        for found, of_company in (
            (alone.ids, expected),
            (alone.positions, np.arange(len(expected))),
            (alone.lengths, together.lengths[number : number + 1]),
        ):
            np.testing.assert_array_equal(found, of_company)
            assert found.dtype == of_company.dtype
        assert alone.groups == [(0, 1, len(expected))]
