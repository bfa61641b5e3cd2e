"""Synonyms: other names that business documents use for the things a field may be named after.

General vocabulary of contracts, announcements, judgments and invoices, Chinese and English, written
down by hand: nothing here is counted on a labelled set. A field's own name and aliases count more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.names import common_names, english_names, news_names, payment_names
from featpipe.extraction.values.text import fold, fold_width

if TYPE_CHECKING:
    from collections.abc import Iterable


def _groups(names: str) -> tuple[tuple[str, ...], ...]:
    groups = (group for group in names.split(";") if group.strip())
    return tuple(tuple(name.strip() for name in group.split(",")) for group in groups)


_PARTIES = _groups(common_names.PARTIES) + _groups(english_names.PARTIES)
_MODULES = (common_names, english_names, news_names, payment_names)
_MARKED = _PARTIES + tuple(group for module in _MODULES for group in _groups(module.NAMES))
_GROUPS = tuple(tuple(name.removeprefix("<") for name in group) for group in _MARKED)
_PARTY_NAMES = frozenset(name for group in _PARTIES for name in group)
_JOINED_NAMES = frozenset(name.replace(" ", "") for name in _PARTY_NAMES)
_ALL_NAMES = frozenset(name.replace(" ", "") for group in _GROUPS for name in group)
_side = re.compile(r"(?:[甲乙丙丁戊买卖供需]|[\u4e00-\u9fff]{2,5}(?<![双各多三地平立]))方")
#: Characters of a label that a field's name may end with.
_LEAST_HEAD = 3
#: English ones that head anything: whose name and title it is, only the rest tells.
_VAGUE_HEADS = frozenset(["name", "title", "number"])
#: Those, and others: as a synonym of a field's name each has to be all of a label.
VAGUE = frozenset((
    "名称", "全称", "编号", "号码", "编码", "文号", "日期", "时间", "单位", "公司",
    "period", "duration", "area", "products", "software", "security", "interest", "gross",
    "container", "bank", "commitment",
))  # fmt: skip
#: What a date is of that a document calls its date.
_dated = re.compile(r"(?:invoice|order|po|receipt|bill|document|letter|issue|quote|report|note)")
#: Numbers of parties that are called alike.
ORDINALS = (*"一二三四五六七八九十", *map(str, range(1, 21)))
_ordinal = re.compile(r"(?:\d{1,2}|之?[一二三四五六七八九十])$")
_first = re.compile(r"^第[一二三四五六七八九十](?=..)")
#: Of a word such as 付款方式, whose 方 ends no party's name.
_word = re.compile(r"[式案面向针位程]|法(?![定人])")
#: What is asked of a party where its name is meant.
OWN_NAMES = frozenset((
    "名称", "姓名", "全称", "单位", "公司", "单位名称", "公司名称", "企业名称", "name",
))  # fmt: skip
#: Names that say what another thing is of, unless they end the name: 项目经理 is no 项目.
_CARRIERS = frozenset(["项目", "工程", "合同", "标的"])
#: Ends of names of other things than those that they are of: 合同价格形式 is no 合同价格.
_other = re.compile(
    r"(?:方式|形式|方法|条件|条款|依据|范围|内容|经理|主管|负责人|联系人|事务所|地点|地址|类型|性质|种类|来源|编号|号码|助理)\Z"
)
#: Behind a name in a label, of something about it: 供应商地址 is no 供应商.
_about = re.compile(
    r"(?:方式|形式|地点|地址|住所|类型|性质|种类|来源|编号|号码|代码|电话|传真|邮编|邮箱|账号|账户|日期|时间|年度|金额|比例|数量|(?<![及和、与])占比|占(?:公司)?总股本"
    r"|联系人|联系方式|负责人|经理|代表|代表人|律师|意见|情况|概况|简介)\Z"
)
#: Before a name, of another thing: 解除质押股数 and 累计质押股数 are no 质押股数.
OTHERS = ("累计", "解除", "剩余", "未", "原", "前次", "上次", "套内", "分摊", "公摊", "被")
#: Names of shares, of what share they are and of days that may be put off, and before them in a
#: label: of all that is pledged, of what was before or is left.
_of_others = tuple(
    (re.compile(name), re.compile(before))
    for name, before in (
        (r"质押(?:的?股|数)", r"(?:剩余|尚|仍|已|未|前|后)(?:处于|被|已)*\Z"),
        (r"(?:累计|剩余)(?:被)?质押", r"前\Z"),
        (r"占", r"累计|剩余|尚|未|已|质押[^占]*后"),
        (r".*(?:到期|终止|截止|届满)(?:日|日期|时间)\Z", r"原"),
    )
)
#: Of a label, what says of which kind something is that has several.
_kind_of = re.compile(r"(?P<kind>[^\W\d_a-z]{2,12})(?P<head>保证金|违约金|利率|期限)\Z")
#: That say nothing of the kind.
_any_kind = re.compile(r"(?:合同|协议|租赁|租房|房屋|应[付缴交收]|[缴交支]付|[缴交]纳|[本该此])+")
#: Of a rate, words for that of a loan.
_lent = re.compile(r"(?:贷款|约定)(?=利率)")
in_brackets = re.compile(r"\([^()]*\)")
#: Behind an English name, whose last word says what it is: a supplier address is no supplier.
_english_rest = re.compile(
    r"(?:\.|e?s|numbers?|nos?\.?|#|name|names|amount|value|payable|due|inclusive|of(?:this|the|our|your).*|\(.*\)?)*"
)
#: Before it, of another thing: a late fee is no fee, a subtotal of goods no total.
_ENGLISH_OTHERS = (
    "late", "default", "overdue", "sub", "sub-", "pre", "termination", "cancellation", "goods",
)  # fmt: skip
#: Behind a sum of money, words that say what it is.
#: Between names that a name gives to choose from.
_choice = re.compile(r"\s+or\s+|\s*/\s*|(?<!^)或(?!有)")
_listed = re.compile(rf"{_choice.pattern}|,")
_LEAST_ALTERNATIVE = 2
_twice = re.compile(r"(?<=[金费款租价税息])(?:金额|数额|总额)\Z")
_camel = re.compile(r"(?<=[a-z])(?=[A-Z])|[_-]")


@lru_cache(maxsize=1024)
def synonyms_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Other names of the thing that a field is named after, none of them given.

    A name that no group has counts as the longest name of a group that it contains, the last of
    those that are as long: 合同金额上限 as 合同金额, 合同登记编号 as 编号.
    """
    found = [other for name in names for group in _groups_of(name) for other in group]
    return tuple(other for other in dict.fromkeys(found) if other not in names)


def with_stems(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names, folded, and what those of sums of money are that say so twice: 押金 for 押金金额.

    Of a name of several, licensor or supplier, each one, too.
    """
    every = (*names, *(one for name in names for one in alternatives(name)))
    stems = (_twice.sub("", name) for name in every if name not in _ALL_NAMES)
    return tuple(dict.fromkeys((*every, *(stem for stem in stems if stem in _ALL_NAMES))))


@lru_cache(maxsize=4096)
def alternatives(name: str) -> tuple[str, ...]:
    """What a name, folded, gives to choose from: vessel, voyage, flight of vessel/voyage or flight.

    None where it gives no choice, as 或有负债 and n/a do.
    """
    name = in_brackets.sub("", name)  # 单价(元/吨)
    if not _choice.search(name):
        return ()
    commas = _listed if name.isascii() else _choice
    parts = [part.strip() for part in commas.split(name)]
    return tuple(parts) if min(map(len, parts)) >= _LEAST_ALTERNATIVE else ()


def heads_of(names: Iterable[str], labels: Iterable[str]) -> list[str]:
    """Those of some labels, folded, that names end with: 开工日期 of 计划开工日期."""
    folded = [fold(name) for name in names]
    return sorted(
        label
        for label in labels
        if len(label) >= _LEAST_HEAD
        and label not in {*_VAGUE_HEADS, "amount"}
        and any(
            (label != "date" or _dated.match(name))
            and name.endswith(label)
            and name != label
            and names_same(name, label)
            for name in folded
        )
    )


@lru_cache(maxsize=1 << 16)
def names_same(label: str, name: str) -> bool:
    """Whether a label has a name, and no word right before it that makes it another thing.

    Words in brackets are left out where that makes the name: 中标(成交)金额 is 中标金额. An English
    name is the end of a label, but for words such as "number".
    """
    if name.isascii() and label.isascii():
        return _names_english(label, name)
    if "是否" in label and "是否" not in name:
        return False  # it is answered by yes or no
    at = label.find(name)
    if at < 0 and "(" in label:
        label = in_brackets.sub("", label)
        at = label.find(name)
    if at < 0 or label[:at].endswith(OTHERS) or _is_of_others(label[:at], name):
        return False  # nor is 被投资方 the 投资方
    rest = in_brackets.sub("", label[at + len(name) :])
    return not _about.search(rest)


def _is_of_others(before: str, name: str) -> bool:
    """Whether what stands before a name in a label makes another thing of it: 本次质押后, 原."""
    return bool(before) and any(
        own.match(name) and other.search(before) for own, other in _of_others
    )


def _names_english(label: str, name: str) -> bool:
    """So of names in English, folded and without blanks: they end with what they mean."""
    at = label.rfind(name)
    if label.endswith("terms") and name.endswith("term"):
        return False  # terms of payment
    if name in _VAGUE_HEADS or (name == "date" and not _dated.match(label)):
        at = min(at, 0)
    return (
        at >= 0
        and not label[:at].endswith(_ENGLISH_OTHERS)
        and _english_rest.fullmatch(label, at + len(name)) is not None
    )


@lru_cache(maxsize=1 << 16)
def is_other_kind(label: str, names: tuple[str, ...]) -> bool:
    """Whether a label is of another kind of what names are of: 投标保证金 for 履约保证金.

    A synonym of theirs may be all that the two have in common; a name that is the word itself,
    保证金, is of any kind. All are folded.
    """
    label, names = _lent.sub("借款", label), tuple(_lent.sub("借款", name) for name in names)
    found = _kind_of.search(in_brackets.sub("", label))
    if found is None or _any_kind.fullmatch(found["kind"]):
        return False
    of_kinds = [name for name in names if name.endswith(found["head"])]
    if not of_kinds:  # 押金 is no 质量保证金
        return found["head"] == "保证金" and label not in _ALL_NAMES
    return not any(
        name == found["head"] or found["kind"] in name or name.removesuffix(found["head"]) in label
        for name in of_kinds
    )


@lru_cache(maxsize=1 << 16)
def is_party(label: str) -> bool:
    """Whether a label, folded and without blanks, is what a party of a document is called."""
    name = without_ordinal(label)
    return name in _JOINED_NAMES or bool(_side.fullmatch(name))


def without_ordinal(label: str) -> str:
    """What several parties are called that are numbered: 被告 for 被告二 and 第二被告."""
    return _first.sub("", _ordinal.sub("", label))


def is_known(label: str) -> bool:
    """Whether a label, folded and without blanks, is a group's name or what a party is called."""
    return label in _ALL_NAMES or is_party(label)


@lru_cache(maxsize=1024)
def party_and_rest(name: str) -> tuple[str, str] | None:
    """A field's name as a party and what is asked of it, such as 甲方 and 电话; None for others."""
    party, rest = _parted(_folded(name))
    return (party, rest) if party and rest not in {"", *OWN_NAMES} else None


@lru_cache(maxsize=1024)
def party_named(name: str) -> str:
    """The party that a field's name asks for, as 甲方 and 甲方名称 do; "" for others."""
    party, rest = _parted(_folded(name))
    return party if rest in {"", *OWN_NAMES} else ""


def _parted(folded: str) -> tuple[str, str]:
    """The party that a name begins with, and the rest; "" for none."""
    listed = [own for own in _PARTY_NAMES if folded.startswith(f"{own} " if own.isascii() else own)]
    side = _side.match(folded)
    party = max([*listed, side[0] if side else ""], key=len)
    if party.endswith("方") and _word.match(folded, len(party)):
        return "", folded
    return party, folded[len(party) :].lstrip(" 的之")


def _groups_of(name: str) -> list[tuple[str, ...]]:
    folded = _folded(name)
    party, rest = _parted(folded)
    if party and rest:
        folded = party if rest in OWN_NAMES else rest
    ends = {known: end for group in _GROUPS for known in group if (end := _end_in(folded, known))}
    # 法院名称 is of 法院, 设备名称 a 名称 of something.
    wanted = max(ends, key=lambda name: (name not in OWN_NAMES, len(name), ends[name]), default="")
    is_same = names_same(folded, wanted)
    pairs = zip(_MARKED, _GROUPS, strict=True)
    return [group for marked, group in pairs if is_same and wanted in marked]


def _end_in(name: str, known: str) -> int:
    """Where a known name ends, at last, in a name that means the same or more; 0 for nowhere."""
    end = name.rfind(known) + len(known)
    if known.isascii() or end < len(known):
        return end * (name == known)
    is_of_another = known in _CARRIERS or _other.search(name, end)
    if end < len(name) and (is_of_another or (known.endswith("方") and _word.match(name, end))):
        return 0
    return end


def _folded(name: str) -> str:
    return fold_width(_camel.sub(" ", name)).strip().lower()
