"""Judgments without any sample. Oracle: the values, as the texts were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from featpipe import Extractor, FieldSpec, Template
from featpipe.extraction.names.bare_labels import find_bare_labels
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.values.text import fold, fold_width

if TYPE_CHECKING:
    from pathlib import Path

FIRST = """浙江省宁波市海曙区人民法院
民 事 判 决 书
（2021）浙0203民初4567号
　　原告张建国，男，1975年3月8日出生，汉族，住浙江省宁波市海曙区中山路12号。
　　委托诉讼代理人（特别授权）李明、王芳，浙江某某律师事务所律师。
　　被告宁波华信供应链有限公司，住所地浙江省宁波市鄞州区科技路9号。
　　法定代表人赵磊，总经理。
　　原告张建国与被告宁波华信供应链有限公司买卖合同纠纷一案，本院于2021年5月6日立案后，依法适用普通程序，于2021年6月10日公开开庭进行了审理。被告宁波华信供应链有限公司经传票传唤未到庭。
　　原告张建国向本院提出诉讼请求：判令被告支付货款86000元。
　　一、被告宁波华信供应链有限公司于本判决生效之日起十日内支付原告张建国86000元。
　　案件受理费1950元，由被告宁波华信供应链有限公司负担。
审　判　长　　周　静
人民陪审员　　吴立军
人民陪审员　　郑秀英
二〇二一年七月二十日
书　记　员　　华　蕾
"""
VALUES = {
    "法院": ["浙江省宁波市海曙区人民法院"],
    "案号": ["（2021）浙0203民初4567号"],
    "案由": ["买卖合同纠纷"],
    "原告": ["张建国"],
    "原告住址": ["浙江省宁波市海曙区中山路12号"],
    "原告委托诉讼代理人": ["李明", "王芳"],
    "原告法定代表人": [],
    "被告": ["宁波华信供应链有限公司"],
    "被告住所地": ["浙江省宁波市鄞州区科技路9号"],
    "被告法定代表人": ["赵磊"],
    "被告委托诉讼代理人": [],
    "第三人": [],
    "立案日期": ["2021年5月6日"],
    "开庭日期": ["2021年6月10日"],
    "判决日期": ["二〇二一年七月二十日"],
    "案件受理费": ["1950元"],
    "审判长": ["周静"],
    "审判员": [],
    "人民陪审员": ["吴立军", "郑秀英"],
    "书记员": ["华蕾"],
}
#: The same with a colon behind every label.
WITH_COLONS = (
    FIRST.replace("　　原告张建国，", "　　原告：张建国，")
    .replace("（特别授权）李明", "（特别授权）：李明")
    .replace("　　被告宁波华信供应链有限公司，住所地", "　　被告：宁波华信供应链有限公司，住所地：")
    .replace("法定代表人赵磊", "法定代表人：赵磊")
    .replace("审　判　长　　", "审　判　长：")
    .replace("人民陪审员　　", "人民陪审员：")
    .replace("书　记　员　　", "书　记　员：")
)


def values_without_samples(cache: Path, text: str, names: list[str]) -> dict[str, list[str]]:
    """Values by field, without blanks, in the order of the text."""
    template = Template(name="判决", fields=tuple(FieldSpec(name=name) for name in names))
    with Extractor([template], cache=cache, models={}) as extractor:
        fields = extractor.extract(text).fields
    found = {}
    for name in names:
        values = sorted(fields[name].values, key=lambda value: value.start)
        found[name] = ["".join(value.text.split()) for value in values]
    return found


@pytest.mark.parametrize("text", [FIRST, WITH_COLONS], ids=["bare", "colons"])
def test_a_judgment_is_read_without_samples(cache: Path, text: str) -> None:
    assert values_without_samples(cache, text, [*VALUES]) == VALUES


def test_who_appeals_is_not_the_plaintiff(cache: Path) -> None:
    text = """浙江省宁波市中级人民法院
民事判决书
（2021）浙02民终99号
上诉人（原审被告）：宁波华信供应链有限公司，住所地宁波市鄞州区。
被上诉人（原审原告）：张建国，男，汉族，住宁波市海曙区。
上诉人宁波华信供应链有限公司因与被上诉人张建国买卖合同纠纷一案，不服浙江省宁波市海曙区人民法院（2021）浙0203民初4567号民事判决，向本院提起上诉。
审判长　周静
二〇二一年十月八日
"""
    names = ["原告", "被告", "上诉人", "被上诉人", "原审案号", "原审法院", "案由"]
    assert values_without_samples(cache, text, names) == {
        "原告": ["张建国"],
        "被告": ["宁波华信供应链有限公司"],
        "上诉人": ["宁波华信供应链有限公司"],
        "被上诉人": ["张建国"],
        "原审案号": ["（2021）浙0203民初4567号"],
        "原审法院": ["浙江省宁波市海曙区人民法院"],
        "案由": ["买卖合同纠纷"],
    }


def test_numbered_parties_are_parties(cache: Path) -> None:
    text = """某某市人民法院
民事调解书
（2022）某01民初7号
原告：王芳，女，住某某市。
被告一：某某市华信贸易有限公司，住所地某某市科技路1号。
法定代表人：赵磊。
被告二：李明，男，住某某市。
"""
    names = ["原告", "被告", "被告法定代表人"]
    assert values_without_samples(cache, text, names) == {
        "原告": ["王芳"],
        "被告": ["某某市华信贸易有限公司", "李明"],
        "被告法定代表人": ["赵磊"],
    }


@pytest.mark.parametrize(
    "line",
    [
        "原告张三与被告李四民间借贷纠纷一案，本院立案后进行了审理。",
        "原告向本院提出诉讼请求。",
        "原告方称，货物已经交付。",
        "被告未作答辩。",
        "被告经本院传票传唤，未到庭参加诉讼。",
        "被告付款，原告交货。",
        "第三人民医院的诊断证明",
        "审判员应当回避的情形",
        "原告王芳提供了合同、发票。",
    ],
)
def test_a_sentence_about_a_party_has_no_label(line: str) -> None:
    assert find_bare_labels(fold_width(line)) == ()


@pytest.mark.parametrize(
    ("line", "words", "value"),
    [
        ("被告宁波市第二人民医院，住所地宁波市", "被告", "宁波市第二人民医院"),
        ("被告人民银行宁波市分行，住所地宁波市", "被告", "人民银行宁波市分行"),
        ("被告人欧阳志强，男，汉族", "被告人", "欧阳志强"),
        ("原告阿依古丽·买买提，女，维吾尔族", "原告", "阿依古丽·买买提"),
        ("原告矣斌，男，汉族", "原告", "矣斌"),
        ("原告（反诉被告）王某某，女", "原告", "王某某"),
        ("审 判 员  谭 敏 仪", "审判员", "谭 敏 仪"),
        ("公诉机关宁波市海曙区人民检察院。", "公诉机关", "宁波市海曙区人民检察院"),
    ],
)
def test_a_role_at_the_beginning_of_a_line_is_a_label(line: str, words: str, value: str) -> None:
    folded = fold_width(line)
    label = find_bare_labels(folded)[0]
    assert (label.words, folded[label.value : label.end]) == (words, fold_width(value))


@pytest.mark.parametrize(
    ("lines", "clerk", "judge"),
    [
        ("审判员　谭敏仪\n代书记员　路遥", "路遥", "谭敏仪"),
        ("代理审判员　谭敏仪\n代理书记员　路遥", "路遥", "谭敏仪"),
        ("助理审判员　谭敏仪\n见习书记员　路遥", "路遥", "谭敏仪"),
        ("审判员　谭敏仪\n代理审判员　温岚\n书记员　路遥\n见习书记员　关山", "路遥", "谭敏仪"),
    ],
)
def test_who_acts_in_a_role_has_it_where_nobody_else_does(
    cache: Path, lines: str, clerk: str, judge: str
) -> None:
    text = f"民事裁定书\n准许撤诉。\n审判长　周静\n{lines}\n"
    assert values_without_samples(cache, text, ["审判长", "审判员", "书记员"]) == {
        "审判长": ["周静"], "审判员": [judge], "书记员": [clerk],
    }  # fmt: skip


def phrases(text: str) -> dict[str, str]:
    return {one.words: text[one.start : one.end] for one in find_phrases(fold_width(text))}


def test_phrases_of_a_criminal_judgment() -> None:
    text = (
        "宁波市海曙区人民法院\n刑事判决书\n（2020）浙0203刑初32号\n"
        "公诉机关宁波市海曙区人民检察院。\n被告人王强，男，汉族。\n"
        "被告人王强犯盗窃罪，判处有期徒刑八个月。\n审判员　周静\n二〇二〇年四月五日\n"
    )
    assert phrases(text) == {
        "法院": "宁波市海曙区人民法院",
        "文书类型": "刑事判决书",
        "案号": "（2020）浙0203刑初32号",
        "罪名": "盗窃罪",
        "判决日期": "二〇二〇年四月五日",
        "犯罪嫌疑人": "王强",
        "组织机构": "宁波市海曙区人民检察院",
    }


def test_phrases_of_other_documents() -> None:
    contract = (
        "钢 材 买 卖 合 同\n编号：GC-2023-7\n"
        "本合同由宁波华信贸易有限公司（以下简称“供方”）与张建国（以下简称“需方”）于2023年3月1日在宁波签订。\n"
        "争议由宁波市海曙区人民法院管辖。\n"
    )
    assert phrases(contract) == {
        "供方": "宁波华信贸易有限公司",
        "需方": "张建国",
        "合同编号": "GC-2023-7",
        "签订日期": "2023年3月1日",
        "签订地点": "宁波",
        "管辖法院": "宁波市海曙区人民法院",
    }
    assert phrases("关于签订重大合同的公告\n正文。\n董事会\n2023年3月2日\n") == {
        "公告日期": "2023年3月2日"
    }
    assert phrases("授权委托书\n委托人：张建国\n日期：2023年3月2日\n") == {
        "落款日期": "2023年3月2日"
    }
    assert phrases("会议于2023年3月2日召开。\n") == {}
    assert phrases("会议纪要\nNo. 2023-017\n正文。\n办公室 2023 年 3 月 2 日印发\n") == {
        "单据编号": "2023-017",
        "印发日期": "2023 年 3 月 2 日",
    }
    lease = "租赁合同\n甲方将坐落于杭州市中山路1号2幢301室的房屋租给乙方。\n2023 年 3 月 2 日\n"
    assert phrases(lease) == {
        "坐落": "杭州市中山路1号2幢301室",
        "签订日期": "2023 年 3 月 2 日",
    }


def test_a_name_is_the_same_however_it_is_spaced(cache: Path) -> None:
    spaced = FIRST.replace("张建国，男", "张 建 国，男")
    assert fold("张 建 国") == "张建国"
    assert values_without_samples(cache, spaced, ["被告"])["被告"] == VALUES["被告"]
