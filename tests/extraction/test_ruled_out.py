"""What no value of a field may be. Oracle: values of the samples, and what stands in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.labels import labelled_values
from featpipe.extraction.scoring.ruled_out import are_parts_of_cells

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel

ARTICLES = (
    "Goods: kraft bags, brown\nTotal: 300.00\n",
    "Goods: tray lids, white\nTotal: 80.50\n",
    "Goods: label rolls\nTotal: 1,200.00\n",
)


def fitted(samples: dict[str, str], kind: str, name: str) -> FieldModel:
    given = [sample_of(features_of(text), [value], kind) for text, value in samples.items()]
    return fit_field(given, kind, (name,))


def proposed(model: FieldModel, text: str) -> set[str]:
    return {text[slice(*group.spans[0])] for group in model.score(features_of(text)).groups}


def test_no_sum_of_money_is_an_article() -> None:
    values = ("kraft bags, brown", "tray lids, white", "label rolls")
    model = fitted(dict(zip(ARTICLES, values, strict=True)), "text", "Item")
    found = proposed(model, "Goods: £3,065.00\nCarriage: £85.00\nBox of oak bungs\n")
    assert not found & {"£3,065.00", "3,065.00", "£85.00"}
    assert any("oak" in one for one in found)


def test_a_sum_may_be_the_text_that_a_sample_has() -> None:
    samples = {f"赔偿：{n}00元\n违约方：王芳\n": f"{n}00元" for n in (3, 5, 7)}
    model = fitted(samples, "text", "赔偿")
    assert "900元" in proposed(model, "赔偿：900元\n违约方：李四\n")


def test_no_telephone_number_is_a_contact() -> None:
    samples = {
        f"联系：{name}，电话 0836-44102{n}": name for n, name in ((71, "王芳"), (75, "李四海"))
    }
    found = proposed(fitted(samples, "text", "联系"), "联系：张小满，电话 0836-4410275。")
    assert "张小满" in found
    assert "0836-4410275" not in found


@given(st.text("a甲 \t\n\u200b\u3000\ufeff\x1c", max_size=24))
def test_columns_are_numbered_whatever_stands_between_them(text: str) -> None:
    features = features_of(text)
    assert len(features.boundaries.cell_number) == len(features.tokens)


@pytest.mark.parametrize("gap", ["   ", "          "])
def test_no_value_goes_on_behind_a_wide_gap(gap: str) -> None:
    samples = {f"TERMS   NET {n}0\nVIA   ROAD\n": f"NET {n}0" for n in (2, 3, 6)}
    text = f"TERMS   NET 45{gap}CURRENCY   USD\nVIA   ROAD\n"
    found = proposed(fitted(samples, "text", "terms"), text)
    assert "NET 45" in found
    assert not any("CURRENCY" in one and "NET" in one for one in found)


def test_a_value_begins_behind_the_number_of_a_clause() -> None:
    filler = "其他事项按照规定办理，" * 60
    samples = {
        f"一、概况\n{name}已经批准。{filler}": name
        for name in ("清河堤防工程", "南桥管网工程", "云岫学校工程")
    }
    model = fitted(samples, "text", "项目名称")
    assert "白塔道路工程" in proposed(model, f"一、概况\n1.1 白塔道路工程已经批准。{filler}")


def test_people_stand_right_behind_their_label() -> None:
    text = "建设单位联系人褚明远，电话"
    assert [text[a:b] for a, b in labelled_values(text, ["联系人"])] == ["褚明远"]


WAREHOUSES = (
    "GOODS              MARKS\nOAK BUNGS IN BAGS  {}\n",
    "GOODS              MARKS\nCOFFEE, GREEN      {}\n",
    "GOODS              MARKS\nJUTE SACKS         {}\n",
)


def test_an_english_cell_is_a_value_whole() -> None:
    text = WAREHOUSES[0].format("AB 1")
    model = fit_field([], "text", ("Goods",))
    assert "OAK BUNGS IN BAGS" in proposed(model, text)
    assert not proposed(model, text) & {"OAK BUNGS", "BAGS", "BUNGS IN BAGS"}


@pytest.mark.parametrize(
    ("goods", "are_parts"),
    [
        ("OAK BUNGS IN BAGS", True),
        ("OAK BUNGS (DRY)", False),
        (f"OAK BUNGS {'AND ' * 20}LIDS", False),
    ],
)
def test_texts_and_several_pieces_may_be_parted(goods: str, *, are_parts: bool) -> None:
    text = f"GOODS{' ' * 100}MARKS\n{goods:<105}AB 1\n"
    features = features_of(text)
    assert {cell.label for cell in features.page.headers} == {"GOODS", "MARKS"}
    first, last = features.tokens.spans([(text.index("OAK"), text.index("BUNGS") + 5)])
    assert are_parts_of_cells(features, first, last).tolist() == [are_parts]


def test_samples_may_part_cells() -> None:
    values = ("OAK BUNGS", "COFFEE", "JUTE")
    samples = {
        text.format(n): v for n, (text, v) in enumerate(zip(WAREHOUSES, values, strict=True))
    }
    model = fitted(samples, "text", "Goods")
    assert model.boundaries.may_part_cells
    assert "OAK BUNGS" in proposed(model, WAREHOUSES[0].format("AB 1"))


def test_a_code_has_digits() -> None:
    model = fit_field([], "text", ("合同编号",))
    text = "合同编号：\n专业分包合同\n联系人：张三\n项目编号：HT-2024-07\n"
    found = proposed(model, text)
    assert found
    assert all(any(map(str.isdigit, one)) for one in found)
