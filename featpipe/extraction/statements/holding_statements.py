"""Statements of announcements on what holders do with their shares: pledge, freeze, buy and sell.

``将其持有的公司股份 *1,000股* 质押给 *某银行*``, ``被 *某法院* 司法冻结``,
``回购公司股份 *500,000股*，最高成交价为 *12.30元/股*``, ``减持公司股份 *80,000股*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import (
    DAY,
    IS,
    KINDS,
    MONEY,
    NAME,
    OF_COMPANY,
    OF_SHARES,
    PERCENT,
    REMARK,
    SHARES,
    Statement,
)

_COURT = (
    rf"{HAN}{{2,24}}?(?:人民法院|(?:人民)?检察院|公安(?:厅|局(?:{HAN}{{1,10}}分局)?)|监察委员会)"
)
#: All shares of the company.
_STOCK = (
    rf"{OF_COMPANY}(?:当前|目前|现有)?(?:总股本|股份总数|股本总额|总股份)(?:总数)?(?:{SHARES})?的?"
    rf"(?:比例)?为?{GAP}"
)
_HOLDERS = r"(?:控股股东|股东|实际控制人|控制人|一致行动人|董事长?|监事|总?经理)"
#: What is held before and afterwards, or planned, and not traded.
_NO_TRADE = "前|后|持有|不超过|不高于|不低于|计划|拟"

HOLDINGS = (
    Statement(
        "质押",
        re.compile(
            rf"(?<![原曾])质押(?:给|予|于)(?:了)?(?P<pledgee>{ORGANISATION}|{PERSON}(?=[,。;(]))"
        ),
        {"pledgee": "质权人"},
    ),
    Statement(
        "质押",
        re.compile(
            rf"[与向](?P<pledgee>{ORGANISATION}){REMARK}(?:签[订署]|办理|进行|开展|申请)[^。;\n]{{0,20}}质押"
        ),
        {"pledgee": "质权人"},
    ),
    Statement(
        "持有",
        re.compile(
            rf"(?<!合计)(?<!合并)(?<!共同)持有{OF_COMPANY}{KINDS}(?:股份|股票)?(?:总数|数量)?"
            rf"(?:为|共计|合计|共)?{GAP}(?P<shares>{SHARES})[,(]?(?:占{_STOCK}(?P<part>{PERCENT}))?"
        ),
        {"shares": "持股数量", "part": "持股比例"},
    ),
    Statement(
        "占",
        re.compile(rf"占{_STOCK}(?P<part>{PERCENT})"),
        {"part": "占总股本比例"},
    ),
    Statement(
        "质押",
        re.compile(
            rf"以其?(?:所)?持有的?{OF_SHARES}(?P<shares>{SHARES})[^。;\n]{{0,20}}?向(?P<pledgee>{ORGANISATION})"
            rf"{REMARK}[^。;\n]{{0,20}}?质押"
        ),
        {"shares": "质押股数", "pledgee": "质权人"},
    ),
    Statement(
        "质押",
        re.compile(rf"于{GAP}(?P<day>{DAY}),?{GAP}(?:将|以其|通过)[^。;\n]{{0,80}}?质押"),
        {"day": "质押起始日"},
    ),
    Statement(
        "质押",
        re.compile(
            rf"(?<!解除)质押(?:登记)?(?:起始|开始|登记)?(?:日期|日|时间){IS}(?P<day>{DAY})"
            rf"|(?<!原)(?<!原定)质押(?:登记)?(?:终止|到期|截止|结束)(?:日期|日|时间){IS}(?P<last>{DAY})"
        ),
        {"day": "质押起始日", "last": "质押到期日"},
    ),
    Statement(
        "质权人",
        re.compile(rf"质权人(?:名称)?(?:分别)?(?:为|是){GAP}(?P<pledgee>{NAME})[^,。;\n]{{0,200}}"),
        {"pledgee": "质权人"},
    ),
    Statement(
        "解",
        re.compile(
            rf"于{GAP}(?P<day>{DAY})(?:(?!接到|收到|获悉|通知|函告|披露|公告)[^,。;\n]){{0,50}}?"
            rf"(?:解除|解冻|解押)(?:了)?{GAP}(?:股份|股权|股票|证券)?(?:司法|轮候)?(?:质押|冻结|查封|手续|$|(?=[,。;(]))"
            rf"|于{GAP}(?P<back>{DAY})(?:提前)?购回[^。;\n]{{0,30}}?(?:解除|解押)"
        ),
        {"day": "解除日期", "back": "解除日期"},
    ),
    Statement(
        "冻结",
        re.compile(
            rf"(?P<shares>{SHARES})(?:{KINDS}{OF_COMPANY}?{KINDS}(?:股份|股票)?)?(?:\([^()\n]{{1,60}}\))?"
            rf"[^,。;\n\d]{{0,10}}?(?:于{GAP}{DAY}{GAP})?被{GAP}(?:分别)?[^,。;\n]{{0,60}}?冻结"
        ),
        {"shares": "冻结股数"},
    ),
    Statement(
        "冻结",
        re.compile(
            rf"冻结(?:了)?(?P<name>{NAME}){GAP}(?:\([^()\n]{{1,20}}\))?(?:所|直接)?持有?的?{OF_SHARES}{GAP}(?P<shares>{SHARES})"
            rf"|对(?P<holder>{NAME}){GAP}(?:\([^()\n]{{1,20}}\))?(?:所|直接)?持有?的?{OF_SHARES}{GAP}(?P<frozen>{SHARES})"
            rf"[^,。;\n\d]{{0,16}}?冻结"
        ),
        {"name": "股东名称", "shares": "冻结股数", "holder": "股东名称", "frozen": "冻结股数"},
    ),
    Statement(
        "冻结",
        re.compile(
            rf"被{GAP}(?P<court>{_COURT})(?:[、和及与]{_COURT}){{0,9}}[^,。;\n]{{0,16}}?冻结"
            rf"|(?<!{HAN})(?P<by>{_COURT})[^。;\n]{{0,80}}?(?:予以|进行|实施|采取|裁定|执行)(?:司法|轮候|继续)*冻结"
            rf"|(?<!{HAN})(?P<on>{_COURT})于{GAP}{DAY}{GAP}(?:司法|轮候|继续)*冻结"
        ),
        {"court": "冻结机关", "by": "冻结机关", "on": "冻结机关"},
    ),
    Statement(
        "冻结",
        re.compile(
            rf"于{GAP}(?P<day>{DAY}){GAP},?被[^,。;\n]{{0,60}}?冻结"
            rf"|于{GAP}(?P<since>{DAY}){GAP},?对[^,。;\n]{{0,80}}?冻结"
            rf"|于{GAP}(?P<on>{DAY}){GAP}(?:司法|轮候|继续)*冻结"
            rf"|冻结(?:起始|开始)?(?:日期|日|时间){IS}(?P<first>{DAY})"
            rf"|(?<=[,、(])起始(?:日期|日|时间){IS}(?P<begin>{DAY})"
            rf"|(?<=[,、(])(?:到期|届满|终止)(?:日期|日|时间){IS}(?P<end>{DAY})"
            rf"|冻结(?:终止|到期|截止|结束|届满)(?:日期|日|时间){IS}(?P<last>{DAY})"
        ),
        {
            **dict.fromkeys(("day", "since", "on", "first", "begin"), "冻结起始日"),
            **dict.fromkeys(("end", "last"), "冻结到期日"),
        },
    ),
    Statement(
        "冻结",
        re.compile(
            rf"累计(?:已)?(?:被)?(?:司法)?(?:轮候)?冻结(?:的)?(?:{OF_COMPANY})?(?:的)?(?:股份)?(?:数量)?(?:总数)?"
            rf"(?:为|共|共计)?{GAP}(?P<shares>{SHARES})"
        ),
        {"shares": "累计冻结数量"},
    ),
    Statement(
        "股东",
        re.compile(
            rf"{_HOLDERS}(?:(?:的|、|及其|兼){{1,3}}{_HOLDERS}){{0,3}}(?P<name>{NAME}){REMARK}"
            rf"(?:的)?(?:通知|函告|告知|书面|来函|出具|处|关于|发来|所持|持有|将其?|拟|计划|减持|增持|因|保证|及其|与|于|在|通过|自)"
        ),
        {"name": "股东名称"},
    ),
    Statement(
        "回购",
        re.compile(rf"回购(?:了)?{OF_SHARES}{GAP}(?P<shares>{SHARES})"),
        {"shares": "回购股数"},
    ),
    Statement(
        "回购",
        re.compile(
            rf"(?:支付|使用|成交)的?(?:资金)?总?(?:金额|额)(?:合计|共计|约)?{IS}(?P<amount>{MONEY})"
        ),
        {"amount": "回购金额"},
    ),
    Statement(
        "回购",
        re.compile(rf"截[至止]{GAP}(?P<day>{DAY})[^。;\n]{{0,60}}?回购"),
        {"day": "截止日期"},
    ),
    Statement(
        "回购",
        re.compile(
            rf"(?:总额|金额|资金)[^,。;\n\d]{{0,20}}?不(?:低|少)于{GAP}(?P<least>{MONEY})"
            rf"[^。;\n\d]{{0,20}}?不(?:超过|高于|多于){GAP}(?P<most>{MONEY})"
        ),
        {"least": "回购资金下限", "most": "回购资金上限"},
    ),
    Statement(
        "回购",
        re.compile(
            rf"(?:价格|单价)(?:上限)?[^,。;\n\d]{{0,16}}?(?:不超过|不高于|上限[^,。;\n]{{0,24}}?为){GAP}"
            rf"(?P<price>{MONEY}(?:/股)?)"
        ),
        {"price": "回购价格上限"},
    ),
    Statement(
        "期限",
        re.compile(
            rf"回购[^,。;\n]{{0,8}}期[限间][^。;\n]{{0,60}}?(?P<first>{DAY}){GAP}起?(?:至|到|-|~|—)+{GAP}"
            rf"(?P<last>{DAY})"
        ),
        {"first": "回购起始日", "last": "回购截止日"},
    ),
    Statement(
        "最高",
        re.compile(
            rf"最高(?:成交|回购|购买|交易|买入)?价格?(?:分别)?{IS}(?P<price>{MONEY}(?:/股)?)"
        ),
        {"price": "最高成交价"},
    ),
    Statement(
        "最低",
        re.compile(
            rf"最低(?:成交|回购|购买|交易|买入)?价格?(?:分别)?{IS}(?P<price>{MONEY}(?:/股)?)"
        ),
        {"price": "最低成交价"},
    ),
    Statement(
        "均价",
        re.compile(rf"均价(?:约)?{IS}(?P<price>{MONEY}(?:/股)?)"),
        {"price": "成交均价"},
    ),
    Statement(
        "减持",
        re.compile(rf"减持(?:了)?(?:其所?持有?的?)?{OF_SHARES}{GAP}(?P<shares>{SHARES})"),
        {"shares": "减持股数"},
    ),
    Statement(
        "增持",
        re.compile(rf"增持(?:了)?{OF_SHARES}{GAP}(?P<shares>{SHARES})"),
        {"shares": "增持股数"},
    ),
    Statement(
        "持",
        re.compile(
            rf"(?:于|自|从|在){GAP}(?P<first>{DAY})(?:起)?{GAP}(?:至|到|-|—){GAP}(?P<last>{DAY})"
            rf"(?:期间|之间)?[^。;\n]{{0,80}}?(?:增持|减持)"
        ),
        {"first": "起始日期", "last": "截止日期"},
    ),
    *(
        Statement(
            word,
            re.compile(
                rf"{word}(?![后前])(?:(?!{_NO_TRADE})[^。;\n]){{0,40}}?{SHARES}"
                rf"[^。;\n]{{0,16}}?占{_STOCK}(?P<part>{PERCENT})"
            ),
            {"part": "变动比例"},
        )
        for word in ("减持", "增持", "过户", "转让")
    ),
    *(
        Statement(
            word,
            re.compile(rf"{DAY}{GAP}(?:至|到|-|~|—|–)+{GAP}(?P<last>{DAY})"),
            {"last": "截止日期"},
        )
        for word in ("减持", "增持")
    ),
    Statement(
        "持后",
        re.compile(
            rf"(?:增|减)持(?:计划)?(?:完成|实施)?后[^。;\n]{{0,40}}?持有?{OF_SHARES}{GAP}(?P<shares>{SHARES})"
        ),
        {"shares": "变动后持股数量"},
    ),
)
