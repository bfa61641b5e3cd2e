"""Labels of forms that have no colon: known names before blanks that were filled in, or gaps.

``出租方（甲方）___李四___  身份证号___310...___``; ``开户行    某银行`` alone in its line;
details of a party in a row, ``收件人 李四，邮箱 li@x.cn，电话 0571-1``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.names.name_patterns import GAP, HAN
from featpipe.extraction.names.synonyms import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator

_DETAILS = """
联系人 收件人 经办人 电话 联系电话 手机 手机号 手机号码 传真 邮箱 电子邮箱 邮件 地址 通讯地址
联系地址 邮编 邮政编码 开户行 开户银行 账号 银行账号 户名 税号 纳税人识别号 身份证号 身份证号码
"""
#: What is no party's name among the details of one.
_OF_DETAILS = {"收件人": "联系人"}
_detail = "|".join(sorted(_DETAILS.split(), key=len, reverse=True))
#: Blanks, given back to nothing behind them: two runs of them would try every place between.
_gap = rf"{GAP}+"
_label = rf"(?P<words>{HAN}(?:{_gap}{HAN}){{1,9}})(?:{_gap}\((?P<qualifier>[^()\n]{{1,30}})\))?"
_filled = re.compile(
    rf"(?<![^\s_]){_label}{_gap}_{{2,}}{_gap}"
    rf"(?P<value>[^\s_:](?:[^\n\t_:]*[^\s_:])?){_gap}_{{2,}}"
)
_gapped = re.compile(
    rf"^{_gap}{_label}[^\S\n\t]{{2,}}+(?P<value>[^\s:](?:[^\S\n\t]?[^\s:])*+){_gap}$", re.MULTILINE
)
_inline = re.compile(
    rf"(?<![^\s:,;])(?P<words>{_detail})(?P<qualifier>)[^\S\n\t]"
    r"(?P<value>[^\s,;:、。()][^,;:、。()\n\t]{0,60}?)"
    rf"(?=[,;。\n(]|\s{{2}}|\Z|[^\S\n](?:{_detail})[^\S\n])"
)
_han = re.compile(HAN)
_ignored = re.compile(r"\s+|\([^()]*\)")


class BareLabel(NamedTuple):
    """A label without a colon. Numbers are of characters."""

    start: int
    """Where its words begin."""
    value: int
    """Where the value behind it begins; ``end`` is the place behind it."""
    end: int
    words: str
    """Folded and without blanks."""
    qualifier: str
    """What stands in brackets behind them."""


def find_form_labels(folded: str) -> Iterator[BareLabel]:
    """Those of a text after :func:`featpipe.extraction.values.text.fold_width`."""
    if not _han.search(folded):
        return
    for form in (_filled, _gapped, _inline):
        if form is _filled and "__" not in folded:
            continue
        for label in form.finditer(folded):
            words, qualifier = (_ignored.sub("", label[n] or "") for n in ("words", "qualifier"))
            # 甲方(盖章)    乙方(盖章) are two labels.
            if is_known(words) and not is_known(_ignored.sub("", label["value"])):
                words = _OF_DETAILS.get(words, words) if form is _inline else words
                yield BareLabel(label.start("words"), *label.span("value"), words, qualifier)
