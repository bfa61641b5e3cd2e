"""Labels without a colon: words that judgments write right before a name or an address.

``原告张三，男，住杭州市中山路1号。``, ``法定代表人李四，总经理。``,
``审　判　员　　王五``. Roles begin their line, and the name of a person or an organisation fills
the place behind them: the sentence 原告张三与被告李四借款合同纠纷一案 begins with none. Addresses
and numbers of certificates stand behind a comma of such a line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.names.form_labels import BareLabel, find_form_labels
from featpipe.extraction.names.name_patterns import (
    GAP,
    HAN,
    ORGANISATION,
    PERSON,
    TOLD_PERSON,
)
from featpipe.extraction.names.synonyms import is_party

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PARTIES = """
原告 被告 被告人 原告人 第三人 原审原告 原审被告 原审第三人 一审原告 一审被告 一审第三人
反诉原告 反诉被告 本诉原告 本诉被告 附带民事诉讼原告人 附带民事诉讼被告人 自诉人 被害人 上诉人
被上诉人 原审被告人 申诉人 被申诉人 申请人 被申请人 再审申请人 申请再审人 复议申请人 申请执行人
执行申请人 被执行人 异议人 案外人 利害关系人 公诉机关 抗诉机关 申请复议人 赔偿请求人
赔偿义务机关 起诉人 罪犯 债务人 债权人 管理人 反请求申请人 反请求被申请人
"""
_OFFICERS = """
法定代表人 负责人 主要负责人 法人代表 代表人 诉讼代表人 经营者 执行事务合伙人 法定代理人 监护人
委托诉讼代理人 委托代理人 诉讼代理人 共同委托诉讼代理人 委托仲裁代理人 代理人 辩护人 指定辩护人
委托辩护人
"""
#: Those who are sued, and what brackets say of who appeals.
_SUED = frozenset((
    "被告", "第三人", "被申请人", "原审被告", "一审被告", "一审第三人", "原审第三人", "反诉原告",
    "债务人", "被上诉人",
))  # fmt: skip
_sued = re.compile(r"被告|被申请人")
_COURT = """
公诉人 检察员 代理检察员 审判长 审判员 代理审判员 助理审判员 人民陪审员 陪审员 书记员 代理书记员
代书记员 见习书记员 法官助理 执行长 执行员 首席仲裁员 独任仲裁员 仲裁员 仲裁秘书
"""
#: Roles by name: parties of a case, and who acts for them or for the court.
LISTED_ROLES = frozenset([*_PARTIES.split(), *_OFFICERS.split(), *_COURT.split()])
#: Those who judge.
JUDGES = frozenset(["审判长", "审判员", "代理审判员", "助理审判员"])
#: Those who act in a role of a court, where a document names no other for it.
ACTING = {
    "书记员": ("代书记员", "代理书记员", "见习书记员"),
    "审判员": ("代理审判员", "助理审判员"),
    "检察员": ("代理检察员",),
}
#: Names that fields have for what sentences write as one or two characters.
_LIVES = {"住": "住址", "现住": "现住址", "户籍住": "户籍地址"}
_ADDRESSES = """
住所地 住所 住址 现住址 现住地 户籍地 户籍所在地 户籍地址 经常居住地 经营场所 营业场所 营业地
注册地 注册地址 地址
"""
_CERTIFICATES = "公民身份号码 公民身份证号码 身份证号码 身份证号 统一社会信用代码 组织机构代码"


def _spaced(words: Iterable[str]) -> str:
    """An alternation of words, the longest first, however they are spaced."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    # 被告人民医院 is no 被告人.
    return "|".join(
        GAP.join(word) + ("(?!民)" if word.endswith("人") else "") for word in longest_first
    )


_end = rf"(?={GAP}(?:[,、。;(\n\t]|\Z)|\s{{2}})"
_role = re.compile(
    rf"^{GAP}(?P<words>{_spaced(LISTED_ROLES)})"
    rf"(?:{GAP}[一二三四五六七八九十\d](?={GAP}\S))??{GAP}(?:\((?P<qualifier>[^()\n]{{1,30}})\))?"
    rf"{GAP}(?::{GAP}(?P<named>[^,。;、(\n]*)|(?P<value>{PERSON}|{TOLD_PERSON}|{ORGANISATION}){_end})"
    # Those who sign have a line of their own, and any name.
    rf"|^{GAP}(?P<signed>{_spaced(_COURT.split())})[^\S\n]+"
    rf"(?P<name>{HAN}(?:{GAP}{HAN}){{1,3}}){GAP}$"
    # Whose label has a colon: only the details behind the name are looked for.
    rf"|^{GAP}(?P<other>{HAN}{{2,6}}){GAP}(?:\([^()\n]{{1,30}}\))?{GAP}:(?=[^\n]{{2,40}}?,)",
    re.MULTILINE,
)
_detail = re.compile(
    rf",{GAP}(?:(?P<live>(?:现|户籍)?住)(?![所址])(?=[^,。;\n]{{1,12}}[省市县区州盟旗镇乡村])"
    rf"|(?P<words>{_spaced(_ADDRESSES.split())})(?=[^:,。;\n]{{4}})"
    rf"|(?P<number>{_spaced(_CERTIFICATES.split())})(?=[0-9x*]{{8}}))(?P<value>[^,。;(\n]+)"
)
_blanks = re.compile(r"\s+")


def is_role(label: str) -> bool:
    """Whether a label, folded and without blanks, is one that several may bear."""
    return label in LISTED_ROLES or is_party(label)


@lru_cache(maxsize=8)
def find_bare_labels(folded: str) -> tuple[BareLabel, ...]:
    """Those of a text after :func:`featpipe.extraction.values.text.fold_width`, in order."""
    return tuple(_find(folded))


def find_bearers(folded: str) -> frozenset[str]:
    """Names behind the labels of roles, with a colon or without."""
    return frozenset(name for name, _, _ in _bearers(folded))


def find_defendants(folded: str) -> frozenset[str]:
    """Those of them who are sued, or drawn in, and nobody's plaintiff."""
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for name, words, qualifier in _bearers(folded):
        if is_party(words) or words in _SUED:
            sides[words in _SUED or _sued.search(qualifier) is not None].add(name)
    return frozenset(sides[True] - sides[False])


@lru_cache(maxsize=8)
def _bearers(folded: str) -> tuple[tuple[str, str, str], ...]:
    """Names with the words of their roles, and what brackets say of them."""
    found = (
        (
            (role["named"] or role["value"] or "").strip(),
            _blanks.sub("", role["words"] or ""),
            role["qualifier"] or "",
        )
        for role in _role.finditer(folded)
    )
    return tuple(one for one in found if len(one[0]) > 1)


def _find(folded: str) -> Iterator[BareLabel]:
    yield from find_form_labels(folded)
    for role in _role.finditer(folded):
        for label, value in (("words", "value"), ("signed", "name")):
            if role[value]:
                words, qualifier = (_blanks.sub("", role[n] or "") for n in (label, "qualifier"))
                yield BareLabel(role.start(label), *role.span(value), words, qualifier)
        if role["other"] and not is_party(role["other"]):
            continue
        line_end = folded.find("\n", role.end())
        until = line_end if line_end >= 0 else len(folded)
        for detail in _detail.finditer(folded, role.end(), until):
            words = detail["words"] or detail["number"] or _LIVES[detail["live"]]
            yield BareLabel(detail.start() + 1, *detail.span("value"), words, "")
