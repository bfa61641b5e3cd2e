"""Statements of announcements on pledges of shares, their ends and releases, and what they add to.

``*2,600万股* 质押给某银行``, ``解除其中 *1,000股* 的质押``, ``其中已质押 *5,200万股*``,
``质押期限至 *办理解除质押登记之日* 止``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP
from featpipe.extraction.statements.statement_words import (
    DAY,
    IS,
    OF_COMPANY,
    OF_SHARES,
    OWNED,
    PERCENT,
    REMARK,
    SHARES,
    Statement,
)

#: All that a holder has pledged.
_ALL = (
    r"(?:累计(?:已|被)*(?:质押|处于质押状态)|处于质押状态|(?:剩余|共计|已)(?:被)?质押)的?"
    rf"(?:{OF_COMPANY})?的?(?:股份|股票)?(?:数量|总数|余额)*"
    r"|质押的?股份(?:余额|总数|累计)"
)
#: The end of a pledge that no day is set for.
_UNTIL = (
    r"(?:质权人|质押双方|双方)?(?:向[^,。;\n]{2,12}?)?(?:申请|办理)?(?:完毕)?(?:股份|股票|证券)?"
    r"解除(?:股份|股票|证券)?质押(?:登记)?(?:手续)?之?日"
)
_RELEASE = r"(?:解除|解押)"

PLEDGES = (
    Statement(
        "质押",
        re.compile(
            rf"{OWNED}(?:(?!解除)[^,。;\n]){{0,40}}?(?P<shares>{SHARES})(?!{GAP}分[^,。;\n]{{1,3}}[笔次])"
            rf"(?:(?!解除)[^。;\n]){{0,80}}?(?<!解除)质押"
            rf"|(?P<each>{SHARES})(?:股份|股票)?{REMARK}(?:再次|重新|补充|分别|全部|再|已|,)*质押[给予于]"
        ),
        {"shares": "质押股数", "each": "质押股数"},
    ),
    Statement(
        "质押",
        re.compile(rf"(?<!前)(?:{_ALL})(?:为|共|共计)*{GAP}(?P<shares>{SHARES})"),
        {"shares": "累计质押数量"},
    ),
    Statement(
        "解",
        re.compile(
            rf"(?<!解除)(?<!解除了)质押(?:[给予于][^,。;\n]{{2,40}}?)?的{OF_SHARES}{GAP}(?P<shares>{SHARES})"
            rf"(?:(?!其中)[^。;\n]){{0,120}}?{_RELEASE}(?!了?其中)"
            rf"|{OWNED}(?:(?!质押)[^,。;\n]){{0,40}}?(?P<owned>{SHARES})(?:(?!其中|质押[给予于])[^。;\n]){{0,60}}?"
            rf"{_RELEASE}"
            rf"|其中的?(?P<some>{SHARES}){REMARK}(?:(?!质押[给予于])[^。;\n]){{0,60}}?{_RELEASE}"
            rf"|{_RELEASE}(?:了)?(?:其中的?)?(?P<part>{SHARES})"
            rf"|{_RELEASE}(?:了)?(?:质押)?(?:[给予于][^,。;\n]{{2,40}}?的)?(?:全部)?{OF_SHARES}{GAP}(?P<of>{SHARES})"
        ),
        dict.fromkeys(("shares", "owned", "some", "part", "of"), "解除质押股数"),
    ),
    Statement(
        "解除",
        re.compile(rf"解除(?:质押)?(?:登记)?(?:日期|日|时间){IS}(?P<day>{DAY})"),
        {"day": "解除日期"},
    ),
    Statement(
        "质押",
        re.compile(
            rf"于{GAP}(?P<day>{DAY}){GAP}质押[给予于]"
            rf"|(?P<on>{DAY}),{GAP}[^,。;\n]{{2,40}}?{OWNED}(?:(?!解除)[^。;\n]){{0,80}}?(?<!解除)质押"
        ),
        {"day": "质押起始日", "on": "质押起始日"},
    ),
    Statement(
        "交易日",
        re.compile(
            rf"初始交易日(?:期)?{IS}(?P<day>{DAY})"
            rf"|(?<!原)购回交易日(?:期)?(?:延期|延长|展期|推迟)?(?:至|到)?{IS}(?P<last>{DAY})"
        ),
        {"day": "质押起始日", "last": "质押到期日"},
    ),
    Statement(
        "质押",
        re.compile(
            rf"质押(?:期限|期间|期)?(?:延长|延期|展期)?[至到]{GAP}(?P<day>{DAY})"
            rf"|质押[^。;\n]{{0,80}}?[,(]到期日(?:期)?(?:为|是|:|至){GAP}(?P<last>{DAY})"
            rf"|(?:质押|期限)[^。;\n]{{0,60}}?[至到]{GAP}(?P<until>{_UNTIL})"
        ),
        dict.fromkeys(("day", "last", "until"), "质押到期日"),
    ),
    Statement(
        "占",
        re.compile(
            rf"占(?:[^,。;\n\d占总]{{1,12}}?)?(?:所|直接|合计)*持有?的?(?:{OF_COMPANY})?的?(?:股[份票]|股)?"
            rf"(?:总数|总额|数量|数)?的?(?:比例)?(?:为)?{GAP}(?P<part>{PERCENT})"
        ),
        {"part": "占所持股份比例"},
    ),
)
