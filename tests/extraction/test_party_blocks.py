"""Party blocks. Oracle: whose each detail is, as the texts were written."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import pytest
from pages import features_of

from featpipe.documents import load_document
from featpipe.extraction.names.synonyms import is_party
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.labels import labelled_values
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.scoring.tokens import hash_of
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.tables.table_headers import table_headers

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel

LINES = """合同书
甲方（盖章）：北京宏达科技有限公司
法定代表人：王伟
电话：010-23415285
通讯地址：北京市海淀区科技路924号
科技大厦五层

乙方（盖章）：杭州泰恒置业有限公司
法定代表人：张桂超
电话：0571-72828055
根据《中华人民共和国民法典》，双方就软件开发事宜协商一致，订立本合同。
付款方式：一次性付清
"""
INLINE = """甲方：北京宏达科技有限公司，法定代表人：王伟，电话：010-23415285。
乙方：杭州泰恒置业有限公司，法定代表人：张桂超，电话：0571-72828055。
第一条 付款方式：一次性付清
"""
COLUMNS = """付款方式：一次性付清
甲    方：北京宏达科技有限公司        乙    方：杭州泰恒置业有限公司
法定代表人：王伟                      法定代表人：张桂超
                                      电    话：0571-72828055
电    话：010-23415285
"""
CELLS = """付款方式：一次性付清
甲方：北京宏达科技有限公司\t乙方：杭州泰恒置业有限公司
法定代表人：王伟\t法定代表人：张桂超
\t电话：0571-72828055
电话：010-23415285\t
"""
SEALS = """付款方式：一次性付清。
甲方（盖章）          乙方（签字或盖章）
法定代表人：王伟      法定代表人：张桂超
电话：010-23415285    电话：0571-72828055
"""
JUDGMENT = """原告：王伟，男，住北京市海淀区。
委托诉讼代理人：刘洋、陈静，北京某律师事务所律师。
被告：杭州泰恒置业有限公司，住所地杭州市。
委托诉讼代理人：张桂超，浙江某律师事务所律师。
原告王伟与被告杭州泰恒置业有限公司买卖合同纠纷一案，本院立案后，依法公开开庭进行了审理。
案由：买卖合同纠纷
"""
ENGLISH = """Seller: Acme Ltd
Address: 1 Main Street
Buyer: Beta Inc
Address: 2 Side Street
This agreement is made between the parties on the terms that are set out below, and not otherwise.
Governing Law: England
"""


def party_of(features: PageFeatures, words: str) -> str:
    """Label of the party in whose block some words stand; "" outside of all."""
    first, _ = features.tokens.spans([(at := features.page.text.index(words), at + len(words))])
    code = int(features.tokens.party[first[0]])
    return features.tokens.label_text.get(code, "?") if code else ""


@pytest.mark.parametrize(
    "text", [LINES, INLINE, COLUMNS, CELLS], ids=["lines", "inline", "columns", "cells"]
)
def test_details_are_of_the_party_above_or_before_them(text: str) -> None:
    features = features_of(text)
    for words, party in {
        "王伟": "甲方", "010-": "甲方", "张桂超": "乙方", "0571-": "乙方", "一次性": "",
    }.items():  # fmt: skip
        assert party_of(features, words) == party, words


def test_a_short_line_without_a_label_goes_on_and_a_long_one_ends_the_block() -> None:
    features = features_of(LINES)
    assert party_of(features, "科技大厦五层") == "甲方"
    assert party_of(features, "双方就软件") == ""


def test_a_line_of_seals_heads_the_columns_below_it() -> None:
    tokens = features_of(SEALS).tokens
    at = {words: int(tokens.spans([(n := SEALS.index(words), n + 1)])[0][0])
          for words in ("王伟", "张桂超", "010-", "0571-", "一次性")}  # fmt: skip
    found = {words: int(tokens.party[number]) for words, number in at.items()}
    ours, theirs = hash_of("甲方"), hash_of("乙方")
    assert found == {"王伟": ours, "张桂超": theirs, "010-": ours, "0571-": theirs, "一次性": 0}


def test_lawyers_are_those_of_the_party_above() -> None:
    features = features_of(JUDGMENT)
    assert [party_of(features, name) for name in ("刘洋", "陈静", "浙江某")] == [
        "原告", "原告", "被告",
    ]  # fmt: skip
    assert party_of(features, "案由") == ""


def test_english_parties_have_blocks_too() -> None:
    features = features_of(ENGLISH)
    assert [party_of(features, words) for words in ("1 Main", "2 Side", "England")] == [
        "seller", "buyer", "",
    ]  # fmt: skip


def test_a_column_of_a_table_is_of_the_party_that_heads_it() -> None:
    text = "项目 甲方 乙方\n联系人 王伟 张桂超\n"
    headers = tuple(
        LabelledSpan(at := text.index(name), at + len(name), "联系人", party=party)
        for name, party in (("王伟", "甲方"), ("张桂超", "乙方"))
    )
    features = PageFeatures(replace(page_of_text(text), headers=headers))
    tokens = features.tokens
    found = {text[a:b]: int(party) for a, b, party in zip(
        tokens.start.tolist(), tokens.end.tolist(), tokens.party.tolist(), strict=True
    )}  # fmt: skip
    assert (found["王"], found["张"]) == (hash_of("甲方"), hash_of("乙方"))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("甲方", True), ("被告一", True), ("乙方2", True), ("出租方", True), ("许可方", True),
        ("billto", True), ("丙方", True), ("甲乙双方", False), ("地址", False), ("联系人", False),
        ("一", False), ("委托诉讼代理人", False), ("处方", False), ("法定代表人", False),
    ],
)  # fmt: skip
def test_what_parties_are_called(label: str, expected: bool) -> None:
    assert is_party(label) is expected


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        (
            "法定代表人：王伟        法定代表人：张桂超",
            {"王伟": "法定代表人", "张桂超": "法定代表人"},
        ),
        ("电    话：010-1        电    话：0571-2", {"010": "电话", "0571": "电话"}),
        ("开   户   行：某银行", {"某银行": "开户行"}),
        ("甲 方：宏达公司 乙 方：泰恒公司", {"宏达": "甲方", "泰恒": "乙方"}),
    ],
)
def test_a_label_begins_behind_a_wide_gap_and_may_be_spaced(
    line: str, labels: dict[str, str]
) -> None:
    tokens = features_of(line).tokens
    for words, label in labels.items():
        at = int(tokens.spans([(line.index(words), line.index(words) + 1)])[0][0])
        assert tokens.label_text[int(tokens.label[at])] == label


def test_a_cell_for_the_name_of_a_party_is_not_its_value() -> None:
    text = "甲方\t名称\t宏达公司\n地址\t北京\n"
    assert {text[a:b] for a, b in labelled_values(text, ("甲方",))} == {"宏达公司"}


def best_of(model: FieldModel, text: str) -> list[str]:
    """The values that a field gives of a text."""
    features = features_of(text)
    scored = model.score(features)
    return [text[slice(*scored.groups[number].spans[0])] for number in model.choose(scored)]


@pytest.mark.parametrize(
    "text", [LINES, INLINE, COLUMNS, CELLS], ids=["lines", "inline", "columns", "cells"]
)
def test_without_samples_a_name_that_begins_with_a_party_asks_for_its_details(text: str) -> None:
    expected = {
        "甲方法定代表人": ["王伟"], "乙方法定代表人": ["张桂超"],
        "甲方电话": ["010-23415285"], "乙方电话": ["0571-72828055"], "丙方电话": [],
    }  # fmt: skip
    for name, values in expected.items():
        assert best_of(fit_field([], "text", (name,)), text) == values, name


@pytest.mark.parametrize("text", [COLUMNS, SEALS], ids=["columns", "seals"])
def test_a_file_of_columns_gives_what_its_text_gives(text: str) -> None:
    document = load_document(text.encode(), source="contract.txt")
    headers = table_headers(document.text, [astuple(table) for table in document.tables])
    page = PageFeatures(replace(page_of_text(document.text), headers=headers))
    for name, value in {"甲方法定代表人": "王伟", "乙方法定代表人": "张桂超"}.items():
        model = fit_field([], "text", (name,))
        scored = model.score(page)
        chosen = [scored.groups[number].spans[0] for number in model.choose(scored)]
        assert [page.page.text[slice(*span)] for span in chosen] == [value], name


def test_the_name_of_a_sealing_party_stands_behind_a_label_of_its_own() -> None:
    text = SEALS.replace("法定代表人：王伟      ", "名称：宏达公司        ")
    assert best_of(fit_field([], "text", ("甲方",)), text) == ["宏达公司"]
    assert best_of(fit_field([], "text", ("甲方名称",)), text) == ["宏达公司"]


def test_a_lone_label_is_of_no_party_where_nothing_tells_its_column() -> None:
    text = "甲方：宏达公司 乙方：泰恒公司\n电话：010-1 电话：0571-2\n邮编：310000\n"
    features = features_of(text)
    found = [party_of(features, words) for words in ("010", "0571", "310000")]
    assert found == ["甲方", "乙方", ""]


def test_what_another_party_has_is_no_value_where_samples_show_whose_it_is() -> None:
    form = "甲方：{}有限公司\n联系人：{}\n电话：{}\n乙方：{}有限公司\n{}电话：{}\n"
    samples = [
        form.format("宏达", "王伟", "010-23415285", "泰恒", "联系人：张桂超\n", "0571-72828055"),
        form.format("信诚", "李娜", "020-33415286", "德盛", "联系人：陈勇\n", "0755-82828056"),
        form.format("鑫瑞", "赵敏", "021-43415287", "华丰", "联系人：孙涛\n", "0571-92828057"),
    ]
    names = ["张桂超", "陈勇", "孙涛"]
    given = [
        sample_of(features_of(text), [name], "text")
        for text, name in zip(samples, names, strict=True)
    ]
    # The name of the field says nothing: the samples do.
    model = fit_field(given, "text", ("对接人",))
    other = form.format("盛泰", "周强", "022-53415288", "恒鑫", "联系人：何静\n", "0571-62828058")
    assert best_of(model, other) == ["何静"]
    absent = form.format("盛泰", "周强", "022-53415288", "恒鑫", "", "0571-62828058")
    assert "周强" not in best_of(model, absent)
