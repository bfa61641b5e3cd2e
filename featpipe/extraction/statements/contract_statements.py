"""Statements of contracts and reminders: terms, loans, work, sales of houses, and what is owed.

``向甲方提供人民币（大写）贰仟万元（小写：*20,000,000元*）的借款``, ``借款年利率为 *3.95%*``,
``于 *2021年8月20日* 进场开工``, ``质保期自验收之日起 *五年*``, ``前 *三个月* 为试用期``,
``由 *闽(2016)某市不动产权第9013846号* 证明``, ``支付定金 *¥20,000元*``,
``截至 *2023年12月31日*，贵公司尚欠货款 *658,750元*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import (
    DATE,
    DAY,
    LENGTH,
    MONEY,
    NAME,
    NUMERAL,
    REMARK,
    Statement,
)

_TERMS = (
    Statement(
        "至",
        re.compile(
            rf"(?:(?<!试用)期限?|期间(?!\()|租赁|租期|有效)(?:(?!试用)[^。;\n]){{0,30}}?(?<!\d)(?P<first>{DAY})"
            rf"(?:\([^()\n]{{1,20}}\))?{GAP}(?:起|开始)?[,、]?{GAP}(?:至|到){GAP}(?P<last>{DAY})"
        ),
        {"first": "起始日期", "last": "到期日期"},
    ),
    Statement(
        "提供",
        re.compile(
            rf"由(?P<surety>{NAME}){REMARK}(?:[、和及与]{NAME}{REMARK}){{0,9}}(?:为[^,。;\n]{{1,40}}?)?提供(?:[^,。;\n]{{0,12}}?)(?:保证|担保)"
        ),
        {"surety": "保证人"},
    ),
    Statement(
        "逾期",
        re.compile(
            r"逾期[^。;\n]{0,50}?每[逾期延迟]*[日天一][^。;\n]{0,30}?"
            r"(?P<rate>[万千百]分之[一二三四五六七八九十\d.]+|\d[\d.]*[%‰])"
        ),
        {"rate": "违约金比例"},
    ),
    Statement(
        "违约金",
        re.compile(
            rf"(?<![\u4e00-\u9fff])(?P<kind>{HAN}{{0,10}})违约金(?:标准)?[:为]每(?:逾期|延[误迟期]|迟延|拖延)一?[天日周月][,、]"
            rf"[^。;\n]{{0,40}}?(?P<amount>{MONEY})"
        ),
        {"amount": "违约金"},
    ),
    Statement(
        "面积",
        re.compile(
            rf"(?:建筑|租赁|出租|房屋|使用)面积{GAP}(?:(?:[为约共]|合计|共计){{1,2}}{GAP})?(?P<area>\d[\d,.]*{GAP}(?:平方米|平米|㎡|m²))"
        ),
        {"area": "面积"},
    ),
    Statement(
        "生效",
        re.compile(
            rf"(?:自|于|从)(?P<day>{DATE})(?:之日)?(?:零时)?(?:起|开始)?(?:正式|开始)?(?:生效|施行|实施)"
        ),
        {"day": "生效日期"},
    ),
)

#: The digits of 人民币(大写)贰仟万元(小写:20,000,000元).
_LENT = (
    r"(?:总额|本金|金额)?(?:共计|合计|计|为)?(?:(?:人民币)?\([大小]写\)[^()\n\d]{2,24}\((?:小写)?:?)?"
    rf"(?P<amount>{MONEY})"
)
_LENGTH = rf"{LENGTH}(?:\(\d{{1,3}}\))?"
_TERM = rf"{_LENGTH}(?:年零?{_LENGTH}个月|个月|年|天|日)"

_LOANS = (
    Statement(
        "借",
        re.compile(rf"(?:借款|出借|借给)(?:给?[甲乙]方)?{_LENT}"),
        {"amount": "借款金额"},
    ),
    Statement(
        "款",
        re.compile(
            rf"(?:提供|发放|出借)[^,。;\n\d]{{0,16}}?(?:借款|贷款)?{_LENT}(?=[^,。;\n]{{0,12}}(?:借款|贷款)|[)。,;])"
        ),
        {"amount": "借款金额"},
    ),
    Statement(
        "期限",
        re.compile(rf"(?<![未各每])(?:借款|贷款)期限?(?:为|共|共计)?{GAP}(?P<period>{_TERM})"),
        {"period": "借款期限"},
    ),
    Statement(
        "利率",
        re.compile(
            rf"(?<!罚息)(?<!逾期)(?<!违约)(?:借款|贷款|执行|合同|约定|固定)(?:的)?(?:执行)?(?:年|月)?利率(?:\([^()\n]{{1,12}}\))?"
            rf"{GAP}(?:按|为|是|执行|固定为|定为){{1,2}}{GAP}(?:年化?|月)?(?:利率)?(?P<rate>\d[\d.]*{GAP}[%‰])"
        ),
        {"rate": "借款利率"},
    ),
    Statement(
        "用于",
        re.compile(
            rf"(?:借款|贷款)(?:项下)?(?:资金)?(?:仅限|限|只能|专项|专门|仅|应当?|必须){{0,2}}用于{GAP}:?{GAP}(?:[甲乙]方|借款人)?(?P<use>[^,。;:\n]{{2,60}})"
        ),
        {"use": "借款用途"},
    ),
)

_FOR = rf"(?:_+{GAP})?(?P<period>{LENGTH}{GAP}(?:年|个月|月|个?日历?天|天|日))"

_WORKS = (
    Statement(
        "期",
        re.compile(
            rf"(?:质保期|保修期|质量保证期|缺陷责任期)限?(?:\([^()\n]{{1,20}}\))?(?:为|是|:|共|均)?{GAP}"
            rf"(?:自[^,。;\n]{{2,30}}?起(?:计算?)?,?{GAP})?{_FOR}"
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
            rf"(?:合同|分包|设计|监理|勘察)(?:价款|总价|费用?|酬金|造价)(?:总额|总计)?(?:暂定)?为{GAP}(?:_+{GAP})?(?P<amount>{MONEY})"
        ),
        {"amount": "合同金额"},
    ),
    Statement(
        "试用期",
        re.compile(
            rf"试用期限?(?:为|是|:|共)?{GAP}{_FOR}"
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
                rf"(?<!试用期)(?<!最低)月(?:基本)?{pay}(?:标准)?(?:\([^()\n]{{1,10}}\))?(?:为|是|:)(?:税[前后])?{GAP}(?:_+{GAP})?(?P<amount>{MONEY})"
            ),
            {"amount": "月工资"},
        )
        for pay in ("工资", "薪")
    ),
)


_HOUSES = (
    Statement(
        "产权",
        re.compile(
            rf"(?P<deed>{HAN}\((?:19|20)\d\d\){HAN}{{2,12}}不动产权第{GAP}\d{{5,12}}{GAP}号"
            rf"|{HAN}{{1,4}}房权证{HAN}{{0,6}}[a-z]?字?第{GAP}[\da-z-]{{5,14}}{GAP}号)"
        ),
        {"deed": "产权证号"},
    ),
    Statement(
        "房地",
        re.compile(r"(?P<deed>\d{2,4}房地证\d{4}字第\d{3,10}号)"),
        {"deed": "产权证号"},
    ),
    Statement(
        "平方米",
        re.compile(
            rf"(?:单价|折合|均价){GAP}(?:[为约:]{GAP}){{0,2}}每平方米{GAP}(?P<price>{MONEY})"
        ),
        {"price": "单价"},
    ),
    Statement(
        "定金",
        re.compile(
            rf"(?:支付|交付|缴纳|收取)(?:购房|买房)?定金{GAP}(?:(?:共计|合计|为|计){GAP})?(?P<amount>{MONEY})"
        ),
        {"amount": "定金"},
    ),
    Statement(
        "交",
        re.compile(
            rf"于{GAP}(?P<day>{DATE}){GAP}(?:之?前)?[^。;\n\d]{{0,40}}?(?:交付(?!定金|房款|价款|购)|交房|交接)"
        ),
        {"day": "交房日期"},
    ),
    Statement(
        "面积",
        re.compile(
            rf"(?<!套内)(?<!分摊)(?:建筑|产证)面积{GAP}(?:(?:[为约共]|合计|共计){{1,2}}{GAP})?"
            rf"(?P<area>(?:\d[\d,.]*|{NUMERAL}[百十{NUMERAL[1:-1]}]{{0,6}}点?{NUMERAL}{{0,3}}){GAP}(?:平方米|平米|㎡|m²))"
        ),
        {"area": "建筑面积"},
    ),
)

_DEBTS = (
    Statement(
        "欠",
        re.compile(
            rf"截[止至]{GAP}(?P<day>{DATE})[^。;\n]{{0,30}}?欠[^。;\n\d]{{0,24}}?(?P<amount>{MONEY})"
        ),
        {"day": "对账截止日", "amount": "欠款金额"},
    ),
    Statement(
        "欠",
        re.compile(rf"(?:尚|仍|共|累计|拖)欠[^。;\n\d]{{0,24}}?(?P<amount>{MONEY})"),
        {"amount": "欠款金额"},
    ),
    Statement(
        "欠",
        re.compile(rf"(?:\A|\n){GAP}(?:致:?{GAP})?(?P<debtor>{ORGANISATION}){GAP}:{GAP}\n"),
        {"debtor": "债务人"},
    ),
    Statement(
        "律师",
        re.compile(rf"接受(?P<client>{ORGANISATION})(?:{GAP}\([^()\n]{{1,20}}\))?的?委托"),
        {"client": "债权人"},
    ),
)

CONTRACT_STATEMENTS = (*_TERMS, *_LOANS, *_WORKS, *_HOUSES, *_DEBTS)
