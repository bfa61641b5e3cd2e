"""What news of companies is made of: when, how much, and names that no ending tells.

A name stands behind a mark, or behind words that say what it is (``智能驾驶芯片公司`` *黑棘科技*).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.names.name_patterns import HAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class NewsStatement(NamedTuple):
    """A pattern, and what a label would call its group that matches.

    That is ``names`` of a list, ``firms`` of one in full, ``clauses`` of an order, a name
    (``name...``), or a value.
    """

    pattern: str
    words: str


_UNIT = r"(?:人民币)?(?:[美欧日港]?元|英镑)"
_NUMBER = r"(?:数[十百千]{0,2}|\d[\d,.]{0,20}[百千]?|[一二两三四五六七八九十百千]{1,9})[万亿]"
_LOW = rf"(?:{_NUMBER}|\d[\d,.]{{0,20}})(?:{_UNIT})?[至到~—–-]{{1,2}}"
AMOUNT = rf"(?:近|[¥$])?(?:{_LOW})?(?:{_NUMBER}|\d[\d,.]{{3,20}}|[十百千万亿]{{1,4}}){_UNIT}"
ABOUT = r"(?:人民币|共计|合计|分别|总计|共|或|约|将|超过?|达到?|为|是|至|:|,)*"
WHEN = (
    r"(?:(?:当地时间)?(?:(?:\d{4}|[今去前明])年)?\d{1,2}月(?:\d{1,2}[日号]|[上中下]旬|[初底末])"
    r"|\d{4}年\d{1,2}月(?!\d)|[今去前明]年(?:\d{1,2}月|[一二三四第]+季度|年?[初底末])?(?:[初底末])?|\d{1,2}月[初底末]|(?:[本上下]?周|星期)[一二三四五六日天](?:晚间)?"
    r"|[今昨前]日|[今昨前][天晚]|上个?月|上周)"
)
#: What a name begins behind.
EDGE = r"(?<![^\s,。;:!?\"「」*◇●▍—|、】])"
#: A character of a name, of which no mark is one.
IN_NAME = r"[^\s,。;:!?\"「」《》]"
_RUN = r"[^\s,。;:!?\"「」《》*()]{2,28}?"
#: A name that is the subject of what follows, with remarks in brackets.
SUBJECT = (
    rf"{EDGE}(?P<name>{_RUN}(?:\({HAN}{{1,8}}\){HAN}{{2,8}}公司)?)[」\"]?(?:\([^()\n]{{1,40}}\))?"
)
#: A company in full, with one end only: no text of many takes long.
_LEGAL_FORM = "有限(?:责任)?公司"
_COMPANY = rf"(?:(?!{_LEGAL_FORM})[^\s,。;:!?\"「」《》、]){{2,30}}{_LEGAL_FORM}"
#: Companies that the sentence begins with, and what may stand between them and what they do.
FIRMS = rf"{EDGE}(?P<firms>{_COMPANY}(?:[、和与及]{_COMPANY}){{0,9}})(?:\([^()\n]{{1,40}}\))?"
BEFORE_ACT = rf"(?:(?![被遭由]|{_LEGAL_FORM})[^。;\n]){{0,60}}?"
#: Words between a subject and its verb: so few that no text takes long.
_ACT = (
    rf"(?:{WHEN}|近日|日前|宣布|官宣|对外|正式|联合|共同|再次?|已经?|刚刚|率先|成功|将|拟|计划|于"
    "|公告|称|,)"
)
ACTS = rf"{_ACT}{{0,5}}(?:在[^,。;\n]{{2,8}}?)?{_ACT}{{0,2}}"
_company = re.compile(rf"{EDGE}{_COMPANY}")
_firm = re.compile(rf"(?:(?<=公司)[、和与及])?(?P<name>{_COMPANY})")
#: What a company calls itself.
_SELF = ("公司", "本公司")
#: How names in full end, and characters of a short one.
_FULL, _LEAST_OF_FULL = ("有限公司", "有限责任公司"), 3
_parts = re.compile(r"[^、和与及]+")
_several = re.compile(r"[和与及]")
#: What somebody is, before a name.
_kind = re.compile(
    r".*(?:企业|公司|集团|平台|品牌|龙头|厂商|(?:租赁|服务|开发|供应|制造|运营|生产|经销|零售|承包)商|独角兽|基金|机构"
    r"|股东|申请人|债权人|应用|巨头|大王|辖区|涉事的|运营方|同业|旗下)的?"
    r"(?!有限|股份|控股|集团|分公司|子公司|旗下|总部|清算|破产|重整|创始人|[、,等业的])(?=.{2})"
)
_lead = re.compile(
    r"(?:\s|[—“”\"]|.*(?:[由对获被]|收到|记者.*从|关于|根据|介绍|同意|受理|公布|裁定|约谈|约见|(?:收购|受让)方?|购买|买下|拿下|取得|竞得|免去|核准|同志任|担任|出任|决定|处罚|谴责|认定|牵头的|赔偿)|除了?|与|和|及|以及|并|向|其中|包括|分别为|新晋|[老新原]股东|战略投资者|时任[^,。;]{0,10}?(?:经理|总监|行长|主任|董事长)"
    r"|(?:个人)?投资人|该公司|其|为|有|是|指定|传|(?:他|她|他们|其)创办的)+"
)
_tail = re.compile(
    r"(?:等|共同|联合|继续|独家|旗下.*|\(.*|[两二三四五六七八九十\d]+[家名位].*|分别|全部|跟|参|超额|,.*)+\Z"
)
#: What no name is, what none has, and what none ends with.
_no_name = re.compile(
    r"(?:本轮|公司|企业|投资方|机构|股东|双方|资金|法院|本院|该院|一并|启动|终止|终结|应[于在]|可以在|实质合并|同日起?|随后"
    r"|更正|特此|上述|上周|财报|半年报|年报|招股书|代表|现场|会上|指出|通报|要求|之列|董事长|法定代表人|实际控制人|开发商|货款"
    r"|欠薪企业|[一两三几]份|早前|撤诉|人身份|联合|共同)\Z"
    r"|.*(?:法院.|裁定|宣告|融资|记者|知情|认为|表示|消息|获悉|进行|根据|公司股票|董事会|交易所|这家|[四三两]家|涉嫌|发生|负债"
    r"|如果|若|还有|昔日|提交|一起|案件|参与|方式|[\d一二三四五六七八九十]+个?[年月日亿万天分岁家])"
    r"|.*(?:签署|签订|签约|协议|联手|意向书|通过|采取|后者|曾|自身|近日|也|亦|收到|另一|不低于|招标|联合体|当事人|截至"
    r"|政府|原告|被告|代理|副?行长)"
    r"|(?:分别|已|还|则|最|不|拟|又|第一|本次|其中|预计|放弃)"
    r"|.*(?:元|轮|其|该|工程|项目|标段|共计|合计|享有|总经理|创始人|经营者)\Z"
)
_LEAST, _MOST = 2, 30


def without_kind(folded: str, start: int, end: int) -> tuple[int, int]:
    """Place of a name without the words before it that say what it is."""
    for pattern in (_lead, _kind, _lead):
        found = pattern.match(folded, start, end)
        if found and end - found.end() >= _LEAST:
            start = found.end()
    return start, end


def is_name(folded: str, start: int, end: int) -> bool:
    """Whether words may be a name."""
    return _LEAST <= end - start <= _MOST and not _no_name.match(folded, start, end)


def names_in(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Places of the names of a list."""
    for part in _parts.finditer(folded, start, end):
        first, last = without_kind(folded, *part.span())
        tail = _tail.search(folded, first, last)
        last = tail.start() if tail else last
        if is_name(folded, first, last):
            yield first, last


def firms_in(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The same of companies in full, whose names may have 和 or 与 in them."""
    for match in _firm.finditer(folded, start, end):
        span = without_kind(folded, *match.span("name"))
        if is_name(folded, *span):
            yield span


def companies_in(folded: str) -> Iterator[tuple[int, int]]:
    """Places of the names of companies in full, but of those that may be two."""
    for match in _company.finditer(folded):
        start, end = without_kind(folded, *match.span())
        if is_name(folded, start, end) and not _several.search(folded, start, end):
            yield start, end


def in_full(
    folded: str, start: int, end: int, companies: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """Place of the company that a name is short for, or of whom a text is about.

    It is the first whose name has the short one in it, elsewhere in the text.
    """
    short = folded[start:end]
    if short in _SELF:
        return companies[0] if companies else (start, end)
    if end - start < _LEAST_OF_FULL or short.endswith(_FULL):
        return start, end
    for first, last in companies:
        if short in folded[first:last] and not first <= start < last:
            return first, last
    return start, end
