"""Statements of news of companies: who raised money from whom, was listed, lost money, was summoned.

``*分子迷宫* 宣布完成 *2亿元* *Pre-A轮* 融资，由 *泽源资本* 领投，*复熙创投* 跟投``,
``*8.4亿元* 的净亏损``, ``*上海证券交易所* 决定终止``, ``*某市交通局* 约谈 *某平台*，要求其 *限期整改*``.
News calls companies by short names, behind words that say what they are, so that here a name is
told by where it begins and what it does, not by how it ends. Insolvencies are those of
``insolvency_statements``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.scoring.name_patterns import HAN
from featpipe.extraction.scoring.news_words import (
    ABOUT,
    ACTS,
    AMOUNT,
    EDGE,
    SUBJECT,
    WHEN,
    is_name,
    names_in,
    without_kind,
)
from featpipe.extraction.scoring.statement_words import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUND = r"(?:(?:种子|天使|pre-?[a-h]\d?|[a-h]\d?|pre-?ipo|战略)\+{0,2}轮|战略(?:融资|投资))"
_LIST = r"(?P<names>[^,。;:!?\n*]{2,80}?)"
_BEFORE_LIST = r"(?<![^,。;:!?\n*由被除])"


class _Told(NamedTuple):
    """A pattern, what a label would call its groups, and whether its names are a list."""

    pattern: re.Pattern[str]
    labels: dict[str, str]


_FINANCINGS = (
    _Told(
        re.compile(rf"(?<![a-z])(?P<round>{_ROUND})(?=融资|投资|[^,。;\n]{{0,4}}融资|(?<=融资)|(?<=投资))"),
        {"round": "融资轮次"},
    ),
    _Told(
        re.compile(
            rf"(?:完成|获|得|到|斩获|官宣|落袋|筹得|募得|洽谈)了?(?P<amount>{AMOUNT})(?:人民币)?的?(?:(?:新一轮|{_ROUND})(?:融资|投资)?|融资|投资)"
            rf"|(?:融资|投资|本轮|交易|认购|增资)(?:规模|金额|总?额)?{ABOUT}(?P<sum>{AMOUNT})"
            rf"|融资[^。;\n]{{0,12}}?,(?:金额|规模|总额|融资额){ABOUT}(?P<size>{AMOUNT})"
        ),
        dict.fromkeys(("amount", "sum", "size"), "融资金额"),
    ),
    _Told(
        re.compile(rf"{_BEFORE_LIST}{_LIST}(?:共同|联合|继续|独家)?(?:领投|牵头)(?!方|的|机构)"),
        {"names": "领投方"},
    ),
    _Told(re.compile(rf"领投的?(?:方|机构)?(?:为|是|:){_LIST}(?=[,。;\n(]|跟投)"), {"names": "领投方"}),
    _Told(
        re.compile(
            rf"{_BEFORE_LIST}{_LIST}(?:等)?(?:\d*[多几两三四五]?[家位名]?(?:新|老)?(?:股东|机构|投资者?方?))?"
            rf"(?:全部|继续|共同|联合|独家|战略|跟|参){{0,2}}(?:跟投|参投|投资(?!方|者|人|机构|部门|协议)|跟进|加码|注资|出资|入股)"
        ),
        {"names": "出资之方"},
    ),
    _Told(
        re.compile(rf"(?<!老)投资(?:方|人|机构)(?:阵容)?(?:包括|分别为|还有|为|是|有|:)了?{_LIST}(?=[。;\n]|等|,(?!跟投))"),
        {"names": "出资之方"},
    ),
    _Told(
        re.compile(
            rf"{SUBJECT}{ACTS}(?:完成|获得?|拿到|斩获|官宣|敲定|落袋|引入)了?[^,。;\n]{{0,24}}?(?:融资|投资|{_ROUND}|战投)"
        ),
        {"name": "获投公司"},
    ),
    _Told(
        re.compile(rf"估值(?:或|约|将|已|可|仅|一度)?(?:为|达到?|是|至|超过?|升至|增至|:)?{ABOUT}(?P<worth>{AMOUNT})"),
        {"worth": "估值"},
    ),
    _Told(
        re.compile(
            rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,40}}?(?:完成|获|宣布|官宣|引入|拿到|传来|签署|新增|入股)[^。;\n]{{0,40}}?(?:融资|投资|股东)"
        ),
        {"day": "所报之时"},
    ),
)
_EXCHANGE = (
    "(?:(?:上海|深圳|北京|香港|纽约|伦敦|新加坡|东京)(?:联合)?(?:证券)?交易所|[上深北港联]交所|纽交所|纳斯达克|新三板"
    "|全国股转系统)"
)
_BOARD = r"(?:的?(?:主板|科创板|创业板|北交所|中小板|新三板|a股|h股|港股|美股))"
_LISTINGS = (
    _Told(
        re.compile(
            rf"(?P<exchange>{_EXCHANGE})(?={_BOARD}?(?:正式|成功|挂牌|首日|上市|敲|决定|公告|官网|终止|暂停|同意|受理|撤|退|主板|[^,。;\n]{{0,12}}上市))"
            rf"|(?:登陆|在|于|向|被|赴|从)(?P<at>{_EXCHANGE})"
        ),
        {"exchange": "上市交易所", "at": "上市交易所"},
    ),
    _Told(
        re.compile(
            r"(?P<stage>(?:终止|暂停|恢复)上市(?!公司)|撤回(?:上市|ipo)?申请|(?:ipo|首发|上市申请)(?:申请)?(?:获受理|过会|获通过|被否|终止)"
            r"|(?:正式|成功)(?:挂牌|登陆|上市)|挂牌上市|登陆[\u4e00-\u9fff]{1,3}板|首日交易|摘牌|(?:筹备|拟|重启|冲刺)[^,。;\n]{0,4}(?:上市|ipo))"
        ),
        {"stage": "上市之事"},
    ),
    _Told(
        re.compile(
            rf"发行(?:定?价|价格){ABOUT}(?:每股)?(?P<price>\d[\d,.]*[美欧日港]?元(?:/[股张])?)(?![万亿])"
            rf"|(?P<of>\d[\d,.]*[美欧日港]?元(?:/股)?)的发行价"
        ),
        {"price": "发行价格", "of": "发行价格"},
    ),
    _Told(
        re.compile(rf"(?:募资|集资|筹资|募得|募集资金)(?:净额|总额|约|到)?{ABOUT}(?P<amount>{AMOUNT})"),
        {"amount": "融资金额"},
    ),
    _Told(
        re.compile(rf"市值(?:仅|约|只|剩下|跌至|升至|缩水至|可)?{ABOUT}(?P<worth>{AMOUNT})"),
        {"worth": "市值"},
    ),
    _Told(
        re.compile(
            rf"{SUBJECT}(?:股票)?{ACTS}正?(?:在|于|登陆|赴|冲刺|被|重启|筹备|向|撤回|递交)[^,。;\n]{{1,14}}?(?:上市|挂牌|首日交易|敲|摘牌|ipo)"
            r"|(?:决定|关于)(?P<held>[^,。;\n]{2,30}?)(?:人民币普通股)?(?:股票)?(?:终止|暂停|恢复|[^,。;\n]{0,8}?)上市"
        ),
        {"name": "所报公司", "held": "所报公司"},
    ),
    _Told(
        re.compile(
            rf"(?P<day>{WHEN})[^。;\n]{{0,36}}?(?:挂牌|上市|登陆|首日交易|摘牌|过会|获受理|敲锣|敲钟|退市)"
        ),
        {"day": "所报之时"},
    ),
)
_PERIOD = (
    r"(?:(?:截至)?\d{4}年\d{1,2}月(?:\d{1,2}日)?[-至到~—–]+(?:\d{4}年)?\d{1,2}月(?:\d{1,2}日)?"
    r"|\d{4}年1-\d{1,2}月|截至[^,。;\n]{2,12}?止(?:上半年|[^,。;\n]{1,4}个月|年度)"
    r"|(?:\d{4}(?:年|财年)(?:的)?|[今去前]年)?(?:上半年|下半年|前[三九]个?(?:季度|月)|第?[一二三四]季度?|半年度|三季度)"
    r"|\d{4}(?:年(?!\d)(?:年?度)?|财年|年报))"
)
_LOSSES = (
    _Told(
        re.compile(
            rf"(?P<period>{_PERIOD})(?=[^。;\n]{{0,30}}?(?:净?亏损?|亏了|净利|业绩|营收|年报|收入))"
            rf"|(?:预告|业绩|报告)期(?:间)?:?(?P<of>{_PERIOD})"
        ),
        {"period": "所报期间", "of": "所报期间"},
    ),
    _Told(
        re.compile(
            rf"(?<!上年同期)(?<!去年同期)(?<!年)(?<!扣非后)(?<!每股)(?:净亏损?|亏损额?|亏了|预亏|巨亏|净亏)(?:达|为|约|更正为|高达|超|近|人民币)?{ABOUT}"
            rf"(?P<loss>{AMOUNT}(?:[-至到~—–]{{1,2}}{AMOUNT})?)"
        ),
        {"loss": "所报亏损"},
    ),
    _Told(
        re.compile(
            rf"亏损(?:额|幅度)?(?:较上年|比上年|按年|已|同比|相比|,|上年同期|的|\d[\d.,]*[万亿]?元){{0,4}}?"
            rf"(?P<change>(?:同比)?(?:扩大|收窄|减少|增加|下降|缩小|缩窄|增长)了?(?:\d[\d.,]*(?:%|倍|[万亿]*元)(?:[至到-]\d[\d.,]*(?:%|倍|[万亿]*元))?|近一倍))"
        ),
        {"change": "亏损变化"},
    ),
    _Told(
        re.compile(
            rf"(?:营业总?收入|总?营收|净?收入|收益)(?:约|仅|达|实现|总额)?{ABOUT}(?P<revenue>{AMOUNT}(?:[-至到~—–]{{1,2}}{AMOUNT})?)"
        ),
        {"revenue": "营业收入"},
    ),
    _Told(
        re.compile(
            rf"(?P<day>{WHEN})(?:晚间?|下午|上午|盘后)?(?:在[^,。;\n]{{2,8}}?中|对外|正式)?(?:,[^,。;\n]{{2,16}}?)?"
            rf"(?:披露|公布|发布|公告|表示|宣布|交出|更新)"
        ),
        {"day": "披露时间"},
    ),
    _Told(
        re.compile(
            rf"{SUBJECT}{ACTS}(?:{WHEN})?(?:晚间?|在[^,。;\n]{{2,8}}?中)?(?:披露|公布|发布|公告|更新|交出)"
            rf"|{EDGE}(?P<loser>[^\s,。;:!?\"「」《》()]{{2,24}}?)(?:{_PERIOD})(?:净亏|亏)"
        ),
        {"name": "所报公司", "loser": "所报公司"},
    ),
)
_OFFICE = (
    rf"(?:{HAN}{{2,24}}?(?:分局|总局|局(?!限)|委员会|发改?委|监委|卫健?委|城管委|网信办|食安办|安委办|办公室|协会|消保委|检察院|管理处|大队|支队"
    rf"|办事处|人民政府|管理中心|厅|总队|署(?!名))(?:{HAN}{{2,10}}?(?:局|中心|司|科|部))?|人民银行|工信部|央行)"
)
_SUMMONS = (
    _Told(
        re.compile(
            rf"(?:(?<![^\s,。;:!?*、被由经从])|会同|联合|(?<=[局委厅办部会院处所])[和与及])(?P<office>(?!该|会同){_OFFICE})"
            r"(?=[^。;\n]{0,80}?约[谈见])"
        ),
        {"office": "约谈之方"},
    ),
    _Told(
        re.compile(
            rf"(?:约谈|约见)了?(?P<name>[^\s,。;:!?\"「」《》]{{2,30}}?)(?=[,。;\n\s]|主要|负责人|相关|董事|高管|法定|总经理|区域|谈话|的通报|的情况)"
            rf"|对(?P<of>[^\s,。;:!?]{{2,30}}?)(?:进行|实施|开展|负责人)[^,。;\n]{{0,12}}?约谈"
        ),
        {"name": "所报公司", "of": "所报公司"},
    ),
    _Told(re.compile(rf"{SUBJECT}再?被[^,。;\n]{{0,24}}?约谈"), {"name": "所报公司"}),
    _Told(
        re.compile(
            rf"(?P<day>{WHEN})[^。;\n]{{0,40}}?(?:约谈|约见)|约谈发生在(?P<at>{WHEN})"
        ),
        {"day": "约谈时间", "at": "约谈时间"},
    ),
    _Told(
        re.compile(
            r"(?:就|针对)(?:其|消费者[^,。;\n]{0,8}的|近期)?(?P<reason>[^,。;\n]{4,40}?)(?:等)?(?:问题|一事|情况|事项|现象)[^。;\n]{0,40}?约[谈见]"
            r"|(?:原因|事由)(?:为|是|:)(?P<said>[^,。;\n]{4,40})"
            r"|(?:存在|涉嫌)(?P<has>[^,。;\n]{4,40}?)(?:等)?的?(?:问题|情形|行为|情况)"
            r"|(?<![\u4e00-\u9fff])因(?:其|旗下)?(?P<because>[^,。;\n]{4,40}?),[^。;\n]{0,30}?约[谈见]"
            r"|经查[,:](?:该?(?:平台|公司|企业|机构))?(?P<found>[^,。;\n]{4,40})"
        ),
        dict.fromkeys(("reason", "said", "has", "because", "found"), "约谈之因"),
    ),
    _Told(
        re.compile(r"(?:要求|责令|敦促|督促|责成)(?:其|平台|企业|公司|该公司|该所|该企业|[^,。;:\n]{2,8}?(?:公司|平台))?:?(?P<demands>[^。\n]{4,160})"),
        {"demands": "所提要求"},
    ),
)
#: What a text has of which these tell, and what they tell.
_KINDS = (
    (re.compile(rf"领投|跟投|{_ROUND}(?:融资|投资)|投前估值|投后估值|融资轮次"), _FINANCINGS),
    (re.compile(r"(?:终止|暂停)上市|挂牌上市|正式上市|登陆(?:科创|创业)|(?:交所|交易所|纳斯达克)[^。;\n]{0,12}(?:上市|挂牌|敲|首日)|\bipo|摘牌|退市|发行价"), _LISTINGS),
    (re.compile(r"亏损|亏了|预亏"), _LOSSES),
    (re.compile(r"约谈|约见"), _SUMMONS),
)
_LISTED = frozenset(["names"])
#: Labels of names.
_NAMED = frozenset(["所报公司", "获投公司"])
_demand = re.compile(r"(?:[并和且]|以及|\([一二三四五六\d]\)|[一二三四五六]是|\d\.|如[^,。;]{2,14}?应)*(?P<one>[^,;。\n]{4,40})")
#: Clauses behind an order that are none of it.
_no_demand = re.compile(r"表示|回应|承诺|称|负责人(?!员)|记者|此次|同时表|目前")
#: Of a text with as many characters, news is told by its beginning.
_LONGEST = 4000


def find_news(folded: str) -> Iterator[Phrase]:
    """Those of a text that is short enough for news."""
    if len(folded) > _LONGEST:
        return
    for tells, statements in _KINDS:
        if tells.search(folded):
            for pattern, labels in statements:
                for match in pattern.finditer(folded):
                    yield from _of_match(folded, match, labels)


def _of_match(folded: str, match: re.Match[str], labels: dict[str, str]) -> Iterator[Phrase]:
    for group, words in labels.items():
        start, end = match.span(group)
        if start < 0:
            continue
        if group in _LISTED:
            spans = list(names_in(folded, start, end))
            yield from (Phrase(*span, words) for span in spans)
            if words == "领投方":
                yield from (Phrase(*span, "出资之方") for span in spans)
        elif group == "demands":
            yield from (Phrase(*span, words) for span in _demands(folded, start, end))
        elif words in _NAMED:
            start, end = without_kind(folded, start, end)
            if is_name(folded, start, end):
                yield Phrase(start, end, words)
        else:
            yield Phrase(start, end, words)


def _demands(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What is to be done, clause by clause."""
    for match in _demand.finditer(folded, start, end):
        if _no_demand.search(match["one"]):
            return
        yield match.span("one")
