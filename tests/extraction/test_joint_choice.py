"""Joint choice: a place of dates or amounts is a value of one field."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.joint_choice import Relations, choose_values
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from featpipe.extraction.parties import Candidates
    from featpipe.extraction.scoring.field_model import FieldModel

START, END, PRICE, LIMIT = "起始日期", "解冻日期", "价格", "限价"


def template(rows: Sequence[dict[str, Sequence[str]]], **types: str) -> Template:
    names = sorted({name for row in rows for name in row})
    return Template(
        name="冻结",
        fields=tuple(FieldSpec(name=name, type=types.get(name)) for name in names),  # type: ignore[arg-type]  # a type by name
        samples=tuple(
            SampleSpec(text=str(row), fields={n: tuple(v) for n, v in row.items()}, complete=True)
            for row in rows
        ),
    )


def test_fields_of_like_types_are_apart_where_most_samples_show_different_values() -> None:
    dates = {START: ["2021-03-04"], END: ["2023-03-04"]}
    amounts = {PRICE: ["30万元"], LIMIT: ["300000"]}
    relations = Relations.of(template([dates | amounts] * 2))
    # Three and one of each sample to one of none.
    assert relations.apart == {START: {END: 5.0}, END: {START: 5.0}, PRICE: {}, LIMIT: {}}
    assert relations.companions() == {START: (END,), END: (START,), PRICE: (), LIMIT: ()}
    # As many samples have one value for both as have two.
    other = {PRICE: ["30万元"], LIMIT: ["40万元"]}
    assert Relations.of(template([amounts, other])).apart == {PRICE: {}, LIMIT: {}}
    assert Relations.of(template([amounts, other, other])).apart[PRICE] == {LIMIT: 2.5}
    # A period of a field stands where the date of another may.
    typed = template([dates], **{START: "date", END: "period"})
    assert Relations.of(typed).apart[END] == {START: 4.0}
    assert not Relations.of(template([{START: ["2021-03-04"]}, {END: ["2023-03-04"]}])).apart[END]
    assert not Relations.of(template([dates], **{START: "text"})).apart[START]
    # So are numbers of documents; a name may be part of another.
    codes = {"合同编号": ["HT-2024-001"], "订单号": ["PO-2024-77"]}
    names = {"项目名称": ["五号泵站"], "合同名称": ["供水合同"]}
    apart = Relations.of(template([codes | names] * 2)).apart
    assert apart["合同编号"] == {"订单号": 5.0}
    assert not apart["项目名称"]


def test_fields_have_as_many_values_where_most_samples_with_several_show_it() -> None:
    starts, ends = ([f"{year}-{month:02}-04" for month in range(1, 6)] for year in (2021, 2023))
    two, three, five = ({START: starts[:n], END: ends[:n]} for n in (2, 3, 5))
    both, uneven = five, five | {END: ends[:1]}
    single = {START: ["2021-03-04"], END: ["2023-03-04"]}
    assert Relations.of(template([single, single])).as_many == {START: (), END: ()}
    assert Relations.of(template([both, single])).as_many == {START: (END,), END: (START,)}
    # A few short lists tell nothing: here they have three further values, and here four.
    assert Relations.of(template([two, three])).as_many == {START: (), END: ()}
    assert Relations.of(template([two, two, three])).as_many[END] == (START,)
    assert Relations.of(template([both, both, uneven])).as_many[START] == (END,)
    assert Relations.of(template([both, both, uneven, uneven])).as_many[START] == ()
    assert Relations.of(template([both, both, {START: both[START]}])).as_many[START] == (END,)
    found = Relations.of(template([both, both], **{START: "text"}))
    assert (found.apart[START], found.companions()[START]) == ({}, (END,))


def test_what_a_fields_values_may_depend_on_is_followed_from_field_to_field() -> None:
    relations = Relations(
        {"a": {"b": 4.0}, "b": {"a": 4.0}, "c": {}, "d": {}},
        {"a": {}, "b": {"c": 4.0}, "c": {"b": 4.0}, "d": {}},
        dict.fromkeys("abcd", ()),
    )
    assert relations.companions() == {
        "a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b"), "d": (),
    }  # fmt: skip


#: So many older and younger dates that none of the others is among the first or the last.
OTHERS = "".join(
    f"历次公告：{year}年3月5日。\n" for year in (*range(2001, 2006), *range(2041, 2046))
)


def freezes(seed: int, n: int, others: str = "") -> tuple[str, dict[str, list[str]]]:
    """A document of n freezes, each with its first and its last day behind the same words."""
    chance = random.Random(seed)  # noqa: S311  # made-up dates, no secret
    days = [f"{chance.randint(1, 12)}月{chance.randint(1, 28)}日" for _ in range(n)]
    starts = [f"{2010 + chance.randint(0, 9)}年{day}" for day in days]
    ends = [f"{2020 + chance.randint(0, 9)}年{day}" for day in days]
    rows = "".join(
        f"冻结时间：{start}\n冻结时间：{end}\n" for start, end in zip(starts, ends, strict=True)
    )
    text = f"关于股份被冻结的公告\n{rows}公司将持续关注。\n{others}2040年1月2日"
    return text, {START: starts, END: ends}


MADE = [freezes(seed, 1 + seed % 3) for seed in range(6)]
SAMPLES = tuple(
    SampleSpec(text=text, fields={n: tuple(v) for n, v in values.items()}, complete=True)
    for text, values in MADE
)


@cache
def model(name: str, others: str = "") -> FieldModel:
    """Of one field, fitted on the samples."""
    made = [freezes(seed, 1 + seed % 3, others) for seed in range(6)]
    samples = [sample_of(features_of(text), values[name], "date") for text, values in made]
    return fit_field(samples, "date", (name,))


def scored(text: str, others: str = "") -> Candidates:
    """Both fields with their values in a text."""
    models = {name: model(name, others) for name in (START, END)}
    return {name: (one, one.score(features_of(text))) for name, one in models.items()}


def values_of(found: Candidates, relations: Relations) -> dict[str, list[str]]:
    chosen = choose_values(found, relations)
    return {
        name: sorted(scored.groups[n].value.key for n in chosen[name].numbers)
        for name, (_, scored) in found.items()
    }


def test_days_in_like_places_go_to_the_field_that_they_are_likelier_for() -> None:
    fields = (FieldSpec(name=START), FieldSpec(name=END))
    relations = Relations.of(Template(name="冻结", fields=fields, samples=SAMPLES))
    assert relations.apart == {START: {END: 9.0}, END: {START: 9.0}}
    unrelated = Relations(relations.rivals, {START: {}, END: {}}, {START: (), END: ()})
    counts = Counter()
    for seed in range(100, 120):
        text, wanted = freezes(seed, 4, OTHERS)
        found = scored(text, OTHERS)
        alone, given = values_of(found, unrelated), values_of(found, relations)
        assert not set(given[START]) & set(given[END])
        counts["shared"] += len(set(alone[START]) & set(alone[END]))
        for name, texts in wanted.items():
            keys = {_iso(text) for text in texts}
            counts["wrong alone"] += len(set(alone[name]) - keys)
            counts["wrong"] += len(set(given[name]) - keys)
            counts["right"] += len(keys & set(given[name]))
    assert counts["shared"] > 100, counts
    assert counts["wrong"] < 0.25 * counts["wrong alone"], counts
    assert counts["right"] > 0.8 * 2 * 4 * 20, counts


def _iso(text: str) -> str:
    year, _, rest = text.partition("年")
    month, _, day = rest.rstrip("日").partition("月")
    return f"{year}-{int(month):02}-{int(day):02}"


def test_of_fields_with_the_very_same_values_one_begins_with_the_next() -> None:
    one = scored(freezes(100, 4)[0])[START]
    both: Candidates = {START: one, END: one}
    apart = {START: {END: 4.0}, END: {START: 4.0}}
    chosen = choose_values(both, Relations({START: {}, END: {}}, apart, {START: (), END: ()}))
    first, *_ = alone = one[0].choose(one[1])
    firsts = {name: own.numbers[0] for name, own in chosen.items()}
    (name,) = (name for name, number in firsts.items() if number != first)
    assert first in firsts.values()
    assert firsts[name] in alone
    assert chosen[name].remarks == {
        firsts[name]: f"second choice: the likelier place is of {({START, END} - {name}).pop()}"
    }
    assert not set(chosen[START].numbers) & set(chosen[END].numbers)


WAGE, TRIAL = "月工资", "试用期工资"
HIRING = (
    "劳动合同\n甲方：北京天成商贸有限公司\n三、劳动报酬\n乙方月工资为{0}元{1}。每月10日前支付。\n"
)


def hiring(wage: int, *trial: int, alike: Sequence[int] = ()) -> SampleSpec:
    """A contract with a wage on probation, or with one wage, which may be that of both."""
    text = HIRING.format(wage, "".join(f"，试用期工资为{own}元" for own in trial))
    values = {WAGE: (f"{wage}元",), TRIAL: tuple(f"{own}元" for own in trial or alike)}
    return SampleSpec(text=text, fields=values, complete=True)


APART = (hiring(8000, 6400), hiring(12000, 9600), hiring(5000, 4000), hiring(7000))
ALIKE = tuple(hiring(wage, alike=(wage,)) for wage in (8000, 12000, 5000, 7000))


def wages(cache: Path, samples: Sequence[SampleSpec], text: str | None) -> dict[str, list[str]]:
    fields = (FieldSpec(name=WAGE), FieldSpec(name=TRIAL))
    spec = Template(name="劳动合同", fields=fields, samples=tuple(samples))
    with Extractor([spec], cache, models={}, checkpoints="none") as extractor:
        found = extractor.extract(text or "").fields
        (own,) = extractor.engine.templates.values()
        features, _ = extractor.engine.page_of(text or "")
        listed = own.candidates(TRIAL, features, 9)[0]
    reported = {value.start: value.probability for value in found[TRIAL].values}
    # What a field lost to another one is no sure candidate of a review.
    assert all(value.probability < 0.3 for value in listed if value.start not in reported)
    return {name: [value.text for value in result.values] for name, result in found.items()}


def test_a_place_that_is_the_likeliest_of_two_fields_is_a_value_of_one(cache: Path) -> None:
    two, one = hiring(9000, 7200).text, hiring(9000).text
    assert wages(cache, APART, two) == {WAGE: ["9000元"], TRIAL: ["7200元"]}
    assert wages(cache, APART, one) == {WAGE: ["9000元"], TRIAL: []}


def test_fields_that_share_their_places_in_samples_may_share_them(cache: Path) -> None:
    assert wages(cache, ALIKE, hiring(9000).text) == {WAGE: ["9000元"], TRIAL: ["9000元"]}


def test_a_number_of_an_invoice_is_not_its_code(cache: Path) -> None:
    text = "电子发票\n{0}发票号码：{1}\n开票日期：2024年3月5日\n"
    rows = [
        ("发票代码：044001900111\n", "18273645"),
        ("", "24117000000123456789"),
        ("发票代码：033002100211\n", "55102938"),
        ("发票代码：011002000911\n", "70913245"),
    ]
    samples = tuple(
        SampleSpec(
            text=text.format(*row),
            fields={"发票代码": tuple(row[0][5:].split()), "发票号码": (row[1],)},
            complete=True,
        )
        for row in rows
    )
    fields = (FieldSpec(name="发票代码"), FieldSpec(name="发票号码"))
    spec = Template(name="发票", fields=fields, samples=samples)
    with Extractor([spec], cache, models={}, checkpoints="none") as extractor:
        result = extractor.extract(text.format("", "25327000001234567890")).fields
    found = {name: [value.text for value in own.values] for name, own in result.items()}
    assert found == {"发票代码": [], "发票号码": ["25327000001234567890"]}


def test_a_field_has_as_many_values_as_one_that_is_sure_of_its_own() -> None:
    """Where the first of two fields doubts its values, those of the other tell how many it has."""
    unlike: dict[str, dict[str, float]] = {START: {}, END: {}}
    as_many = {START: (END,), END: (START,)}
    counts = Counter()
    for seed in range(200, 220):
        text, _ = freezes(seed, 4)
        for name in as_many:
            found = scored(text)
            model, own = found[name]
            doubtful = replace(own, probabilities=own.probabilities * 0.15)
            found = found | {name: (model, doubtful)}
            alone = values_of(
                found, Relations({START: {}, END: {}}, unlike, dict.fromkeys(as_many, ()))
            )[name]
            given = values_of(found, Relations({START: {}, END: {}}, unlike, as_many))[name]
            assert set(alone) <= set(given)
            counts["alone"] += len(alone)
            counts["given"] += len(given)
    assert counts["given"] > 1.2 * counts["alone"], counts


@pytest.mark.parametrize(("n_records", "least", "most"), [(4, 15, 20), (1, 0, 0)])
def test_a_field_in_doubt_has_values_where_another_has_several(
    n_records: int, least: int, most: int
) -> None:
    unlike: dict[str, dict[str, float]] = {START: {}, END: {}}
    n_given = 0
    for seed in range(200, 220):
        text, _ = freezes(seed, n_records)
        found = scored(text)
        model, own = found[END]
        found = found | {END: (model, replace(own, confidences=own.confidences.clip(max=0.2)))}
        alone = Relations(unlike, unlike, {START: (), END: ()})
        assert values_of(found, alone)[END] == []
        given = values_of(found, Relations(unlike, unlike, {START: (END,), END: (START,)}))[END]
        assert len(given) != 1
        n_given += bool(given)
    assert least <= n_given <= most


@pytest.mark.parametrize("order", [(START, END), (END, START)])
def test_a_field_asked_for_alone_has_the_values_it_has_among_all(
    cache: Path, order: tuple[str, str]
) -> None:
    text, _ = freezes(104, 4)
    fields = tuple(FieldSpec(name=name) for name in order)
    spec = Template(name="冻结", fields=fields, samples=SAMPLES)
    with Extractor([spec], cache, models={}, checkpoints="none") as extractor:
        (own,) = extractor.engine.templates.values()
        features, _ = extractor.engine.page_of(text)
        whole = own.extract_fields(order, features)
        assert {name: own.extract_fields([name], features)[name] for name in order} == whole
        assert own.facts[START].companions.keys() == {END}
        listed = [own.candidates(name, features, 40)[0] for name in order]
    for name, candidates in zip(order, listed, strict=True):
        # As likely as they are reported.
        assert [value for value in candidates if value in whole[name].values] == [
            *whole[name].values
        ]
        assert len({value.start for value in candidates}) == len(candidates)
    for result in whole.values():
        p = [value.probability for value in result.values]
        assert p == sorted(p, reverse=True)
