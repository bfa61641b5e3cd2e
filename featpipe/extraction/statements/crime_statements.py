"""Statements of case facts: who took what from whom, when, where and with what, and its worth.

``*2016年3月5日凌晨2时许*，被告人张某某至 *某小区车棚*，用 *螺丝刀* 撬开车锁，窃得被害人王某1的
*电动自行车* 1辆，价值 *人民币1860元*``. Facts stand in indictments and judgments, or alone; whom
they name is told by ``crime_people``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.name_patterns import GAP, HAN, PERSON
from featpipe.extraction.statements.crime_people import TAKE, VICTIM, find_people
from featpipe.extraction.statements.statement_words import NUMERAL, Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of civil cases none: 被告人民医院 is no 被告人.
_crime = re.compile(r"被告人(?!民)|嫌疑人|被害人|失主|被害单位")
_SUM = (
    r"(?:人民币|港币|美元|欧元)?(?:\d[\d,.]*[余多]?[万千]?|[一二两三四五六七八九十百千万零〇]+)[余多]?"
    r"(?:元|美元|港币|欧元)(?!/)"
)
_COUNT = r"(?:\d[\d,.]*|[一二两三四五六七八九十百千几数]+)[余多]?"
_MEASURE = (
    "(?:[部台辆只个条块枚张把件套包盒箱瓶袋根支双副本头匹口桶吨卷盘捆对串架艘顶床听罐株棵粒颗节扇幅片枝圈升]"
    "|公?斤|千?克|立?方?米|平方米)(?!大|级)"
)
_worth = re.compile(
    r"(?:价值|价格|估价|作价|鉴定|认定|评估|折价)(?:[^,。;\n\d()]|\([^()]*\)){0,14}?"
    rf"(?P<value>{_SUM})"
)
_proceeds = re.compile(
    rf"(?:得款|获款|赃款|获利|所得|[卖售]得|获得)(?:共计|合计|现金|款|为|约|共)*(?P<value>{_SUM})"
    rf"|以(?P<price>{_SUM})(?:的?[^,。;\n]{{0,4}}?价[格钱]?)?[^,。;\n]{{0,24}}?(?:[卖售销抵]|转让)"
    rf"|[卖售销][^,。;\n\d]{{1,20}}?(?P<sold>{_SUM})"
)
_cash = re.compile(
    rf"现[金款](?:共计|合计|约|计)*(?P<value>{_SUM})"
    r"|(?:转[走出账入至]|盗刷|消费|取走|套现|提现|提取|充值|付款|支付|取现|汇款|[骗劫抢][取得走]|被骗|搜走)[^,。;\n\d]{0,20}?"
    rf"(?P<moved>{_SUM})"
    rf"|(?:内有|{TAKE})[^,。;、\n\d()值]{{0,20}}?(?P<inside>{_SUM})"
    rf"|(?:零[钞钱]|硬币|散钱|礼金|货款|营业款|押金)(?P<kind>{_SUM})"
    rf"|[、及和](?P<foreign>(?:人民币|港币|欧元|美元){_SUM})"
    rf"|(?P<cash>{_SUM})(?:现[金款])?(?:转[入至走到给账]|划走|取走|盗走|窃走|偷走)"
)
_injury = re.compile(r"(?:轻微伤|[轻重]伤(?:[一二]级)?)(?![害者亡员])")
_alcohol = re.compile(r"\d[\d.]*\s?(?:mg|毫克)/100\s?(?:ml|毫升)")
#: Before a sum that is one's part of it.
_part = re.compile(r"(?:每人|各|分得|分给)[^,。;\n]{0,8}\Z")
_PART = 12
_taken = re.compile(rf"{TAKE}(?P<list>[^。;\n]{{2,160}})")
_object = re.compile(
    rf"[将把](?P<thing>[^,。;\n]{{2,60}}?)(?:{_COUNT}{_MEASURE})?(?:\([^()\n]*\))?"
    rf"(?:全部|悉数|先后|一并|予以)*{TAKE}"
)
_item = re.compile(
    rf"(?P<thing>[^,。;、()\n元]{{2,40}}?)(?:共计|合计|约|共|计)?{_COUNT}{_MEASURE}"
    rf"|(?<![\d,.]){_COUNT}{_MEASURE}(?P<other>[^,。;、()\n\d]{{2,20}}?)(?=[,。;、()\n及和等]|\Z)"
)
#: Words before a thing: of whom, or where, it is.
_lead = re.compile(
    r".*的|.+(?:[内里上处旁外]|家(?!用))(?=.{2})|以?及|和|与|并|还有|另有|大量|其|该|上述"
    rf"|{VICTIM}(?:{PERSON})?"
)
_TOOL = (
    rf"(?P<tool>[^,。;、\n()的]{{2,16}}?)(?={_COUNT}{_MEASURE}|[,、。]|和|以?及|等|将|把|从"
    rf"|{HAN}[开断]|[撬砸夹敲拆切捅][坏破碎掉出烂]|[撬拨插捅]门?锁|开[锁启]|击|划[破开]|强行|拆卸|捆|绑"
    "|拉|粘|盗|[窜来行]?[至到]|运)"
)
_tool = re.compile(
    r"(?:(?<![雇利作所信费])(?:使用|[采利]?用(?![于完])|持(?!有)|携带?)|驾驶(?![员室证])|驾(?!驶)|骑乘?|乘坐)"
    rf"(?:由|事先|随身|其|准备|携带|自带|自家|改装|好|的)*(?:[^,。;、\n]{{0,10}}的)?{_TOOL}"
)
_further_tool = re.compile(rf"(?:、|以?及|和|与){_TOOL}")
_no_tool = re.compile(
    "否认|卡|赃|钱|偿|袋内|包内|手段|方式|方法|借口|机会|之便|便利|工作|账户|名义|价格|由|被|为|其|他人|盗窃|行为"
    "|职务|密码|手机号"
)
_HOUR = (
    "(?:凌晨|清晨|早晨|早上|上午|中午|午后|下午|傍晚|晚上|晚间|午夜|深夜|夜间|夜里|夜晚|[晚夜早])"
)
_CLOCK = rf"(?:{NUMERAL}{{1,3}}[时点:](?:{NUMERAL}{{1,3}}分?|半)?(?:多?钟|多)?)"
_ABOUT = "(?:许|左右|前后|之间|期间|间)?"
_YEAR = rf"(?:(?:\d{{4}}|{NUMERAL}{{4}})年|[同次当]年)"
_MONTH = rf"(?:(?:{NUMERAL}{{1,3}}|[正腊])月份?|同月|次月)"
_OF_MONTH = rf"(?:{NUMERAL}{{1,3}}[日号]|[上中下]旬|[初底末])?(?:的?某?一?[天日])?"
_OF_DAY = rf"{_HOUR}?{_CLOCK}?{_ABOUT}"
_WHEN = (
    rf"(?:{_YEAR}{GAP}(?:{_MONTH}{GAP}{_OF_MONTH}|(?:春节|国庆节?|中秋节?|[春夏秋冬][天季]?)(?:的一天)?)"
    rf"|同月{NUMERAL}{{1,3}}[日号]|[次当同]日|[当次][晚夜]|[第当][二天]天){_OF_DAY}"
    rf"|(?<![\d年]){NUMERAL}{{1,3}}月{NUMERAL}{{1,3}}日(?:{_HOUR}{_CLOCK}?|{_CLOCK}){_ABOUT}"
)
_UNTIL = (
    rf"(?:{_WHEN}|{_MONTH}{_OF_MONTH}{_OF_DAY}|{NUMERAL}{{1,3}}日{_OF_DAY}"
    rf"|(?:次日)?{_HOUR}?{_CLOCK}{_ABOUT})"
)
_time = re.compile(rf"{_WHEN}(?:[至到]{_UNTIL})?")
_act = re.compile(
    rf"{TAKE}|[盗窃偷骗抢]|作案|[潜翻进]入|窜|来到|撬|伙同|[二三]人[^均]|转账|转走|殴打|驾驶|贩卖|索要"
)
#: What is told behind the acts.
_later = re.compile(
    "抓获|投案|报警|报案|归案|判处|刑满|释放|鉴定|移送|起诉|扣押|退赔|查获|羁押|出生|赔偿|到案"
)
_place = re.compile(
    "(?:窜[入进]|潜入|前往|进入|翻入|翻墙入|溜[进入]|途[经径]|路过|位于|到达|[至到在从])"
    r"(?P<place>(?![案此他其庭\d]|自己|公安|派出所|手机)[^,。;:\n()]{3,44}?)"
    "(?=[内里上处]?(?:[,。;窃盗扒趁将用以偷撬持任当从]|乘[人机隙无被不其]|采[用取]|实施|进行|作案|伺机|行窃"
    "|伙同|被骗|抢[劫得走夺]|骗|相遇|冒充|门?前?时,|转悠|闲逛|吃饭|就餐|洗澡|担任|务工|尾随|上网|住宿|购物))"
)
_has_place = re.compile(
    "[省市县区镇乡村街路巷弄号楼室栋幢店厂场站库院园馆吧房铺家棚圈栏舍校堆港桥寺仓]|公司|大厦|工地|银行|门口|旅社"
)
_no_place = re.compile(
    "回收|维修|废品|典当|守候|回家|自家|藏匿|查获|检查|兜售|盘点|的?部分|抓获|投案|报[警案]|销[售赃]|卖|睡|打工|工作|勘查|之[机便]|期间|账户"
    "|被害人(?!.{2,4}(?:家|的|经营))|公安局|派出所|法院|陪同|服务|现场|收购"
)


def find_facts(folded: str) -> Iterator[Phrase]:
    """Those of a text that has an accused or a victim."""
    if not _crime.search(folded):
        return
    yield from find_people(folded)
    for pattern, words in ((_worth, "涉案价值"), (_proceeds, "销赃所得"), (_cash, "被盗现金")):
        for match in pattern.finditer(folded):
            start, end = match.span(match.lastgroup or 0)
            if not _part.search(folded, max(match.start() - _PART, 0), start):
                yield Phrase(start, end, words)
    # More of these are wrong: no field is called so, and synonyms are less sure than labels.
    yield from (Phrase(*span, "所盗之物") for span in _things(folded))
    yield from (Phrase(*span, "作案之物") for span in _tools(folded))
    yield from (Phrase(*span, "案发之时") for span in _times(folded))
    for pattern, words in ((_injury, "伤情鉴定"), (_alcohol, "酒精含量")):
        yield from (Phrase(*match.span(), words) for match in pattern.finditer(folded))
    for match in _place.finditer(folded):
        if _has_place.search(match["place"]) and not _no_place.search(match["place"]):
            yield Phrase(*match.span("place"), "案发之地")


def _things(folded: str) -> Iterator[tuple[int, int]]:
    """What was taken: behind the verb with its number, or between 将 and the verb."""
    for taken in _taken.finditer(folded):
        for item in _item.finditer(folded, *taken.span("list")):
            yield _without_lead(folded, *item.span(item.lastgroup or 0))
    for match in _object.finditer(folded):
        yield _without_lead(folded, *match.span("thing"))


def _without_lead(folded: str, start: int, end: int) -> tuple[int, int]:
    while (lead := _lead.match(folded, start, end)) and start < lead.end() < end:
        start = lead.end()
    return start, end


def _tools(folded: str) -> Iterator[tuple[int, int]]:
    for match in _tool.finditer(folded):
        found: re.Match[str] | None = match
        while found and not _no_tool.search(found["tool"]):
            yield found.span("tool")
            found = _further_tool.match(folded, found.end())


def _times(folded: str) -> Iterator[tuple[int, int]]:
    """Those whose sentence goes on with an act, and not with what came of it."""
    for match in _time.finditer(folded):
        ends = (folded.find(mark, match.end()) for mark in "。;\n")
        stop = min((at for at in ends if at >= 0), default=len(folded))
        later, act = (one.search(folded, match.end(), stop) for one in (_later, _act))
        if act and not (later and later.start() < act.start()):
            yield match.span()
