"""The type that a field's name tells, where there is neither a sample nor a type: 押金 is money.

Names whose values have several forms are left out: a 违约金 is an amount or a share, a 期限 a
number of months or two dates.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.values.text import fold_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.extraction.values.values import FieldType

_MONEY = (
    "金额|价款|总价|单价|价格|合同价|中标价|租金|押金|定金|订金|工资|薪资|保证金|预算|限价|控制价|注册资本|总额|余额|预付款|本金"
    "|[收欠余尾货]款|[首尾末中前后]期款|首付款?|进度款|结算款|执行标的额?|价税合计|标的额|[应已未预]付款|工程款|转让款"
    "|罚金|对价|作价|评估值|评估价值|月薪|(?<![缴计免消付收交])费"
    r"|\b(?:amount|price|fees?|rent|salary|deposit|cost|subtotal|charge|instal?lment|wage|bonus|value)"
    "|(?:monthly|annual|down|total|advance) payment|(?:invoice|order|grand) total"
    "|liability cap|cap on liability"
)
_ENDINGS: tuple[tuple[FieldType, str], ...] = (
    ("money", _MONEY),
    (
        "date",
        (
            "日期|(?:签[订署约]|订立|立案|受理|发布|公告|到期|生效|起始|终止|入职)时间"
            r"|[到交起止报截付还生收受立判签发基准]\w{0,3}日|(?: |^)date"
        ),
    ),
    ("percent", "比例|利率|税率|费率|折扣率|(?: |^)(?:interest|tax|vat|discount|commission) rate"),
    ("phone", "电话|电话号码|手机|手机号|手机号码|传真|(?: |^)(?:phone|telephone|fax)"),
    ("email", "邮箱|邮箱地址|电子邮件|(?: |^)e-?mail"),
    ("id", "身份证号|身份证号码|身份号码|账号|帐号|信用代码|税号|识别号"),
    ("number", "面积|股数"),
)
_of_codes = re.compile(
    r"(?:编号|号码|(?<!币种|货币|国家|地区)代码|文号|案号|(?: |^)(?:number|no\.?))\Z"
)
_known = [(kind, re.compile(rf"(?:{words})\Z")) for kind, words in _ENDINGS]


@lru_cache(maxsize=1024)
def names_codes(name: str) -> bool:
    """Whether a name is one of numbers of documents and the like, which have digits."""
    return _of_codes.search(fold_width(name).strip()) is not None


def kind_of_names(names: Sequence[str]) -> FieldType:
    """The type of the first name that tells one; text where none does."""
    for name in names:
        folded = fold_width(name).strip()
        for kind, pattern in _known:
            if pattern.search(folded):
                return kind
    return "text"
