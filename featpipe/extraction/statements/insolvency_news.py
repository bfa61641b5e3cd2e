"""Statements of insolvencies: which court decided about whom, at whose request, and what is owed.

``*盐城市中级人民法院* 裁定受理 *某某科技有限公司* 破产清算申请``, ``根据 *某银行* 的申请``,
``指定 *某律师事务所* 担任管理人``, ``负债总额约 *37.2亿元*``, ``主要债权人包括 *X* 和 *Y*``.
"""

from __future__ import annotations

from featpipe.extraction.names.name_patterns import HAN, ORGANISATION
from featpipe.extraction.statements.news_words import (
    ABOUT,
    ACTS,
    AMOUNT,
    IN_NAME,
    SUBJECT,
    WHEN,
    Told,
)

_COURT = rf"(?:{HAN}{{2,16}}?(?:中级|高级)?人民法院|{HAN}{{2,8}}法院|本院|该院)"
_DECIDES = r"(?:作出[^,。;\n]{0,10}?裁定|裁定|决定|受理|已裁定|宣告|尚未裁定)"
_BANKRUPT = (
    r"(?:提出的|的)?(?:被?(?:申请)?(?:进行)?(?:破产|[预司]?重整)|进入破产|合并重整|实质合并)"
)
_NAME = rf"{IN_NAME}{{2,34}}?"
_FIRM = rf"(?:[^\s,。;:的、和与]{{4,40}}?(?:事务所有限公司|事务所(?:{HAN}{{2,4}}分所)?|清算组))"
_ALONE = rf"(?:(?!对|的|其|该|此){IN_NAME}){{2,34}}?"
INSOLVENCIES = (
    Told(
        rf"(?P<court>{_COURT})(?=[^。;\n]{{0,60}}?{_DECIDES})|(?:从|向|移送|到)(?P<at>{_COURT})",
        "破产法院",
    ),
    Told(
        rf"(?:受理|裁定|决定|申请)(?:[^,。;\n]{{2,40}}?)?对(?P<name>{_ALONE}){_BANKRUPT}",
        "破产之方",
    ),
    Told(rf"(?:受理|宣告|批准|终结|认可)(?P<name>{_ALONE}){_BANKRUPT}", "破产之方"),
    Told(
        rf"{SUBJECT}(?:被债权人[^,。;\n]{{2,40}}?)?{ACTS}(?:自行)?(?:向(?:{_COURT}|法院))?(?:提出|提交)?"
        rf"(?:申请|进入|被[^,。\n]{{0,6}}?)?{_BANKRUPT}",
        "破产之方",
    ),
    Told(rf"(?:根据|经|依)(?:债权人|申请人|申请执行人)?(?P<name>{_NAME})的?申请", "破产申请人"),
    Told(
        rf"申请人(?:为|是|:)(?:[^,。;\n]{{0,8}}?供应商|债权人|债务人)?(?P<name>{_NAME})(?=[,。;\n])",
        "破产申请人",
    ),
    Told(rf"[,。;:\n](?P<name>{_NAME})(?:为|系)申请人", "破产申请人"),
    Told(rf"受理(?:债权人|申请人)?(?P<name>{_NAME})对[^,。;\n]{{2,40}}?(?:的|提出)", "破产申请人"),
    Told(rf"被债权人(?P<name>{_NAME})申请", "破产申请人"),
    Told(
        rf"{SUBJECT}以[^,。;\n]{{2,60}}?(?:为由|欠付|不能清偿|无法清偿)",
        "破产申请人",
    ),
    Told(rf"裁定(?:日期|时间)(?:为|:)(?P<day>{WHEN})", "裁定时间"),
    Told(rf"(?P<day>{WHEN})[^。;\n]{{0,40}}?(?:裁定|受理|宣告|批准)", "裁定时间"),
    Told(
        r"(?:负债|债务|债权|欠款|欠付[^,。;\n]{0,14}?|拖欠[^,。;\n]{0,12}?|欠[^,。;\n]{2,12}?)"
        rf"(?:总额|总计|规模|合计|余额|共计)?{ABOUT}(?P<debt>{AMOUNT})(?!的?借款)",
        "债务规模",
    ),
    Told(rf"(?P<debt>{AMOUNT})的?(?:债务|负债)", "债务规模"),
    Told(
        r"债权人(?:[^。;\n]{0,16}?包括|分别为|为|有|是|:)(?P<names>[^。;:\n]{2,80}?)(?=[。;\n,]|等)",
        "所欠之方",
    ),
    Told(
        rf"(?:[欠对](?:了|付|负)?)(?P<name>{_ALONE})(?:的(?:借款|贷款|欠款|货款|债务)|{AMOUNT})",
        "所欠之方",
    ),
    Told(r"[大要]债权人(?P<names>[^,。;\n包为]{2,50}?)(?:同意|表示|,|等)", "所欠之方"),
    Told(rf"债权人(?P<name>{ORGANISATION})", "所欠之方"),
    Told(
        r"指定了?(?P<names>[^,。;\n]{2,50}?)(?:担任|为|作为)[^,。;\n]{0,12}?管理人",
        "破产管理人",
    ),
    Told(
        rf"管理人(?:为|是|由|:|——)?(?P<names>{_FIRM}(?:[、和与]{_FIRM})*)",
        "破产管理人",
    ),
    Told(
        rf"(?P<name>{ORGANISATION})(?:获指定|被指定|担任|受指定)(?:为|担任)?[^,。;\n]{{0,8}}?管理人",
        "破产管理人",
    ),
)
