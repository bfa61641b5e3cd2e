"""Figures of `eval_extraction.py` from kept pieces, against counts by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from eval_extraction import Piece
    from extraction_sets import Part

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def make_piece(draw: int, part: Part = "held-out") -> Piece:
    from eval_extraction import Grouping, Piece, Tally

    tally = Tally(
        n_gold=4, n_given=3, n_right=2, n_candidates=4, n_located=2,
        judged=[(0.95, True), (0.95, True), (0.35, False)], counted=[4, 3], n_touching=3,
        documents=[(2, 2, 2), (2, 1, 0)],
    )  # fmt: skip
    records = Grouping(n_gold=8, n_given=4, n_right=3, n_grouped=8, n_grouped_right=6)
    return Piece("sroie", 5, draw, {"receipt": {"total": tally}}, 1.5, records, part)


def test_kept_pieces_give_the_figures_back() -> None:
    from eval_extraction import Piece, summarise

    pieces = [make_piece(draw) for draw in (0, 1)]
    assert [Piece.of(piece.line()) for piece in pieces] == pieces
    found = dict(summarise(pieces))
    assert found["sroie_k5_f1"] == pytest.approx(2 * 2 / (4 + 3))
    # Two bins: .95 where all are right, .35 where none is.
    assert found["sroie_k5_ece"] == pytest.approx((4 * 0.05 + 2 * 0.35) / 6)
    assert found["sroie_k5_p90_precision"] == 1.0
    assert found["sroie_k5_records_f1"] == pytest.approx(2 * 3 / (8 + 4))
    assert found["sroie_k5_grouping_f1"] == pytest.approx(2 * 6 / (8 + 8))
    assert found["sroie_k5_perfect_counts"] == pytest.approx(2 * 3 / (4 + 4))


def test_a_set_that_weights_were_learnt_on_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    from eval_extraction import summarise

    list(summarise([make_piece(0)]))
    list(summarise([make_piece(0, "dev")]))
    held_out, seen = (line for line in capsys.readouterr().out.splitlines() if "draws" in line)
    assert "seen" not in held_out
    assert "seen in part" in seen


@pytest.mark.parametrize(
    "name",
    [
        "thefts",
        "trades",
        "repurchases",
        "pledges",
        "news",
        "dividends",
        "loans",
        "guarantees",
        "labour",
    ],
)
def test_sets_by_hand_have_parts_of_other_institutions(name: str) -> None:
    from extraction_sets import groups_of, read_part, read_set

    parts: tuple[Part, ...] = ("dev", "held-out")
    rows = [read_part(Path("nowhere"), name, part) for part in parts]
    dev, held_out = (set(groups_of(name, own)) for own in rows)
    assert dev
    assert held_out
    assert not dev & held_out
    for task in read_set(Path("nowhere"), name, 10**6, "held-out"):
        assert len(task.pool) >= 20
        assert set(groups_of(name, task.test)) <= held_out
    for row in rows[0] + rows[1]:
        assert all(value in row["text"] for values in row["fields"].values() for value in values)
        for record in row.get("records", ()):
            assert all(value in row["fields"][name] for name, value in record.items())


def test_records_are_compared_by_meaning_each_with_one_at_most() -> None:
    from extraction_records import count_right

    from featpipe.extraction.values.values import read_value

    def record(name: str, amount: str) -> dict:
        return {"name": read_value(name, "text"), "amount": read_value(amount, "money")}

    gold = [record("一标段", "533813633.5"), record("二标段", "12万元")]
    # The first agrees in ten digits; the third has nothing in common with what is left.
    given = [
        record("二标段", "120,000元"),
        record("一标段", "533813633.54元"),
        record("一标段", "7元"),
    ]
    assert count_right(gold, given) == 4
    assert count_right(gold, given[1:]) == 2
