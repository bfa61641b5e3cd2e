"""Statements of news of companies, by what it is about.

News calls companies by short names, behind words that say what they are, so that here a name is
told by where it begins and what it does, not by how it ends. Most are less sure than labels, so
that they are called as no field is: ``news_names`` has these names beside those of fields. The
words are those in general use, written down by hand: nothing here is counted on a labelled set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.statements.company_news import ACQUISITIONS, APPOINTMENTS, AWARDS_IN_NEWS
from featpipe.extraction.statements.law_news import INSOLVENCIES, LAWSUITS, PENALTIES, SUMMONS
from featpipe.extraction.statements.money_news import FINANCINGS, LISTINGS, LOSSES
from featpipe.extraction.statements.news_words import (
    companies_in,
    firms_in,
    in_full,
    is_name,
    names_in,
    without_kind,
)
from featpipe.extraction.statements.statement_words import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.extraction.statements.news_words import NewsStatement


class _Kind(NamedTuple):
    """Statements, each with what a label would call it, and words of which their texts have one."""

    tells: tuple[str, ...]
    statements: tuple[tuple[re.Pattern[str], str], ...]


def _kind(statements: tuple[NewsStatement, ...], *tells: str) -> _Kind:
    return _Kind(tells, tuple((re.compile(pattern), words) for pattern, words in statements))


_INSOLVENCIES = _kind(INSOLVENCIES, "破产", "重整", "清算申请")
_KINDS = (
    _kind(
        FINANCINGS, "领投", "跟投", "轮融资", "轮投资", "战略融资", "战略投资", "投前估值",
        "投后估值", "融资轮次",
    ),
    _kind(
        LISTINGS, "终止上市", "暂停上市", "挂牌上市", "正式上市", "登陆科创", "登陆创业",
        "首日交易", "ipo", "摘牌", "退市", "发行价", "交所上市", "交易所上市", "交所主板",
        "交所创业板", "交所科创板", "交易所主板", "交易所创业板", "交易所科创板", "交所挂牌",
        "港交所", "纽交所", "纳斯达克",
    ),
    _kind(LOSSES, "亏损", "亏了", "预亏"),
    _kind(SUMMONS, "约谈", "约见"),
    _INSOLVENCIES,
)  # fmt: skip
#: Announcements tell these in statements of their own.
_IN_NEWS_ALONE = (
    _kind(
        APPOINTMENTS, "辞职", "辞任", "离任", "离职", "辞去", "聘任", "任命", "委任", "免去",
        "换帅", "逝世", "病逝", "升任", "总经理", "董事长",
    ),
    _kind(ACQUISITIONS, "收购", "受让", "竞购", "竞得", "买下", "并购"),
    _kind(AWARDS_IN_NEWS, "中标", "中选"),
    _kind(PENALTIES, "罚款", "处罚", "罚没", "被罚"),
    _kind(LAWSUITS, "诉讼", "起诉", "原告", "被告", "诉至", "胜诉", "败诉", "纠纷"),
)  # fmt: skip
_clause = re.compile(
    r"(?:[并和且]|以及|\([一二三四五六\d]\)|[一二三四五六]是|\d\.|如[^,。;]{2,14}?应){0,4}"
    r"(?P<one>[^,;。\n]{4,40})"
)
#: Clauses behind an order that are none of it.
_no_order = re.compile(r"表示|回应|承诺|称|负责人(?!员)|记者|此次|同时表|目前")
#: Groups whose names are of no company.
_OFFICES = frozenset(["name_of_court", "name_of_office", "name_of_by", "name_of_sender"])
#: Characters of a text that may be news.
_LONGEST = 4000


def find_news(folded: str) -> Iterator[Phrase]:
    """Those of a text that is short enough for news."""
    return _find(folded, (*_KINDS, *_IN_NEWS_ALONE))


def find_announced(folded: str) -> Iterator[Phrase]:
    """Those that announcements have, too."""
    return _find(folded, _KINDS)


def find_insolvencies(folded: str) -> Iterator[Phrase]:
    """Those that a court's short decision has, too."""
    return _find(folded, (_INSOLVENCIES,))


def _find(folded: str, kinds: tuple[_Kind, ...]) -> Iterator[Phrase]:
    if len(folded) > _LONGEST:
        return
    companies: list[tuple[int, int]] | None = None
    for tells, statements in kinds:
        if any(word in folded for word in tells):
            if companies is None:
                companies = [*companies_in(folded)]
            for pattern, words in statements:
                for match in pattern.finditer(folded):
                    for span in _values(folded, match, companies):
                        yield Phrase(*span, words)


def _values(
    folded: str, match: re.Match[str], companies: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """What a match tells: the group that matched, whose name says how it is read."""
    group = match.lastgroup or ""
    start, end = match.span(group or 0)
    if group.startswith("names"):
        for span in names_in(folded, start, end):
            yield in_full(folded, *span, companies)
    elif group == "firms":
        yield from firms_in(folded, start, end)
    elif group == "clauses":
        yield from _clauses(folded, start, end)
    elif not group.startswith("name"):
        yield start, end
    else:
        start, end = without_kind(folded, start, end)
        if group not in _OFFICES:
            start, end = in_full(folded, start, end, companies)
        if is_name(folded, start, end):
            yield start, end


def _clauses(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Those of an order, up to one that is none of it."""
    for clause in _clause.finditer(folded, start, end):
        if _no_order.search(clause["one"]):
            return
        yield clause.span("one")
