"""Statements of contracts of work: what is built where and when, who is employed and as what.

``本工程位于 *某市某路*``, ``于 *2021年8月20日* 进场开工``, ``质保期自验收之日起 *五年*``,
``聘用您为 *中级律师*``, ``前 *三个月* 为试用期``, ``月薪为人民币 *28,000元*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import DATE, LENGTH, MONEY, Statement

_PERIOD = rf"_*{GAP}(?P<period>{LENGTH}{GAP}(?:年|个月|月|个?日历?天|天|日))"
_SUM = rf"_*{GAP}(?P<amount>(?:人民币|港币|美元)?¥?\d[\d,.]*{GAP}万?元|{MONEY})"

WORKS = (
    Statement(
        "期",
        re.compile(
            rf"(?:质保期|保修期|质量保证期|缺陷责任期)限?(?:\([^()\n]{{1,20}}\))?(?:为|是|:|共|均)?{GAP}"
            rf"(?:自[^,。;\n]{{2,30}}?起(?:计算?)?,?)?{_PERIOD}"
        ),
        {"period": "质保期"},
    ),
    Statement(
        "位于",
        re.compile(rf"(?:工程|项目)[^。;\n]{{0,40}}?位于{GAP}(?P<place>[^\s,。;()]{{4,50}})"),
        {"place": "工程地点"},
    ),
    Statement(
        "工",
        re.compile(rf"于{GAP}(?P<day>{DATE}){GAP}(?:进场|正式|全面)*(?:开工|施工)"),
        {"day": "开工日期"},
    ),
    Statement(
        "至",
        re.compile(
            rf"至{GAP}(?P<day>{DATE}){GAP}(?:前|之前)?(?:全部|全面|整体)?(?:完成|竣工|完工|交付使用)"
        ),
        {"day": "竣工日期"},
    ),
    Statement(
        "为",
        re.compile(
            rf"(?:合同|分包|设计|监理|勘察)(?:价款|总价|费用?|酬金|造价)(?:总额|总计)?(?:暂定)?为{GAP}{_SUM}"
        ),
        {"amount": "合同金额"},
    ),
    Statement(
        "试用期",
        re.compile(
            rf"试用期限?(?:为|是|:|共)?{GAP}{_PERIOD}"
            rf"|(?:前|首|经过|最初)(?P<before>{LENGTH}{GAP}个?月)(?:的|为|作为)试用期"
        ),
        {"period": "试用期", "before": "试用期"},
    ),
    Statement(
        "聘",
        re.compile(
            rf"(?:聘请|聘用|聘任|雇用)(?:您|你|乙方|其)?(?:为|担任|出任|从事)(?:{HAN}{{1,12}}部门?的?)?"
            r"(?P<post>[^,。;\n()]{2,24}?)(?:一职|职务|岗位|工作)?(?=[,。;(\n])"
        ),
        {"post": "岗位"},
    ),
    Statement(
        "聘",
        re.compile(
            rf"(?P<buyer>{ORGANISATION})(?:现|拟|特|诚意)?(?:决定)?(?:聘请|聘用|聘任|录用)(?=[您你])"
        ),
        {"buyer": "用人单位"},
    ),
    Statement(
        "聘",
        re.compile(rf"(?:\A|\n){GAP}(?:尊敬的)?(?P<person>{PERSON})(?:先生|女士)[:,]"),
        {"person": "劳动者"},
    ),
    Statement(
        "入职",
        re.compile(rf"入职(?:日期|时间|日)?(?:定)?(?:为|于|是|:){GAP}(?P<day>{DATE})"),
        {"day": "开始日期"},
    ),
    Statement(
        "期限",
        re.compile(
            rf"期限(?:(?!试用)[^。;\n]){{0,30}}?至{GAP}(?P<day>{DATE}){GAP}(?:届满|终止|到期|止)"
        ),
        {"day": "到期日期"},
    ),
    *(
        Statement(
            pay,
            re.compile(
                rf"(?<!试用期)(?<!最低)月(?:基本)?{pay}(?:标准)?(?:\([^()\n]{{1,10}}\))?(?:为|是|:)(?:税[前后])?{GAP}{_SUM}"
            ),
            {"amount": "月工资"},
        )
        for pay in ("工资", "薪")
    ),
)
