"""Fields with the same value in samples. Oracle: which label stands before which value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe import Extractor, FieldSpec, SampleSpec, Template
from featpipe.extraction.field_facts import facts_of
from featpipe.extraction.joint_choice import Relations
from featpipe.extraction.scoring.field_names import places_of_own
from featpipe.extraction.twins import twins_of

if TYPE_CHECKING:
    from pathlib import Path

PLACES = ("江州", "北湖", "云山", "临江", "青川")
NAMES = ("发包人", "采购人", "承包人", "签订日期", "生效日期")


def contract(number: int, *, is_same: bool) -> tuple[str, dict[str, tuple[str, ...]]]:
    """One with its values; who builds is who buys, and the days are one, if ``is_same``."""
    client = f"{PLACES[number]}市教育局"
    buyer = client if is_same else f"{PLACES[number - 1]}市林业局"
    builder = f"{PLACES[number]}建工集团有限公司"
    signed = f"2023年{number + 1}月{number + 3}日"
    begun = signed if is_same else f"2023年{number + 2}月{number + 11}日"
    text = (
        f"建设工程施工合同\n发包人：{client}\n采购人：{buyer}\n承包人：{builder}\n"
        f"签订日期：{signed}\n生效日期：{begun}\n本合同一式四份，各方各执一份。\n"
    )
    values = (client, buyer, builder, signed, begun)
    return text, {name: (value,) for name, value in zip(NAMES, values, strict=True)}


def template_of(*, n_same: int, n_samples: int = 3) -> Template:
    made = [contract(n, is_same=n < n_same) for n in range(n_samples)]
    samples = [SampleSpec(text=text, fields=values, complete=True) for text, values in made]
    fields = tuple(FieldSpec(name=name) for name in NAMES)
    return Template(name="施工合同", fields=fields, samples=tuple(samples))


@pytest.mark.parametrize("n_same", [3, 2])
def test_fields_whose_samples_are_equal_are_told_apart_by_their_labels(
    cache: Path, n_same: int
) -> None:
    text, wanted = contract(4, is_same=False)
    with Extractor([template_of(n_same=n_same)], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    assert {name: fields[name].values[0].text for name in NAMES} == {
        name: value for name, (value,) in wanted.items()
    }


@pytest.mark.parametrize(
    ("text", "value", "names", "twins", "kept"),
    [
        ("发包人：江州市教育局\n采购人：江州市教育局", "江州市教育局", "发包人", "采购人", [0]),
        ("业主：江州市教育局\n采购人：江州市教育局", "江州市教育局", "发包人", "采购人", [0]),
        # What no name tells is a place of both.
        ("江州市教育局\n采购人：江州市教育局", "江州市教育局", "发包人", "采购人", [0]),
        ("江州市教育局\n采购人：江州市教育局", "江州市教育局", "采购人", "发包人", [0, 1]),
        ("采购人：江州市教育局\n采购人：江州市教育局", "江州市教育局", "发包人", "采购人", [0, 1]),
        ("单价\t总价\t数量\n6\t36\t6\n8\t64\t8", "6", "数量", "单价", [1]),
    ],
)
def test_places_are_of_the_field_whose_name_tells_them_best(
    text: str, value: str, names: str, twins: str, kept: list[int]
) -> None:
    cells = [at for at in range(len(text)) if text.startswith(value, at)]
    spans = [(at, at + len(value)) for at in cells if text[at - 1 : at] != "3"]
    spans = [span for span in spans if text[span[1] : span[1] + 1] != "4"]
    found = places_of_own(features_of(text), spans, (names,), (twins,))
    assert found == [spans[n] for n in kept]


def test_equal_values_are_twins_however_they_are_written() -> None:
    fields = [FieldSpec(name="签订日期"), FieldSpec(name="生效日期", aliases=("起效",))]
    values = {"签订日期": ("2023年1月3日",), "生效日期": ("2023-01-03",)}
    sample = SampleSpec(text="合同", fields=values)
    other = SampleSpec(text="合同", fields=values | {"生效日期": ("2023-01-04",)})
    template = Template(name="合同", fields=tuple(fields), samples=(sample, other))
    assert twins_of(template, sample, fields[0]) == ("生效日期", "起效")
    assert twins_of(template, other, fields[0]) == ()


def test_a_model_depends_on_the_twins_of_its_samples() -> None:
    """Its places do: what was learnt of them is learnt anew."""
    fields = tuple(FieldSpec(name=name) for name in NAMES)
    prints = []
    for buyer in ("江州市教育局", "北湖市教育局"):
        text, values = contract(0, is_same=True)
        values["采购人"] = (buyer,)
        sample = SampleSpec(text=text, fields=values, complete=True)
        template = Template(name="施工合同", fields=fields, samples=(sample,))
        facts = facts_of(template, ["same"], "", Relations.of(template))
        prints.append([facts[name].model_fingerprint for name in ("发包人", "承包人")])
    assert prints[0][0] != prints[1][0]
    assert prints[0][1] == prints[1][1]
