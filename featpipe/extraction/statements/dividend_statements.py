"""Statements of announcements of dividends: for which year, on what, how much, and when.

``以总股本 *200,000,000股* 为基数，每10股派发现金红利 *1.50元*（含税），转增 *3股*``,
``共计派发 *30,000,000元*``, ``已获 *2024年5月20日* 召开的股东大会审议通过``,
``转增后公司总股本增加至 *260,000,000股*``, ``现金红利将于 *2024年6月12日* 划入其资金账户``.

What holders get after tax, what a share gets of what is left out, and dividends of other years are
none of these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.name_patterns import GAP
from featpipe.extraction.statements.statement_words import (
    DAY,
    MONEY,
    NUMERAL,
    SHARES,
    Phrase,
    behind_last,
    span_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A text without one of them says nothing of dividends.
_WORDS = (
    "股派", "派现", "派息", "派发现金", "转增", "分红", "红利", "股利", "股息", "权益分派",
    "利润分配", "分配利润",
)  # fmt: skip
#: Most characters before a value, in its sentence, that tell what it is of.
_BEFORE = 120
_PER = rf"每{GAP}(?:(?:10|十|1|一){GAP})?股"
_GIVES = r"(?:派发?|派[送付现息]|分[派配红]|发放|支付)"
_CASH = r"(?:现金)?(?:红利|股[利息]|分红)"
_TAXED = r"(?:\((?:含税|税前|扣税前|人民币|含税,人民币)\))"
_IS = rf"(?:为|约为|是|:|=|各)?{GAP}"
_YEAR = rf"(?:\d{{4}}|{NUMERAL}{{4}}){GAP}年"
_OF_YEAR = rf"{_YEAR}{GAP}(?:年度|半年度|中期|上半年度?|前三季度|前[三3]季度|第?[一二三1-3]季度|度)"
#: The number begins where no other one goes on.
_SHARES = rf"(?<![\d,.]){SHARES}"

_plan = re.compile(
    rf"(?<!\d)(?P<value>{_OF_YEAR})的?(?:拟[以向]|(?:普通股|末期|现金)?"
    r"(?:利润分配|权益分[派配]|分红|红利|股利|股息|派息|分配|派发|资本公积))"
)
_rate = re.compile(
    rf"{_PER}(?:(?!每|税款|收益|净资产|净收益|面值|价|代扣)[^。;\n]){{0,44}}?"
    rf"(?:派发?|派[送付现息]|分[派配红]|红利|股[利息]|现金){_TAXED}?{_IS}(?:a{GAP}股{GAP})?(?P<value>{MONEY})"
    rf"|(?:红利|股[利息]|派息|分红|派发|税前|含税|按)(?:\([^()\n]{{1,16}}\))?[:为是]?{_PER}"
    rf"{_TAXED}?{_IS}(?P<each>{MONEY})"
    rf"|股{GAP}[×*x]{GAP}(?P<times>{MONEY}){GAP}[/÷]{GAP}(?:10{GAP})?股"
)
#: Behind what each share of one class gets, what one of another does.
_of_other_shares = re.compile(
    rf"(?:人民币)?{_TAXED}?[,;、]{GAP}[bh]{GAP}股{GAP}(?:(?:为|:|人民币|港币|美元){GAP})?(?P<value>{MONEY})"
)
_total = re.compile(
    rf"(?:(?:共计?|合计|总计|总额|总金额)(?:(?!每)[^。;\n\d]){{0,32}}?"
    rf"|(?<!股){_GIVES}(?:现金|人民币)*(?:红利|股[利息]|分红)?(?:总额|金额|款)?(?:共计|合计|约)?{_TAXED}?{_IS})"
    rf"(?P<value>{MONEY})"
)
_of_dividends = re.compile(r"派[发现送付息]|分派|分红|红利|股利|股息|(?<!未)(?<!供)(?<!可)分配")
_others_paid = re.compile(
    r"未分配利润[^,。;]*\Z|可供?分配|其中|累计|分别|回购金额|[abh]股[^,。;]{0,4}\Z"
)
#: What counts in a sum of dividends or less: of one share it is no more than the other.
_LEAST_TOTAL = 5
#: How much a holder gets after tax, or a share by another count; and before tax.
_net = re.compile(
    r"(?P<net>税后|代扣|扣缴|qfii|股通|补缴|补扣|已扣|实际(?:派|发放|每|分配现金)|虚拟|股本折算|折算的每|摊薄)"
    r"|(?:税前|含税)(?!后)"
)
_past = re.compile(
    r"上一?年度|上年|去年|往年|此前|曾|前次|前期|最近|近三|已(?:派发|实施|分配)|过去|历年|上一次"
    r"|(?:调整|变更|修改)前"
)
_of_year = re.compile(_OF_YEAR)
_bonus = re.compile(
    rf"{_PER}(?:(?!每|不)[^。;\n]){{0,40}}?(?:送红?股?|转增?(?:股[本份票])?|送转(?:股[份票])?|派送红股|股票股[利息]|红股)"
    rf"(?:为|各|:)?(?P<value>{_SHARES}){_TAXED}?(?:[,、]?(?:并|同时|及|和)?(?:以资本公积金?)?转增?(?:股[本份票])?{GAP}(?P<more>{_SHARES}))?"
)
_base = re.compile(
    rf"(?P<value>{_SHARES})(?:\([^()\n]{{1,80}}\))?的?(?:总股本|股[本份])?(?:总数|总额|数量)?作?为"
    r"(?:本次|实施|计算)?(?:利润分配|权益分派|分配|分派|派息|分红|派发|计算)?的?基数"
    r"|(?<!不)(?<!不得)(?<!未)(?:享有|参[与加])(?:公司)?(?:本次)?(?:利润|现金|权益|红利)?(?:分[配派红]|派息|派发)(?:权利?)?的?"
    rf"(?:总股[本数]|股[本份票])?(?:总数|总额|数量|数)?(?:共计|合计|共有|为|是|:)?{GAP}(?P<shares>{_SHARES})"
)
#: Right before a number that is taken off the base, and no longer belongs to it.
_taken_off = re.compile(
    r"(?:账户|专户|回购)(?!后)[^,。;\n后]{0,10}\Z|(?:扣除|剔除|扣减|减去)[^,。;\n后]{0,30}\Z"
)
_counted = re.compile(
    rf"(?:以|按照?|根据)[^。;\n\d]{{0,30}}?(?P<value>{_SHARES})(?:股份|股本|总股本)?(?:计算|测算)"
)
_capital = re.compile(rf"(?<!后)总股本(?:数)?(?:为|共计|:)?{GAP}(?P<value>{_SHARES})")
_grown = rf"(?:将?由{_SHARES})?(?:将|相应)?(?:增加|变更|增|扩大|变|上升|扩)?(?:至|为|到|:)?{GAP}"
_after = re.compile(
    r"(?:分红|分配|分派|送股|转增|送转|转股|实施|派送|变动|完成|股本)(?:[^,。;\n后]{0,10})?(?:之?后|完毕),?"
    r"(?:本?公司|的|股份|普通股)*(?:总股本|股份总[数额]|股本总[数额]|总股[数份]|股本)"
    rf"(?:\([^()\n]{{1,10}}\))?{_grown}(?P<value>{_SHARES})"
    rf"|(?:总股本|股份总数|股本总额)将?由{GAP}{_SHARES}(?:变更|增加|增|扩大|变)?[至为到]{GAP}(?P<grown>{_SHARES})"
)
#: The head of a table of shares before and afterwards, and the row of all of them.
_moved = re.compile(r"变动前[^\n]{0,60}变动后[^\n]{0,40}\n")
_all_shares = re.compile(
    rf"^{GAP}(?:[一二三四五\d]{{1,2}}[、.]{GAP})?(?:总股本|股份总[数额]|股本总[数额]|总股数|合计|总计|总数)(?=\W)",
    re.MULTILINE,
)
_in_row = re.compile(r"\d[\d,]{4,20}(?:\.00?)?股?(?![\d,.%])")
_LONGEST_TABLE, _LONGEST_ROW = 1500, 300
#: Behind what holds no longer.
_CHANGED = "(?:调整|变更|更正|修改|修订|改)[为至到成]"
_SET = (
    rf"(?:期|时间)?(?:\([^()\n]{{1,20}}\))?"
    rf"(?:由{GAP}{DAY}{GAP}{_CHANGED}|均?(?:确?定|安排|预计)?[为是于在])?:?{GAP}"
)
_MEETING = r"股东(?:周年|年度|特别)?(?:大会|会)"
_PAYS = r"(?:划[入付拨]|发放|派[发付]|支付|汇[入至]|到账|转入|直接划|兑付)"
_dates = (
    (
        re.compile(
            rf"(?P<value>{DAY}){GAP}(?:\([^()\n]{{1,10}}\))?(?:(?!董事会|监事会|决议公告)[^,。;\n]){{0,40}}?"
            rf"{_MEETING}(?!的?决议)[^。;\n]{{0,60}}?(?:通过|批准|同意)"
            rf"|{_MEETING}已?[于在]{GAP}(?P<held>{DAY})[^,。;\n]{{0,30}}?召开"
        ),
        "股东大会日期",
    ),
    (re.compile(rf"(?:股权|权益|股份)登记日{_SET}(?P<value>{DAY})"), "股权登记日"),
    (
        re.compile(
            rf"(?:除权{GAP}(?:[、及和/(]{{1,2}}{GAP})?(?:除?息)?\)?|除息)(?:基准)?日{_SET}(?P<value>{DAY})"
        ),
        "除权除息日",
    ),
    (
        re.compile(
            rf"(?:{_CASH}|派息|现金)款?的?(?:(?:发放|派[发付]|支付|到账|划[付拨])起?始?|)日{_SET}(?P<value>{DAY})"
            rf"|{_CASH}款?[^。;\n\d]{{0,16}}?[将已拟均于自在从]{GAP}(?P<on>{DAY}){GAP}起?[^。;\n]{{0,60}}?{_PAYS}"
            rf"|[于自在]{GAP}(?P<day>{DAY}){GAP}起?(?:[^,。;\n]{{0,30}}?){_PAYS}[^,。;\n]{{0,10}}?(?:{_CASH}|现金)"
            rf"|(?P<same>{DAY})[^。;\n]{{0,40}}?(?:{_CASH}|现金)[^,。;\n]{{0,8}}?(?:[同当][日时]){_PAYS}"
        ),
        "红利发放日",
    ),
)
_YEAR_DIGITS = 4
#: Characters before a sum in which dividends are named.
_NEAR = 30
_per_share = re.compile(_PER)
_per_ten = re.compile(rf"每{GAP}(?:10|十){GAP}股|/{GAP}10{GAP}股")
_replaced = re.compile(rf"[^,。;\n]{{0,8}}?{_CHANGED}")
#: Between what is told of dividends and a sum of something else.
_other_sums = re.compile("募集|转让|货款|价款|工资|投资|借款|收入|净利润")
_cash = re.compile(r"红利|股[利息]")
_closed = re.compile(r"\([^()]*\)")
#: What is still to come.
_coming = re.compile(
    r"(?:尚[需须]|[还待拟]需?|需|将)(?:提交|提请|报|经|由|于|在)?[^,。;\n]{0,12}\Z"
)


def find_dividends(folded: str) -> Iterator[Phrase]:
    """Those of a text, each place once."""
    if any(word in folded for word in _WORDS):
        year = next((_digits(found["value"]) for found in _plan.finditer(folded)), "")
        yield from _years(folded, year)
        yield from _amounts(folded, year)
        yield from _shares(folded)
        yield from _days(folded)


def _digits(year: str) -> str:
    """The four of a year, whatever follows."""
    return "".join(year.split())[:_YEAR_DIGITS]


def _years(folded: str, year: str) -> Iterator[Phrase]:
    """What the year of the plan is called, in other words, too."""
    for found in _plan.finditer(folded):
        if _digits(found["value"]).startswith(year):
            yield Phrase(*found.span("value"), "分红年度")


def _amounts(folded: str, year: str) -> Iterator[Phrase]:
    """What a share gets before tax, and the sum of all; what is told to be neither is only cash."""
    known = set()
    for found in _rate.finditer(folded):
        start, end = span_of(found)
        if _is_large(folded[start:end]):
            continue
        known.add(start)
        before = _before(folded, found.start())
        is_past = _is_of_other_year(before, year) or _replaced.match(folded, end)
        if not _is_net(before) and not is_past:
            words = "每10股派息" if _per_ten.search(found[0]) else "每股派息"
            other = _of_other_shares.match(folded, end)
            spans = [(start, end), *([other.span("value")] if other else [])]
            yield from (Phrase(*span, words) for span in spans)
    for found in _total.finditer(folded):
        start, end = found.span("value")
        before = _before(folded, found.start())
        near = before[-_NEAR:]
        told = near + found[0]
        cues = [cue.end() for cue in _of_dividends.finditer(told)]
        if start in known or not cues or _other_sums.search(told, cues[-1]):
            continue
        if _is_large(folded[start:end]):
            is_part = _others_paid.search(_closed.sub("", before))
            if not is_part and not _is_of_other_year(before, year):
                yield Phrase(start, end, "现金红利总额")
        elif not _per_share.search(near) and _cash.search(found[0]):
            yield Phrase(start, end, "现金红利")


def _shares(folded: str) -> Iterator[Phrase]:
    """What shares get shares, on how many it is paid, and how many there are afterwards."""
    for found in _bonus.finditer(folded):
        for group in ("value", "more"):
            if found[group] and not _is_large(found[group]):
                yield Phrase(*found.span(group), "送转股数")
    bases = [
        span_of(found)
        for found in _base.finditer(folded)
        if not _taken_off.search(_before(folded, span_of(found)[0]))
    ]
    if not bases:
        bases = [span_of(found) for found in _counted.finditer(folded)]
    if not bases and "基数" in folded:
        bases = [span_of(found) for found in _capital.finditer(folded)][:1]
    yield from (Phrase(*span, "派息基数") for span in bases)
    after = [span_of(found) for found in _after.finditer(folded)]
    yield from (Phrase(*span, "变动后总股本") for span in after or _of_table(folded))


def _of_table(folded: str) -> Iterator[tuple[int, int]]:
    """The last number of the row of all shares, in a table of shares before and afterwards."""
    head = _moved.search(folded)
    if head and "万" not in head[0]:
        row = _all_shares.search(folded, head.end(), head.end() + _LONGEST_TABLE)
        if row:
            line_end = folded.find("\n", row.end())
            line_end = line_end if line_end >= 0 else len(folded)
            numbers = _in_row.finditer(folded, row.end(), min(line_end, row.end() + _LONGEST_ROW))
            spans = [number.span() for number in numbers]
            yield from spans[-1:]


def _days(folded: str) -> Iterator[Phrase]:
    for pattern, words in _dates:
        for found in pattern.finditer(folded):
            start, end = span_of(found)
            before = _before(folded, start)
            if words == "股东大会日期" and _coming.search(before):
                continue
            if not _past.search(before):
                yield Phrase(start, end, words)


def _before(folded: str, at: int) -> str:
    """What its sentence has before a place."""
    return folded[behind_last("。;\n", folded, at, _BEFORE) : at]


def _is_large(number: str) -> bool:
    """Whether a number is too large for what one share, or ten, get."""
    whole = re.split(r"\.", number.replace(",", ""), maxsplit=1)[0]
    return "万" in number or "亿" in number or sum(map(str.isdigit, whole)) >= _LEAST_TOTAL


def _is_net(before: str) -> bool:
    """Whether the last that is said of taxes is that they are off."""
    told = [*_net.finditer(before)]
    return bool(told) and told[-1]["net"] is not None


def _is_of_other_year(before: str, year: str) -> bool:
    """Whether a sentence tells of a year before that of the plan."""
    told = _of_year.findall(before)
    is_other = bool(told) and not _digits(told[-1]).startswith(year)
    return is_other or _past.search(before) is not None
