"""Statements: sentences of announcements, contracts and judgments that say a value without a label.

Who pledges how many shares to whom (某集团将其持有的公司股份 *1,000股* 质押给 *某银行*), who holds
what share (占公司总股本的 *5.1%*), when and how a meeting was held and who voted, who sent the
notice of an award, with whom a contract was signed, who stands surety, from when until when a
period runs, what a court orders to be paid. The words are those in general use, written down by
hand: nothing here is counted on a labelled set.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION
from featpipe.extraction.statements.announcement_statements import ANNOUNCEMENT_STATEMENTS
from featpipe.extraction.statements.contract_statements import CONTRACT_STATEMENTS
from featpipe.extraction.statements.holding_statements import HOLDINGS
from featpipe.extraction.statements.pledge_statements import PLEDGES
from featpipe.extraction.statements.statement_words import (
    MONEY,
    NAME,
    ON_A_DAY,
    OWNED,
    PERCENT,
    REMARK,
    SHARES,
    Phrase,
    behind_last,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_LEAST_NAME, _LONGEST_NAME = 2, 60
#: Abbreviations of a text that are looked at.
_MOST_DEFINED = 200
_LONGEST_CLAUSE = 200
_SENTENCE_ENDS, _CLAUSE_ENDS = "。;\n", ",。;\n"
#: What who makes an announcement calls itself.
_SELF = frozenset(["公司", "本公司", "上市公司", "发行人"])
#: Groups that are names.
_NAMES = frozenset((
    "name", "pledgee", "client", "other", "surety", "debtor", "winner", "buyer", "target", "court",
    "holder",
))  # fmt: skip
#: Of them, those that may be the first of a list.
_LISTED = frozenset(["surety", "winner", "other", "court", "pledgee"])
_further = re.compile(rf"(?:{GAP}\([^()\n]{{1,60}}\))?{GAP}[、和及与]{GAP}(?P<name>{NAME})")
#: Other numbers of a list, by the group of its first one.
_further_numbers = {
    group: re.compile(rf"{GAP}[、和及与]{GAP}(?P<name>{number})")
    for group, number in (("part", PERCENT), ("shares", SHARES))
}
#: What a share is of that no sum of pledges is meant by.
_OF_STOCK = "占总股本比例"
_OF_ONE = frozenset([_OF_STOCK, "占所持股份比例"])
#: Who signs an announcement, among its last characters.
_board = re.compile(rf"(?:^|\n){GAP}(?P<name>{ORGANISATION}){GAP}(?:董事会|监事会)?{GAP}(?:\n|\Z)")
_SIGNED = 200
#: Whose announcement it is, by its title.
_titled = re.compile(
    rf"(?:^|\n){GAP}(?P<name>(?:(?!关于|收到|[对与])[^\s,。;:]){{2,40}}?公司){GAP}关于"
)
#: An agency signs what it announces for others.
_of_tenders = re.compile(r"中标|成交|采购|招标|磋商|询价|竞价|遴选")
#: What speaks of others.
_OFFICES = ("交易所", "法院", "局", "委员会")
_HEADING = 150
#: Of 累计质押, or of what holders have together.
_of_sum = re.compile(
    r"累计|剩余|未来|(?:已|共计|合计)(?:被)?质押|处于质押状态|质押的?股份(?:总数|余额)|一致行动人(?:合计|共计|共同)|合计持"
)
#: Of all pledges of several holders.
_of_several = re.compile(
    r"合计(?:持|累计)|上述股东|[两二三]者|[两二三]方|一致行动人(?:合计|共计|共同)"
)
_ALL_PLEDGES = "累计质押数量"
#: Right before what a share is of, what somebody has: 持有公司股份1,000股，占公司总股本.
_holding = re.compile(
    r"(?:\A|[,。;:(])(?:(?!将|以其|被|占)[^,。;:\n]){0,60}?持有(?!的)(?:[^,。;\n%]|(?<=\d),(?=\d)){0,60}(?:,[^,。;\n\d%]{0,20})?[,(]?\Z"
)
#: Of what a holder has, before trades and behind words for after them: 本次减持后.
_HELD = frozenset(["持股数量", "持股比例"])
_after = re.compile(
    r"(?:减持|增持|变动|转让|受让|过户|交易|完成|实施)(?:计划)?(?:完成|完毕|实施|结束)?之?后"
)
_past = re.compile(r"曾(?:于|经|将|在|披露|因)|此前|前期|披露了")
_owned = re.compile(rf"{OWNED}[^。;\n]{{0,120}}?质押")
_owner = re.compile(rf"(?P<name>{NAME}){REMARK}{ON_A_DAY}\Z")
_ordered = re.compile(r"(?:判决|裁决|裁定|调解|协议)如下")
_paid = re.compile(
    rf"(?:支付|偿还|返还|给付|赔偿|归还|清偿|退还)[^。;\n]{{0,60}}?(?P<amount>{MONEY})"
)
#: What stands right before a name and is no part of it.
_lead = re.compile(
    r".*(?:获悉|接到|收到|知悉|得知|通知|函告|股东|控制人|一致行动人|董事长|招标人|采购人|子公司|[购建设]单位|业主"
    r"|采购方|发包[人方]|代表|近日|日前|关于|推进|占用|受托管理人)"
    r"|(?:其中|由|与|和|及|向|为|因|的)"
)
_no_name = re.compile(
    r".*子公司|(?:中国证券|证券)?登记(?:结算)?(?:有限责任)?公司.*|中国证券登记结算.*|(?:全资|控股|参股|下属|旗下|目标|标的|关联|上述|上市|本|该|其|贵|我|总|分|子|孙|母|公司|集团|银行|法院|中心|政府)+"
)
_defined = re.compile(r"\((?:以下|下)?(?:简称|称)为?:?\s*\"(?P<short>[^()\"\n]{2,12})\"[^()\n]*\)")
_named = re.compile(rf"(?P<name>{NAME}){GAP}\Z")
#: Words that no given name ends with, behind one of a character.
_BEHIND_PERSON, _LONGEST_PERSON = frozenset("的曾于将拟已所处共"), 3
#: What the name of a branch, or of a company, may go on behind, and how.
_GOES_ON = ("银行", "证券", "信托", "保险", "基金", "集团", "公司")
_IN_NAME = rf"(?:(?![与和及向为因等的在将]){HAN})"
_rest = re.compile(
    rf"(?:(?:\({HAN}{{1,8}}\))?{_IN_NAME}{{0,10}}?(?:有限责任公司|有限公司))?"
    rf"(?:{_IN_NAME}{{2,12}}?(?:分行|支行|分公司|营业部))?"
)
#: What is named together with another, or acts for it.
_joined = re.compile(r"(?<=公司|集团|医院|大学|学院|中心)[和及与、]|(?<=[局院厅委府厂])[和及与、]")
_agent = re.compile(r"招标|招投标|咨询|代理|交易中心|采购中心")


def find_statements(folded: str) -> Iterator[Phrase]:
    """Those of a text; an abbreviated name is given where it stands in full."""
    full_names: dict[str, tuple[int, int]] | None = None
    for match, labels in _matches(folded):
        for group, label in labels.items():
            start, end = match.span(group)
            words = _words_of(folded, match, group, label)
            if not words:
                continue
            if group in _NAMES:
                if full_names is None:
                    full_names = _full_names(folded)
                start, end = whole_name(folded, start, end)
                if _no_name.fullmatch(folded, start, end):
                    continue
                if group == "client" and _agent.search(folded, start, end):
                    continue
                start, end = full_names.get(folded[start:end], (start, end))
            yield Phrase(start, end, words, may_be_part=group == "first")
            yield from _others_of_list(folded, end, match, group, words)


def _words_of(folded: str, match: re.Match[str], group: str, label: str) -> str:
    """What a label would call a group of a match; "" for none, or of a sum that says too little."""
    start = match.start(group)
    words = match["kind"] + label if "kind" in match.re.groupindex else label
    if start < 0 or (words in _OF_ONE and _is_said_before(_of_sum, folded, start)):
        return ""
    if words == _ALL_PLEDGES and _is_said_before(_of_several, folded, start):
        return ""
    # Beside what is pledged, what is held has a name of its own.
    if words == _OF_STOCK and "质押" in folded and _is_said_before(_holding, folded, match.start()):
        return ""
    is_after = words in _HELD and _is_said_before(_after, folded, match.start())
    return f"变动后{words}" if is_after else words


def _others_of_list(
    folded: str, end: int, match: re.Match[str], group: str, words: str
) -> Iterator[Phrase]:
    """The other names, up to the end of a statement, or numbers: 分别占总股本的2.56%和4.66%."""
    pattern = _further if group in _LISTED else _further_numbers.get(group)
    most = match.end() if group in _LISTED else len(folded)
    while pattern is not None and (further := pattern.match(folded, end, most)):
        yield Phrase(*further.span("name"), words)
        end = further.end()


def find_company(folded: str) -> Iterator[Phrase]:
    """Who makes an announcement: who "the company" is, who signs it, or its title names."""
    for short, start, end in _definitions(folded):
        if short in _SELF and (start == 0 or folded[start - 1] in " \n\t。,;:"):
            yield Phrase(start, end, "公司名称")
            return
    signed = _board.search(folded, max(len(folded) - _SIGNED, 0))
    if signed is None or signed["name"].endswith(_OFFICES):
        signed = _titled.search(folded, 0, _HEADING)
        if signed is not None and _no_name.fullmatch(signed["name"]):
            return
    if signed is not None and not _of_tenders.search(folded, 0, _HEADING):
        yield Phrase(*signed.span("name"), "公司名称")


def find_orders(folded: str) -> Iterator[Phrase]:
    """Amounts that a court orders to be paid."""
    ordered = _ordered.search(folded)
    if ordered:
        for paid in _paid.finditer(folded, ordered.end()):
            yield Phrase(*paid.span("amount"), "判决金额")


def _matches(folded: str) -> Iterator[tuple[re.Match[str], dict[str, str]]]:
    for word, pattern, labels in (*ANNOUNCEMENT_STATEMENTS, *CONTRACT_STATEMENTS):
        if word in folded:
            yield from ((match, labels) for match in pattern.finditer(folded))
    for word, pattern, labels in (*HOLDINGS, *PLEDGES):
        if word in folded:
            found = (match for match in pattern.finditer(folded) if not _is_past(folded, match))
            yield from ((match, labels) for match in found)
    if "质押" in folded:
        for owned in _owned.finditer(folded):
            at = owned.start()
            owner = _owner.search(
                folded, behind_last(_CLAUSE_ENDS, folded, at, _LONGEST_CLAUSE), at
            )
            if owner:
                yield owner, {"name": "出质人"}


def _is_past(folded: str, match: re.Match[str]) -> bool:
    """Whether the sentence tells what was announced before: 公司曾于, 此前."""
    start = behind_last(_SENTENCE_ENDS, folded, match.start(), _LONGEST_CLAUSE)
    return _past.search(folded, start, match.end()) is not None


def _is_said_before(pattern: re.Pattern[str], folded: str, at: int) -> bool:
    """Whether the sentence has a pattern before a place."""
    start = behind_last(_SENTENCE_ENDS, folded, at, _LONGEST_CLAUSE)
    return pattern.search(folded[start:at]) is not None


def whole_name(folded: str, start: int, end: int) -> tuple[int, int]:
    """Place of a name as a pattern found it: without words before it, the first of several, whole.

    X公司 is not all of X公司上海分公司, nor X集团 of X集团有限公司.
    """
    lead = _lead.match(folded, start, end)
    if lead is not None and end - lead.end() >= _LEAST_NAME:
        start = lead.end()
    joined = _joined.search(folded, start, end)
    if joined:
        return start, joined.start()
    if end - start == _LONGEST_PERSON and folded[end - 1] in _BEHIND_PERSON:
        return start, end - 1
    rest = _rest.match(folded, end) if folded.endswith(_GOES_ON, start, end) else None
    return start, rest.end() if rest else end


def _definitions(folded: str) -> Iterator[tuple[str, int, int]]:
    """Abbreviations, each with the place of the name in full before it."""
    for defined in islice(_defined.finditer(folded), _MOST_DEFINED):
        end = defined.start()
        low = max(behind_last(_CLAUSE_ENDS, folded, end, _LONGEST_CLAUSE), end - _LONGEST_NAME)
        named = _named.search(folded, low, end)
        if named:
            yield defined["short"], *whole_name(folded, *named.span("name"))


def _full_names(folded: str) -> dict[str, tuple[int, int]]:
    """Places of names in full by their abbreviations."""
    places: dict[str, tuple[int, int]] = {}
    for short, start, end in _definitions(folded):
        places.setdefault(short, (start, end))
    return places
