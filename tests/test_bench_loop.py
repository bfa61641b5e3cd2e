"""Figures of `bench_loop.py` from kept pieces, against medians by hand; the picture is XML."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from label_order import Curve

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def make_curves() -> list[Curve]:
    from label_order import Curve

    return [
        Curve(name, arm, seed, (0.1 * seed, 0.2 * seed, base))
        for name, base in (("a", 0.5), ("b", 0.7))
        for arm in ("queue", "random")
        for seed in (1, 2, 4)
    ]


def test_kept_pieces_give_the_figures_back() -> None:
    from bench_loop import as_line, piece_of, summarise
    from correction_time import Corrected
    from label_estimate import Estimate

    truths = (0.52, 0.58, 0.9)
    estimates = [Estimate("a_x", n, 0.5, 0.4, 0.6, truth) for n, truth in enumerate(truths)]
    corrected = [Corrected(seconds, 0, 300, "s") for seconds in (1.0, 3.0, 2.0)]
    pieces = [*make_curves(), *estimates, *corrected]
    assert [piece_of(as_line(piece)) for piece in pieces] == pieces
    found = dict(summarise(pieces))
    assert found["queue_f1_n5"] == pytest.approx(0.2)
    assert found["random_f1_n20"] == pytest.approx(0.6)
    assert (found["correction_to_change_s"], found["encodes"]) == (2.0, 0)
    assert found["estimate_error"] == pytest.approx(0.08)
    assert found["estimate_in_interval"] == pytest.approx(2 / 3)


def test_the_picture_has_a_line_for_each_draw_and_a_thick_one_for_the_median() -> None:
    from learning_curve import draw_curves

    curves = make_curves()
    root = ET.fromstring(draw_curves(curves))  # noqa: S314  # written here
    paths = [one for one in root.iter() if one.tag.endswith("path") and "fill" in one.attrib]
    assert len(paths) == len(curves) + 4
    assert sum(one.attrib.get("stroke-width") == "3" for one in paths) == 4
