"""Totals: of a total and its parts one or the other are values, as its place tells."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.ranking import Group
from featpipe.extraction.scoring.totals import Total, find_totals, settle_totals
from featpipe.extraction.values.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.values.values import FieldType


def groups_of(*keys: str, places: Sequence[int] = ()) -> list[Group]:
    """Values that stand at some places, in their order unless told otherwise."""
    return [
        Group(Value("money", key), ((10 * place, 10 * place + 5),), (0.0,), 0)
        for key, place in zip(keys, places or range(len(keys)), strict=True)
    ]


@given(st.lists(st.integers(100_001, 100_030), min_size=3, max_size=9), st.randoms())
def test_totals_are_those_that_adding_up_every_run_finds(
    amounts: list[int], chance: random.Random
) -> None:
    at = chance.randrange(len(amounts))
    low = chance.randrange(len(amounts) - 1)
    amounts.insert(at, sum(amounts[low : low + chance.randint(2, 4)]))
    wanted = set()
    for number, amount in enumerate(amounts):
        rest = [n for n in range(len(amounts)) if n != number]
        for first in range(len(rest)):
            for end in range(first + 2, len(rest) + 1):
                run = tuple(rest[first:end])
                if sum(amounts[n] for n in run) == amount and len(str(amount).strip("0")) > 2:
                    wanted.add(Total(number, run, number > run[-1]))
    found = find_totals(groups_of(*map(str, amounts)))
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_amounts_are_added_in_the_order_of_the_document_whatever_their_rank() -> None:
    groups = groups_of("300.5", "100.25", "7", "200.25", places=(3, 0, 2, 1))
    assert find_totals(groups) == [Total(0, (1, 3), is_behind=True)]


@pytest.mark.parametrize("key", ["nan", "inf", "面议", "-100.25", "0", ""])
def test_what_is_no_amount_is_not_added(key: str) -> None:
    found = find_totals(groups_of("100.25", key, "200.25", "300.5"))
    assert found == [Total(3, (0, 2), is_behind=True)]


def test_round_totals_are_not_told_from_chance() -> None:
    assert not find_totals(groups_of("2", "3", "5"))
    assert not find_totals(groups_of("2000000", "3000000", "5000000"))


def test_of_many_amounts_a_sum_by_chance_is_no_total() -> None:
    chance = random.Random(5)  # noqa: S311  # made-up amounts, no secret
    n_found = 0
    for _ in range(50):
        amounts = [chance.randint(100, 999) for _ in range(30)]
        n_found += len(find_totals(groups_of(*(f"{amount}0000" for amount in amounts))))
    assert n_found == 0
    # To the cent the total of thirty is certain.
    lots = [f"{chance.randint(10**6, 10**7)}.{chance.randint(10, 99)}" for _ in range(30)]
    total = sum(Decimal(lot) for lot in lots)
    (found,) = find_totals(groups_of(*lots, str(total)))
    assert found == Total(30, tuple(range(30)), is_behind=True)


def settled(
    keys: Sequence[str],
    p: Sequence[float],
    chosen: Sequence[int],
    *,
    places: Sequence[int] = (),
) -> list[int]:
    return settle_totals(chosen, groups_of(*keys, places=places), np.array(p))


def test_a_total_given_alone_gives_way_to_its_parts_where_there_may_be_several() -> None:
    groups = groups_of("300.5", "100.25", "200.25", places=(2, 0, 1))
    likely, unlikely = np.array([0.7, 0.3, 0.3]), np.array([0.9, 0.05, 0.03])
    assert settle_totals([0], groups, likely, may_split=True) == [1, 2]
    assert settle_totals([0], groups, likely) == [0]
    assert settle_totals([0], groups, unlikely, may_split=True) == [0]


def test_the_total_behind_its_parts_goes_and_the_one_before_them_stays() -> None:
    keys, p = ("300.5", "100.25", "200.25"), (0.8, 0.4, 0.3)
    behind, before, among = (2, 0, 1), (0, 1, 2), (1, 0, 2)
    assert settled(keys, p, [0, 1, 2], places=behind) == [1, 2]
    assert settled(keys, p, [0, 1], places=before) == [0]
    assert settled(keys, p, [0, 1, 2], places=among) == [0]
    # Parts that are likelier by far are no breakdown, and unlikely ones no list.
    assert settled(keys, (0.4, 0.9, 0.8), [1, 2, 0], places=before) == [1, 2]
    assert settled(keys, (0.9, 0.05, 0.03), [0], places=behind) == [0]


def test_a_long_list_behind_its_total_stays_with_it() -> None:
    keys, p = ("600.75", "100.25", "200.25", "300.25"), (0.9, 0.5, 0.5, 0.5)
    assert settled(keys, p, [0, 1, 2, 3]) == [0, 1, 2, 3]
    assert settled(keys, p, [0, 1, 2]) == [0]  # the third part is none by itself
    assert settled(keys, p, [0, 1, 2, 3], places=(3, 0, 1, 2)) == [1, 2, 3]


def test_no_part_is_given_that_is_no_likely_value_by_itself() -> None:
    keys, p, behind = ("300.5", "100.25", "200.25"), (0.8, 0.4, 0.3), (2, 0, 1)
    assert settled(keys, p, [0], places=behind) == [0]
    assert settled(keys, p, [0, 2], places=behind) == [0, 2]
    assert settled(keys, p, [1, 2], places=behind) == [1, 2]  # no total is given


def test_unlikely_amounts_are_not_added_up() -> None:
    assert settled(("300.5", "100.25", "200.25"), (0.8, 0.5, 0.01), [0, 1]) == [0, 1]


def test_totals_of_totals_go_with_them() -> None:
    keys = ("100.25", "200.25", "300.5", "400.75", "701.25")
    assert settled(keys, (0.6, 0.6, 0.6, 0.6, 0.5), [0, 1, 2, 3, 4]) == [0, 1, 3]


def lots(*amounts: float, total: str) -> str:
    listed = "".join(
        f"{n}、第{n}标段，中标价为{amount}万元；\n" for n, amount in enumerate(amounts, 1)
    )
    return f"关于中标的公告\n公司近日收到中标通知书，情况如下：\n{listed}{total}\n特此公告。"


def price_model(kind: FieldType = "money") -> FieldModel:
    """Of prices of lots, of which some samples have two."""
    samples = []
    for n in range(8):
        amounts = [150.5 + 31 * n, 240.25 + 17 * n][: 1 + n % 2]
        text = lots(*amounts, total="本次中标对公司业绩有积极影响。")
        samples.append(sample_of(features_of(text), [f"{a}万元" for a in amounts], kind))
    return fit_field(samples, kind, ("中标价",))


def test_a_document_that_ends_its_list_with_the_total_gives_the_list() -> None:
    model = price_model()
    total = "上述标段中标价为1001.75万元。"
    page = features_of(lots(300.25, 200.25, 501.25, total=total))
    scored = model.score(page)
    values = [scored.groups[number].value.key for number in model.choose(scored)]
    assert sorted(values) == ["2002500", "3002500", "5012500"]
    # An amount that is no sum is given: its words are those of the lots.
    other = model.score(features_of(lots(300.25, 200.25, 501.25, total=total.replace("75", "5"))))
    assert "10015000" in [other.groups[number].value.key for number in model.choose(other)]


@pytest.mark.parametrize("kind", ["percent", "number"])
def test_a_row_of_sums_has_no_further_value(kind: FieldType) -> None:
    mark = "%" if kind == "percent" else ""

    def table(*cells: str) -> str:
        rows = "".join(
            f"{name}\t{cell}{mark}\n" for name, cell in zip("陆柳白", cells, strict=False)
        )
        return f"出资情况\n姓名\t份额\n{rows}"

    samples = [
        sample_of(features_of(table(*cells)), [cell + mark for cell in cells], kind)
        for cells in (("12", "25"), ("31", "8", "17"), ("14", "6"))
    ]
    model = fit_field(samples, kind, ("份额",))
    text = f"{table('21', '9')}合计\t30{mark}\n"
    scored = model.score(features_of(text))
    chosen = [text[slice(*scored.groups[number].spans[0])] for number in model.choose(scored)]
    assert sorted(chosen) == [f"21{mark}", f"9{mark}"]
