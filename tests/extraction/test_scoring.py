"""Scoring: candidates hold the truth, samples teach, more of them do no harm, odd input none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pages import features_of

from featpipe.extraction.scoring.field_fitting import Sample, fit_field, sample_of
from featpipe.extraction.scoring.learned_boundaries import learn_boundaries
from featpipe.extraction.scoring.logistic import fit_logistic, sigmoid
from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel

PLACES = ("海南", "包头", "株洲", "洛阳", "大连", "三亚", "绵阳", "柳州", "宜昌", "宝鸡")
WORDS = ("毓坤", "华信", "恒峰", "景信", "翎宇", "嘉昱", "朗淼", "铭科", "宏图", "泰达", "浩宁")
TRADES = ("商业管理", "电缆", "化工", "市政工程", "物流", "创业投资", "仪器仪表", "能源发展")
FORMS = (
    "{a}（以下简称“公司”）近日与{b}签订了《采购合同》，合同总金额为人民币{m}万元。",
    "公司收到{b}发来的中标通知书，确定{a}为中标人，中标金额{m}万元。",
    "甲方：{b}\n乙方：{a}\n合同金额：{m}万元\n",
)


def company(chance: random.Random) -> str:
    return chance.choice(PLACES) + chance.choice(WORDS) + chance.choice(TRADES) + "有限公司"


def announcement(seed: int) -> tuple[str, dict[str, str]]:
    """A document with a buyer, a seller, an amount that counts and one that does not."""
    chance = random.Random(seed)  # noqa: S311  # texts, no secret
    a, b, other = company(chance), company(chance), company(chance)
    amount = f"{chance.randint(1, 90)},{chance.randint(100, 999)}.{chance.randint(10, 99)}"
    body = chance.choice(FORMS).format(a=a, b=b, m=amount)
    text = (
        f"{a}\n关于签订重大合同的公告\n{body}\n{b}的注册资本为{chance.randint(1, 9)},000万元，"
        f"与{other}不存在关联关系。\n特此公告。\n{a}董事会\n2019年{chance.randint(1, 12)}月8日"
    )
    return text, {"乙方": a, "甲方": b, "金额": f"{amount}万元"}


KINDS = {"甲方": "organisation", "乙方": "organisation", "金额": "money"}


def samples_of(name: str, numbers: range) -> list[Sample]:
    made = [announcement(n) for n in numbers]
    return [sample_of(features_of(text), [values[name]], KINDS[name]) for text, values in made]


def share_right(model: FieldModel, name: str, numbers: range) -> float:
    right = 0
    for number in numbers:
        text, values = announcement(number)
        scored = model.score(features_of(text))
        chosen = [scored.groups[n].value for n in model.choose(scored)]
        right += [v.means(read_value(values[name], KINDS[name])) for v in chosen] == [True]
    return right / len(numbers)


@pytest.mark.parametrize("name", KINDS)
def test_a_few_samples_teach_a_field_and_more_teach_it_better(name: str) -> None:
    test = range(1000, 1030)
    few = share_right(fit_field(samples_of(name, range(6)), KINDS[name], (name,)), name, test)
    many = share_right(fit_field(samples_of(name, range(24)), KINDS[name], (name,)), name, test)
    assert many >= max(few - 0.05, 0.8)
    assert few >= 0.5


@pytest.mark.parametrize("name", KINDS)
def test_nearly_every_value_is_a_candidate(name: str) -> None:
    samples = samples_of(name, range(5))
    known = {fold(value) for sample in samples for value in sample.values}
    boundaries = learn_boundaries(KINDS[name], [(s.features, s.spans) for s in samples], known)
    n_found = 0
    for sample in samples_of(name, range(500, 540)):
        found, tokens = boundaries.propose(sample.features), sample.features.tokens
        spans = set(
            zip(
                tokens.start[found.first].tolist(), tokens.end[found.last - 1].tolist(), strict=True
            )
        )
        n_found += bool(spans & set(sample.spans))
        assert (found.first < found.last).all()
        assert len(np.unique(np.stack([found.first, found.last]), axis=1).T) == len(found)
    assert n_found >= 38


def test_the_same_samples_give_the_same_model() -> None:
    first, second = (fit_field(samples_of("甲方", range(4)), "organisation") for _ in range(2))
    assert np.array_equal(first.mentions.hashed, second.mentions.hashed)
    assert first.values.evidence == second.values.evidence
    assert np.array_equal(first.rejected.codes, second.rejected.codes)
    assert np.array_equal(first.values.model.weights, second.values.model.weights)


def test_probabilities_say_how_often_they_are_right() -> None:
    model = fit_field(samples_of("甲方", range(20)), "organisation", ("甲方",))
    said, right = [], []
    for number in range(2000, 2060):
        text, values = announcement(number)
        scored = model.score(features_of(text))
        said.append(float(scored.probabilities[0]))
        right.append(scored.groups[0].value.means(read_value(values["甲方"], "organisation")))
    assert abs(np.mean(said) - np.mean(right)) < 0.2


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "。", "甲", "\ud800", "a" * 5000, "（" * 300, "\t" * 50]
)
@pytest.mark.parametrize("kind", ["text", "organisation", "money", "clause", "id"])
def test_any_text_is_scored_without_an_error(text: str, kind: str) -> None:
    for samples in (
        [],
        samples_of("甲方", range(2)),
        [sample_of(features_of(text), ["甲"], kind)],
    ):
        scored = fit_field(samples, kind, ("甲方",)).score(features_of(text))
        assert len(scored.groups) == len(scored.probabilities)
        for group in scored.groups:
            assert all(0 <= a < b <= len(text) for a, b in group.spans)


def test_without_samples_the_name_of_a_field_finds_it() -> None:
    model = fit_field([], "money", ("合同金额",))
    features = features_of("注册资本：5,000万元\n合同金额：1,234.50万元\n保证金：20万元\n")
    scored = model.score(features)
    start, end = scored.groups[0].spans[0]
    assert features.page.text[start:end] == "1,234.50万元"


def test_a_pattern_and_a_level_say_what_is_a_candidate() -> None:
    features = features_of("编号 ZX-12 和 ZX-345。第二句说别的。")
    pattern = fit_field([], "pattern", pattern=r"ZX-\d+")
    assert {g.value.key for g in pattern.score(features).groups} == {"zx-12", "zx-345"}
    sentences = fit_field([], "clause", level="sentence").score(features)
    assert {features.page.text[slice(*g.spans[0])] for g in sentences.groups} == {
        "编号 ZX-12 和 ZX-345。", "第二句说别的。"
    }  # fmt: skip


def test_without_rows_the_prior_is_the_model() -> None:
    prior = np.array([1.0, -2.0])
    model = fit_logistic(
        np.empty((0, 2)), np.empty(0, bool), np.empty(0), strength=1.0, prior=prior
    )
    assert np.allclose(model.weights, prior, atol=1e-4)


def test_a_fit_agrees_with_the_slope_of_its_own_formula() -> None:
    chance = np.random.default_rng(3)
    rows = chance.normal(size=(400, 3))
    truth = chance.random(400) < sigmoid(rows @ np.array([2.0, -1.0, 0.0]) + 0.5)
    model = fit_logistic(rows, truth, np.ones(400), strength=1e-6, n_steps=500)
    residual = truth - sigmoid(model.logits(rows))
    assert np.abs(rows.T @ residual).max() < 0.5
    assert np.allclose(model.weights, [2.0, -1.0, 0.0], atol=0.5)


def test_a_field_without_a_sample_value_is_found_by_its_name_alone() -> None:
    model = fit_field([], "person", ("保证人",))
    found = {}
    for text in ("借款合同\n保证人：司徒娟\n经办人：彭晓桐\n", "采购合同\n经办人：彭晓桐\n"):
        scored = model.score(features_of(text))
        found[text] = [scored.groups[n].value.key for n in model.choose(scored)]
    assert list(found.values()) == [["司徒娟"], []]
