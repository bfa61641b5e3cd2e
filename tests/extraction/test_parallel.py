"""Parallel places: lists and like places show which values stand beside the likeliest one."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pages import features_of
from test_scoring import PLACES

from featpipe.extraction.parties import choose_distinct
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import Sample, fit_field, sample_of
from featpipe.extraction.scoring.logistic import log_odds, sigmoid
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.scoring.parallel import (
    BIAS,
    LEAST_USUAL,
    PARALLEL,
    WEIGHTS,
    ExpectedNumber,
    RankedValues,
    choose_further,
    further_probabilities,
    further_terms,
    parallel_places,
    terms_of,
)
from featpipe.extraction.scoring.pretrained import PretrainedField
from featpipe.extraction.tables.table_headers import table_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.field_model import FieldModel

    Floats = NDArray[np.float64]

BANKS = (
    "华宁银行",
    "东岭银行",
    "长荣银行",
    "北辰银行",
    "海通银行",
    "恒川银行",
    "金桥银行",
    "云山银行",
)
CITIES = ("苏州", "大连", "洛阳", "宜昌", "三亚", "绵阳", "柳州", "宝鸡")
NONE = np.empty(0, np.int32)
HOLDERS = ("瑞丰投资", "明德实业", "宏远控股", "嘉禾资本", "天成集团", "永泰科技")


def likeness(text: str, *values: str) -> list[dict[str, float]]:
    """Of the places of values to that of the first one, which is among them."""
    features = features_of(text)
    spans = [(text.index(value), text.index(value) + len(value)) for value in values]
    rows = parallel_places(features.lists, features.tokens.spans(spans), [1] * len(spans))
    assert np.array_equal(rows, rows.transpose(1, 0, 2))
    return [dict(zip(PARALLEL, row, strict=True)) for row in rows[:, 0].tolist()]


@pytest.mark.parametrize(
    "text",
    [
        "招标人：甲建公司、乙建公司。",
        "分别与甲建公司（以下简称“甲建”）、乙建公司签约",
        "分别与甲建公司（注册地：北京，法人：王强。）和乙建公司签约",
        "由甲建公司、丙建公司及乙建公司承担",
        "signed by 甲建公司 and 乙建公司 today",
        "招标人：甲建公司/乙建公司",
    ],
)
def test_a_list_joins_its_values(text: str) -> None:
    first, other = likeness(text, "甲建公司", "乙建公司")
    assert other["listed"] == 1.0
    assert not any(first.values())  # a span is never beside itself


@pytest.mark.parametrize(
    "text",
    [
        "招标人：甲建公司。乙建公司中标。",
        "甲建公司与他人签约，他人与乙建公司签约",
        "甲建公司承包乙建公司的工程",
        "甲建公司、" + "某某" * 50 + "、乙建公司",
        "乙建公司",
    ],
)
def test_a_stop_other_words_or_a_great_distance_end_a_list(text: str) -> None:
    values = ("甲建公司", "乙建公司") if "甲" in text else ("乙建公司", "乙建")
    assert likeness(text, *values)[1]["listed"] == 0.0


def test_equal_words_before_two_values_are_counted_from_the_values_on() -> None:
    text = "1、项目名称：东湖大桥，已中标\n2、项目名称：西山隧道工程，已中标\n业主为北江"
    _, same, other = likeness(text, "东湖大桥", "西山隧道工程", "北江")
    assert same["left like"] == pytest.approx(1.0)
    assert same["right like"] == pytest.approx(5 / 6)  # 2 is not 业
    assert other["left like"] == other["right like"] == 0.0
    assert same["length unlike"] == pytest.approx(np.log(1.5))


def places(*pairs: tuple[int, int, str], n: int) -> Floats:
    """Of n values, like in nothing but what is named of some pairs."""
    columns = np.zeros((n, n, len(PARALLEL)))
    for one, other, name in pairs:
        columns[[one, other], [other, one], PARALLEL.index(name)] = 1.0
    return columns


def ranked(p: Sequence[float], columns: Floats, **others: object) -> RankedValues:
    """Values as far behind the best as they are less likely, and nothing else but what is named."""
    behind = (log_odds(np.array(p)) - log_odds(np.array(p[:1]))) / 4
    values = RankedValues(np.array(p), np.array(p), columns, behind, np.zeros(len(p)), few=0.2)
    return replace(values, **others)


def likely(
    chosen: Sequence[int], values: RankedValues, expected: ExpectedNumber | None = None
) -> Floats:
    """How likely each value after the first is, none of them by itself."""
    return further_probabilities(
        further_terms(chosen, values, np.zeros(len(values.probabilities)), expected)
    )


def test_a_list_or_a_like_place_adds_to_the_log_odds() -> None:
    joined = places((0, 2, "listed"), (0, 3, "left like"), n=4)
    values = ranked([0.9, 0.1, 0.1, 0.1], joined)
    alone, listed, like = sigmoid(terms_of(values, joined[:, 0]) @ WEIGHTS + BIAS)[1:].tolist()
    assert alone < 0.1
    assert alone < min(like, listed)


def test_the_fewer_samples_the_more_it_tells_that_others_rejected_a_value() -> None:
    listed = places((0, 1, "listed"), n=2)
    given = [
        likely([0, 1], ranked([0.9, 0.6], listed, few=few, rejected=np.array([0.0, rejected])))[0]
        for few in (0.2, 0.5)
        for rejected in (0.0, 1.0)
    ]
    assert given[1] < given[0]
    assert given[3] < given[2]
    assert given[3] / given[2] < given[1] / given[0]


def test_a_list_is_followed_from_value_to_value() -> None:
    p = [0.8, 0.4, 0.4, 0.4]
    joined = ranked(p, places((0, 1, "listed"), (1, 2, "listed"), n=4))
    apart = ~np.eye(4, dtype=bool)
    assert choose_further(0, joined, apart, needs_list=True) == [1, 2]
    overlapping = apart.copy()
    overlapping[2, 1] = overlapping[1, 2] = False
    assert choose_further(0, joined, overlapping, needs_list=True) == [1]
    assert choose_further(0, ranked(p, places(n=4)), apart, needs_list=True) == []
    # Sure ones need no list where documents have several.
    sure = ranked([0.9, 0.8, 0.02, 0.02], places(n=4))
    assert choose_further(0, sure, apart) == [1]


def test_a_value_is_as_likely_as_it_is_beside_all_others_that_are_given() -> None:
    joined = ranked([0.8, 0.4, 0.4, 0.4], places((0, 1, "listed"), (1, 2, "listed"), n=4))
    second, third = likely([0, 1, 2], joined).tolist()
    assert second == third > likely([0, 3], joined)[0]
    assert likely([0, 2], joined) == likely([0, 3], joined)


def test_the_surer_a_value_is_by_itself_the_likelier_it_is_right_beside_others() -> None:
    values = ranked([0.9, 0.4, 0.4], places((0, 1, "listed"), (0, 2, "listed"), n=3))
    values = replace(values, confidences=np.array([0.9, 0.8, 0.3]))
    surer, other = likely([0, 1, 2], values).tolist()
    assert surer > other
    # A place like the others' adds to it.
    assert other > likely([0, 2], replace(values, places=places(n=3)))[0]


def test_other_fields_tell_how_many_values_there_should_be() -> None:
    p, apart = [0.9, 0.4, 0.4, 0.4], ~np.eye(4, dtype=bool)
    values = ranked(p, places(*((0, n, "left like") for n in (1, 2, 3)), n=4))
    three, one = (ExpectedNumber(np.array([n] * 4), np.full(4, 0.9)) for n in (3, 1))
    assert choose_further(0, values, apart) == [1, 2, 3]
    assert choose_further(0, values, apart, expected=three) == [1, 2]
    assert choose_further(0, values, apart, expected=one) == []
    doubtful = ranked([0.9, 0.2, 0.2, 0.2], values.places)
    assert choose_further(0, doubtful, apart) == []
    assert choose_further(0, doubtful, apart, expected=three) == [1, 2]
    # The surer they are, and the more of them, the more they tell; half of them tell nothing.
    assert [three.log_odds(n) > 0 for n in (2, 3, 4)] == [True, True, False]
    assert 0 < ExpectedNumber(np.array([3]), np.array([0.3])).log_odds(2) < three.log_odds(2) < 1.5
    assert ExpectedNumber(np.array([1, 3]), np.full(2, 0.7)).log_odds(2) == 0
    # A value too many is less likely; none is likelier than by itself.
    alone = likely([0, 1, 2], values)
    assert (likely([0, 1, 2], values, three) == alone).all()
    assert (likely([0, 1, 2], values, one) < alone).all()


def test_where_most_documents_have_several_a_likely_value_needs_no_like_place() -> None:
    p, apart = np.array([0.9, 0.55, 0.45]), ~np.eye(3, dtype=bool)
    assert choose_further(0, ranked(p, places(n=3)), apart) == []
    assert choose_further(0, ranked(p, places(n=3)), apart, is_usual=p >= LEAST_USUAL) == [1]
    assert bank_model(3).is_mostly_many  # 7 of 12 samples
    assert not bank_model(1).is_mostly_many


def pledge(seed: int, most: int) -> tuple[str, list[str]]:
    """A notice of pledges to one bank or to several, and the banks; a consultant is none."""
    chance = random.Random(seed)  # noqa: S311  # texts, no secret
    n = chance.randint(1, most)
    cities, names = chance.sample(CITIES, n + 1), chance.sample(BANKS, n + 1)
    banks = [city + name for city, name in zip(cities, names, strict=True)]
    *lenders, other = banks
    holder = chance.choice(HOLDERS)
    if seed % 2:
        body = "".join(
            f"{number}、{holder}将{chance.randint(100, 900)}万股质押给{bank}，期限一年。\n"
            for number, bank in enumerate(lenders, 1)
        )
    else:
        body = f"{holder}将{chance.randint(100, 900)}万股质押给{'、'.join(lenders)}，期限一年。\n"
    return f"关于股份质押的公告\n{body}本次质押由{other}提供咨询服务。\n特此公告。", lenders


@cache
def bank_model(
    most: int, *, is_many: bool | None = None, pretrained: PretrainedField | None = None
) -> FieldModel:
    samples: list[Sample] = []
    for seed in range(12):
        text, banks = pledge(seed, most)
        samples.append(sample_of(features_of(text), banks, "organisation"))
    return fit_field(samples, "organisation", ("质权人",), is_many=is_many, pretrained=pretrained)


def found_in(model: FieldModel, text: str) -> list[str]:
    scored = model.score(features_of(text))
    return [text[slice(*scored.groups[number].spans[0])] for number in model.choose(scored)]


def test_all_banks_of_a_notice_are_found_where_samples_have_several() -> None:
    model = bank_model(3)
    n_gold = n_given = n_right = 0
    for seed in range(100, 140):
        text, banks = pledge(seed, 4)
        found = found_in(model, text)
        n_gold, n_given = n_gold + len(banks), n_given + len(found)
        n_right += len({*found} & {*banks})
    assert n_right / n_gold > 0.9
    assert n_right / n_given > 0.9


def test_a_long_list_is_found_to_its_end() -> None:
    """More values than mentions that are looked at in a document without likely ones."""
    banks = [
        f"{a}{b}银行"
        for a in PLACES
        for b in ("城商", "农信", "村镇", "华融", "恒信", "泰安", "永丰")
    ]
    assert len(banks) > 60
    lines = "".join(
        f"{n}、赵明将{100 + n}万股质押给{bank}，期限一年。\n" for n, bank in enumerate(banks, 1)
    )
    found = found_in(bank_model(3), f"关于股份质押的公告\n{lines}特此公告。")
    assert len({*found} & {*banks}) > 0.95 * len(banks)


def test_where_no_sample_has_several_one_value_stays_one() -> None:
    model = bank_model(1)
    texts = [pledge(seed, 1) for seed in range(100, 130)]
    assert sum(len(found_in(model, text)) <= 1 for text, _ in texts) >= 29


def test_where_many_documents_showed_several_samples_need_not() -> None:
    """The pretrained field adds nothing to the scores: only how often there are several."""
    often, never = (
        PretrainedField(
            "质权人",
            "organisation",
            NONE,
            NONE.astype(np.float16),
            np.zeros(len(MEASURED)),
            0.0,
            several=several,
        )
        for several in (0.1, 0.0)
    )
    by_often, by_never = (bank_model(1, pretrained=field) for field in (often, never))
    assert by_often.gives_several
    assert not by_often.is_many
    assert not by_never.gives_several
    assert not bank_model(1, is_many=False, pretrained=often).may_be_many
    texts = [pledge(seed, 4) for seed in range(101, 141, 2)]  # one line for each bank
    n_often, n_never = (
        sum(len({*found_in(model, text)} & {*banks}) for text, banks in texts)
        for model in (by_often, by_never)
    )
    assert n_never == len(texts)
    assert n_often > 1.5 * n_never


def test_values_are_likeliest_first_and_one_alone_is_as_likely_as_its_confidence() -> None:
    model = bank_model(3)
    n_several = 0
    for seed in range(100, 120):
        scored = model.score(features_of(pledge(seed, 4)[0]))
        chosen = model.choose(scored)
        p = model.probabilities(scored, chosen)
        assert sorted(p) == sorted(chosen)
        assert [*p.values()] == sorted(p.values(), reverse=True)
        assert all(0 < one < 1 for one in p.values())
        assert model.probabilities(scored, chosen[:1]) == {
            chosen[0]: pytest.approx(scored.confidences[chosen[0]])
        }
        if len(chosen) > 1:
            n_several += 1
            assert p[chosen[0]] > scored.confidences[chosen[0]]
    assert n_several > 10
    assert model.probabilities(scored, []) == {}


def test_a_field_of_one_value_never_has_several() -> None:
    model = bank_model(3, is_many=False)
    texts = [pledge(seed, 4)[0] for seed in range(100, 130)]
    assert all(len(found_in(model, text)) <= 1 for text in texts)


def test_the_likeliest_value_of_a_rival_is_no_further_value() -> None:
    model = bank_model(3)
    text, banks = next(made for seed in range(100, 200) if len((made := pledge(seed, 4))[1]) > 2)
    scored = model.score(features_of(text))
    whole = model.choose(scored)
    assert len(whole) == len(banks)
    # A rival of which the second value of the field is the only one.
    second = whole[1]
    own = replace(
        scored,
        groups=(scored.groups[second],),
        probabilities=np.array([0.9]),
        measured=scored.measured[:1],
        parallel=scored.parallel[:1, :1],
    )
    found = {"质权人": (model, scored), "出质人": (model, own)}
    chosen = choose_distinct(found, {"质权人": {"出质人": 4.0}, "出质人": {"质权人": 4.0}})
    assert chosen["质权人"].numbers == [n for n in whole if n != second]
    assert chosen["出质人"].numbers == [0]


def votes_of(rows: Sequence[tuple[int, int]]) -> PageFeatures:
    """A resolution with a table of votes: shares for each motion, and against it."""
    lines = [("议案", "同意股数", "反对股数", "弃权股数")]
    lines += [
        (f"议案{number}", f"{ayes:,}", f"{noes:,}", f"{noes // 3:,}")
        for number, (ayes, noes) in enumerate(rows, 1)
    ]
    head = "股东大会决议公告\n表决结果如下：\n"
    text, cells = head, []
    for row, line in enumerate(lines):
        for column, cell in enumerate(line):
            cells.append((row, column, len(text), len(text) + len(cell), 1, 1))
            text += cell + ("\n" if column == 3 else "\t")
    headers = table_headers(text, [(len(head), len(text), cells)])
    return PageFeatures(replace(page_of_text(text), headers=headers))


def test_further_values_of_a_column_stand_in_no_other() -> None:
    chance = random.Random(1)  # noqa: S311  # made-up shares, no secret

    def shares(n: int) -> list[tuple[int, int]]:
        return [(chance.randint(10**8, 4 * 10**8), chance.randint(10**6, 10**7)) for _ in range(n)]

    known = [shares(n) for n in (3, 2, 4, 1)]
    samples = [
        sample_of(votes_of(rows), [str(ayes) for ayes, _ in rows], "number") for rows in known
    ]
    model = fit_field(samples, "number", ("同意股数",))
    for n in (1, 2, 4):
        rows = shares(n)
        scored = model.score(votes_of(rows))
        # Whatever else is likely by itself.
        likely = replace(scored, probabilities=np.maximum(scored.probabilities, 0.6))
        for own in (scored, likely):
            given = {int(own.groups[n].value.key) for n in model.choose(own)}
            assert given == {ayes for ayes, _ in rows}


def headed(text: str) -> PageFeatures:
    return PageFeatures(replace(page_of_text(text), headers=table_headers(text, ())))


def test_cells_below_one_header_are_near_to_a_list() -> None:
    text = "Line\tItem\tQty\n1\toak door\t4\n2\tbrass closer\t6\n3\tstrip set\t9\n"
    features, listed = headed(text), PARALLEL.index("listed")
    spans = [
        (text.index(own), text.index(own) + len(own))
        for own in ("oak door", "brass closer", "closer", "6")
    ]
    rows = parallel_places(features.lists, features.tokens.spans(spans), [1] * 4)
    # Nothing is beside itself; a part of a cell, or another column's, is in no list with a cell.
    assert rows[0, :, listed].tolist() == [0.0, 0.5, 0.0, 0.0]


def test_what_a_trusted_label_makes_likely_needs_no_like_place() -> None:
    names = [("景双林", "者延梅", "海正峰"), ("强卫东", "仲雅琴"), ("骆其昌", "阮静怡", "巫国安")]
    pages = [features_of(f"公告\n评审专家：{'、'.join(own)}\n日期：3日\n") for own in names]
    samples = [sample_of(page, own, "text") for page, own in zip(pages, names, strict=True)]
    model = fit_field(samples, "text", ("评审专家",))
    assert model.trusts_names
    assert model.is_mostly_many
    page = features_of("公告\n评审专家：俞振邦\n评审专家：程雪娥\n日期：5日\n")
    scored = model.score(page)
    found = [page.page.text[slice(*group.spans[0])] for group in scored.groups]
    assert set(found[:2]) == {"俞振邦", "程雪娥"}
    apart = replace(
        scored,
        parallel=np.zeros_like(scored.parallel),
        probabilities=np.where(np.arange(len(found)) == 0, 0.9, 0.1),
        confidences=np.full(len(found), 0.7),
    )
    assert model.choose(apart) == [0, 1]
    unlabelled = scored.measured.copy()
    unlabelled[:, MEASURED.index("from label")] = 0.0
    assert model.choose(replace(apart, measured=unlabelled)) == [0]
