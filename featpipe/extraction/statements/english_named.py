"""Values that English sentences call by a field's own name.

*A monthly fee of* $4,500, $900 *as a deposit*, May 1, 2024 *(the "Closing Date")*.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.statements.english_words import (
    DATE,
    MONEY,
    PERCENT,
    PERIOD,
    SPELLED_MONEY,
    S,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Between a name and the verb that says its value: the term *of this agreement* is two years.
_CARRIED = (
    r"(?:of|for|under|payable|due|hereunder|this|the|these|such|agreement|lease|contract|loan|note"
    r"|premises|property|services?|employment|tenancy|licen[cs]e|order|work|products?|goods"
    r"|project|tenant|landlord|customer|client|buyer|seller|borrower|lender|employee|per|month"
    r"|by|to|from|year|annum|monthly|annual)"
)
_VERB = (
    rf"(?:is|are|was|means|will{S}be|shall{S}be|shall{S}equal|equals|amounts{S}to|of|in{S}the{S}amount{S}of"
    rf"|in{S}the{S}sum{S}of|at|totall?ing)"
)
_SUM = (
    rf"(?:(?:(?:fixed|set|agreed|currently){S})?(?:(?:at|equal{S}to|for){S})?(?:in{S})?"
    rf"(?:(?:an?|the){S}(?:(?:total|initial|fixed){S})?(?:period|term|sum|amount|total|rate){S}of{S})?)"
)
_VALUE = rf"(?:{PERCENT}|{DATE}|{PERIOD}|{SPELLED_MONEY})"
_VALUE_BEFORE = rf"(?<![a-z\d.,$/-])(?P<whole>{PERCENT}|{DATE}|{PERIOD}|{MONEY})"
#: Behind a name, up to the value.
_says = re.compile(
    rf"(?:\"|'|\s{{0,2}}\([^()\n]{{1,40}}\))?(?:{S}{_CARRIED}){{0,6}}?{S}{_VERB}{S}{_SUM}"
    rf"(?P<whole>{_VALUE})"
)
#: Before a name.
_as = re.compile(
    rf"{_VALUE_BEFORE}\)?(?:{S}per{S}[a-z]{{3,8}})?{S}as{S}(?:an?{S}|the{S})?(?:[a-z]{{3,14}}{S}){{0,2}}\Z"
)
_defined = re.compile(rf"{_VALUE_BEFORE}\)?,?\s{{0,4}}\((?:[a-z]{{2,10}}\s){{0,3}}\"\Z")
_LONGEST_BEFORE = 100
#: Behind the name of a number or a code.
_numbers = re.compile(r"\b(?:number|no|id|code)\Z")
_code = re.compile(
    rf"(?:{S}is)?\s{{1,3}}(?P<whole>(?=[a-z/-]{{0,12}}\d)[a-z\d][a-z\d/-]{{2,30}})(?=[\s,.;)]|\Z)"
)
#: Right before a name, words that make it another thing.
_another = re.compile(
    r"\b(?:late|default|overdue|additional|termination|cancellation|holdover|renewal|extension|extended|original"
    r"|previous|prior|former|maximum|minimum|pet|key|cleaning|last|reduced|new|proposed)\s{1,4}\Z"
)
_LONGEST_ANOTHER = 20
_word = re.compile(r"[a-z][a-z/&'-]*|\d+")
#: Names that sentences call too many things by.
_VAGUE = frozenset((
    "amount", "sum", "money", "number", "date", "quantity", "from", "to", "period", "duration",
    "interest", "area", "security",
))  # fmt: skip


def find_named(folded: str, name: str) -> Iterator[tuple[int, int]]:
    """Spans of amounts, shares, dates and periods that sentences call by a name."""
    pattern = _pattern_of(name)
    behind = _code if _numbers.search(name) else _says
    for found in pattern.finditer(folded) if pattern else ():
        start = found.start()
        if _another.search(folded, max(start - _LONGEST_ANOTHER, 0), start):
            continue
        says = behind.match(folded, found.end()) or _before(folded, start)
        if says is not None:
            yield says.span("value" if says.groupdict().get("value") else "whole")


def _before(folded: str, start: int) -> re.Match[str] | None:
    """The value that stands before a name: 900 dollars *as a deposit*."""
    low = max(start - _LONGEST_BEFORE, 0)
    if folded[start - 1 : start] == '"':
        return _defined.search(folded, low, start)
    if " as " in folded[low:start]:
        return _as.search(folded, low, start)
    return None


@lru_cache(maxsize=1024)
def _pattern_of(name: str) -> re.Pattern[str] | None:
    """A name of English words, however they are parted; None for others."""
    words = _word.findall(name)
    if not words or not name.isascii() or not name[0].isalpha() or name in _VAGUE:
        return None
    first, *others = map(re.escape, words)
    # What begins with letters is looked for ten times as fast as what looks back first.
    begins = rf"{first}(?<![a-z\d-]{first})"
    return re.compile(rf"{S.join([begins, *others])}s?(?![a-z\d-])")
