"""Statements of judgments about loans: what was lent, when, at which rate, and what is to be paid.

``*2017年5月12日*，张三向李四借款 *500000元*，约定 *月息2分*``, ``*2019年6月6日* 发放上述贷款``,
``一、被告张三偿还原告李四借款本金 *420000元*，并支付自 *2019年5月12日* 起的利息``,
``由 *王五* 提供连带责任保证``, ``*赵六* 在担保人处签名``.

What was lent is told where a court finds the facts, and only without such a part by what the
plaintiff says. What is still owed, and what is paid back, is no loan.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.names.bare_labels import find_defendants
from featpipe.extraction.names.name_patterns import GAP
from featpipe.extraction.statements.statement_words import (
    DATE,
    MONEY,
    Phrase,
    behind_last,
    span_of,
)
from featpipe.extraction.values.counts import find_percents
from featpipe.extraction.values.numbers import CHINESE_DIGIT

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a principal is called that is not that of the loan, but what is left of it.
OWED = "尚欠本金"
#: A text without one of them tells of no loan.
_WORDS = ("借款", "借贷", "贷款", "借条", "借据", "出借", "透支", "信用卡")
#: 五万元整 and 5万, too.
_SUM = (
    rf"(?:{MONEY}|(?:人民币)?[{CHINESE_DIGIT}万亿]{{1,14}}元整?"
    r"|(?<![\d,.])\d[\d.]{0,8}万(?=[,。;]))"
)
_IS = rf"(?:为|是|共计|合计|总计|计|共|:|现金|本金|了|的){{0,4}}{GAP}"

#: Parts of a judgment: what the court finds, what it thinks of it, what it orders, what follows.
_found_by_court = re.compile(
    r"(?:审理|审查|本院|另|综合)查明|查明(?:如下|事实|以下)|认定(?:以下|如下|的)?(?:案件)?事实|(?:审理|审查|本院)认定"
    r"|事实认定|确认(?:以下|如下)(?:案件)?事实"
)
_thought = re.compile(r"本院(?:经审查)?认为|裁判理由|判决理由|本院评判")
_ordered = re.compile(
    r"(?:判决|裁决|裁定|调解|协议|决定)如下|如下支付令|(?:达成|作出)(?:如下|以下)(?:调解)?(?:协议|判决)"
)
_end_of_orders = re.compile(
    r"(?:案件|本案)(?:诉讼)?受理费|如不服|上述(?:调解)?协议|(?:如果?)?未按(?:照)?本(?:判决|调解书)"
    rf"|审{GAP}判{GAP}[长员]"
)

#: Before a sum or a day, of what is paid back, asked for or still owed.
_back = re.compile(
    r"归还|偿还|返还|清偿|还款|还清|还本|还息|付息|代偿|催|诉至|起诉|尚欠|仍欠|拖欠|未还|剩余|余款|支付利息"
    r"|[偿归]还了|已还|还了|扣划|请求判|判令"
)
_lent = re.compile(
    rf"[向从自找跟问](?:(?!借|贷)[^,。;\n]){{1,30}}?(?:借|贷)(?:款|到|得|取|走|用|入|出)?{_IS}(?P<value>{_SUM})"
    rf"|(?:借款|贷款|出借|借给|借支|融资)(?:金额|额度|数额|总额|本金|款项)?(?:(?!还|欠|付)[^,。;\n\d]){{0,10}}?{_IS}(?P<loan>{_SUM})"
    rf"|(?:今|现|兹)?(?:借到|借得|收到)(?:(?!还)[^,。;\n\d¥]){{0,20}}?{_IS}(?P<note>{_SUM})"
)
_paid_out = re.compile(
    rf"(?:发放|放款|放贷)(?:(?!还|息)[^,。;\n\d]){{0,12}}?{_IS}(?P<value>{_SUM})"
    rf"|(?:发放|放款|放贷)了?(?P<loan>(?:上述|该笔?|前述|全部|约定的?|案涉|涉案)?(?:贷款|借款|款项)?)"
    rf"|(?:转账|汇款|支付|交付|划付|打款)(?:给[^,。;\n]{{1,20}})?了?(?:借款|贷款)(?:本金)?{_IS}(?P<given>{_SUM})"
    rf"|将(?:上述|该笔?|前述|案涉|涉案)?(?:贷款|借款)(?:本金)?{_IS}(?P<moved>{_SUM})[^,。;\n]{{0,24}}?(?:[划汇转打存]|支付|发放)"
)
_held_by_court = re.compile(
    rf"(?:借款|贷款|出借)的?本金(?:数额|金额)?(?:应|依法|本院)*(?:认定|确认|确定|核定)为{GAP}(?P<value>{_SUM})"
)
#: What is called a principal: of what was lent, of what somebody asks for, or of what is left.
_principal = re.compile(
    rf"(?:借款|贷款|出借|透支|款项|的)?本金(?:余额|数额|金额)?{_IS}(?P<value>{_SUM})"
)
#: Of credit cards, whose principal is what is drawn or paid by instalments.
_drawn = re.compile(rf"(?:分期|透支)(?:业务|款|的)?(?:本金|金额|总额){_IS}(?P<value>{_SUM})")
_further = re.compile(rf"{GAP}[、和及]{GAP}(?P<value>{_SUM})")
_day = re.compile(DATE)
_and = re.compile(rf"{GAP}[、和及与,]{GAP}")
_BEFORE_DAY, _BEFORE_SAME_DAY = 6, 360
_same_day = re.compile(r"[同当][日天]")
#: Behind a day on which nothing is lent, and before it.
_no_loan_day = re.compile(rf"{GAP}(?:前|之前|到期|届满|还清|止|立案|起诉|归还|偿还|期间)")
_before_no_loan_day = re.compile(r"(?:[至到]|截[至止]|暂计|届满|到期日?(?:为)?|出生)\Z")
_noted = re.compile(
    rf"(?P<day>{DATE})(?:(?!还|诉|付|息)[^。;\n]){{0,40}}?(?:出具|书写|立下|签[订署]|写下|打)"
    r"[^。;\n]{0,30}?(?:借条|借据|欠条|欠据|借款(?:合同|协议|凭证)|贷款(?:合同|协议)|借贷合同)"
    rf"|(?P<asked>{DATE})[^。;\n]{{0,30}}?申请(?:办理)?[^,。;\n]{{0,10}}?(?:分期|贷款|借款|信用卡)"
)

#: The first day of a loan's term, where nothing else tells one.
_term = re.compile(
    rf"(?:借款|贷款|借贷)(?:期限|期间|期)?(?:为|:|是)?[自从由]?{GAP}(?P<value>{DATE}){GAP}起?[至到-]"
)

#: Between a rate and its number.
_called = re.compile(rf"(?:利率|利息|息)(?:标准)?(?:均?[为按是:]|计)?{GAP}\Z")
_LONGEST_CALLED = 10
_agreed = re.compile(
    r"约定|载明|写明|注明|口头|承诺|执行|议定|商定|合同|协议|[借欠][条据]|利率|条子|凭证|给付利息"
)
_not_agreed = re.compile(
    r"逾期|罚息|违约|复利|超过|上限|为限|调整|四倍|同期|上浮|加收|折合|基准|贷款市场|lpr|主张|请求|要求|过高|不予"
)

_owed = re.compile(
    r"(?:归还|偿还|返还|支付|清偿|给付|付还|退还|偿付|赔偿|还清|欠付?|确认)(?:(?!连带|受理费|律师)[^。;\n]){0,90}?"
    rf"(?:本金|借款|贷款|透支款|欠款|代偿款|垫付款|代垫款|款项|债务)(?:余额|数额)?{_IS}(?P<value>{_SUM})"
    rf"|(?:归还|偿还|返还|清偿|支付|给付)(?:(?!连带|受理费|律师|利息|罚息|违约金)[^。;\n\d]){{0,60}}?(?P<plain>{_SUM})"
)
#: Of a debt that another item orders to be paid.
_of_another = re.compile(
    r"上述|上列|前述|前款|上款|第[一二三四五六七八九十\d]{1,2}项|连带|优先受偿|范围内|其中|如果?被告|若被告|如未|逾期"
)
_item = re.compile(r"[^\n]+")
_since = re.compile(
    rf"[自从由]{GAP}(?P<value>{DATE}){GAP}(?:之?日?起|开始|始|起算|之?后|至|计)"
    rf"|(?P<day>{DATE}){GAP}(?:之?日?起(?!诉)|以后|之后)"
)
_interest_told = re.compile(r"息|利率|占用|损失|lpr")

_guarantees = re.compile(
    r"提供(?:(?!抵押|质押|[,。;\n]).){0,24}?(?:保证|担保)(?![物品金])"
    r"|承担(?:(?![,。;\n]).){0,12}?(?:保证|担保)(?:责任|义务)?(?![物品金])"
    r"|(?:签[订署字]|出具|签有|立有)(?:了)?(?:(?!抵押|质押|借款合同|贷款合同|[,。;\n]).){0,24}?(?:保证|担保)(?:合同|函|书|协议|承诺)"
    r"|在(?:(?![,。;\n]).){0,24}?(?:担保|保证)(?:人|方)?\"?(?:一?栏|处|位置|一项)?(?:内|中|上|下方)?(?:签|捺|盖|署)"
    r"|以(?:连带责任)?(?:担保|保证)人的?(?:身份|名义)|作为(?:(?![,。;\n]).){0,12}?(?:担保|保证)人|[作做](?:了)?(?:担保|保)(?=[,。;\n])"
    r"|(?:进行|予以|自愿)(?:连带责任)?(?:担保|保证)(?=[,。;\n])"
)
_named_surety = re.compile(r"(?:担保人|保证人)(?:分别)?(?:为|是|系|:)?(?:被告)?")
_short = re.compile(r"\((?:以下|下)?(?:均|统)?(?:简称|称)为?:?\"?(?P<short>[^()\"\n]{2,12}?)\"?\)")
_jointly = re.compile(r"承担(?:连带|共同)(?:清偿|还款|偿还|给付|赔偿|保证)?(?:责任|义务)")
_for_whom = re.compile(r"[为对就]")
_secured = re.compile(r"抵押|质押")
#: Sureties' clauses, and names, that are looked at; and characters of a clause.
_MOST_SURETIES, _FAR = 200, 240
_MOST_LOANS, _MOST_RATES = 200, 2000


class _Loan(NamedTuple):
    """Spans of sums, and of days, in order."""

    sums: list[tuple[int, int]]
    days: list[tuple[int, int]]


def find_loans(folded: str) -> Iterator[Phrase]:
    """Those of a judgment about a loan."""
    if not any(word in folded for word in _WORDS):
        return
    orders = _orders_of(folded)
    facts = _facts_of(folded, orders[0])
    loan = _loan_of(folded, *facts)
    if not loan.sums and not loan.days:
        loan = _loan_of(folded, 0, facts[1])
    held = _held_by_court.search(folded, 0, orders[0])
    sums = [held.span("value")] if held else loan.sums
    yield from (Phrase(*span, "借款本金") for span in sums)
    lent = {_bare(folded[slice(*span)]) for span in sums}
    if lent:
        for other in islice(_principal.finditer(folded), _MOST_LOANS):
            if _bare(other["value"]) not in lent:
                yield Phrase(*other.span("value"), OWED)
    yield from (Phrase(*span, "借款日期") for span in loan.days)
    rates = [*_rates(folded, *facts)] or [*_rates(folded, 0, facts[1])]
    yield from (Phrase(*rate, "约定利率") for rate in rates)
    yield from _orders(folded, *orders)


def _orders_of(folded: str) -> tuple[int, int]:
    """Where the orders of a court, or what the parties agree on, begin and end."""
    begins = [found.end() for found in _ordered.finditer(folded)]
    if not begins:
        return len(folded), len(folded)
    end = _end_of_orders.search(folded, begins[-1])
    return begins[-1], end.start() if end else len(folded)


def _facts_of(folded: str, orders: int) -> tuple[int, int]:
    """Where the facts are told, or all that stands before what the court thinks."""
    begin = _found_by_court.search(folded, 0, orders)
    thought = _thought.search(folded, begin.end() if begin else 0, orders)
    return begin.end() if begin else 0, thought.start() if thought else orders


def _loan_of(folded: str, start: int, end: int) -> _Loan:
    """What is told to be lent between two places, and when: rather what was paid out."""
    paid, named = _Loan([], []), _Loan([], [])
    for pattern, loan in ((_paid_out, paid), (_lent, named)):
        for found in islice(pattern.finditer(folded, start, end), _MOST_LOANS):
            group = next((name for name, value in found.groupdict().items() if value), "loan")
            at, until = found.span(group)
            clause = folded[behind_last(",。;\n", folded, found.start(), _FAR) : at]
            if _back.search(clause):
                continue
            if group != "loan" or pattern is _lent:
                loan.sums.append((at, until))
                while further := _further.match(folded, until, end):
                    loan.sums.append(further.span("value"))
                    until = further.end()
            loan.days.extend(_days_before(folded, start, found.start()))
    named, paid = (_Loan(*(_each_once(folded, spans) for spans in loan)) for loan in (named, paid))
    # Of several loans a text may tell how only some were paid out.
    is_all_paid = max(map(len, paid)) >= len(named.sums)
    sums = paid.sums if is_all_paid and paid.sums else named.sums or paid.sums
    days = paid.days if is_all_paid and paid.days else named.days or paid.days
    if not sums:
        sums = [one.span("value") for one in islice(_drawn.finditer(folded, start, end), 1)]
    if not days:
        noted = islice(_noted.finditer(folded, start, end), _MOST_LOANS)
        days = [span_of(one) for one in noted]
    if not days and sums:
        days = [one.span("value") for one in islice(_term.finditer(folded, start, end), 1)]
    return _Loan(sums, _each_once(folded, days))


def _days_before(folded: str, start: int, at: int) -> list[tuple[int, int]]:
    """The last days that a sentence names before a place, or the one before 同日."""
    low = max(start, behind_last("。;\n", folded, at, _FAR))
    listed: list[tuple[int, int]] = []
    for day in reversed(_loan_days(folded, low, at)):
        if listed and not _and.fullmatch(folded, day[1], listed[0][0]):
            return listed
        listed.insert(0, day)
    if not listed and _same_day.search(folded, low, at):
        return _loan_days(folded, max(start, low - _BEFORE_SAME_DAY), low)[-1:]
    return listed


def _loan_days(folded: str, low: int, high: int) -> list[tuple[int, int]]:
    """Days between two places without those that a loan ends on, or something else begins."""
    return [
        day.span()
        for day in _day.finditer(folded, low, high)
        if not _no_loan_day.match(folded, day.end())
        and not _before_no_loan_day.search(
            folded[max(low, day.start() - _BEFORE_DAY) : day.start()]
        )
    ]


def _each_once(folded: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first place of each text."""
    places: dict[str, tuple[int, int]] = {}
    for start, end in spans:
        places.setdefault(_bare(folded[start:end]), (start, end))
    return [*places.values()]


def _bare(value: str) -> str:
    """A sum or a day without blanks and the name of the currency."""
    return "".join(value.split()).removeprefix("人民币")


def _rates(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Rates that are agreed on, and not those of a delay or that somebody asks for."""
    reached = start
    for rate in islice(find_percents(folded), _MOST_RATES):
        if rate.start < reached or rate.end > end:
            continue
        low = max(rate.start - _LONGEST_CALLED, start)
        is_named = rate.unit or folded.startswith(("利率", "利息"), rate.start)
        if not is_named and not _called.search(folded, low, rate.start):
            continue
        reached = rate.end
        before = folded[behind_last("。;\n", folded, rate.start, _FAR) : rate.start]
        clause = before[max(before.rfind(mark) + 1 for mark in ',("') :]
        is_clause = not clause.strip() and folded[rate.end : rate.end + 1] in ",。;)"
        if (is_clause or _agreed.search(before)) and not _not_agreed.search(clause):
            yield rate.start, rate.end


def _orders(folded: str, start: int, end: int) -> Iterator[Phrase]:
    """The principal that is to be paid, and since when it bears interest."""
    is_first = True
    for item in _item.finditer(folded, start, end):
        owed = _owed.search(folded, *item.span())
        before = folded[item.start() : span_of(owed)[0]] if owed else ""
        if owed and not _of_another.search(before) and (is_first or "本金" in before):
            yield Phrase(*span_of(owed), "判决本金")
            is_first = False
    for since in islice(_since.finditer(folded, start, end), _MOST_LOANS):
        low, high = behind_last("\n", folded, since.start(), _FAR), folded.find("\n", since.end())
        near = folded[max(low, start) : high if high >= 0 else len(folded)]
        if _interest_told.search(near):
            yield Phrase(*span_of(since), "利息起算日")
            return


def find_sureties(folded: str) -> Iterator[Phrase]:
    """Parties that stand surety, by what a clause says that they do; each by its name in full."""
    if "保证" not in folded and "担保" not in folded:
        return
    names = sorted(find_defendants(folded))[:_MOST_SURETIES]
    full_names = _full_names(folded, names)
    every = [*names, *full_names]
    is_found = False
    for pattern in (_guarantees, _jointly):
        if is_found:
            return
        for cue in islice(pattern.finditer(folded), _MOST_SURETIES):
            for at, name in _subjects(folded, cue.start(), every):
                is_found = True
                yield Phrase(*full_names.get(name, (at, at + len(name))), "保证人")
    for told in islice(_named_surety.finditer(folded), _MOST_SURETIES):
        for name in every:
            if folded.startswith(name, told.end()):
                at = told.end()
                yield Phrase(*full_names.get(name, (at, at + len(name))), "保证人")


def _full_names(folded: str, names: list[str]) -> dict[str, tuple[int, int]]:
    """The last places of names in full, by their abbreviations."""
    places: dict[str, tuple[int, int]] = {}
    for short in islice(_short.finditer(folded), _MOST_SURETIES):
        at = short.start()
        for name in names:
            if folded.endswith(name, 0, at):
                last = folded.rfind(name)
                places.setdefault(short["short"], (last, last + len(name)))
    return places


def _subjects(folded: str, cue: int, names: list[str]) -> list[tuple[int, str]]:
    """Names in the clause before a place, and before 为 or behind 由."""
    low = behind_last(",。;:\n", folded, cue, _FAR)
    if _secured.search(folded, low, cue):
        return []
    by = folded.rfind("由", low, cue)
    low = by + 1 if by >= 0 else low
    for_whom = _for_whom.search(folded, low, cue)
    high = for_whom.start() if for_whom else cue
    found = ((folded.find(name, low, high), name) for name in names)
    return [(at, name) for at, name in found if at >= 0]
