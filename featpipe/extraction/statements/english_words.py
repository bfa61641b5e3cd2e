"""What English statements are made of: days, amounts, periods, and patterns tried near words.

Days, amounts and periods are bounded in length, so that a line of 300,000 of anything is read once.
To look for the words of a pattern first is twenty times as fast as to look for what looks back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.values.dates import MONTH_NAMES
from featpipe.extraction.values.text import matches_at, matches_near, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator


#: A blank of a sentence, which may be a line break; any few words of one.
S = r"\s{1,4}"
LATER = r"(?:[^.;]|\.(?=\d))"
_MONTH = rf"(?:{MONTH_NAMES})\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"(?:{_DAY}{S}(?:day{S}of{S})?{_MONTH},?{S}\d{{4}}"
    rf"|{_MONTH}{S}{_DAY},?{S}\d{{4}}|\d{{1,2}}-{_MONTH}-\d{{4}}"
    r"|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}-\d{1,2}-\d{1,2})(?!\d)"
)
_SIZE = r"(?:\s{0,2}(?:million|billion|thousand|lakhs?|crores?|m|k|bn)(?![a-z]))?"
_SIGN = (
    r"(?:(?:us|a|c|nz|hk|s)?\$|[€£¥₹]|(?:usd|eur|gbp|cad|aud|chf|inr|sgd|nzd|hkd|cny|rmb|jpy|myr|thb|zar|aed"
    r"|sek|nok|dkk|pln|czk|huf|mxn|qar|kwd|omr|egp|kes|ngn|ghs|tzs|lkr|bdt|rs\.?)(?![a-z]))"
)
_DIGITS = (
    r"(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,2}(?:,\d\d){1,4},\d{3}|\d{1,15})(?:\.\d{1,4})?(?:/-)?(?!,?\d)"
)
MONEY = (
    rf"(?:{_SIGN}\s{{0,2}}{_DIGITS}{_SIZE}"
    rf"|{_DIGITS}{_SIZE}\s{{1,2}}(?:(?:us\s)?dollars|euros?|pounds(?:\ssterling)?|usd|eur|gbp)(?![a-z]))"
)
PERCENT = r"\d{1,3}(?:\.\d{1,4})?\s?(?:%|per\s?cent(?:um)?(?![a-z]))"
_SMALL = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_NUMBER = rf"(?:\d{{1,4}}|(?:{_TENS})[-\s](?:{_SMALL})|{_TENS}|{_TEENS}|{_SMALL})(?![a-z\d])"
PERIOD = (
    rf"{_NUMBER}(?:\s{{0,2}}\([a-z\d -]{{1,20}}\))?[\s-]{{1,4}}"
    r"(?:(?:calendar|business|working|consecutive|full)\s{1,4})?(?:year|month|week|day|hour)s?(?![a-z])"
)
#: Before an amount in brackets: seven hundred dollars ($700).
_SPELLED = r"(?:[a-z][a-z\s-]{2,80}?(?:dollars|pounds|euros?)?\s{0,4}\(\s?)?"
SPELLED_MONEY = rf"{_SPELLED}(?P<value>{MONEY})"

#: Characters of a statement behind its words.
_LONGEST_BEHIND = 300


class Words(NamedTuple):
    """Words that matches of a pattern have."""

    letters: tuple[str, ...]
    others: tuple[re.Pattern[str], ...]
    """Patterns that begin with letters."""
    n_before: int
    """Characters of a match before them, at most."""

    def places(self, folded: str) -> list[int]:
        """Where they begin, ascending."""
        found = (word.start() for one in self.others for word in one.finditer(folded))
        return sorted({*places_of(self.letters, folded), *found})


def begins(*words: str) -> Words:
    """Words, or patterns, that matches begin with."""
    return inside(0, *words)


def inside(n_before: int, *words: str) -> Words:
    """Those that matches have so many characters behind where they begin, at most."""
    letters = tuple(word for word in words if word.isalpha())
    others = tuple(re.compile(word) for word in words if not word.isalpha())
    return Words(letters, others, n_before)


class EnglishStatement(NamedTuple):
    """What is looked for, a pattern with named groups, and what a label would call each."""

    words: Words
    pattern: re.Pattern[str]
    labels: dict[str, str]


def told(words: str | Words, pattern: str, **labels: str) -> EnglishStatement:
    """A word alone is what matches begin with."""
    return EnglishStatement(
        begins(words) if isinstance(words, str) else words, re.compile(pattern), labels
    )


def matches_of(one: EnglishStatement, folded: str) -> Iterator[re.Match[str]]:
    """Of all of a text; it is searched near the words alone."""
    places = one.words.places(folded)
    n_before = one.words.n_before
    if n_before:
        return matches_near(one.pattern, folded, places, n_before, _LONGEST_BEHIND)
    return matches_at(one.pattern, folded, places)
