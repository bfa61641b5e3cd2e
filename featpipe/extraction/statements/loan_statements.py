"""Statements of loan contracts: what is lent, for how long, at what rate, and what for.

``向甲方提供人民币（大写）贰仟万元（小写：*20,000,000元*）的借款``, ``贷款期限为 *7年*``,
``借款年利率为 *3.95%*``, ``借款用于 *采购棉纱*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP
from featpipe.extraction.statements.statement_words import LENGTH, MONEY, Statement

#: The digits of 人民币(大写)贰仟万元(小写:20,000,000元).
_SUM = (
    r"(?:总额|本金|金额)?(?:共计|合计|计|为)?(?:(?:人民币)?\([大小]写\)[^()\n\d]{2,24}\((?:小写)?:?)?"
    rf"(?P<amount>{MONEY})"
)
_NUMBER = rf"{LENGTH}(?:\(\d{{1,3}}\))?"
_PERIOD = rf"{_NUMBER}(?:年零?{_NUMBER}个月|个月|年|天|日)"

LOANS = (
    Statement(
        "借",
        re.compile(rf"(?:借款|出借|借给)(?:给?[甲乙]方)?{_SUM}"),
        {"amount": "借款金额"},
    ),
    Statement(
        "款",
        re.compile(
            rf"(?:提供|发放|出借)[^,。;\n\d]{{0,16}}?(?:借款|贷款)?{_SUM}(?=[^,。;\n]{{0,12}}(?:借款|贷款)|[)。,;])"
        ),
        {"amount": "借款金额"},
    ),
    Statement(
        "期限",
        re.compile(rf"(?<![未各每])(?:借款|贷款)期限?(?:为|共|共计)?{GAP}(?P<period>{_PERIOD})"),
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
