"""Confidence: what people are shown as a probability, and the samples' evidence behind it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe.extraction.scoring.calibration import Evidence
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.confidence import COLUMNS, columns_of, confidences_of
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.values.values import FieldType

NAMES = ("北岸电缆", "南岸管道", "东山水泥", "西湖环保", "中原机械", "长江船舶")


def page_of(name: str, amount: int) -> PageFeatures:
    bail = amount // 10
    text = f"中标公告\n中标单位：{name}有限公司。\n中标金额：{amount}万元，保证金{bail}万元。"
    return PageFeatures(page_of_text(text))


def fitted(kind: FieldType = "money") -> FieldModel:
    samples = [
        sample_of(page_of(name, 300 + 70 * n), [f"{300 + 70 * n}万元"], kind)
        for n, name in enumerate(NAMES)
    ]
    return fit_field(samples, kind, ("中标金额",))


def test_confidence_never_grows_along_the_values_and_nothing_is_certain() -> None:
    shown = fitted().score(page_of("海峡港务", 870)).confidences
    assert len(shown) > 1
    assert (np.diff(shown) <= 0).all()
    assert (shown > 0).all()
    assert shown[0] < 1


def test_without_samples_the_fields_own_name_makes_a_value_sure() -> None:
    model = fit_field([], "text", ("中标单位",))
    page = PageFeatures(page_of_text("中标公告\n中标单位：东山水泥有限公司\n地址：1号\n"))
    other = PageFeatures(page_of_text("中标公告\n中标方：东山水泥有限公司\n地址：1号\n"))
    named, related = model.score(page).confidences, model.score(other).confidences
    assert 0.9 < named[0] < 1
    assert related[0] < named[0]
    assert (np.diff(named) <= 0).all()


def test_samples_without_a_value_make_the_same_place_less_sure() -> None:
    page = PageFeatures(page_of_text("中标公告\n中标单位：东山水泥有限公司\n地址：1号\n"))
    lacking = [sample_of(PageFeatures(page_of_text(f"公告{n}")), [], "text") for n in range(5)]
    sure, less = (fit_field(own, "text", ("中标单位",)) for own in ([], lacking))
    assert less.is_untaught
    assert less.score(page).confidences[0] < sure.score(page).confidences[0]


def test_a_document_without_values_has_no_confidence_to_tell() -> None:
    scored = fitted().score(PageFeatures(page_of_text("")))
    assert not len(scored.confidences)
    assert not fitted().choose(scored)


def test_columns_are_those_of_the_value_and_of_its_best_mention() -> None:
    model = fitted()
    scored = model.score(page_of("海峡港务", 870))
    given = scored.rows, scored.measured, scored.probabilities, scored.fills_cell
    columns = columns_of(model, *given)
    found = dict(zip(COLUMNS, columns.T, strict=True))
    assert found["early"] == pytest.approx(scored.measured[:, MEASURED.index("early")])
    assert found["share"] == pytest.approx(scored.rows[:, VALUE_COLUMNS.index("share")])
    assert (found["missing"] == model.values.evidence.missing).all()
    assert (found["percent"] == 0).all()
    assert (found["fills cell"] == scored.fills_cell).all()
    share = scored.probabilities / model.values.ceiling
    assert found["score"] == pytest.approx(np.clip(np.log(share / (1 - share)), -8, 8))


def test_evidence_counts_the_samples() -> None:
    scores = [np.array([0.5, 2.0]), np.array([1.0, 0.0]), np.array([3.0]), np.empty(0)]
    labels = [
        np.array([False, True]),
        np.array([False, True]),
        np.array([False]),
        np.empty(0, bool),
    ]
    found = Evidence.of(scores, labels, [1, 3, 0, 0])
    # Two samples have a value: the best value of one is right; four values in two samples.
    assert found.accuracy == pytest.approx(math.log(2 / 2))
    assert found.missing == pytest.approx(math.log(2.5 / 2.5))
    assert found.several == pytest.approx(math.log(4 / 2))
    assert found.few == pytest.approx(0.5)


def test_what_the_samples_show_moves_confidence_and_not_the_order() -> None:
    model = fitted()
    scored = model.score(page_of("海峡港务", 870))
    evidence = replace(model.values.evidence, missing=1.0)
    rarely = replace(model, values=replace(model.values, evidence=evidence))
    given = scored.rows, scored.measured, scored.probabilities, scored.fills_cell
    often, seldom = (confidences_of(one, *given) for one in (model, rarely))
    assert seldom[0] < often[0]


def test_the_likeliest_value_is_reported_by_its_confidence() -> None:
    model = fitted()
    scored = model.score(page_of("海峡港务", 870))
    unlabelled = replace(scored, measured=np.zeros_like(scored.measured))
    for confidence, chosen in ((0.3, [0]), (0.2, [])):
        given = replace(unlabelled, confidences=np.full(len(scored.groups), confidence))
        assert model.choose(given) == chosen


@pytest.mark.parametrize("n", [2, 3, 6])
def test_without_samples_each_value_of_a_list_is_as_sure_as_one_alone(n: int) -> None:
    def most_of(names: tuple[str, ...]) -> list[float]:
        text = "股份质押公告\n" + "".join(
            f"质权人：{name}银行\n质押股数：9万股\n" for name in names
        )
        model = fit_field([], "organisation", ("质权人",))
        scored = model.score(PageFeatures(page_of_text(text)))
        return list(model.probabilities(scored, model.choose(scored)).values())

    [alone] = most_of(NAMES[:1])
    listed = most_of(NAMES[:n])
    assert len(listed) == n
    assert listed == sorted(listed, reverse=True)
    assert listed == pytest.approx([alone] * n, abs=0.05)
