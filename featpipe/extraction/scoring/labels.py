"""Labelled values: what stands behind a field's own name in a form, a heading block or a table.

``甲　方（贷款人）：中国工商银行``, with the value behind a colon of either width or on the next
line; a name that fills its line or table cell needs no colon, nor does one before a blank that was
filled in (``乙方___李四___``) or a wide gap. Of boxes to tick, the ticked one is the value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.bare_labels import find_bare_labels
from featpipe.extraction.names.kinds_of_names import kind_of_names
from featpipe.extraction.names.name_patterns import GAP, HAN, ORGANISATION, PERSON
from featpipe.extraction.names.name_places import (
    BULLET,
    SEAL,
    behind_box,
    kept_by_name,
    places_of_name,
    values_behind,
)
from featpipe.extraction.names.synonyms import OTHERS, is_party
from featpipe.extraction.statements.english_named import find_named
from featpipe.extraction.statements.loan_statements import OWED
from featpipe.extraction.statements.phrases import find_phrases
from featpipe.extraction.values.text import fold, fold_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

_LONGEST = 200
_MOST_ENDS = 6
#: Items of a list behind a label: the people at a meeting.
_MOST_ITEMS = 64
_value = re.compile(rf"[^\n\t;。]{{1,{_LONGEST}}}")
_next_label = re.compile(
    r"[^\S\n]{2}[a-z][a-z./#]{0,14}(?: [a-z./#]{1,14}){1,3}\s?:"
    r"|(?:\s+|,\s*)[a-z\u4e00-\u9fff](?:[^\s:,。;]{0,12}|(?:[^\S\n]+[\u4e00-\u9fff]){1,3})"
    r"(?:\([^()\n]{1,30}\))?\s*:"
)
#: Behind a comma, the end of a company's name.
_LEGAL = (
    r"(?:inc|l\.?l\.?c|ltd|limited|corp|co|l\.?p|llp|plc|pllc|gmbh|n\.a|s\.a|pty|jr|sr)(?![a-z])"
)
_end = re.compile(
    rf",(?!\d{{3}}(?!\d)| ?{_LEGAL}| \d{{4}}(?![\d年]))"
    rf"|\((?![^()\n]{{1,30}}\) {_LEGAL})|[、。;\n\t□☐]|_(?:_|\s|\Z)|\s{{2,}}|\Z"
)
#: The name of a person or an organisation, and a remark behind it that is no part of it.
_named = re.compile(
    rf"(?:{PERSON}|{ORGANISATION})(?={GAP}(?:,|\((?!(?:有限|普通|特殊普通)合伙)|先生|女士))"
)
_sealed = re.compile(rf"{SEAL}[^\S\n]*(?:\s|\Z)")
_form = re.compile(
    # Every branch begins with a sign of its own, which is quick to look for.
    r"□|☐|☑|☒|_(?:(?=[_\s]|\Z)|(?<=[\s_:]_))"
    r"|\((?=[^()\n]{2,14}\))[^()\n]{0,6}(?:盖章|公章|签章|印章|签字|签名|手印)[^()\n]{0,6}\)"
)
#: Names of what is a clause: it has commas.
_of_clause = re.compile(
    r"(?:terms|terms of payment"
    r"|方式|方法|范围|条件|内容|用途|责任|要求|约定|说明|事由|原因|抄送|主送)\Z"
)
_clause = re.compile(r"[^\n\t。]{1,400}")
#: English names of what fills the rest of its line, or its column: an address has commas.
_of_line = re.compile(
    r"(?:^|.* )(?:address|ship to|deliver to|premises|property|location|place of work|territory"
    r"|port of (?:loading|discharge)|destination)\Z"
)
_line = re.compile(r"(?:[!-~]|[^\S\n\t](?![^\S\n\t]{2})){1,200}(?=\s|\Z)")
#: A company by its legal form, before its address.
_company = re.compile(
    rf"[^\s,;:(][^,;:(\n\t]{{0,60}}? (?:{_LEGAL}|(?:ag|kg|bv|nv|ab|oy|spa|srl|cc)(?![a-z]))"
    r"\.?(?=,[^\S\n])"
)
#: Names of what a person is.
_of_person = re.compile(r"(?:[人员师长]|专家|成员|评委|经理|代表|律师|主任|总监|秘书|姓名)\Z")
#: Of a person, before the name: 董事长李四先生, 总经理 李四.
_title = re.compile(
    r"(?:本?公司|集团)?(?:常务|执行|独立)?副?(?:董事长|总经理|总裁|监事会主席|主席|主任|董事|监事|经理|厂长|局长|院长"
    rf"|校长|书记|行长|总监)(?:{GAP}(?={PERSON})|[^\S\n\t]{{1,3}}(?={HAN}{{2,4}}))"
    rf"(?={HAN}{{2,4}}?(?:先生|女士)?{GAP}(?:[,、。;(\n\t]|\Z))"
)
_person_named = re.compile(rf"(?P<name>{PERSON})(?![\u4e00-\u9fff])")
#: Names of what an organisation is.
_of_organisation = re.compile(r"(?:[方人商行院所]|单位|机构|公司|法院)\Z")
_organisation = re.compile(rf"由?(?P<name>(?!由){HAN}{{2}}{ORGANISATION})")
_person = re.compile(
    rf"{HAN}{{2,4}}(?={GAP}[,(])(?!\({HAN}{{1,8}}\){HAN}{{2,20}}?(?:公司|集团|中心|合伙))"
)
#: Before the digits of an amount or a date.
_CURRENCY = rf"(?:人民币|自){GAP}(?:\([大小]写\))?{GAP}_*{GAP}"
#: Behind the numeral of a period written in words: 有效期两年.
_UNIT = "(?:个?年|个月|个?季度|天|日|周|个?工作日)"
_PERIOD = rf"[一二两三四五六七八九十壹贰叁肆伍陆柒捌玖拾半]{{1,3}}{_UNIT}"
#: Names of how long something takes, and a value of theirs that has no dates: 两年,自生效日起算.
_of_period = re.compile(r"(?:期限|期间|(?<![日周分到学])期)\Z")
#: What a penalty is for, and no value: 违约金：每延误一天，支付5,000元.
_for_each = re.compile(
    r"每(?:逾期|延[误迟期]|迟延|拖延|超过?)(?:一|1)?[天日周月年][,、](?:[^\d。;\n]{0,40}(?=\d[\d,.]*[万亿]?元))?"
)
_duration = re.compile(rf"(?:{_PERIOD}|\d{{1,3}}{GAP}{_UNIT})(?=,)")
_NUMERAL = "[\\d¥一二两三四五六七八九十壹贰叁肆伍陆柒捌玖拾]"
#: What joins a name to its value in a sentence, or makes a longer label of it.
_states = re.compile(
    rf"(?:名称|单位)?(?:{GAP}(?:[是为系]|名称\s*:|合计|共计|总计){GAP}"
    rf"|[^\S\n\t]?(?=[\d¥]|{_CURRENCY}{_NUMERAL}|(?<=号)[a-z]{{1,8}}[a-z/-]{{0,6}}\d)|共?(?!一[日天])(?={_PERIOD})|[^\S\n\t])(?:_+{GAP})?(?=[^\s:_])(?!约)"
)
#: So of English names: behind "Tenant" and a blank a sentence goes on, but "Invoice no 17" is one.
_states_english = re.compile(r"[^\S\n\t]{1,3}(?=[\d$€£¥])")
#: So of synonyms and parties: what is an amount or a date, a sentence says of many.
_states_name = re.compile(r"(?:名称|单位)?\s*(?:是|为|系|名称\s*:)\s*(?=[^\s:\d¥])(?!人民币|约)")
_prefix = re.compile(rf"{_CURRENCY}(?={_NUMERAL})")
#: Characters of a name that says of itself what a sum or a day is: 招标控制价为4716.83万元.
_LONG_NAME = 4
_TOLD = ("money", "date")
#: Before a name, words that make it another thing; 草原 is a word of its own.
_BEFORE_OTHERS = tuple(word for word in OTHERS if len(word) > 1)
#: Of a sum, whether the tax is in it: 月工资为税前人民币15,000元.
_taxed = re.compile(rf"(?:税[前后]|不?含税){GAP}(?=(?:{_CURRENCY})?{_NUMERAL})")
#: What a sentence goes on with behind the last name of a list.
_NO_ITEM = "(?:[辩诉述]称|与被|一案|共同委托|未到庭|到庭)"
#: What is left of a loan, or to be paid of it.
_of_rest = re.compile(r"[欠余]|判|[还付]|诉")
_item = re.compile(
    rf"(?:{GAP}\([^()\n]{{1,20}}\))?{GAP}、{GAP}(?P<value>(?![^,、。;:()\n\t]{{0,40}}{_NO_ITEM})"
    r"[^\s,、。;:()][^,、。;:()\n\t]{0,40})"
)
#: Of people, in English lists.
_of_persons = re.compile(
    r"(?:personnel|staff|people|persons|members|individuals|attendees|participants|directors|witnesses|arbitrators"
    r"|judges|guarantors)\Z"
)
_english_item = re.compile(
    rf"(?:{GAP}\([^()\n]{{1,20}}\))?(?:{GAP}(?:;|,(?:{GAP}and\b)?|\band\b){GAP}|{GAP}\n{GAP}{BULLET})"
    r"(?P<value>[a-z][a-z'’.-]{0,20}(?:[^\S\n][a-z][a-z'’.-]{0,20}){1,4}?)(?=[^\S\n]*(?:[,;(\n]|and\b|\.?\s*\Z))"
)
#: Words in the place of a value that say there is none.
NOTHING = ("无", "暂无", "没有", "不适用", "不涉及", "n/a", "none", "nil", "待定", "待编", "/")
#: Words for who makes an announcement, which is named elsewhere, are as good as none.
_nothing = re.compile(
    rf"[:\t]{GAP}(?:_+{GAP})?(?P<word>{'|'.join(NOTHING)}|本?公司|\((?:待[^()\n]{{1,6}}|详?见[^()\n]{{1,20}})\))"
    rf"{GAP}(?:_+{GAP})?(?=[\n\t,;。]|\Z)"
)


def find_nothing(folded: str) -> list[int]:
    """Characters at which a word for "none" fills the place behind a colon, or a table cell."""
    return [match.start("word") for match in _nothing.finditer(folded)]


@lru_cache(maxsize=8)
def conditions(folded: str) -> NDArray[np.bool_]:
    """(len(folded) + 1,) whether a character is of words that say what a sum is for."""
    inside = np.zeros(len(folded) + 1, bool)
    for match in _for_each.finditer(folded):
        inside[match.start() : match.end()] = True
    return inside


def form_marks(folded: str) -> NDArray[np.int64]:
    """(len(folded) + 1,) running count of boxes to tick and of lines to write on."""
    counts = np.zeros(len(folded) + 1, np.int64)
    counts[[mark.end() for mark in _form.finditer(folded)]] = 1
    return np.cumsum(counts)


def has_form_marks(folded: str) -> bool:
    """Whether there is any of them."""
    return _form.search(folded) is not None


def are_of_clauses(names: Sequence[str]) -> bool:
    """Whether fields of such names have clauses as values, with commas and labels in them."""
    return any(_of_clause.search(fold_width(name)) for name in names)


def labelled_starts(folded: str, aliases: Sequence[str]) -> dict[int, bool]:
    """Characters at which a value behind one of the names begins, ascending.

    Each with whether it is sure to be a label, as before a colon or a cell's edge: a name on a line
    of its own may as well be the head of a column.
    """
    found: dict[int, bool] = {}
    for alias in filter(str.strip, aliases):
        for start, is_sure in values_behind(folded, fold_width(alias)):
            found[start] = found.get(start, False) or is_sure
    found |= dict.fromkeys(_named_places(folded, aliases), True)
    if any(_of_person.search(fold_width(alias)) for alias in aliases):
        titles = ((_title.match(folded, start), start) for start in [*found])
        found |= {title.end(): found.pop(start) for title, start in titles if title}
    return dict(sorted(found.items()))


def _named_places(folded: str, aliases: Iterable[str]) -> dict[int, int]:
    """Where what phrases, and labels without a colon, call by one of some names begins and ends."""
    return {start: end for alias in aliases for start, end in _places_called(folded, alias)}


@kept_by_name
def _places_called(folded: str, alias: str) -> tuple[tuple[int, int], ...]:
    wanted = fold(alias)
    labels = (
        (label.value, label.end)
        for label in find_bare_labels(folded)
        if wanted in (label.words, label.qualifier)
    )
    phrases = ((p.start, p.end) for p in find_phrases(folded) if p.words == wanted)
    return (*labels, *phrases, *find_named(folded, fold_width(alias)))


def stated_starts(folded: str, aliases: Sequence[str], *, are_own: bool = True) -> list[int]:
    """Characters at which a sentence says what something is: 租期为 *三年*, 押金人民币 *5000元*.

    Args:
        folded: a text.
        aliases: names to look for.
        are_own: whether they are the field's; of their synonyms only long names of sums and days
            state an amount or a date.

    """
    found: list[int] = []
    for alias in filter(str.strip, aliases):
        is_told = are_own or _tells_what(alias)
        states = _states if is_told and not is_party(fold(alias)) else _states_name
        if alias.isascii() and states is _states:
            states = _states_english
        for start, end in places_of_name(folded, fold_width(alias)):
            is_other = folded.endswith(_BEFORE_OTHERS, 0, start)
            stated = None if is_other else states.match(folded, end)
            if stated is not None and not _is_blank_alone(folded, start, stated):
                value = behind_box(folded, stated.end())
                taxed = _taxed.match(folded, value)
                value = taxed.end() if taxed else value
                prefix = _prefix.match(folded, value)
                found += [value, *([prefix.end()] if prefix else [])]
    return _without_what_is_owed(folded, aliases, found)


def _without_what_is_owed(folded: str, aliases: Sequence[str], places: list[int]) -> list[int]:
    """Places without those of what is left of a loan, where a field asks for its principal."""
    if not places or not any("本金" in alias or "金额" in alias for alias in aliases):
        return places
    if any(_of_rest.search(alias) for alias in aliases):
        return places
    owed = [one for one in find_phrases(folded) if one.words == OWED]
    return [at for at in places if not any(one.start <= at < one.end for one in owed)]


#: What persons, and organisations, are called, and their names behind it.
_PERSONS = (_of_person, _person_named)
_NAMED = (_PERSONS, (_of_organisation, _organisation))


@lru_cache(maxsize=4096)
def _tells_what(name: str) -> bool:
    """Whether a name is long enough to say of itself what a sum or a day is."""
    is_sum_or_day = kind_of_names((name,)) in _TOLD or name.endswith(("截止时间", "号码"))
    return len(name) >= _LONG_NAME and is_sum_or_day


def named_values(
    folded: str,
    aliases: Sequence[str],
    kinds: Sequence[tuple[re.Pattern[str], re.Pattern[str]]] = _NAMED,
) -> list[tuple[int, int]]:
    """Spans of names that stand right behind an alias; that of an organisation may be cut short.

    So sentences call those who act: 由监理单位 *某监理有限公司* 签发, 项目经理 *李四* 不得更换.
    """
    found: list[tuple[int, int]] = []
    for alias in map(fold_width, filter(str.strip, aliases)):
        for kind, pattern in kinds:
            if kind.search(alias):
                ends = (end for _, end in places_of_name(folded, alias))
                named = filter(None, (pattern.match(folded, end) for end in ends))
                found += [one.span("name") for one in named]
    return found


def _is_blank_alone(folded: str, before: int, stated: re.Match[str]) -> bool:
    """Whether a blank joins words that begin no clause: those are a part of a sentence."""
    if stated[0].strip() or not stated[0] or folded[stated.end()].isdigit():
        return False
    while before and folded[before - 1] == " ":
        before -= 1
    return folded[before - 1 : before] not in {"", *",;。\n\t()"}


def labelled_values(folded: str, aliases: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of the values behind a field's names: up to the line's end, and to earlier marks.

    Of a list, A、B、C, each one, too. What a phrase or a label without a colon names has one end.
    """
    known = _named_places(folded, aliases)
    found: list[tuple[int, int]] = []
    is_clause = are_of_clauses(aliases)
    folded_aliases = [fold_width(alias) for alias in aliases]
    is_line = any(map(_of_line.match, folded_aliases))
    is_person = any(map(_of_person.search, folded_aliases))
    is_side = any(is_party(fold(alias)) for alias in aliases)
    is_period = any(map(_of_period.search, folded_aliases))
    are_persons = any(map(_of_persons.search, folded_aliases))
    for start in sorted({*labelled_starts(folded, aliases), *stated_starts(folded, aliases)}):
        person = _person.match(folded, start) if is_person else None
        duration = _duration.match(folded, start) if is_period else None
        company = _company.match(folded, start) if is_side else None
        if start in known:
            ends = [known[start]]
        elif person is not None:
            ends = [person.end()]
        elif duration is not None:
            ends = [duration.end()]
        elif company is not None:
            ends = [company.end()]
        else:
            is_all = is_line and _line.match(folded, start) is not None
            whole = _clause if is_clause else _line if is_all else _value
            ends = sorted(set(_ends(folded, start, whole)))
            is_whole = (
                (is_clause or is_all) and ends and not has_form_marks(folded[start : ends[-1]])
            )
            ends = ends[-1:] if is_whole else ends[:_MOST_ENDS]
        found += [(start, end) for end in ends]
        if ends:
            found += _further_items(folded, ends[0], _english_item if are_persons else _item)
    return found + named_values(folded, aliases, (_PERSONS,))


def exact_places(folded: str, *, are_whole: bool = False) -> list[tuple[int, int]]:
    """Spans of what phrases, and labels without a colon, name.

    Args:
        folded: a text.
        are_whole: without those that may be parts of longer values.

    """
    places = [(label.value, label.end) for label in find_bare_labels(folded)]
    return places + [
        (phrase.start, phrase.end)
        for phrase in find_phrases(folded)
        if not (are_whole and phrase.may_be_part)
    ]


def _further_items(folded: str, end: int, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """What stands behind the first value of a list."""
    for _ in range(_MOST_ITEMS):
        item = pattern.match(folded, end)
        if item is None:
            return
        yield item.span("value")
        end = item.end()


def _balanced(value: str) -> str:
    """What stands before a bracket that closes and was not opened."""
    depth = 0
    for at, mark in enumerate(value):
        depth += (mark == "(") - (mark == ")")
        if depth < 0:
            return value[:at]
    return value


def _ends(folded: str, start: int, whole: re.Pattern[str] = _value) -> Iterator[int]:
    line = whole.match(folded, start)
    if line is None:
        return
    named = _named.match(folded, start) if whole is _value else None
    if named is not None:
        yield named.end()
        return
    label = _next_label.search(line[0])
    value = _balanced(line[0][: label.start()] if label else line[0])
    for mark in _end.finditer(value):
        end = start + len(value[: mark.start()].rstrip())
        if end > start:
            yield end
        if _sealed.match(value, mark.start()):
            return
