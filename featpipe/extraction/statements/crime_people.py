"""Who case facts name: the accused, their victims, and the bodies that prosecute and appraise.

``被告人 *张某某* 伙同 *王某* 窃得被害单位 *某商贸有限公司* 的货物，经 *某区价格认证中心* 鉴定``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.statements.statement_words import Phrase
from featpipe.extraction.statements.statements import whole_name

if TYPE_CHECKING:
    from collections.abc import Iterator

#: To take what is not one's own.
TAKE = (
    "(?:窃得|盗得|盗走|窃取|窃走|盗取|偷走|偷得|偷取|盗窃(?!罪)|扒窃|扒得|盗出|盗割|盗剪|盗挖|盗砍|盗伐|盗捞|盗换|调换|盗卖"
    "|骗取|骗得|骗走|抢走|抢得|劫走|劫得|夺走|侵占|拿走|取走|运走|搬走|拉走|牵走|推走|骑走|开走|抱走|拖走|卷走|拆走|剪走)"
)
#: 被告人民医院 is no 被告人.
_ACCUSED = "(?:被告人(?!民)|犯罪嫌疑人|嫌疑人|被不起诉人|上诉人|罪犯)"
VICTIM = "(?:被害人|受害人|事主|失主|被害单位|受害单位)"
#: Who else owns what is taken, before a name.
_OWNER = (
    "(?:[村居牧渔]民|果农|[车店户雇房]主|[旅乘顾住浴香游]客|学生|同事|工友|室友|[体殖羊猪牛种]户|邻居|[东南西北]邻|店长|老人"
    "|家属|患者|病人|产妇)的?"
)
#: Words of a sentence that names of persons begin as.
_NO_PERSON = "(?!时任|明知|向被|连续|成功|任职|于某[日时天年月]|查明|和被|及其|方便|何时)"
_PERSON = rf"{_NO_PERSON}{PERSON}"
_accused = re.compile(rf"(?:{_ACCUSED}|伙同|纠集|同案犯?|同伙){GAP}(?P<name>{_PERSON})")
_victim = re.compile(
    rf"{VICTIM}{GAP}(?P<name>(?<=单位){ORGANISATION}|{_PERSON})"
    rf"|{_OWNER}{GAP}(?P<owner>{_PERSON})"
    rf"|[趁乘](?P<absent>{_PERSON})(?!不备|熟睡)"
    rf"|(?P<robbed>{_PERSON})(?=家|停放|经营|所有|承包|租住|存放|的(?:手机|钱包|{HAN}{{0,6}}[车包]))"
    rf"|失窃单位(?P<reports>{ORGANISATION})"
    rf"|{TAKE}[该其了]?(?P<loser>{_PERSON}|{ORGANISATION})(?:的|停|放|{HAN}{{0,6}}的|架设|{HAN}{{0,4}}[袋包]内)"
    rf"|造成(?P<harmed>{ORGANISATION})(?:直接|经济)*损失"
    rf"|[在给](?P<employer>{ORGANISATION})(?:担?任|当|从事|务工|工作|做|打工|上班|送货|值班)"
)
_further = re.compile(
    rf"(?:{GAP}\([^()\n]{{1,30}}\))?[、,和与及](?:{_ACCUSED}|{VICTIM})?(?P<name>{_PERSON})"
)
#: Further names of a list.
_MOST_LISTED = 9
_three = re.compile(rf"{HAN}{{3}}")
_LONGEST_PERSON = 3
#: What stands behind names of two characters.
_BEHIND_NAME = frozenset(
    "的曾于将拟已所处共窜在至到从以用因经趁乘酒驾伙与和及携持等均系为潜翻爬骑进见采先又再还事盗窃偷家停放手"
)
_BODY = (
    "(?:(?:人民)?检察院|人民法院|公安[局厅处]|派出所|分局|价格(?:认证|认定|鉴定|事务|评估)(?:中心|局|所)"
    "|(?:认证|认定|鉴定|评估)中心|物价局|[支大总]队|检验所)"
)
#: No character of a name, but one before it.
_BEFORE = "[经由被至到向在给]"
_body = re.compile(
    rf"(?:{_BEFORE}|[与往。;,:]|委托|\A|\n)(?:公诉机关)?"
    rf"(?P<name>(?:(?!{_BEFORE}){HAN}|[×x*\d]){{0,26}}{_BODY})"
    rf"|(?:[在被至到]|卖[给与])(?P<shop>某?(?:(?!{_BEFORE}){HAN}){{1,12}}[店站行部厂场馆])"
    r"(?=[卖得,。的店]|做|任|工作|保安|值班)"
)


def find_people(folded: str) -> Iterator[Phrase]:
    """The accused, victims that are none of them, and bodies."""
    accused = {*_named(folded, _accused, "犯罪嫌疑人")}
    yield from accused
    names = {folded[one.start : one.end] for one in accused}
    for one in _named(folded, _victim, "被害人"):
        if folded[one.start : one.end] not in names:
            yield one
    for match in _body.finditer(folded):
        yield Phrase(*match.span(match.lastgroup or 0), "组织机构")


def _named(folded: str, pattern: re.Pattern[str], words: str) -> Iterator[Phrase]:
    """Whom a pattern names, each with the further ones of a list."""
    for match in pattern.finditer(folded):
        start, end = match.span(match.lastgroup or 0)
        for _ in range(_MOST_LISTED + 1):
            start, end = _whole(folded, start, end)
            yield Phrase(start, end, words)
            further = _further.match(folded, end)
            if further is None:
                break
            start, end = further.span("name")


def _whole(folded: str, start: int, end: int) -> tuple[int, int]:
    """An organisation with all of its name; of a person three characters where they come again."""
    if end - start > _LONGEST_PERSON:
        return whole_name(folded, start, end)
    if _three.fullmatch(folded, start, end) is None or folded[start + 1] == "某":
        return start, end
    comes_again = folded.count(folded[start:end]) == folded.count(folded[start : end - 1])
    return start, end if comes_again and folded[end - 1] not in _BEHIND_NAME else end - 1
