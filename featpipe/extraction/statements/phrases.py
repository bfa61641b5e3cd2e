"""Phrases that hold a value without any label, and what a label would call each.

A judgment's heading names the court, the kind of document and the case number; one sentence the
cause (原告张三与被告李四 *借款合同纠纷* 一案) and the day of filing (于 *2021年3月1日* 立案); the
end the fees and, beside the names of the judges, the date. A contract says who its parties are in a
sentence (*X公司*（以下简称“甲方”）), and when it was signed. Other documents end with their date.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.names.bare_labels import find_bearers
from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.names.synonyms import is_party, synonyms_of
from featpipe.extraction.statements.crime_statements import find_facts
from featpipe.extraction.statements.dividend_statements import find_dividends
from featpipe.extraction.statements.english_roles import find_roles
from featpipe.extraction.statements.english_statements import find_english
from featpipe.extraction.statements.english_words import DATE as ENGLISH_DATE
from featpipe.extraction.statements.loan_statements import find_loans, find_sureties
from featpipe.extraction.statements.news_statements import (
    find_announced,
    find_insolvencies,
    find_news,
)
from featpipe.extraction.statements.statement_words import DATE, Phrase
from featpipe.extraction.statements.statements import (
    find_company,
    find_orders,
    find_statements,
)
from featpipe.extraction.values.text import (
    close_spacing,
    close_wraps,
    matches_near,
    placed_lines,
    places_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from featpipe.extraction.values.text import Compact

    Finder = Callable[[str], Iterator[Phrase]]

#: Characters at the beginning that a heading is among, and at the end that a date is among.
_HEAD, _TAIL = 300, 400
#: Most characters of a sentence before 一案 that are searched for its parties, and of a cause.
_LONGEST_SENTENCE, _LONGEST_CAUSE = 600, 40
_judgment = re.compile(rf"{HAN}{{0,8}}(?:判决书|裁定书|调解书|决定书|裁决书|支付令)$")
_contract = re.compile(r"(?:合同|协议|合同书|协议书|备忘录)(?:\([^()]{0,20}\))?$", re.MULTILINE)
_notice = re.compile(r"公告(?:\([^()]{0,20}\))?$", re.MULTILINE)
_court = re.compile(rf"{HAN}{{2,30}}?(?:法院|法庭|仲裁委员会)(?!{GAP}[,。;:、])")
_number = re.compile(
    rf"{HAN}{{2,12}}字?\(\d{{4}}\)第\d{{1,6}}号"
    rf"|\( ?\d{{4}} ?\) ?{HAN}(?: ?[\u4e00-\u9fff\d]){{0,12}}"
    r" ?(?:字第|第)? ?\d{1,6}(?:-\d{1,2})? ?号"
    r"(?:之[一二三四五六七八九十]{1,2})?"
)
_appealed = re.compile(
    rf"不服(?P<court>{HAN}{{2,25}}?法院)(?:于{DATE}作出的)?(?P<number>\(\d{{4}}\)[^,。;\n号]{{4,25}}号)"
)
_filed = re.compile(rf"于(?P<value>{DATE})(?:依法|予以|决定|登记|审查)*(?:立案|受理|收案)")
_heard = re.compile(rf"于(?P<value>{DATE})(?:在[^,。;\n]{{2,20}})?(?:依法|不?公开|第.次)*开庭")
_crime = re.compile(rf"犯(?P<value>(?:{HAN}|[、()]){{2,30}}?罪)(?=一案|[,、。;(])")
_fee = re.compile(
    r"(?P<words>案件受理费|案件申请费|财产保全费|诉讼保全费|保全申请费|受理费|申请费|保全费|公告费|鉴定费)"
    rf"(?:共计|合计|减半收取|减半|各|计|为|共)*{GAP}(?P<value>(?:人民币{GAP})?[\d,.]+{GAP}[万亿]?元)"
)
_opponent = re.compile("与(?:被告人?|被申请人|被上诉人)")
#: Between the last party and the cause.
_joint = re.compile(r"(?:\([^()\n]*\)|之间的?|双方|因|的|关于|等人?|犯)*")
_no_cause = re.compile(r"[,:;。\n]|原告|被告|上诉人|申请人|第三人")
_dated = re.compile(rf"^{GAP}(?P<value>{DATE}){GAP}$", re.MULTILINE)
_signed = re.compile(
    rf"于{GAP}(?P<value>{DATE}){GAP}(?:\(交易时段[^()\n]*\),[^。;\n]{{2,120}}?|由双方|与[^。;\n]{{2,60}}?)?(?:在(?P<place>[^,。;\n]{{2,20}}?))?"
    rf"(?:正式|共同)?(?:签订|签署|订立)"
)
#: Characters of a date, and of blanks behind it, at most.
_LONGEST_DATE = 60
_issued = re.compile(rf"(?P<value>{DATE}){GAP}印发")
#: Northgate is no number, and no word is one.
_serial = re.compile(
    r"(?<!\S)(?:no(?![a-z])|№)\.?:?\s*(?P<value>(?=[a-z-]{0,20}\d)[a-z0-9][a-z0-9-]{3,})(?!\S)"
)
_situated = re.compile(
    rf"(?:坐落|位于)[于在]?_*{GAP}"
    r"(?P<value>[^\s,。;_的之()]{3,60}(?: [^\s,。;_的之()]{1,30}){0,8})"
    r"(?=_|的|之| ?[,。;(\n])"
)
_signature = re.compile(
    rf"^(?:[^\n]*\s)?(?:(?:签[订署约]?)?(?:日期|时间|日))?{GAP}:?{GAP}"
    rf"(?P<value>{DATE}|\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}){GAP}(?:\s\s[^\n]*)?$",
    re.MULTILINE,
)
_coded = re.compile(
    rf"^{GAP}(?:编{GAP}号|no\.?)(?:{GAP}:|[^\S\n]){GAP}(?P<value>(?=\S{{0,30}}\d)\S+)(?:{GAP}$|\s\s)",
    re.MULTILINE,
)
_acquires = re.compile(r"公司[^。;\n]{0,30}?(?:收购|受让|购买)[^。;\n]{2,80}?(?:股权|股份|资产)")
_appoints = re.compile(
    r"(?:聘任|选举|免去|任命)[^。;\n]{2,30}?(?:职务|为公司|担任公司)|辞职|辞任|离任|逝世"
)
_issues = re.compile(r"本次(?:公开|非公开)?发行|发行(?:结果|情况)|募集资金(?:总额|净额)|公开发行")
_dear = re.compile(r"\n[^\S\n]*dear[ ,]")
_alone = re.compile(rf"(?:\A|\n)[^\S\n]*(?P<value>{ENGLISH_DATE})[^\S\n]*(?=\n)")
_listed = re.compile(rf"{HAN}{GAP}[\[(](?P<value>\d{{6}})(?:\.[a-z]{{2}})?[\])]")
_numbered = re.compile(rf"公告{GAP}\(?(?P<value>临?(?:19|20)\d\d-\d{{2,4}})\)?{GAP}号")
_decided = re.compile(rf"(?:由|向|提交)(?P<value>{HAN}{{2,25}}(?P<words>法院|仲裁委员会|仲裁院))")
#: What fields call who decides about a contract.
_DECIDES = {"法院": "管辖法院", "仲裁委员会": "仲裁机构", "仲裁院": "仲裁机构"}
_called = re.compile(
    rf"(?<![\u4e00-\u9fffa-z0-9])(?:(?:本合同|本协议)?由|与|和|及)?(?P<value>{PERSON}|{ORGANISATION})"
    rf"{GAP}\((?:以下)?(?:简称|统称|称|下称)为?:?\"?(?P<words>{HAN}{{2,6}})\"?(?:,[^()\n]{{1,80}})?\)"
)
#: What contracts without 甲方 and 乙方 call their parties: in a line of its own, before a colon.
_sided = re.compile(r"甲\s?方|乙\s?方")
_party = re.compile(
    rf"^{GAP}(?P<words>{HAN}(?:{GAP}{HAN}){{1,5}}){GAP}(?:\([^()\n]{{1,20}}\){GAP})?:{GAP}_*"
    rf"(?P<value>[^\s_:,;。]{{2,40}})",
    re.MULTILINE,
)
_SIDES = ("甲方", "乙方")
#: What a contract of employment calls them.
_AT_WORK = {"甲方": "用人单位", "乙方": "劳动者"}
_labour = re.compile(r"劳动合同|聘[用任]合同|聘[用任]协议|雇佣合同")


@lru_cache(maxsize=8)
def find_phrases(folded: str) -> tuple[Phrase, ...]:
    """Those of a text after :func:`featpipe.extraction.values.text.fold_width`, in order."""
    head = folded[:_HEAD]
    titles = "\n".join("".join(line.split()) for line in head.splitlines())
    kind = _kind_of(head)
    if kind is not None:
        found = {kind, *_of_heading(head), *_of_case(folded)}
        told = _in_sentences(folded, find_orders, find_facts, find_insolvencies, wrapped=find_loans)
        found |= {*told}
    elif _notice.search(titles):
        found = {*_last_date(folded, "公告日期"), *_signing(folded), *_of_notice(head)}
        for company in find_company(folded):
            acts = ((_acquires, "收购方"), (_issues, "发行人"), (_appoints, "任职公司"))
            found |= {
                company,
                *(company._replace(words=w) for does, w in acts if does.search(folded)),
            }
        told = _in_sentences(folded, find_statements, find_announced, wrapped=find_dividends)
        found |= {*told}
    elif _contract.search(titles):
        found = {*_of_contract(folded), *_in_sentences(folded, find_statements)}
    else:
        found = {*_last_date(folded, "落款日期"), *_signing(folded)}
        if "\n" in folded.strip():
            of_more = (find_facts, find_statements, find_news)
            found |= {*_in_sentences(folded, *of_more, wrapped=find_dividends)}
        else:
            found |= {*_in_sentences(folded, find_facts)}
        near = matches_near(_issued, folded, places_of(("印发",), folded), _LONGEST_DATE, 2)
        found |= {Phrase(*one.span("value"), "印发日期") for one in near}
    found |= {*_of_letter(folded)}
    found |= {*find_roles(folded), *(Phrase(*told) for told in find_english(folded))}
    found |= {Phrase(*one.span("value"), "单据编号") for one in _serial.finditer(head)}
    return tuple(sorted(found))


def _in_sentences(folded: str, *finders: Finder, wrapped: Finder | None = None) -> Iterator[Phrase]:
    """What is found without the blanks that set off numbers: 完成 2 亿元融资.

    Args:
        folded: a text.
        finders: of statements.
        wrapped: one whose sentences may go on in the next line.

    """
    closed = close_spacing(folded)
    yield from _found_in(closed, finders)
    if wrapped:
        yield from _found_in(close_wraps(closed), (wrapped,))


def _found_in(closed: Compact, finders: Iterable[Finder]) -> Iterator[Phrase]:
    for find in finders:
        for one in find(closed.text):
            if one.start < one.end:
                start, end = closed.original_span(one.start, one.end)
                yield one._replace(start=start, end=end)


def _kind_of(head: str) -> Phrase | None:
    """The kind of document, however it is spaced: 民 事 判 决 书; None for no judgment."""
    for at, line in placed_lines(head):
        places = [n for n, character in enumerate(line) if not character.isspace()]
        found = _judgment.search("".join(line[n] for n in places))
        if found:
            court = _court.match(found[0])  # X法院民事判决书 in one line
            first = found.start() + (court.end() if court else 0)
            return Phrase(at + places[first], at + places[found.end() - 1] + 1, "文书类型")
    return None


def _of_heading(head: str) -> Iterator[Phrase]:
    for at, line in placed_lines(head):
        court = _court.match(line, len(line) - len(line.lstrip()))
        if court:
            words = "仲裁机构" if court[0].endswith("委员会") else "法院"
            yield Phrase(at + court.start(), at + court.end(), words)
            break
    number = _number.search(head)
    if number:
        yield Phrase(*number.span(), "案号")


def _of_case(folded: str) -> Iterator[Phrase]:
    yield from _causes(folded)
    for appealed in _appealed.finditer(folded):
        yield Phrase(*appealed.span("court"), "原审法院")
        yield Phrase(*appealed.span("number"), "原审案号")
    yield from find_sureties(folded)
    for pattern, words in ((_filed, "立案日期"), (_heard, "开庭日期"), (_crime, "罪名")):
        yield from (Phrase(*match.span("value"), words) for match in pattern.finditer(folded))
    yield from (Phrase(*fee.span("value"), fee["words"]) for fee in _fee.finditer(folded))
    dates = list(_dated.finditer(folded))
    if dates:
        yield Phrase(*dates[-1].span("value"), "判决日期")


def _causes(folded: str) -> Iterator[Phrase]:
    """What stands between the last party of a sentence and 一案."""
    names = find_bearers(folded)
    for match in re.finditer("一案", folded):
        end = match.start()
        low = max(end - _LONGEST_SENTENCE, *(folded.rfind(mark, 0, end) for mark in "。\n"), 0)
        places = [(folded.rfind(name, low, end), len(name)) for name in names]
        behind = max((at + length for at, length in places if at >= 0), default=None)
        # Of parties that are not named: 原告与被告借款合同纠纷一案.
        role = folded.rfind("与被", low, end)
        if behind is None and role >= 0:
            called = _opponent.match(folded, role, end)
            behind = called.end() if called else None
        joint = None if behind is None else _joint.match(folded, behind, end)
        if joint is None:
            continue
        cause = folded[joint.end() : end]
        if 2 <= len(cause.strip()) <= _LONGEST_CAUSE and not _no_cause.search(cause):
            yield Phrase(joint.end(), end, "案由")


def _of_letter(folded: str) -> Iterator[Phrase]:
    """The date of an English letter, in a line of its own before "Dear"."""
    dear = _dear.search(folded, 0, _HEAD * 4)
    if dear:
        day = _alone.search(folded, 0, dear.start())
        if day:
            yield Phrase(*day.span("value"), "letterdate")


def _of_notice(head: str) -> Iterator[Phrase]:
    """The code of the company's shares, in brackets behind its name, and the notice's number."""
    for pattern, words in ((_listed, "证券代码"), (_numbered, "公告编号")):
        found = pattern.search(head)
        if found:
            yield Phrase(*found.span("value"), words)


def _of_contract(folded: str) -> Iterator[Phrase]:
    """Who the parties are, its number, when it was signed, and who decides about it."""
    signed = [*_signing(folded)]
    yield from signed or _last_date(folded, "签订日期")
    for place in _situated.finditer(folded):
        yield Phrase(*place.span("value"), "坐落")
    coded = _coded.search(folded[:_HEAD])
    if coded:
        yield Phrase(*coded.span("value"), "合同编号")
    for named in _decided.finditer(folded):
        yield Phrase(*named.span("value"), _DECIDES[named["words"]])
    yield from _sides(folded)
    is_labour = _labour.search(folded[:_HEAD]) is not None
    for called in _called.finditer(folded):
        words = called["words"]
        if is_party(words):
            yield Phrase(*called.span("value"), words)
            if is_labour and words in _AT_WORK:
                yield Phrase(*called.span("value"), _AT_WORK[words])


def _sides(folded: str) -> Iterator[Phrase]:
    """The first two parties, as 甲方 and 乙方 where a contract calls nobody so.

    Synonyms tell which of seller and buyer is which; of lender and borrower the order does.
    """
    if _sided.search(folded):
        return
    named: dict[str, tuple[int, int]] = {}
    for party in _party.finditer(folded, 0, _HEAD * 2):
        words = "".join(party["words"].split())
        if is_party(words):
            named.setdefault(words, party.span("value"))
    known = synonyms_of(_SIDES)
    first = [*named.items()][:2]
    if len(first) == 2 and not any(words in known for words, _ in first):
        yield from (Phrase(*span, side) for side, (_, span) in zip(_SIDES, first, strict=True))


def _signing(folded: str) -> Iterator[Phrase]:
    """When, and where, the first sentence that says so has the document signed."""
    signed = _signed.search(folded)
    if signed:
        yield Phrase(*signed.span("value"), "签订日期")
        if signed["place"]:
            yield Phrase(*signed.span("place"), "签订地点")


def _last_date(folded: str, words: str) -> Iterator[Phrase]:
    """The date that stands alone near the end of a document."""
    found = list(_signature.finditer(folded, max(len(folded) - _TAIL, 0)))
    if found:
        yield Phrase(*found[-1].span("value"), words)
