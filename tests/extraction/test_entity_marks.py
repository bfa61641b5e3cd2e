"""Entities are evidence about every span: those that are one, nearly one, or cut one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pages import features_of

from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.tables.labelled_span import LabelledSpan

TEXT = "甲乙丙丁戊己庚辛"


def tagged(text: str, *entities: tuple[str, str]) -> PageFeatures:
    """A page with the first occurrence of each name as an entity of a label."""
    spans = [
        LabelledSpan(text.index(name), text.index(name) + len(name), label)
        for name, label in entities
    ]
    return PageFeatures(replace(features_of(text).page, entities=tuple(spans)))


def every_span(n: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(n) for b in range(a + 1, n + 1)]


def test_labels_are_those_of_the_entity_that_shares_most() -> None:
    places = {"甲乙丙": "ORG", "己庚": "PER"}
    features = tagged(TEXT, *places.items())
    spans = every_span(len(TEXT))
    labels = features.entities.labels(*np.array(spans).T).tolist()
    kinds: dict[object, set[int]] = {}
    for (a, b), label in zip(spans, labels, strict=True):
        kind: object = None
        for name, entity in places.items():
            own, span = set(name), set(TEXT[a:b])
            if 2 * len(own & span) > len(own | span):
                kind = entity, own == span
        kinds.setdefault(kind, set()).add(label)
    assert set(kinds) == {None} | {(kind, is_it) for kind in ("ORG", "PER") for is_it in (0, 1)}
    assert all(len(own) == 1 for own in kinds.values())
    assert len(set.union(*kinds.values())) == len(kinds)


def test_an_end_inside_an_entity_cuts_it() -> None:
    features = tagged(TEXT, ("乙丙丁", "ORG"))
    spans = every_span(len(TEXT))
    expected = [(1 < a < 4) + (1 < b < 4) for a, b in spans]
    assert features.entities.cuts(*np.array(spans).T).tolist() == expected


def test_what_a_tagger_knows_of_names_is_used() -> None:
    """Samples alone leave several names open; the kind of their entities tells which it is."""
    lines = [
        ("昨天海山向法院请求开庭", "海山"), ("近日云田被市民多次投诉", "云田"),
        ("据悉北林已被有关部门约谈", "北林"), ("随后东湖就此事发布回应", "东湖"),
    ]  # fmt: skip
    samples = [sample_of(tagged(text, (name, "ORG")), [name], "text") for text, name in lines]
    model = fit_field(samples, "text", ("主体",))
    new = "如今市民王平认为金河应当退款"
    page = tagged(new, ("王平", "PER"), ("金河", "ORG"))
    scored = model.score(page)
    assert scored.groups[0].value.key == "金河"


def test_without_a_tagger_to_be_no_entity_says_nothing() -> None:
    names = ("张三", "李四")
    samples = [sample_of(features_of(f"收款人:{name}。"), [name], "text") for name in names]
    scored = fit_field(samples, "text", ("收款人",)).score(
        features_of("收款人:王五。付款人:赵六。")
    )
    columns = scored.measured[:, [MEASURED.index("entity like"), MEASURED.index("cuts entity")]]
    assert len(columns)
    np.testing.assert_allclose(columns, 0.0, atol=1e-6)


def test_a_name_is_no_value_of_a_field_of_shares_or_dates() -> None:
    for kind, values in (
        ("percent", ("5%", "8%", "12%")),
        ("date", ("3月5日", "4月6日", "9月1日")),
    ):
        samples = [
            sample_of(tagged(f"海山公司质押的是{value}。", ("海山公司", "ORG")), [value], kind)
            for value in values
        ]
        model = fit_field(samples, kind, ("质押",))
        document = tagged("云田公司质押的是股份。", ("云田公司", "ORG"))
        assert not model.score(document).groups
        # A day alone has no shape: its entity makes it a candidate.
        document = tagged("云田公司质押的是11日。", ("云田公司", "ORG"), ("11日", "DATE"))
        named = [group.value.key for group in model.score(document).groups]
        assert named == (["11日"] if kind == "date" else [])
