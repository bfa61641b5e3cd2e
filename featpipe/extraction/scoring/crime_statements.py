"""Statements of case facts: who took what from whom, when, where and with what, and its worth.

``*2016年3月5日凌晨2时许*，被告人 *张某某* 至 *某小区车棚*，用 *螺丝刀* 撬开车锁，窃得被害人 *王某1* 的
*电动自行车* 1辆，价值 *人民币1860元*``. Facts stand in indictments and judgments, or alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.scoring.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.scoring.statement_words import NUMERAL, Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUM = (
    r"(?:人民币|港币|美元|欧元)?(?:\d[\d,.]*(?:余|多)?[万千]?(?:余|多)?|[一二两三四五六七八九十百千万零〇]+(?:余|多)?)"
    r"(?:余|多)?(?:元|美元|港币|欧元)(?!/)"
)
_COUNT = r"(?:\d[\d,.]*|[一二两三四五六七八九十百千几数]+)(?:余|多)?"
_MEASURE = (
    r"(?:[部台辆只个条块枚张把件套包盒箱瓶袋根支双副本头匹口桶吨卷盘捆对串架艘顶床听罐株棵粒颗节扇幅片枝圈升]"
    r"|公?斤|千?克|立?方?米|平方米)(?!大|级)"
)
_TAKE = (
    r"(?:窃得|盗得|盗走|窃取|窃走|盗取|偷走|偷得|偷取|盗窃|扒窃|扒得|盗出|盗割|盗卖|骗取|骗得|骗走|抢走|抢得|劫走|劫得|夺走"
    r"|侵占|拿走|取走|运走|搬走|拉走|牵走|推走|骑走|开走|抱走|拖走|卷走|拆走|剪走|私藏|藏匿于身)"
)
_ACCUSED = r"(?:被告人(?!民)|犯罪嫌疑人|嫌疑人|被不起诉人|上诉人|罪犯)"
_VICTIM = r"(?:被害人|受害人|事主|失主|被害单位|受害单位)"
_AND = r"[、,和与及]"
_NO_PERSON = (
    r"(?!时任|明知|向被|连续|常年|成功|单独|任职|于某[日时天年月]|查明|支付|和被|及其|应当|方便|管理|何时)"
)
#: Of civil cases neither: 被告人民医院 is no 被告人.
_crime = re.compile(r"被告人(?!民)|嫌疑人|被害人|失主|被害单位")
_accused = re.compile(rf"(?:{_ACCUSED}|伙同|纠集|同案犯?|同伙){GAP}{_NO_PERSON}(?P<name>{PERSON})")
_PERSONS = rf"{_NO_PERSON}{PERSON}"
_OWNER = rf"(?:{_PERSONS}|{ORGANISATION})"
_victim = re.compile(
    rf"{_VICTIM}{GAP}(?P<name>{_PERSONS}|(?<=单位){ORGANISATION})"
    rf"|(?:村民|居民|车主|店主|户主|雇主|房主|旅客|乘客|顾客|学生|同事|工友|室友|个体户|[东南西北]邻|邻居|店长|老人){GAP}(?P<owner>{_PERSONS})"
    rf"|[趁乘](?P<absent>{_PERSONS})(?!不备|熟睡)"
    rf"|(?P<robbed>{_PERSONS})(?=家|停放|经营|所有|承包|租住|存放|的(?:手机|钱包|{HAN}{{0,6}}[车包]))"
    rf"|失窃单位(?P<reports>{ORGANISATION})"
    rf"|{_TAKE}(?:该|其|了)?(?P<loser>{_OWNER})(?:的|停|放|所有|架设|{HAN}{{0,4}}[袋包]内)"
    rf"|造成(?P<harmed>{ORGANISATION})(?:直接|经济)*损失"
    rf"|[在给](?P<employer>{ORGANISATION})(?:担?任|当|从事|务工|工作|做|打工|上班|送货|值班)"
)
_listed = re.compile(
    rf"(?:{GAP}\([^()\n]{{1,30}}\))?{_AND}(?:{_ACCUSED}|{_VICTIM})?(?P<name>{_NO_PERSON}{PERSON})"
)
_worth = re.compile(
    rf"(?:价值|价格|估价|作价|鉴定|认定|评估|折价)(?:[^,。;\n\d()]|\([^()]*\)){{0,14}}?(?P<value>{_SUM})"
)
_proceeds = re.compile(
    rf"(?:得款|获款|得赃款|赃款|获利|所得|[卖售]得|获得)(?:共计|合计|现金|款|为|约|共)*(?P<value>{_SUM})"
    rf"|以(?P<price>{_SUM})(?:的?[^,。;\n]{{0,4}}?价[格钱]?)?[^,。;\n]{{0,24}}?(?:卖|售|销|抵|转让)"
    rf"|(?:卖|售|销)[^,。;\n\d]{{1,20}}?(?P<sold>{_SUM})"
)
_cash = re.compile(
    rf"现[金款](?:共计|合计|约|计)*(?P<value>{_SUM})"
    rf"|(?:转走|转出|转账|转入|转至|盗刷|消费|取走|套现|提现|提取|充值|付款|支付|取现)[^,。;\n\d]{{0,20}}?(?P<moved>{_SUM})"
    rf"|(?P<cash>{_SUM})(?:现[金款])?(?:转入|转至|转走|转到|转给|划走|取走|盗走|窃走|偷走|转账)"
)
_share = re.compile(r"(?:每人|各|分得|分给)[^,。;\n]{0,8}\Z")
_taken = re.compile(rf"{_TAKE}(?P<list>[^。;\n]{{2,160}})")
_object = re.compile(
    rf"(?:将|把)(?P<thing>[^,。;\n]{{2,60}}?)(?:{_COUNT}{_MEASURE})?(?:\([^()\n]*\))?(?:全部|悉数|先后|一并|予以)*{_TAKE}"
)
_item = re.compile(
    rf"(?P<thing>[^,。;、()\n元]{{2,40}}?)(?:共计|合计|约|共|计)?{_COUNT}{_MEASURE}"
    rf"|(?<![\d,.]){_COUNT}{_MEASURE}(?P<other>[^,。;、()\n\d]{{2,20}}?)(?=[,。;、()\n]|及|和|等|\Z)"
)
_owned = re.compile(
    rf".*的|.*(?:内|里|上|中|处|家|旁|外)(?=.{{2}})|(?:和|及|以及|与|并|还有|另有|大量)"
    rf"|(?:其|{_VICTIM}(?:{PERSON})?|该{HAN}{{1,4}}的?)"
)
_TOOL_ENDS = (
    rf"(?={_COUNT}{_MEASURE}|[,、。]|和|以?及|等|将|把|从|[撬剪砸夹割锯敲拧拆切钩勾捅挑][开断坏破碎掉出]|[撬拨插捅]门?锁|打开|开锁|击|划[破开]|强行|[窜来行]?[至到]|运)"
)
_tool = re.compile(
    rf"(?:(?<![雇利作所信费])(?:使用|[采利]?用(?!于|完)|持(?!有)|携带?)|驾驶?(?!员|室|证)|骑乘?|乘坐)(?:由|事先|随身|其|准备|携带|自带|自家|改装|好|的)*"
    rf"(?:[^,。;、\n]{{0,10}}的)?(?P<tool>[^,。;、\n()的]{{2,16}}?){_TOOL_ENDS}"
)
_further_tool = re.compile(rf"(?:、|以?及|和|与)(?P<tool>[^,。;、\n()的]{{2,16}}?){_TOOL_ENDS}")
_no_tool = re.compile(
    r"否认|卡|赃|钱|偿|袋内|包内|手段|方式|方法|借口|机会|之便|便利|工作|账户|名义|价格|由|被|为|其|他人|盗窃|行为|职务|密码|手机号"
)
_HOUR = r"(?:凌晨|清晨|早晨|早上|上午|中午|午后|下午|傍晚|晚上|晚间|午夜|深夜|夜间|夜里|夜晚|[晚夜早])"
_CLOCK = rf"(?:{NUMERAL}{{1,3}}(?:时|点|:)(?:{NUMERAL}{{1,3}}分?|半)?(?:多?钟|多)?)"
_ABOUT = r"(?:许|左右|前后|之间|期间|间)?"
_YEAR = rf"(?:(?:\d{{4}}|{NUMERAL}{{4}})年|[同次当]年)"
_ON = rf"(?:(?:{NUMERAL}{{1,3}}|正|腊)月份?|同月|次月)"
_OF_MONTH = rf"(?:{NUMERAL}{{1,3}}[日号]|[上中下]旬|[初底末])?(?:的?某?一?[天日]|的一个)?"
_PART = rf"{_HOUR}?{_CLOCK}?{_ABOUT}"
_WHEN = (
    rf"(?:{_YEAR}{GAP}(?:{_ON}{GAP}{_OF_MONTH}|(?:春节|国庆节?|中秋节?|[春夏秋冬][天季]))|同月{NUMERAL}{{1,3}}[日号]|[次当同]日|[当次][晚夜]"
    rf"|第二天){_PART}"
)
_TO = rf"(?:{_WHEN}|{_ON}{_OF_MONTH}{_PART}|{NUMERAL}{{1,3}}日{_PART}|(?:次日)?{_HOUR}?{_CLOCK}{_ABOUT})"
_time = re.compile(rf"(?P<value>{_WHEN}(?:[至到]{_TO})?)")
_later = re.compile(r"抓获|投案|报警|报案|归案|判处|刑满|释放|鉴定|移送|起诉|扣押|退赔|查获|羁押|出生|赔偿|到案")
_act = re.compile(rf"{_TAKE}|盗|窃|偷|骗|抢|作案|潜入|窜至|撬|转账|转走|殴打|驾驶|贩卖|索要")
_place = re.compile(
    rf"(?:窜[至到入进]|潜[至入]|[来去赶行溜进走]到|[来行]至|前往|进入|翻入|翻墙入|溜[进入]|途[经径]|路过|位于|到达|至|到|在)"
    rf"(?P<place>(?!案|此|他|其|自己|公安|派出所|庭|手机|\d)[^,。;:\n()]{{3,44}}?)"
    rf"(?=[内里上处]?(?:[,。;]|实施|进行|盗窃|窃|盗|扒|作案|趁|乘(?=[人机隙无被不其])|将|采[用取]|用|以|伺机|行窃|偷|撬|持|伙同|任|当|从|门?前?时,|转悠|闲逛|吃饭|就餐|务工|尾随|上网|住宿|购物))"
)
_is_place = re.compile(
    r"[省市县区镇乡村街路巷弄号楼室栋幢店厂场站库院园馆吧房铺家库棚圈栏舍校堆港桥寺仓]|小区|公司|大厦|工地|银行|门口|旅社|酒店|宿舍"
)
_no_place = re.compile(
    r"藏匿|查获|检查|兜售|盘点|的?部分|抓获|投案|报[警案]|销[售赃]|变卖|卖|睡|打工|工作|勘查|之[机便]|期间|账户|被害人(?!.{2,4}(?:家|的|经营))|公安局|派出所|法院|陪同|服务|现场|收购"
)
_INSTITUTION = (
    r"(?:(?:人民)?检察院|人民法院|公安(?:局|厅|处)|派出所|分局|价格(?:认证|认定|鉴定|事务|评估)(?:中心|局|所)|(?:认证|认定|鉴定|评估)中心|物价局"
    r"|[支大总]队|检验所)"
)
_body = re.compile(
    rf"(?:[经由被至到向在给与往。;,:]|委托|\A|\n)(?P<name>(?:(?![经由被至到向在给]){HAN}|[×x*\d]){{0,26}}{_INSTITUTION})"
    rf"|(?:在|被|至|到|卖[给与到]|[卖销]至)(?P<shop>某?(?:(?![经由被至到向在给]){HAN}){{1,12}}(?:店|站|行|公司|部|厂|场|馆))(?=[卖得,。的店]|做|任|工作|保安|值班)"
)
_LIST_MOST = 9
_BEHIND_NAME = frozenset(
    "的曾于将拟已所处共窜在至到从以用因经趁乘酒驾伙与和及携持等均系为潜翻爬骑进见采先又再还事盗窃偷家停放手"
)


def find_facts(folded: str) -> Iterator[Phrase]:
    """Those of a text that has an accused or a victim."""
    if not _crime.search(folded):
        return
    accused = {*_people(folded, _accused, "犯罪嫌疑人")}
    yield from accused
    names = {folded[one.start : one.end] for one in accused}
    for one in _people(folded, _victim, "被害人"):
        if folded[one.start : one.end] not in names:
            yield one
    for pattern, words in ((_worth, "涉案价值"), (_proceeds, "销赃所得"), (_cash, "被盗现金")):
        for match in pattern.finditer(folded):
            group = match.lastgroup or ""
            if not _share.search(folded, max(match.start() - 12, 0), match.start(group)):
                yield Phrase(*match.span(group), words)
    yield from _things(folded)
    for match in _tool.finditer(folded):
        found: re.Match[str] | None = match
        while found and not _no_tool.search(found["tool"]):
            yield Phrase(*found.span("tool"), "作案工具")
            found = _further_tool.match(folded, found.end())
    yield from _scenes(folded)
    for match in _body.finditer(folded):
        yield Phrase(*match.span(match.lastgroup or 0), "组织机构")


def _people(folded: str, pattern: re.Pattern[str], words: str) -> Iterator[Phrase]:
    """Those that a pattern names, each with the further ones of its list."""
    for match in pattern.finditer(folded):
        start, end = match.span(match.lastgroup or 0)
        for _ in range(_LIST_MOST):
            end = _end_of_name(folded, start, end)
            yield Phrase(start, end, words)
            further = _listed.match(folded, end)
            if further is None:
                break
            start, end = further.span("name")


def _end_of_name(folded: str, start: int, end: int) -> int:
    """Of a person: of three characters where the text has no other behind the first two."""
    is_whole = all("\u4e00" <= one <= "\u9fff" for one in folded[start:end])
    if end - start != 3 or not is_whole or folded[start + 1] == "某":
        return end
    if folded[end - 1] in _BEHIND_NAME:
        return end - 1
    short = folded.count(folded[start : end - 1])
    return end if folded.count(folded[start:end]) == short else end - 1


def _things(folded: str) -> Iterator[Phrase]:
    for taken in _taken.finditer(folded):
        start, end = taken.span("list")
        for item in _item.finditer(folded, start, end):
            group = item.lastgroup or ""
            yield from _thing(folded, *item.span(group))
    for match in _object.finditer(folded):
        yield from _thing(folded, *match.span("thing"))


def _thing(folded: str, start: int, end: int) -> Iterator[Phrase]:
    while (lead := _owned.match(folded, start, end)) and lead.end() > start:
        start = lead.end()
    if end - start >= 1:
        yield Phrase(start, end, "被盗物品")


def _scenes(folded: str) -> Iterator[Phrase]:
    for match in _time.finditer(folded):
        stop = min(
            (at for at in (folded.find(mark, match.end()) for mark in "。;\n") if at >= 0),
            default=len(folded),
        )
        later, act = (one.search(folded, match.end(), stop) for one in (_later, _act))
        if act and not (later and later.start() < act.start()):
            yield Phrase(*match.span("value"), "作案时间")
    for match in _place.finditer(folded):
        if _is_place.search(match["place"]) and not _no_place.search(match["place"]):
            yield Phrase(*match.span("place"), "作案地点")
