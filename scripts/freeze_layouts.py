"""Layouts of `freeze_documents.py`: the same deals as sentences, lists and tables.

A draft notes which values of a deal the text states: these are its record. Tables are written as
the package's loaders write them, one line a row, with tabs between cells and nothing for a cell
that is empty or merged into the one above, or with blanks, as in the text of a PDF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from freeze_facts import AMOUNTS, Company, Deal, Holder
from freeze_wordings import (
    DISPUTES,
    ENDED,
    FIELDS,
    FLOWING,
    HOLDINGS,
    KINDS,
    LABELS,
    NEW,
    OPEN_ENDS,
    RELEASED,
    RELEASED_LABELS,
    UNTIL,
    USES,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date

    Layout = Callable[["Draft", Sequence[Deal]], list[str]]


@dataclass
class Draft:
    """One announcement in the making.

    Attributes:
        beside: what the sentences say that belongs to no record.

    """

    company: Company
    chance: random.Random
    deals: Sequence[Deal]
    day: date
    beside: Mapping[str, str] = field(default_factory=dict)
    is_shortening_parties: bool = False
    _introduced: list[str] = field(default_factory=list)

    @property
    def did(self) -> str:
        """What happened to shares, in one word."""
        return self.company.template[2:]

    def write_date(self, day: date, where: str = "text") -> str:
        """As the company writes dates in text, or in tables."""
        styles = ("年", "年", "年", "-", "/") if where == "text" else ("年", "-", "-", "/", ".")
        style = self.company.pick(f"dates {where}", styles)
        year, month, number = day.year, day.month, day.day
        if style == "年":
            return f"{year}年{month}月{number}日"
        if style == "/":
            return f"{year}/{month}/{number}"
        return style.join((str(year), f"{month:02}", f"{number:02}"))

    def write_shares(self, n: int, *, is_bare: bool = False) -> str:
        """With the unit, or without under a column's head that tells it."""
        style = self.company.pick("amounts", AMOUNTS)
        if style == "万":
            text = f"{n / 10**4:,.2f}".rstrip("0").rstrip(".")
            return text if is_bare else f"{text}万股"
        text = f"{n:,}" if style == "," else str(n)
        return text if is_bare else f"{text}股"

    def write_share(self, part: int, whole: int) -> str:
        """A percentage, with as many digits as the company writes."""
        return f"{100 * part / whole:.{self.company.pick('digits', (2, 2, 2, 2, 3, 4))}f}%"

    def mark(self, deal: Deal, what: str, text: str) -> str:
        """The text, noted as a value of the record; the first spelling is the value."""
        deal.record.setdefault(FIELDS[self.company.template][what], text)
        return text

    def of_holder(self, holder: Holder) -> list[Deal]:
        """Its deals."""
        return [deal for deal in self.deals if deal.holder is holder]

    def name(self, holder: Holder) -> str:
        """In full where it first stands, with the short name, which stands for it from then on."""
        if holder.name in self._introduced:
            return holder.short if self.is_shortening else holder.name
        self._introduced.append(holder.name)
        for deal in self.of_holder(holder):
            self.mark(deal, "holder", holder.name)
        if holder.short == holder.name or not self.is_shortening:
            return holder.name
        marks = self.company.pick("short", ("“{}”", "“{}”", "{}"))
        word = self.company.pick("short word", ("以下简称", "以下简称", "简称", "下称"))
        return f"{holder.name}（{word}{marks.format(holder.short)}）"

    def party(self, deal: Deal) -> str:
        """Likewise, in sentences; the record has the full name."""
        self.mark(deal, "party", deal.party)
        short = short_of(deal.party)
        if not (short and self.is_shortening_parties and self.is_shortening):
            return deal.party
        if deal.party in self._introduced:
            return short
        self._introduced.append(deal.party)
        return f"{deal.party}（以下简称“{short}”）"

    @property
    def is_shortening(self) -> bool:
        """Whether the company uses short names of holders."""
        return self.company.pick("shortening", (True, True, True, False))

    def cell_name(self, holder: Holder) -> str:
        """As a table has it: without explanations."""
        if holder.name in self._introduced and self.company.pick("cells", (True, False, False)):
            return self.name(holder)
        for deal in self.of_holder(holder):
            self.mark(deal, "holder", holder.name)
        return holder.name

    def sum_of(self, holder: Holder) -> int:
        """Shares that are pledged or frozen in all: these deals and some before."""
        deals = self.of_holder(holder)
        own = sum(deal.shares for deal in deals if not (deal.is_released or deal.is_waiting))
        waiting = max((deal.shares for deal in deals if deal.is_waiting), default=0)
        rest = max(holder.holding - own, 0)
        part = self.company.pick(f"rest {holder.name}", (0.0, 0.1, 0.3, 0.5, 0.7))
        return max(own + int(rest * part) // self.company.unit * self.company.unit, waiting)

    def say(self, sentence: str, deal: Deal) -> str:
        """A sentence with the values of a deal; only what it states becomes its record."""
        return sentence.format_map(_Values(self, deal))

    def fitting(self, sentences: Sequence[str], deal: Deal) -> str:
        """Mostly the company's first choice among those that have the dates the deal has."""
        wanted = (deal.start is not None, deal.end is not None, deal.is_waiting)
        fit = [
            one
            for one in self.company.order("sentences", sentences)
            if ("{start}" in one, "{end}" in one, "轮候" in one) == wanted
        ]
        return self.chance.choice(fit[:1] * 3 + fit[1:2])


class _Values(dict[str, str]):
    """What a sentence names in braces, written and marked when it is asked for."""

    def __init__(self, draft: Draft, deal: Deal) -> None:
        super().__init__(draft.beside)
        self._draft, self._deal = draft, deal

    def __getitem__(self, what: str) -> str:
        draft, deal = self._draft, self._deal
        if what == "holder":
            return draft.name(deal.holder)
        if what == "party":
            return draft.party(deal)
        if what in FIELDS[draft.company.template]:
            return draft.mark(deal, what, self._value(what))
        return self._other(what)

    def _value(self, what: str) -> str:
        draft, deal = self._draft, self._deal
        day = {"start": deal.start, "end": deal.end}.get(what)
        if day is not None:
            return draft.write_date(day)
        number = {"shares": deal.shares, "total": deal.holder.holding}.get(what)
        if number is not None:
            return draft.write_shares(number)
        return draft.write_share(deal.holder.holding, draft.company.capital)

    def _other(self, what: str) -> str:
        draft, deal, chance = self._draft, self._deal, self._draft.chance
        holding, capital = deal.holder.holding, draft.company.capital
        others: dict[str, Callable[[], str]] = {
            "own": lambda: draft.write_share(deal.shares, holding),
            "cap": lambda: draft.write_share(deal.shares, capital),
            "all": lambda: draft.write_shares(draft.sum_of(deal.holder)),
            "all_own": lambda: draft.write_share(draft.sum_of(deal.holder), holding),
            "all_cap": lambda: draft.write_share(draft.sum_of(deal.holder), capital),
            "kind": lambda: draft.company.pick(f"kind {deal.holder.name}", KINDS),
            "use": lambda: chance.choice(USES),
            "dispute": lambda: chance.choice(DISPUTES),
            "money": lambda: f"{chance.randrange(800, 60000, 10):,}",
            "months": lambda: chance.choice(("24", "36", "36")),
            "case": lambda: (
                f"（{draft.day.year}）{chance.choice('京沪粤浙苏皖闽鲁豫鄂湘川渝陕辽')}"
                f"{chance.randint(1, 19):02}"
                f"{chance.choice(('民初', '执', '财保', '执保'))}{chance.randint(11, 4999)}号"
            ),
        }
        return others[what]() if what in others else super().__getitem__(what)


_courts = re.compile(r"(?:.{2,3}省)?(?P<place>.{2,3})市(?P<nth>第.)?中级人民法院")
_lenders = re.compile(r".{2,3}?(?:证券|国际信托|银行|农村商业银行)(?=股份|有限)")


def short_of(party: str) -> str:
    """As announcements shorten courts and lenders; "" for those that they do not."""
    found = _courts.fullmatch(party)
    if found:
        nth = (found["nth"] or "").removeprefix("第")
        return f"{found['place']}{nth}中院"
    if party.endswith("高级人民法院"):
        return f"{party.removesuffix('高级人民法院').removesuffix('省')}高院"
    lender = _lenders.match(party)
    return lender[0].replace("国际信托", "信托").replace("农村商业银行", "农商行") if lender else ""


def holders_of(deals: Sequence[Deal]) -> list[Holder]:
    """Each once, in order."""
    return list({deal.holder.name: deal.holder for deal in deals}.values())


def _joined(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{'、'.join(texts[:-1])}和{texts[-1]}"


def _sentence(draft: Draft, deal: Deal) -> str:
    draft.is_shortening_parties = draft.company.pick("parties", (True, False, False))
    sentences = (RELEASED if deal.is_released else NEW)[draft.company.template]
    return draft.say(draft.fitting(sentences, deal), deal)


def write_holdings(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """One sentence a holder, of what it holds and what of this is not free."""
    wording = draft.company.order("holdings", HOLDINGS)[0]
    found: dict[str, str] = {}
    for holder in holders_of(deals):
        for deal in draft.of_holder(holder):
            text = draft.say(wording, deal)
            found.setdefault(holder.name, text)  # the first explains the short name
    return list(found.values())


def as_paragraphs(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """A paragraph for each."""
    is_counted = len(deals) > 1 and draft.company.pick("counted", (True, False))
    return [
        f"{number}、{_sentence(draft, deal)}" if is_counted else _sentence(draft, deal)
        for number, deal in enumerate(deals, start=1)
    ]


def as_one_paragraph(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """All sentences in one."""
    links = ("", "同时，", "此外，", "另，", "", "")
    texts = [_sentence(draft, deal) for deal in deals]
    return ["".join(f"{links[min(n, 5)]}{text}" for n, text in enumerate(texts))]


def as_list_in_a_sentence(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """One sentence a holder, with its deals as parts."""
    company, found = draft.company, []
    head, part, since = company.pick("flowing", FLOWING[company.template])
    until = company.pick("until", UNTIL[company.template])
    count = company.pick("flow marks", ("（{}）", "{}）", "①②③④⑤⑥⑦⑧"))
    for holder in holders_of(deals):
        own = [deal for deal in deals if deal.holder is holder]
        parts = []
        for number, deal in enumerate(own, start=1):
            mark = count[number - 1] if "①" in count else count.format(number)
            ends = (ENDED[company.template] if deal.is_released else until) if deal.end else ""
            ends += "（轮候冻结）" if deal.is_waiting else ""
            whole = part.replace("{since}", since if deal.start else "").replace("{until}", ends)
            parts.append(f"{mark if len(own) > 1 else ''}{draft.say(whole, deal)}")
        opening = draft.say(head.replace("{n}", str(len(own))), own[0])
        found.append(f"{opening}{'；'.join(parts)}。")
    return found


def as_respective_lists(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """One sentence for all: who, how much, with whom and when, each a list in the same order.

    One sentence a holder, where there are several and one of them has several deals.
    """
    holders = holders_of(deals)
    if len(holders) in {1, len(deals)}:
        return [_respectively(draft, deals)]
    return [_respectively(draft, [d for d in deals if d.holder is one]) for one in holders]


def _respectively(draft: Draft, deals: Sequence[Deal]) -> str:
    company, is_released = draft.company, deals[0].is_released
    names = _joined([draft.name(holder) for holder in holders_of(deals)])

    def listed(what: str, word: str = "分别为", word_of_one: str = "均为") -> str:
        texts = [draft.say(f"{{{what}}}", deal) for deal in deals]
        if len(texts) == 1:
            return word.replace("分别", "") + texts[0]
        return word_of_one + texts[0] if len(set(texts)) == 1 else word + _joined(texts)

    if company.template == "股权质押":
        did = "已解除质押" if is_released else "已办理质押登记"
        text = f"{names}所持公司股份{did}，涉及股份数量{listed('shares')}，质权人{listed('party')}"
    else:
        did = "解除司法冻结" if is_released else "司法冻结"
        shares, party = listed("shares", "分别有", "各有"), listed("party", "分别被", "均被")
        text = f"{names}持有的公司股份{shares}{party}{did}"
    starts, ends = company.pick("dates", (("起始日", "到期日"), ("起始日期", "终止日期")))
    if all(deal.start for deal in deals):
        text += f"，{draft.did}{starts}{listed('start')}"
    if all(deal.end for deal in deals):
        text += f"，{'解除日期' if is_released else ends}{listed('end')}"
    own = f"，占其所持公司股份的比例{listed('own')}" if company.pick("own", (1, 0)) else ""
    waits = "，其中部分为轮候冻结" if any(deal.is_waiting for deal in deals) else ""
    return f"{text}{own}{waits}。"


def write_respective_holdings(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """The same of what they hold."""
    holders = holders_of(deals)
    if len(holders) == 1:
        return write_holdings(draft, deals)
    first = [draft.of_holder(holder)[0] for holder in holders]
    for deal in draft.deals:
        draft.say("{total}{ratio}", deal)
    totals, ratios, sums = (
        _joined([draft.say(what, deal) for deal in first])
        for what in ("{total}", "{ratio}", "{all}")
    )
    names = _joined([draft.name(holder) for holder in holders])
    return [
        (
            f"截至本公告日，{names}分别持有公司股份{totals}，占公司总股本的比例分别为{ratios}；累计{draft.did}股份"
            f"分别为{sums}。"
        )
    ]


def _label(draft: Draft, what: str, *, is_released: bool, is_bare: bool = False) -> str:
    company = draft.company
    own = RELEASED_LABELS[company.template] if is_released else {}
    labels = own.get(what, LABELS[company.template][what])
    text = company.pick(f"label {what} {what in own}", labels)
    if is_bare and what in {"shares", "total"}:
        text += "（万股）" if company.pick("amounts", AMOUNTS) == "万" else "（股）"
    return text


def _cell(draft: Draft, deal: Deal, what: str, *, is_bare: bool) -> str:
    if what == "holder":
        return draft.cell_name(deal.holder)
    word = {
        "first": "是" if deal.holder is draft.company.holders[0] else "否",
        "use": ("司法轮候冻结" if deal.is_waiting else "司法冻结") if draft.did == "冻结" else "",
    }.get(what)
    if word:
        return word
    day = {"start": deal.start, "end": deal.end}.get(what)
    if day is not None:
        return draft.mark(deal, what, draft.write_date(day, "table"))
    if what in {"start", "end"}:
        open_end = draft.company.pick("open", OPEN_ENDS[draft.company.template])
        return draft.say(open_end, deal) if what == "end" else "-"
    number = {"shares": deal.shares, "total": deal.holder.holding}.get(what)
    if number is not None:
        return draft.mark(deal, what, draft.write_shares(number, is_bare=is_bare))
    return draft.say(f"{{{what}}}", deal)


def _columns(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """In one of the orders that are seen, with some of the columns that no field is for."""
    pick = draft.company.pick
    order = pick(
        "columns",
        (
            "holder first shares start end party own use",
            "holder first shares own cap start end party use",
            "holder party shares start end own cap",
            "holder shares party start end own",
            "holder total ratio shares own cap party start end",
        ),
    ).split()
    if all(deal.start is None for deal in deals):
        order.remove("start")
    if all(deal.end is None for deal in deals) and pick("no ends", (True, False)):
        order.remove("end")
    if deals[0].is_released and "use" in order:
        order.remove("use")
    return order


def _rows(draft: Draft, rows: Sequence[Sequence[str]]) -> list[str]:
    mark = draft.company.pick("cells between", ("\t", "\t", "\t", " "))
    return [mark.join(cell for cell in row if cell) for row in rows]


def as_table(draft: Draft, deals: Sequence[Deal], *, is_merged: bool = False) -> list[str]:
    """A row for each, with a head, and a sum below."""
    columns, is_released = _columns(draft, deals), deals[0].is_released
    is_bare = draft.company.pick("bare", (True, True, False))
    rows = [[_label(draft, c, is_released=is_released, is_bare=is_bare) for c in columns]]
    for _, own in groupby(deals, key=lambda deal: deal.holder.name):
        shown: list[str] = []
        for deal in own:
            row = [_cell(draft, deal, what, is_bare=is_bare) for what in columns]
            merged = {"holder", "first", "total", "ratio"} if is_merged and shown else set()
            kept = ["" if c in merged else cell for c, cell in zip(columns, row, strict=True)]
            shown = row
            rows.append(kept)
    if len(deals) > 1 and (is_merged or draft.company.pick("sums", (True, False))):
        rows.append(_sum_row(draft, deals, columns, is_bare=is_bare))
    return _rows(draft, rows)


def _sum_row(
    draft: Draft, deals: Sequence[Deal], columns: Sequence[str], *, is_bare: bool
) -> list[str]:
    total = sum(deal.shares for deal in deals)
    held = sum(holder.holding for holder in holders_of(deals))
    texts = {
        "holder": "合计",
        "shares": draft.write_shares(total, is_bare=is_bare),
        "own": draft.write_share(total, held),
        "cap": draft.write_share(total, draft.company.capital),
    }
    blank = draft.company.pick("blank", ("-", "--", "", "/"))
    return [texts.get(what, blank) for what in columns]


def as_merged_table(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """The holder stands once beside its rows."""
    return as_table(draft, deals, is_merged=True)


def write_holdings_table(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """A second table, a row a holder: what it holds, and its sums before and after."""
    is_bare = draft.company.pick("bare", (True, True, False))
    head, did = ["股东名称"], draft.did
    head += [_label(draft, c, is_released=False, is_bare=is_bare) for c in ("total", "ratio")]
    head += [f"本次{did}前累计{did}数量", f"本次{did}后累计{did}数量"]
    head += ["占其所持股份比例", "占公司总股本比例"]
    rows = [head]
    for holder in holders_of(deals):
        for deal in draft.of_holder(holder):
            row = [_cell(draft, deal, c, is_bare=is_bare) for c in ("holder", "total", "ratio")]
        own = sum(d.shares for d in draft.of_holder(holder) if not (d.is_released or d.is_waiting))
        after = draft.sum_of(holder)
        amounts = [draft.write_shares(n, is_bare=is_bare) for n in (after - own, after)]
        row += [*amounts, draft.say("{all_own}", deal), draft.say("{all_cap}", deal)]
        rows.append(row)
    return [f"截至本公告披露日，上述股东累计{did}情况如下：", *_rows(draft, rows)]


def as_columns(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """A table with a column for each, three beside one another."""
    found: list[list[str]] = []
    is_released = deals[0].is_released
    columns = [*_columns(draft, deals), *draft.company.pick("more rows", ((), ("total", "ratio")))]
    for first in range(0, len(deals), 3):
        own = deals[first : first + 3]
        for what in dict.fromkeys(columns):
            label = _label(draft, what, is_released=is_released)
            found.append([label, *(_cell(draft, deal, what, is_bare=False) for deal in own)])
    return ["\t".join(row) for row in found]


def as_labels(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """A line for each value, behind its name."""
    found: list[str] = []
    columns = [*_columns(draft, deals), *draft.company.pick("more rows", ((), ("total", "ratio")))]
    is_one_line = draft.company.pick("one line", (True, False, False))
    for number, deal in enumerate(deals, start=1):
        lines = [
            f"{_label(draft, what, is_released=deal.is_released)}："
            f"{_cell(draft, deal, what, is_bare=False)}"
            for what in dict.fromkeys(columns)
        ]
        if len(deals) > 1 and not is_one_line:
            found.append(draft.company.pick("nth", ("第{}笔", "（{}）", "{}、")).format(number))
        found += [f"{'；'.join(lines)}。"] if is_one_line else lines
    return found


def as_sections(draft: Draft, deals: Sequence[Deal]) -> list[str]:
    """A numbered section for each, with numbered items; both dates are one item."""
    company, found = draft.company, []
    for number, deal in enumerate(deals, start=1):
        is_released = deal.is_released
        party, shares = (_label(draft, c, is_released=is_released) for c in ("party", "shares"))
        dates = [draft.say(f"{{{c}}}", deal) for c in ("start", "end") if getattr(deal, c)]
        joint = company.pick("joint", ("至", "—", "起至"))
        open_end = OPEN_ENDS[company.template][0]
        items = [
            draft.say(f"{party}：{{party}}", deal),
            draft.say(f"{shares}及占比：{{shares}}，占其所持公司股份的{{own}}", deal),
        ]
        if dates:
            open_end = "起，期限{months}个月" if draft.did == "冻结" else open_end
            is_open = len(dates) == 1 and not is_released
            when = dates[0] + draft.say(open_end, deal) if is_open else joint.join(dates)
            is_end = is_released and len(dates) == 1
            items.append(f"{'解除日期' if is_end else f'{draft.did}期限'}：{when}")
        if company.pick("why", (True, False)):
            why = f"{draft.did}原因：{{{'use' if draft.did == '质押' else 'dispute'}}}"
            items.append(draft.say(why, deal) + ("" if draft.did == "质押" else "纠纷"))
        if company.pick("holding first", (True, False)):
            text = "持股情况：持有公司股份{total}，占公司总股本的{ratio}"
            items.insert(0, draft.say(text, deal))
        waits = "（轮候）" if deal.is_waiting else ""
        ended = "解除" if is_released else ""
        head = company.pick("heads", ("（{}）", "{}、", "（{}）")).format(
            "一二三四五六七八"[number - 1]
        )
        found.append(f"{head}{draft.name(deal.holder)}股份{ended}{draft.did}{waits}")
        found += [f"{n}、{item}；" for n, item in enumerate(items, start=1)]
        found[-1] = f"{found[-1][:-1]}。"
    return found


#: Layouts of announcements with one record, and of those with several.
SINGLE: tuple[Layout, ...] = (
    as_paragraphs, as_paragraphs, as_table, as_labels, as_sections, as_columns,
    as_list_in_a_sentence,
)  # fmt: skip
SEVERAL: tuple[Layout, ...] = (
    as_paragraphs, as_one_paragraph, as_list_in_a_sentence, as_respective_lists,
    as_table, as_table, as_merged_table, as_merged_table, as_columns, as_labels, as_sections,
)  # fmt: skip
