"""Statements of who leaves and who takes a post, and why; and of who owes what to whom.

``*庄伯谦* 先生因 *个人工作调整*，申请辞去公司 *董事* 职务``, ``聘任 *骆铁生* 为公司 *总经理*``,
``截至 *2023年12月31日*，贵公司尚欠货款 *658,750元*``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import DATE, MONEY, POLITE, Statement

_OF_COMPANY = r"(?:本?公司|集团)?(?:第[一二三四五六七八九十\d]{1,3}届)?(?:董事会|监事会)?的?"

PEOPLE = (
    Statement(
        "辞去",
        re.compile(
            rf"(?:(?P<leaves>{PERSON}){POLITE})?(?:因|由于)(?P<reason>[^,。;\n]{{2,24}}?)(?:的?原因)?,[^。;\n]{{0,24}}?"
            rf"辞去(?:其?所?担任的?)?{_OF_COMPANY}(?P<post>[^,。;\n]{{2,30}}?)(?:等?职务|一职)"
        ),
        {"leaves": "离任人员", "reason": "离任原因", "post": "离任职务"},
    ),
    Statement(
        "免去",
        re.compile(
            rf"免去(?P<leaves>{PERSON})(?:(?:先生|女士|同志)的?|的){_OF_COMPANY}(?P<post>[^,。;\n]{{2,30}}?)(?:等?职务|一职)"
        ),
        {"leaves": "离任人员", "post": "离任职务"},
    ),
    *(
        Statement(
            word,
            re.compile(
                rf"{word}(?P<joins>{PERSON}){POLITE}(?:为|担任|出任){_OF_COMPANY}(?:新任)?"
                r"(?P<post>[^,。;\n()]{2,24}?)(?:候选人|职务)?(?=[,。;\n()、])"
            ),
            {"joins": "新任人员", "post": "新任职务"},
        )
        for word in ("聘任", "选举", "提名", "任命", "推选", "补选")
    ),
    Statement(
        "同志任",
        re.compile(
            rf"(?P<joins>{PERSON})同志任{_OF_COMPANY}(?P<post>[^,。;\n()]{{2,24}}?)(?=[,。;\n(])"
        ),
        {"joins": "新任人员", "post": "新任职务"},
    ),
)
DEBTS = (
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
