"""Parties: 甲方 and 乙方 of one name are remarked, and a likely other value is preferred."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pages import features_of

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.field_facts import explain_changes
from featpipe.extraction.parties import choose_distinct, doubted, rivals_of
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.results import ExtractedValue, table_rows
from featpipe.extraction.scoring.candidates import Candidates
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.field_model import Scored
from featpipe.extraction.scoring.parallel import PARALLEL
from featpipe.extraction.scoring.ranking import Group
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from pathlib import Path

FORM = "采购合同\n甲方：{0}\n乙方：{1}\n签订日期：2024年3月5日\n甲方向乙方采购电缆。\n"
NAMES = (
    ("北京天成商贸有限公司", "上海华信电缆有限公司"),
    ("天津远大贸易有限公司", "武汉长江泵业有限公司"),
    ("长沙岳麓文化有限公司", "株洲南车机电有限公司"),
)


def make(pairs: tuple[tuple[str, str], ...] = NAMES, kind: str | None = None) -> Template:
    samples = [
        SampleSpec(text=FORM.format(a, b), fields={"甲方": (a,), "乙方": (b,)}, complete=True)
        for a, b in pairs
    ]
    fields = [FieldSpec(name=name, type=kind) for name in ("甲方", "乙方")]  # type: ignore[arg-type]  # a type by name
    return Template(name="采购合同", fields=tuple(fields), samples=tuple(samples))


def parties(cache: Path, template: Template, text: str) -> dict[str, ExtractedValue]:
    with Extractor([template], cache, models={}, checkpoints="none") as extractor:
        found = extractor.extract(text).fields
    return {name: result.values[0] for name, result in found.items() if result.values}


@pytest.mark.parametrize("kind", [None, "organisation"])
def test_two_parties_of_one_name_are_remarked_and_less_sure(cache: Path, kind: str | None) -> None:
    name = "成都锦江实业有限公司"
    template = make(kind=kind)
    apart = parties(cache, template, FORM.format(name, "重庆嘉陵机械有限公司"))
    same = parties(cache, template, FORM.format(name, name))
    assert [value.text for value in apart.values()] == [name, "重庆嘉陵机械有限公司"]
    assert [value.remark for value in apart.values()] == ["", ""]
    assert [value.text for value in same.values()] == [name, name]
    assert [value.remark for value in same.values()] == ["the same as 乙方", "the same as 甲方"]
    assert min(v.probability for v in same.values()) < min(v.probability for v in apart.values())


def scored(values: dict[str, float], width: int = 8) -> Scored:
    """A document with these values of a field and their probabilities, one each nine characters."""
    groups = tuple(
        Group(read_value(text, "organisation"), ((9 * n, 9 * n + width),), (0.0,), n)
        for n, text in enumerate(values)
    )
    none, columns = np.empty(0), np.zeros((len(values), len(MEASURED)))
    nothing = Candidates.gathered([])
    hashed = np.zeros((len(values), 1), np.int32)
    p, nowhere = np.array([*values.values()]), np.zeros((len(values), len(values), len(PARALLEL)))
    headed = np.zeros(len(values), bool)
    again = np.empty((0, 0), bool)
    return Scored(
        nothing, none, groups, p, columns, hashed, columns, nowhere, p, *[headed] * 3, again
    )


@pytest.mark.parametrize(
    ("first", "second", "texts", "remarks"),
    [
        # The other value of 乙方 is likely enough: two distinct parties.
        ({"天成": 0.9}, {"天成": 0.8, "华信": 0.3}, ["天成", "华信"],
         ["", "second choice: the likelier 天成 is 甲方"]),
        # That of 甲方 makes the likelier pair.
        ({"天成": 0.6, "远大": 0.5}, {"天成": 0.9, "华信": 0.25}, ["远大", "天成"],
         ["second choice: the likelier 天成 is 乙方", ""]),
        # The others are below the threshold, or far less likely than that both are one.
        ({"天成": 0.9}, {"天成": 0.8, "华信": 0.1}, ["天成", "天成"],
         ["the same as 乙方", "the same as 甲方"]),
        ({"天成": 0.9}, {"华信": 0.8, "天成": 0.7}, ["天成", "华信"], ["", ""]),
    ],
)  # fmt: skip
def test_a_distinct_pair_is_preferred_to_one_party_twice(
    first: dict[str, float], second: dict[str, float], texts: list[str], remarks: list[str]
) -> None:
    features = [features_of(FORM.format(*pair)) for pair in NAMES]
    found = {}
    for at, (name, values) in enumerate((("甲方", first), ("乙方", second))):
        pairs = zip(features, NAMES, strict=True)
        samples = [sample_of(page, [pair[at]], "organisation") for page, pair in pairs]
        model = fit_field(samples, "organisation", (name,))
        found[name] = model, scored(values)
    chosen = choose_distinct(found, {"甲方": {"乙方": 6.0}, "乙方": {"甲方": 6.0}})
    got = [(name, one.numbers[0], one.remarks) for name, one in chosen.items()]
    assert [found[name][1].groups[n].value.key for name, n, _ in got] == texts
    assert [notes.get(n, "") for _, n, notes in got] == remarks
    doubts = [name for name, one in chosen.items() if one.weights]
    assert doubts == (["乙方"] if texts[0] == texts[1] else [])


def test_a_part_of_the_value_that_is_given_up_is_no_second_choice() -> None:
    features = [features_of(FORM.format(*pair)) for pair in NAMES]
    found = {}
    for at, name in enumerate(("甲方", "乙方")):
        pairs = zip(features, NAMES, strict=True)
        samples = [sample_of(page, [pair[at]], "organisation") for page, pair in pairs]
        model = fit_field(samples, "organisation", (name,))
        # Each span goes on into the next one.
        found[name] = model, scored({"天成商贸": 0.9 - at / 10, "天成": 0.5}, width=12)
    chosen = choose_distinct(found, {"甲方": {"乙方": 6.0}, "乙方": {"甲方": 6.0}})
    assert [one.numbers for one in chosen.values()] == [[0], [0]]


def test_a_doubt_is_evidence_against_a_value() -> None:
    assert doubted(0.9, 5.0) == pytest.approx(0.9 / (0.9 + 0.5))
    assert doubted(0.5, 1.0) == 0.5
    assert doubted(1.0, 5.0) == 1.0


def test_samples_teach_that_two_fields_may_be_one_party(cache: Path) -> None:
    name = "成都锦江实业有限公司"
    template = make((*NAMES, ("杭州西溪有限公司", "杭州西溪有限公司")))
    assert rivals_of(template) == {"甲方": {}, "乙方": {}}
    same = parties(cache, template, FORM.format(name, name))
    assert all(value.remark == "" for value in same.values())
    assert rivals_of(make()) == {"甲方": {"乙方": 6.0}, "乙方": {"甲方": 6.0}}


def test_fields_of_other_types_are_no_rivals() -> None:
    assert rivals_of(make(kind="text")) == {"甲方": {}, "乙方": {}}


def test_a_field_asked_for_alone_has_the_values_it_has_among_all(cache: Path) -> None:
    name = "成都锦江实业有限公司"
    with Extractor([make()], cache, models={}, checkpoints="none") as extractor:
        (fitted,) = extractor.engine.templates.values()
        features, _ = extractor.engine.page_of(FORM.format(name, name))
        whole = fitted.extract_fields(["甲方", "乙方"], features)
        alone = [fitted.extract_fields([field], features)[field] for field in ("乙方", "甲方")]
    assert alone == [whole["乙方"], whole["甲方"]]


def test_a_change_of_one_party_is_a_change_of_its_rival(cache: Path) -> None:
    before, after = make(), make(NAMES[:2])
    more = SampleSpec(text=FORM.format(*NAMES[2]), fields={"乙方": (NAMES[2][1],)})
    after = after.model_copy(update={"samples": (*after.samples, more)})
    facts = []
    for template in (before, after):
        with Extractor([template], cache, checkpoints="none") as extractor:
            (fitted,) = extractor.engine.templates.values()
            facts.append(fitted.facts)
    # The model of 乙方 is the same; its values depend on that of 甲方, too.
    assert facts[0]["乙方"].model_fingerprint == facts[1]["乙方"].model_fingerprint
    assert facts[0]["乙方"].fingerprint != facts[1]["乙方"].fingerprint
    old = json.loads(json.dumps({name: one.as_dict() for name, one in facts[0].items()}))
    reasons = {change.field: change.reasons for change in explain_changes(old, facts[1])}
    assert reasons["甲方"] == ("sample removed: text 3",)
    assert reasons["乙方"] == ("甲方 changed, beside which its values are chosen",)


def test_remarks_are_kept_in_the_cache_and_in_every_result(cache: Path) -> None:
    """Old results have none."""
    template = make().model_copy(update={"documents": ("*lease_factory*",)})
    with Extractor([template], cache, checkpoints="none") as extractor:
        reprocess(extractor)
        (extraction,) = read_results(extractor)
    rows = list(table_rows([extraction]))
    remarks = [value.remark for result in extraction.fields.values() for value in result.values]
    assert [row["remark"] for row in rows] == remarks
    value = ExtractedValue("甲", "甲", "", "", 0, 1, None, 0.5, remark="the same as 乙方")
    assert ExtractedValue.from_dict(value.as_dict()) == value
    old = {k: v for k, v in value.as_dict().items() if k != "remark"}
    assert ExtractedValue.from_dict(old).remark == ""
    assert "the same as 乙方" in str(value)
