"""Case facts. Oracle: what each sentence says of who took what, when, where and with what."""

from __future__ import annotations

import re

import pytest
from pages import features_of

from featpipe.extraction.names.name_patterns import PERSON
from featpipe.extraction.statements.crime_statements import find_facts
from featpipe.extraction.values.text import fold_width

_THEFT = (
    "经审理查明：2016年3月5日凌晨2时许，被告人沈某某、郭某乙伙同武×1至本市东湖区长春路8号车棚，用螺丝刀、"
    "断线钳撬开车锁，窃得被害人王某1停放在此的黑色云岭牌电动自行车2辆及现金人民币300元，"
    "经东湖区价格认证中心鉴定，价值人民币1860元。后沈某某以600元的价格将车卖给他人。"
)


def told(text: str) -> dict[str, set[str]]:
    folded = fold_width(text)
    found: dict[str, set[str]] = {}
    for one in find_facts(folded):
        found.setdefault(one.words, set()).add(folded[one.start : one.end])
    return found


def test_the_facts_of_a_theft() -> None:
    assert told(_THEFT) == {
        "犯罪嫌疑人": {"沈某某", "郭某乙", "武×1"},
        "被害人": {"王某1"},
        "组织机构": {"东湖区价格认证中心"},
        "涉案价值": {"人民币1860元"},
        "销赃所得": {"600元"},
        "被盗现金": {"人民币300元"},
        "所盗之物": {"黑色云岭牌电动自行车"},
        "作案之物": {"螺丝刀", "断线钳"},
        "案发之时": {"2016年3月5日凌晨2时许"},
        "案发之地": {"本市东湖区长春路8号车棚"},
    }


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        # Three characters where they come again, two where a verb is behind them.
        ("被告人张建国窜至河边。张建国被抓获。", "犯罪嫌疑人", {"张建国"}),
        ("被告人张建窜至河边。", "犯罪嫌疑人", {"张建"}),
        ("被害单位云岭集团有限公司报案，被告人李某被抓获。", "被害人", {"云岭集团有限公司"}),
        ("被告人李某趁旅客孙某熟睡之机，将其手机偷走。", "被害人", {"孙某"}),
        # Who is accused is no victim, wherever else it is named.
        ("被告人李某到李某家，盗走手机。", "被害人", set()),
        ("被告人李某盗得三人钱款，每人分得500元。", "销赃所得", set()),
        ("被告人李某将赃物卖得赃款2000元。", "销赃所得", {"2000元"}),
        ("被告人李某窃得内存条3根、白酒六瓶。", "所盗之物", {"内存条", "白酒"}),
        ("被告人李某将柜台上的戒指一枚盗走。", "所盗之物", {"戒指"}),
        ("被告人李某驾驶员工班车，用于偷油。", "作案之物", set()),
        ("被告人李某于同月20日窜入该村盗窃。", "案发之时", {"同月20日"}),
        ("被告人李某于同月20日被抓获。", "案发之时", set()),
        ("被告人李某在公安局投案。", "案发之地", set()),
        ("被告人李某致孙某轻伤二级。", "伤情鉴定", {"轻伤二级"}),
        ("被告人李某血液中乙醇含量为156.3mg/100ml。", "酒精含量", {"156.3mg/100ml"}),
    ],
)
def test_one_thing_that_a_sentence_says(text: str, words: str, expected: set[str]) -> None:
    assert told(text).get(words, set()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "原告张某诉称：被告盗窃其现金500元，用螺丝刀撬门。",
        "被告人民医院赔偿原告现金5000元。",
    ],
)
def test_civil_cases_have_no_facts(text: str) -> None:
    assert told(text) == {}


def test_what_a_court_finds_is_called_by_the_facts_and_not_by_the_finding() -> None:
    features = features_of(_THEFT)
    start = int(features.tokens.spans([(_THEFT.index("2016"), _THEFT.index("2016") + 4)])[0][0])
    assert features.tokens.label_text[int(features.tokens.label[start])] == "案发之时"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("王某1停放", "王某1"), ("王某甲的", "王某甲"), ("武×12等", "武×12"), ("曲×到", "曲×"),
        ("王某1万元", "王某"), ("王某1,000元", "王某"), ("张建国", "张建国"),
    ],
)  # fmt: skip
def test_persons_who_are_not_named_in_full(text: str, name: str) -> None:
    found = re.match(PERSON, text)
    assert found
    assert found[0] == name
