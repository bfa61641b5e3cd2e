"""Statements of acquisitions: what is bought, how much of it, at what price, and what it is worth.

``收购某某持有的 *某某科技有限公司62%* 股权``, ``股权转让价款合计为 *18,290万元*``,
``以 *2023年4月30日* 为评估基准日``, ``股东全部权益价值为 *29,610万元*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION
from featpipe.extraction.statements.statement_words import DATE, PERCENT, Statement

_UNIT = r"(?:[美欧日港]?元|[元圆]整?)"
_MONEY = (
    r"(?:人民币|港币|美元)?"
    rf"(?:¥?\d[\d,.]*{GAP}(?:万|亿)?{_UNIT}|[壹贰叁肆伍陆柒捌玖拾佰仟万亿零]+[元圆]整?)"
)
_IS = rf"(?:合计|总额|总计|共计)?(?:确定|协商确定|作价)?(?:为|:){GAP}"

DEALS = (
    Statement(
        "股权",
        re.compile(
            rf"(?:收购|受让|购买)(?:[^,。;\n]{{0,60}}?(?:持有的?|所持))?(?P<target>{ORGANISATION})(?:{GAP}\([^()\n]{{1,30}}\))?"
            rf"的?{GAP}(?:合计|共计)?(?P<share>{PERCENT}){GAP}的?股权"
        ),
        {"target": "标的公司", "share": "收购股权比例"},
    ),
    Statement(
        "价",
        re.compile(
            rf"(?<!最[高低])(?:转让|交易|收购|成交)总?(?:价款|对价|价格|作价|价){_IS}(?P<amount>{_MONEY})(?!/)"
            rf"|(?<!{HAN})总?代价{_IS}(?P<paid>{_MONEY})"
        ),
        {"amount": "交易对价", "paid": "交易对价"},
    ),
    Statement(
        "基准日",
        re.compile(
            rf"以{GAP}(?P<day>{DATE}){GAP}(?:为|作为)(?:评估|估值|审计|定价|、|及|和)*基准日"
        ),
        {"day": "评估基准日"},
    ),
    Statement(
        "值日期",
        re.compile(rf"(?P<day>{DATE})\((?:即)?\"?估值日期?\"?\)"),
        {"day": "评估基准日"},
    ),
    Statement(
        "值",
        re.compile(
            rf"(?:股东全部权益|全部股东权益|股东权益|全部股权)[^,。;\n\d]{{0,12}}?(?:价值|估值|市值|评估值){_IS}(?P<amount>{_MONEY})"
            rf"|(?:评估值|市值){_IS}(?P<worth>{_MONEY})"
        ),
        {"amount": "评估值", "worth": "评估值"},
    ),
    Statement(
        "方",
        re.compile(
            rf"(?:买方|受让方|收购方){GAP}(?:为|:)?{GAP}(?P<buyer>{ORGANISATION})(?=[,。;、(]|[与和及])"
        ),
        {"buyer": "收购方"},
    ),
    Statement(
        "方",
        re.compile(
            rf"(?:卖方|转让方|出让方){GAP}(?:为|:)?{GAP}(?P<client>{ORGANISATION})(?=[,。;、(]|[与和及订签])"
        ),
        {"client": "交易对方"},
    ),
    Statement(
        "代",
        re.compile(rf"(?:股票|证券|股份)代[码号]{GAP}:?{GAP}(?P<code>\d{{4,6}})(?!\d)"),
        {"code": "证券代码"},
    ),
)
