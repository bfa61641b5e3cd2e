"""Where the name of a field is written in a document, and where values begin behind it.

A name is looked for however it is spaced, once for each document: the last ones are kept, as
candidates and their columns both ask for them.
"""

from __future__ import annotations

import re
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from featpipe.extraction.names.name_patterns import GAP, HAN
from featpipe.extraction.names.synonyms import OWN_NAMES, in_brackets, is_known, is_party

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Found = TypeVar("Found")

#: Documents whose names' places are kept.
_DOCUMENTS = 8
#: Most characters of a name that has no other word in brackets inside.
_WHOLE = 3
_QUALIFIER = rf"(?:{GAP}\([^()\n]{{1,30}}\)|{GAP}@ ?\d{{1,2}}(?:\.\d{{1,2}})?%)?"
#: Between two characters of a name: the other word of 中标(成交)金额, and 的 of 涉案的金额.
_WITHIN = rf"{GAP}(?:\({GAP}(?:{HAN}{GAP}){{1,6}}\){GAP})?(?:的{GAP})?"
#: Cells between a party's and that of its name.
_OWN = rf"(?:{'|'.join(sorted(OWN_NAMES))})"
_han = re.compile(HAN)
_cell = re.compile(r"[^\n\t:]{1,24}(?=[\n\t]|\Z)")
#: Before an item of a list that has a line of its own.
BULLET = r"[-•●◦▪·*–—][^\S\n]{1,3}(?=[^\W\d_])"
#: A place for a seal or a signature is no value.
SEAL = rf"(?:{GAP}\([^()\n]{{0,6}}(?:章|签字|签名|手印)[^()\n]{{0,6}}\))"
#: One before a value; not before the next label.
_SEAL_FIRST = rf"(?:{SEAL}(?!{GAP}[^\s:,。;]{{1,12}}(?:\([^()\n]{{1,30}}\))?{GAP}:))?"
_box = re.compile(r"(?:[□☐][^\n。;☑☒■✓√]{0,40})*[☑☒■✓√]\s*(?=[^\s□☐])")
#: English names that a word before makes something else: a due date is no date.
_BARE = frozenset(["date", "name", "number", "title", "period", "duration", "interest"])
#: Before a name that fills a cell with it: Grand Total.
_grand = re.compile(r"(?<![a-z])(?:grand|invoice|order|sales) {1,2}\Z")
_LONGEST_GRAND = 10
#: The number of a row, before a label: 2    Limit sanctioned    Rs. 7.80 crore.
_row_number = re.compile(r"(?<![^\n])[^\S\n\t]*\d{1,2}[.)、]?\Z")
_BEHIND_NUMBERS = frozenset("0123456789.)、")
_LONGEST_NUMBER = 8


class _Label(NamedTuple):
    """A name, however it is spaced; as a label before a colon, and as all of a line or cell.

    Matches of a label begin where the name does, and end where its value begins.
    """

    name: re.Pattern[str]
    colon: re.Pattern[str]
    cell: re.Pattern[str]


@lru_cache(maxsize=4096)
def _label(name: str) -> _Label:
    is_side = is_party(name)
    pattern = _name_pattern(re.sub(r"\s+", "", name))
    called = rf"(?:{GAP}(?:名称|姓名|全称))?" if is_side else ""
    number = rf"(?:{GAP}(?:[一二三四五六七八九十]|\d{{1,2}}))?" if is_side else ""
    return _Label(
        re.compile(pattern),
        re.compile(
            rf"(?:(?<![^\W_]){pattern}{number}{_QUALIFIER}|(?<=\(){pattern}[^()\n]{{0,20}}\)(?:{GAP}{_OWN})?)"
            rf"{GAP}[是为]?{GAP}(?::|(?=__)){_SEAL_FIRST}{GAP}(?:\n\s*(?=[^\n:]*(?:\n|\Z))(?:{BULLET})?)?"
            rf"(?:_+{GAP})?(?=[^\s:])(?!{SEAL})"
        ),
        re.compile(
            rf"{pattern}{called}{_QUALIFIER}{GAP}(?:\t(?:{GAP}\t|{_OWN}{GAP}\t)*|(?P<line>\n+)"
            rf"|(?<=\s\s)(?!\S[^\n]*\S[^\S\n]{{2}}))"
            rf"{GAP}(?=[^\s:])(?=(?:[^\n\t:]|(?<=\d):(?=\d))*(?:[\n\t]|\Z))"
        ),
    )


def _name_pattern(name: str) -> str:
    """A name however it is spaced.

    劳动者姓名 may be written (劳动者)姓名, and 合同编号 合同(协议)编号.
    """
    own = max((end for end in OWN_NAMES if name.endswith(end)), key=len, default="")
    stem = name.removesuffix(own) if len(name) > len(own) + 1 else name
    whole = (_WITHIN if len(stem) > _WHOLE else GAP).join(map(re.escape, stem))
    if stem != name:
        whole += rf"\)?{GAP}{GAP.join(map(re.escape, own))}"
    if name.isascii() and name.isalpha():
        # The rent is not in "current"; a pattern that begins with a letter is looked for sooner.
        apart = rf"(?<![a-z][ ]{name[0]})" if name in _BARE else ""
        return rf"{name[0]}(?<![a-z]{name[0]}){apart}{whole[1:]}(?![a-z])"
    return whole


def kept_by_name(find: Callable[[str, str], Found]) -> Callable[[str, str], Found]:
    """What is found for a folded text and a name, kept for each name of the last documents."""

    @lru_cache(maxsize=_DOCUMENTS)
    def known_in(folded: str) -> dict[str, Found]:  # noqa: ARG001
        return {}

    @wraps(find)
    def find_once(folded: str, name: str) -> Found:
        known = known_in(folded)
        if name not in known:
            known[name] = find(folded, name)
        return known[name]

    return find_once


def _without_blanks(text: str) -> str:
    return "".join(text.split()).replace(")", "")


@lru_cache(maxsize=_DOCUMENTS)
def _english(folded: str) -> str | None:
    """A text without what may be inside an English name; None if it has Chinese characters."""
    return None if _han.search(folded) else _without_blanks(folded)


@kept_by_name
def places_of_name(folded: str, name: str) -> tuple[tuple[int, int], ...]:
    """Character spans of a name, folded, however it is spaced."""
    english = _english(folded) if name.isascii() else None
    if english is not None and _without_blanks(name) not in english:
        return ()  # as most are: sooner found out without blanks
    return tuple(found.span() for found in _label(name).name.finditer(folded))


@kept_by_name
def values_behind(folded: str, name: str) -> tuple[tuple[int, bool], ...]:
    """Characters at which values begin behind one name, and whether it is sure to be a label.

    To look for the name alone first is ten times as fast.
    """
    return tuple(_values_behind(folded, name))


def _values_behind(folded: str, name: str) -> Iterator[tuple[int, bool]]:
    label = _label(name)
    done = 0
    for at, _ in places_of_name(folded, name):
        if at < done:
            continue
        grand = _grand.search(folded, max(at - _LONGEST_GRAND, 0), at)
        edge = grand.start() if grand else at
        while edge > done and folded[edge - 1].isspace() and folded[edge - 1] not in "\n\t":
            edge -= 1
        if edge and folded[edge - 1] in _BEHIND_NUMBERS:
            numbered = _row_number.search(folded, max(edge - _LONGEST_NUMBER, 0), edge)
            edge = numbered.start() if numbered else edge
        is_first = edge == 0 or folded[edge - 1] in "\n\t"
        order = (label.cell, label.colon) if edge < at else (label.colon, label.cell)
        tried = (one.match(folded, at) for one in order if is_first or one is label.colon)
        match = next(filter(None, tried), None)
        if match is not None and match.re is label.cell and _is_header(folded, match.end()):
            match = None  # 货物名称 and 规格 are headers, side by side or one below the other
        if match is not None:
            done = match.end()
            yield behind_box(folded, done), match.re is label.colon or match["line"] is None


def behind_box(folded: str, at: int) -> int:
    """Where the value begins: behind a box that is ticked, and those before it."""
    ticked = _box.match(folded, at)
    return ticked.end() if ticked else at


def _is_header(folded: str, start: int) -> bool:
    """Whether a cell is a known label, all of it."""
    cell = _cell.match(folded, start)
    return cell is not None and is_known("".join(in_brackets.sub("", cell[0]).split()))
