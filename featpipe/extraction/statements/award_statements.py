"""Statements of notices of awards: who asked for tenders, and who won.

``经采购人 *某大学* 确认``, ``受 *某医院* 委托``, ``由 *X公司* 中标``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import ORGANISATION
from featpipe.extraction.statements.statement_words import REMARK, Statement

AWARDS = (
    Statement(
        "中标",
        re.compile(
            rf"(?:确定|确认|由|推荐)(?P<winner>{ORGANISATION}){REMARK}(?:[、和及与]{ORGANISATION}{REMARK}){{0,9}}"
            rf"(?:(?:联合体)?为)?(?:第一)?(?:中标|成交)(?!候选)"
        ),
        {"winner": "中标人"},
    ),
    Statement(
        "采购人",
        re.compile(
            rf"(?:经|由|报|向)采购人(?P<buyer>{ORGANISATION}){REMARK}(?:确认|同意|批准|审定)"
        ),
        {"buyer": "采购人"},
    ),
    Statement(
        "委托",
        re.compile(rf"受(?P<buyer>{ORGANISATION}){REMARK}的?委托"),
        {"buyer": "采购人"},
    ),
)
