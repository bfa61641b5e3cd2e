"""What news tells of lawsuits: who sued whom where, what about, for how much, and how it ended.

``*X* 因 *买卖合同纠纷* 将 *Y* 诉至 *某区人民法院*，请求支付货款 *1847.62万元*``.
"""

from __future__ import annotations

from featpipe.extraction.names.name_patterns import HAN
from featpipe.extraction.statements.news_words import (
    ABOUT,
    ACTS,
    AMOUNT,
    EDGE,
    IN_NAME,
    SUBJECT,
    WHEN,
    Told,
)

_COURT = rf"{HAN}{{2,16}}?(?:中级|高级|知识产权)?(?:人民)?法院"
_WHOM = rf"{IN_NAME}{{2,30}}?"
_ABOUT = r"(?:因|以)[^,。;\n]{2,24}?(?:纠纷|为由|,)"
_DECIDES = "(?:判|裁定|开庭|受理|审理|驳回|送达|宣判)"

LAWSUITS = (
    Told(
        rf"{SUBJECT}{ACTS}(?:{_ABOUT})?,?(?:(?<![胜败上撤反申])诉(?!讼|请|求)|起诉(?![讼状书权期材])|将{_WHOM}(?:诉至|告上|起诉|诉诸)|向{_COURT}(?:提起|起诉))"
        rf"|原告(?:为|:|是)?(?P<name_of_suer>(?!方|与|诉|提|因|要|未|索|请){_WHOM})(?=[,。;\n(]|诉|因|向|与|以)",
        "起诉之方",
    ),
    Told(
        rf"(?:(?<![胜败上撤反申起])诉(?!讼|请|求|至)|起诉(?![讼状书权期材]))(?:被告)?(?P<name>(?!至|称|公司){_WHOM})(?=侵|[^,。;\n]{{0,14}}?纠纷|一案|不正当|专利|,|。)"
        rf"|将(?:业主方|被告)?(?P<name_of_sued>{_WHOM})(?:及[^,。;\n]{{2,40}})?(?:诉至|告上|起诉|诉诸)"
        rf"|对(?P<name_of_other>{_WHOM})(?:及[^,。;\n]{{2,20}})?(?:提起诉讼|提出的?(?:索赔|诉讼))",
        "应诉之方",
    ),
    Told(
        rf"{EDGE}(?P<name_of_court>{_COURT})(?=[^。;\n]{{0,40}}?{_DECIDES})"
        rf"|(?:诉至|由|在|向|收到|获)(?P<at>{_COURT})",
        "受案法院",
    ),
    Told(
        r"(?:索赔|赔偿|支付|偿还|归还|返还|涉案|拖欠|清偿|追讨)"
        rf"(?:[^,。;\n\d]{{0,20}}?)?{ABOUT}(?P<amount>{AMOUNT})",
        "涉诉金额",
    ),
    Told(
        r"(?:因|以|就|案由为?:?|诉[^,。;\n]{2,20}?)(?P<cause>[\u4e00-\u9fff]{2,20}?纠纷)"
        r"|(?P<of>[\u4e00-\u9fff]{4,20}?纠纷)一案",
        "案由",
    ),
    Told(
        r"驳回上诉,维持原判|准许[^,。;\n]{0,10}?撤回起诉|驳回[^,。;\n]{0,20}?(?:诉讼请求|索赔请求|全部请求|起诉)"
        r"|(?:一审|二审|终审)?(?:胜诉|败诉)",
        "审理结果",
    ),
    Told(
        rf"(?P<day>{WHEN})(?!电)[^。;\n]{{0,40}}?(?:判|裁定|开庭|起诉|收到|诉|宣布)",
        "所报之时",
    ),
)
