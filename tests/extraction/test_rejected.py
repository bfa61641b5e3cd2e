"""Rejected values. Oracles: odds by hand, and notices that all cite the same paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.model_file import pack_model, unpack_model
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS
from featpipe.extraction.scoring.rejected import Judgements

SAMPLES = [
    (["中标通知书", "供货合同"], np.array([False, True])),
    (["中标通知书", "施工合同"], np.array([False, True])),
    (["施工合同", "中标通知书", "施工合同"], np.array([False, True, True])),
    ([], np.empty(0, bool)),
]


def test_log_odds_count_samples_and_never_speak_for_a_value() -> None:
    found = Judgements(SAMPLES).rejected().of_values(["中标通知书", "供货合同", "新合同"])
    # Two samples reject the notice and one has it; a value that a sample has is not rejected.
    assert found.tolist() == pytest.approx([math.log(3 / 2) / 2, 0.0, 0.0])
    assert Judgements([]).rejected().of_values(["供货合同"]).tolist() == [0.0]
    # Wrong in one mention and right in another, a value is right in that sample.
    assert Judgements(SAMPLES[2:]).rejected().of_values(["施工合同"]).tolist() == [0.0]


@pytest.mark.parametrize("number", range(4))
def test_a_sample_is_judged_by_the_others(number: int) -> None:
    own, _ = SAMPLES[number]
    others = Judgements(SAMPLES[:number] + SAMPLES[number + 1 :]).rejected()
    found = Judgements(SAMPLES).rejected_by_others(number)
    assert found.of_values(own).tolist() == others.of_values(own).tolist()


def test_what_every_notice_cites_is_no_value_and_stays_so_in_the_kept_model() -> None:
    def notice(number: int, contract: str) -> str:
        signed = f"公司签订了《{contract}》。" if contract else ""
        return f"关于第{number}号工程的公告\n{signed}公司收到《中标通知书》。\n特此公告。"

    contracts = ["钢材供货合同", "", "道路施工合同", "", "水泵采购合同", "", "", "电缆买卖合同"]
    samples = [
        sample_of(features_of(notice(n, one)), [one] if one else [], "text")
        for n, one in enumerate(contracts)
    ]
    model = fit_field(samples, "text", ("合同名称",))
    kept = unpack_model(pack_model(model, "f"), "f")
    for one in (model, kept):
        scored = one.score(features_of(notice(20, "")))
        column = dict(zip([g.value.key for g in scored.groups], scored.rows, strict=True))
        assert column["中标通知书"][VALUE_COLUMNS.index("rejected")] == pytest.approx(
            math.log(9) / 2
        )
        assert not one.choose(scored)
        named = one.score(features_of(notice(20, "桥梁施工合同")))
        assert [named.groups[n].value.key for n in one.choose(named)] == ["桥梁施工合同"]
