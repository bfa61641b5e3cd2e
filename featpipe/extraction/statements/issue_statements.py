"""Statements of issues of shares and bonds: how many, at what price, what was raised, since when.

``发行数量为 *36,842,105股*``, ``发行价格最终确定为 *19.00元/股*``, ``募集资金净额为 *6.8亿元*``,
``已于 *2021年7月12日* 起在某交易所上市``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP
from featpipe.extraction.statements.statement_words import DATE, MONEY, Statement

_IS = rf"(?:最终)?(?:确定)?(?:为|共|:)?{GAP}"
_SUM = rf"(?P<amount>{MONEY})"

ISSUES = (
    Statement(
        "发行",
        re.compile(
            rf"(?:发行(?:股票|股份|新股|债券)?(?:的)?数量|公开发行(?:股票|股份|新股))(?:总?计)?{_IS}"
            rf"(?P<count>\d[\d,.]*{GAP}(?:万|亿)?{GAP}[股张])"
        ),
        {"count": "发行数量"},
    ),
    Statement(
        "价",
        re.compile(
            rf"(?:发行价格|每股(?:发行)?定价|每股发行价格?){_IS}(?P<price>(?:人民币)?\d[\d,.]*{GAP}元(?:/[股张])?)"
        ),
        {"price": "发行价格"},
    ),
    Statement(
        "募",
        re.compile(rf"(?<!拟)(?:共|实际)?募集资金(?:总额)?(?:为|共计|合计)?{GAP}{_SUM}"),
        {"amount": "募集资金总额"},
    ),
    Statement(
        "净额",
        re.compile(rf"(?:募集资金|募资|资金)净额(?:为|共计)?{GAP}{_SUM}"),
        {"amount": "募集资金净额"},
    ),
    Statement(
        "上市",
        re.compile(rf"于{GAP}(?P<day>{DATE})起?在[^,。;\n]{{2,20}}上市"),
        {"day": "上市日期"},
    ),
    Statement(
        "上市",
        re.compile(rf"上市(?:流通|交易)?(?:日期?|时间)(?:为|:){GAP}(?P<day>{DATE})"),
        {"day": "上市日期"},
    ),
)
