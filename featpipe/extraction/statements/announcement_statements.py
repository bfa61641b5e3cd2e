"""Statements of announcements: meetings, contracts, awards, acquisitions, issues, and posts.

``经采购人 *某大学* 确认``, ``由 *X公司* 中标``, ``收购某某持有的 *某某科技有限公司62%* 股权``,
``股权转让价款合计为 *18,290万元*``, ``发行数量为 *36,842,105股*``,
``募集资金净额为 *6.8亿元*``, ``*庄伯谦* 先生因 *个人工作调整*，申请辞去公司 *董事* 职务``.
"""

from __future__ import annotations

import re

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import (
    COUNT,
    DATE,
    MONEY,
    NAME,
    NTH,
    NUMERAL,
    OF_COMPANY,
    ON_A_DAY,
    PERCENT,
    POLITE,
    REMARK,
    Statement,
)

_ACTS = (
    Statement(
        "会",
        re.compile(
            rf"(?P<session>第{NTH}届(?:董事会|监事会)(?:{HAN}{{1,8}}委员会)?第{NTH}次(?:临时)?会议"
            rf"|{NUMERAL}{{4}}年(?:第{NTH}次临时|年?度)股东大?会)"
        ),
        {"session": "会议届次"},
    ),
    Statement(
        "召开",
        re.compile(
            rf"于{GAP}(?P<day>{DATE})(?:\([^()\n]{{1,10}}\))?(?:[上下中]午|晚上?)?[\d:时分点整]{{0,8}}"
            rf"(?:,?在{GAP}(?P<place>[^,。;\n]{{2,40}}?))?(?:,?(?:采取|采用|以)(?P<way>[^,。;\n]{{2,20}}?(?:方式|形式)))?"
            rf"(?:如期|准时)?召开"
        ),
        {"day": "会议时间", "place": "会议地点", "way": "召开方式"},
    ),
    Statement(
        "主持",
        re.compile(
            rf"由(?:{OF_COMPANY})?(?:副?董事长|监事会主席|{HAN}{{0,4}}主席|总经理|独立董事|董事|监事)?"
            rf"(?P<chair>{HAN}{{2,4}}?){POLITE}(?:召集[并和])?主持"
        ),
        {"chair": "主持人"},
    ),
    Statement(
        "应",
        re.compile(
            rf"应(?:到|出席|参加|参会|参与)(?:本次)?(?:会议|表决)?的?(?:董事|监事|股东|代表|委员|人员)?(?:人数)?"
            rf"(?:为|共)?{GAP}(?P<count>{COUNT}{GAP}[人名位])"
        ),
        {"count": "应到人数"},
    ),
    Statement(
        "实",
        re.compile(
            rf"实际?(?:到|出席|参加|参会|参与)(?:本次)?(?:会议|表决)?的?(?:董事|监事|股东|代表|委员|人员)?(?:人数)?"
            rf"(?:为|共)?{GAP}(?P<count>{COUNT}{GAP}[人名位])"
        ),
        {"count": "实到人数"},
    ),
    Statement(
        "弃权",
        re.compile(
            rf"(?P<result>(?:同意|赞成):?{GAP}(?P<yes>{COUNT}{GAP}票)[,;、]{GAP}反对:?{GAP}(?P<no>{COUNT}{GAP}票)"
            rf"[,;、]{GAP}弃权:?{GAP}(?P<none>{COUNT}{GAP}票))"
        ),
        {"result": "表决结果", "yes": "同意票数", "no": "反对票数", "none": "弃权票数"},
    ),
    Statement(
        "通过",
        re.compile(
            rf"审议(?:并)?(?:一致|全票)?通过(?:了)?(?:公司)?{GAP}《(?P<proposal>[^》\n]{{2,80}})》"
        ),
        {"proposal": "议案名称"},
    ),
    Statement(
        "通知书",
        re.compile(
            rf"收到(?:了)?(?:由)?(?:招标人|招标单位|采购人|采购单位|业主|建设单位|发包人)?(?P<client>{ORGANISATION}){REMARK}"
            rf"(?:发出|发来|送达|出具|签发|下发|颁发|寄来|发)(?:的)?[^。;\n]{{0,60}}?(?:中标|成交){GAP}通知书"
        ),
        {"client": "招标人"},
    ),
    Statement(
        "签",
        re.compile(
            rf"[与和](?P<other>{NAME}){REMARK}(?:[、和及与]{NAME}{REMARK}){{0,9}}(?:就[^。;\n]{{2,60}}?)?{ON_A_DAY}(?:在[^,。;\n]{{2,20}}?)?"
            rf"(?:正式|共同|协商)?签[订署](?:了)?《(?P<title>[^》\n]{{2,80}})》"
        ),
        {"other": "合同对方", "title": "合同名称"},
    ),
    Statement(
        "提供",
        re.compile(
            rf"为(?:其|公司)?(?:控股|全资)?(?:子公司|孙公司|参股公司)?(?P<debtor>{ORGANISATION}){REMARK}"
            rf"(?:的|向)?[^,。;\n]{{0,40}}?提供[^,。;\n]{{0,20}}?(?:担保|保证)"
        ),
        {"debtor": "被担保人"},
    ),
)

_AWARDS = (
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

_IS_PAID = rf"(?:合计|总额|总计|共计)?(?:确定|协商确定|作价)?(?:为|:){GAP}"

_DEALS = (
    Statement(
        "股权",
        re.compile(
            rf"(?:收购|受让|购买)(?:[^,。;\n]{{0,60}}?(?:持有的?|所持))?(?P<target>{ORGANISATION})(?:{GAP}\([^()\n]{{1,30}}\))?"
            rf"的?{GAP}(?:合计|共计)?(?P<share>{PERCENT}){GAP}的?股权"
        ),
        {"target": "标的公司", "share": "收购股权比例"},
    ),
    Statement(
        "价",
        re.compile(
            rf"(?<!最[高低])(?:转让|交易|收购|成交)总?(?:价款|对价|价格|作价|价){_IS_PAID}(?P<amount>{MONEY})(?!/)"
            rf"|(?<!{HAN})总?代价{_IS_PAID}(?P<paid>{MONEY})"
        ),
        {"amount": "交易对价", "paid": "交易对价"},
    ),
    Statement(
        "基准日",
        re.compile(
            rf"以{GAP}(?P<day>{DATE}){GAP}(?:为|作为)(?:评估|估值|审计|定价|、|及|和)*基准日"
        ),
        {"day": "评估基准日"},
    ),
    Statement(
        "值日期",
        re.compile(rf"(?P<day>{DATE})\((?:即)?\"?估值日期?\"?\)"),
        {"day": "评估基准日"},
    ),
    Statement(
        "值",
        re.compile(
            rf"(?:股东全部权益|全部股东权益|股东权益|全部股权)[^,。;\n\d]{{0,12}}?(?:价值|估值|市值|评估值){_IS_PAID}(?P<amount>{MONEY})"
            rf"|(?:评估值|市值){_IS_PAID}(?P<worth>{MONEY})"
        ),
        {"amount": "评估值", "worth": "评估值"},
    ),
    Statement(
        "方",
        re.compile(
            rf"(?:买方|受让方|收购方){GAP}(?:为|:)?{GAP}(?P<buyer>{ORGANISATION})(?=[,。;、(]|[与和及])"
        ),
        {"buyer": "收购方"},
    ),
    Statement(
        "方",
        re.compile(
            rf"(?:卖方|转让方|出让方){GAP}(?:为|:)?{GAP}(?P<client>{ORGANISATION})(?=[,。;、(]|[与和及订签])"
        ),
        {"client": "交易对方"},
    ),
    Statement(
        "代",
        re.compile(rf"(?:股票|证券|股份)代[码号]{GAP}:?{GAP}(?P<code>\d{{4,6}})(?!\d)"),
        {"code": "证券代码"},
    ),
)

_IS_ISSUED = rf"(?:最终)?(?:确定)?(?:为|共|:)?{GAP}"

_ISSUES = (
    Statement(
        "发行",
        re.compile(
            rf"(?:发行(?:股票|股份|新股|债券)?(?:的)?数量|公开发行(?:股票|股份|新股))(?:总?计)?{_IS_ISSUED}"
            rf"(?P<count>\d[\d,.]*{GAP}(?:万|亿)?{GAP}[股张])"
        ),
        {"count": "发行数量"},
    ),
    Statement(
        "价",
        re.compile(
            rf"(?:发行价格|每股(?:发行)?定价|每股发行价格?){_IS_ISSUED}(?P<price>{MONEY}(?:/[股张])?)"
        ),
        {"price": "发行价格"},
    ),
    Statement(
        "募",
        re.compile(
            rf"(?<!拟)(?:共|实际)?募集资金(?:总额)?(?:为|共计|合计)?{GAP}(?P<amount>{MONEY})"
        ),
        {"amount": "募集资金总额"},
    ),
    Statement(
        "净额",
        re.compile(rf"(?:募集资金|募资|资金)净额(?:为|共计)?{GAP}(?P<amount>{MONEY})"),
        {"amount": "募集资金净额"},
    ),
    Statement(
        "上市",
        re.compile(rf"于{GAP}(?P<day>{DATE})起?在[^,。;\n]{{2,20}}上市"),
        {"day": "上市日期"},
    ),
    Statement(
        "上市",
        re.compile(rf"上市(?:流通|交易)?(?:日期?|时间)(?:为|:){GAP}(?P<day>{DATE})"),
        {"day": "上市日期"},
    ),
)

_AT_COMPANY = r"(?:本?公司|集团)?(?:第[一二三四五六七八九十\d]{1,3}届)?(?:董事会|监事会)?的?"

_PEOPLE = (
    Statement(
        "辞去",
        re.compile(
            rf"(?:(?P<leaves>{PERSON}){POLITE})?(?:因|由于)(?P<reason>[^,。;\n]{{2,24}}?)(?:的?原因)?,[^。;\n]{{0,24}}?"
            rf"辞去(?:其?所?担任的?)?{_AT_COMPANY}(?P<post>[^,。;\n]{{2,30}}?)(?:等?职务|一职)"
        ),
        {"leaves": "离任人员", "reason": "离任原因", "post": "离任职务"},
    ),
    Statement(
        "免去",
        re.compile(
            rf"免去(?P<leaves>{PERSON})(?:(?:先生|女士|同志)的?|的){_AT_COMPANY}(?P<post>[^,。;\n]{{2,30}}?)(?:等?职务|一职)"
        ),
        {"leaves": "离任人员", "post": "离任职务"},
    ),
    *(
        Statement(
            word,
            re.compile(
                rf"{word}(?P<joins>{PERSON}){POLITE}(?:为|担任|出任){_AT_COMPANY}(?:新任)?"
                r"(?P<post>[^,。;\n()]{2,24}?)(?:候选人|职务)?(?=[,。;\n()、])"
            ),
            {"joins": "新任人员", "post": "新任职务"},
        )
        for word in ("聘任", "选举", "提名", "任命", "推选", "补选")
    ),
    Statement(
        "同志任",
        re.compile(
            rf"(?P<joins>{PERSON})同志任{_AT_COMPANY}(?P<post>[^,。;\n()]{{2,24}}?)(?=[,。;\n(])"
        ),
        {"joins": "新任人员", "post": "新任职务"},
    ),
)

ANNOUNCEMENT_STATEMENTS = (*_ACTS, *_AWARDS, *_DEALS, *_ISSUES, *_PEOPLE)
