"""News of companies. Oracle: what each text says of who raised, lost, sued, fined or led what."""

from __future__ import annotations

import pytest

from featpipe.extraction.names.synonyms import names_same
from featpipe.extraction.statements.news_statements import (
    find_announced,
    find_insolvencies,
    find_news,
)
from featpipe.extraction.statements.news_words import names_in
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.values.text import fold_width


def told(text: str) -> dict[str, set[str]]:
    folded = fold_width(text)
    found: dict[str, set[str]] = {}
    for one in find_news(folded):
        found.setdefault(one.words, set()).add(text[one.start : one.end])
    return found


def check(text: str, **stated: str) -> None:
    found = told(text)
    assert {words: found.get(words) for words in stated} == {
        words: set(values.split("|")) for words, values in stated.items()
    }


def test_a_financing() -> None:
    check(
        "青岚智造再获融资\n5月16日，工业软件企业青岚智造宣布完成2.5亿元A+轮融资，由峰禾资本领投，"
        "云渡创投、老股东海拓基金跟投，投后估值约18亿元。",
        融资轮次="A+轮",
        融资金额="2.5亿元",
        领投方="峰禾资本",
        出资之方="云渡创投|海拓基金",
        估值="18亿元",
        获投公司="青岚智造",
        所报之时="5月16日",
    )


def test_a_listing_and_a_delisting() -> None:
    check(
        "3月9日，云栈软件股份有限公司在上海证券交易所科创板挂牌上市，发行价27.35元/股，募资11.49亿元，"
        "首日总市值101.5亿元。",
        所报公司="云栈软件股份有限公司",
        上市交易所="上海证券交易所",
        上市之事="挂牌上市",
        发行价格="27.35元/股",
        融资金额="11.49亿元",
        市值="101.5亿元",
    )
    check(
        "深交所决定临江重工股份有限公司股票终止上市。",
        所报公司="临江重工股份有限公司",
        上市之事="终止上市",
    )


def test_a_loss() -> None:
    check(
        "天禾光伏1月30日公告，预计2022年度净亏损6.84亿元至7.2亿元，亏损扩大41.3%，营业收入17.9亿元。",
        所报期间="2022年度",
        所报亏损="6.84亿元至7.2亿元",
        亏损变化="扩大41.3%",
        营业收入="17.9亿元",
        披露时间="1月30日",
        所报公司="天禾光伏",
    )


def test_a_summons() -> None:
    check(
        "8月26日，临江市交通运输局、临江市公安局就违规派单问题约谈网约车平台快哒出行，要求其限期整改，并提交整改报告。",
        约谈之方="临江市交通运输局|临江市公安局",
        约谈时间="8月26日",
        约谈之因="违规派单",
        所提要求="限期整改|提交整改报告",
        所报公司="快哒出行",
    )


def test_an_insolvency() -> None:
    text = (
        "2023年4月3日，盐河市中级人民法院根据江潮银行股份有限公司的申请，裁定受理盐河晴光能源有限公司破产清算一案，"
        "并指定盐河正衡律师事务所担任管理人。公司负债总额约37.2亿元，主要债权人包括江潮银行和远汇信托。"
    )
    check(
        text,
        破产法院="盐河市中级人民法院",
        破产之方="盐河晴光能源有限公司",
        破产申请人="江潮银行股份有限公司",
        破产管理人="盐河正衡律师事务所",
        债务规模="37.2亿元",
        所欠之方="江潮银行股份有限公司|远汇信托",
        裁定时间="2023年4月3日",
    )
    folded = fold_width(text)
    assert {*find_insolvencies(folded)} <= {*find_news(folded)}


def test_who_comes_and_who_goes() -> None:
    check(
        "董事会同意聘任贺松年先生为公司总经理；财务总监陈晓敏因个人原因辞职，由董事会秘书邵启航代行职责。",
        所报高管="贺松年|陈晓敏",
        继任者="邵启航",
        变动之因="个人原因",
    )


def test_a_purchase_and_an_award() -> None:
    check(
        "岱宗水泥以现金18.6亿元收购鸿渡投资持有的琅川建材65%股权。",
        所报买方="岱宗水泥",
        所报价款="18.6亿元",
        所购公司="琅川建材",
        收购比例="65%",
        所报方式="现金",
    )
    check(
        "1月5日，森木园林中标“临江湿地公园工程”，中标金额为2.17亿元，工期36个月。",
        所报中标方="森木园林",
        所报项目="临江湿地公园工程",
        中标金额="2.17亿元",
        工期="36个月",
    )


def test_a_fine_and_a_lawsuit() -> None:
    check(
        "昊图美妆因虚假宣传，被临江市市场监督管理局处以80万元罚款。",
        所罚之方="昊图美妆",
        所罚之由="虚假宣传",
        处罚之方="临江市市场监督管理局",
        所罚金额="80万元",
    )
    check(
        "沃腾化工因买卖合同纠纷将乾铭新材诉至临江市人民法院，请求支付货款1847.62万元。",
        起诉之方="沃腾化工",
        应诉之方="乾铭新材",
        受案法院="临江市人民法院",
        涉诉金额="1847.62万元",
        案由="买卖合同纠纷",
    )


@pytest.mark.parametrize(
    "text",
    [
        "甲方应于2023年5月1日前支付融资租赁款100万元。",
        "本公司股票在深圳证券交易所的代码不变。",
        "被告应提交答辩状，放弃起诉权利的除外。",
    ],
)
def test_what_is_no_news(text: str) -> None:
    assert not told(text).keys() & {"获投公司", "出资之方", "上市之事", "起诉之方", "应诉之方"}


def test_announcements_have_statements_of_their_own_for_deals() -> None:
    folded = fold_width("岱宗水泥以现金18.6亿元收购琅川建材65%股权。")
    assert [*find_news(folded)]
    assert not [*find_announced(folded)]


def test_a_long_text_is_no_news() -> None:
    folded = fold_width("青岚智造宣布完成2.5亿元A+轮融资，由峰禾资本领投。")
    assert [*find_news(folded)]
    assert not [*find_news(folded + "。" * 4000)]


def test_names_of_a_list() -> None:
    text = "新股东峰禾资本、云渡创投和海拓基金等共同"
    assert [text[a:b] for a, b in names_in(text, 0, len(text))] == [
        "峰禾资本",
        "云渡创投",
        "海拓基金",
    ]


def test_who_is_paid_is_not_who_pays() -> None:
    assert not names_same("被投资方", "投资方")


def test_companies_are_given_in_full() -> None:
    check(
        "泽岭股份有限公司(泽岭股份)公布，泽岭股份拟收购海曲电缆80%股权，海曲电缆有限公司去年盈利。",
        所报买方="泽岭股份有限公司",
        所购公司="海曲电缆有限公司",
    )
    check(
        "城东区公布招标结果，望和设计有限公司与岭北测绘有限公司联合中标，总价800万元。",
        所报中标方="望和设计有限公司|岭北测绘有限公司",
    )
    check(
        "贷款纠纷开庭。柏川信托有限公司日前在杭州提起民事诉讼，要求还款。",
        起诉之方="柏川信托有限公司",
    )


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (
            "被告被诉。泽岭股份有限公司被宁州宏达商贸有限公司起诉至法院。",
            "起诉之方",
            {"宁州宏达商贸有限公司"},
        ),
        ("海曲电缆有限公司80%股权被泽岭股份收购。", "所报买方", {"泽岭股份"}),
        ("海州有限公司公布招标结果，望和设计有限公司中标。", "所报中标方", {"望和设计有限公司"}),
        (
            "由红杉资本和宁州创投有限公司联合领投，完成2亿元A轮融资。",
            "领投方",
            {"红杉资本", "宁州创投有限公司"},
        ),
        ("证监会公布泽岭股份有限公司违规一事，罚款80万元。", "处罚之方", {"证监会"}),
        (
            "宁州法院裁定受理宁州宏达商贸有限公司重整。\n宁州宏达申请破产重整。",
            "破产之方",
            {"宁州宏达商贸有限公司"},
        ),
    ],
)  # fmt: skip
def test_who_acts_and_who_is_acted_on(text: str, words: str, expected: set[str]) -> None:
    assert told(text).get(words) == expected


def test_a_list_of_many_companies_takes_no_time() -> None:
    firms = "，" + "宁州宏达商贸有限公司、" * 350
    assert "所报中标方" not in told(firms + "。中标结果公布。")


def test_numbers_may_be_set_off() -> None:
    spaced = fold_width("青岚智造完成 2.5 亿元 A 轮融资，由 MX 资本领投。\n投后估值 18 亿元。")
    found = {(one.words, spaced[one.start : one.end]) for one in find_phrases(spaced)}
    assert {
        ("融资轮次", "a 轮"), ("融资金额", "2.5 亿元"), ("领投方", "mx 资本"), ("估值", "18 亿元"),
    } <= found  # fmt: skip
