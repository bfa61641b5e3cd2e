"""Who English agreements call the client, the seller and so on, beside the names.

X, a Delaware corporation with offices at Y *(the "Client")*; X Inc., *as Purchaser*; in this letter
*"the Bank" means* X Bank plc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from featpipe.extraction.names.synonyms import is_party
from featpipe.extraction.statements.statement_words import Phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

#: X, a Delaware corporation with offices at Y (the "Client").
_english_role = re.compile(
    r"(?:\(|\bhereinafter\s+)(?:each,?\s+)?(?:hereinafter\s+)?(?:referred\s+to\s+as\s+|called\s+)?"
    r"(?:the\s+)?\"(?:the\s+)?(?P<words>[a-z][a-z ]{2,30})\""
)
_FORM = (
    r"(?:inc|incorporated|l\.?l\.?c|ltd|limited|corp|corporation|company|co|l\.?p|llp|plc|gmbh"
    r"|bhd|s\.a|n\.v|ag|bank(?:,?\s{1,2}n\.a)?|trust|university)\b\.?"
)
#: Up to its legal form, and all of that: X Bank Limited, Y Company, Inc.
_ENGLISH_NAME = (
    r"(?P<name>(?:(?!\b(?:between|among|agreement|made|entered|dated|is|are|if)\b|, an? )"
    r"[^()\n;:\"]){2,80}?"
    rf"\b{_FORM}(?:,?[ ]{_FORM})*)"
)
_english_name = re.compile(
    r"(?:\b(?:between|among|and|by)[\s:]+|\),\s{1,4}(?:and\s{1,4})?(?:by\s{1,4})?|\b\d{4},\s{1,4}|\b(?:leases|lends|sells)\s{1,4}to\s{1,4}|^\s*|[\n;.]\s*|\(\w{1,3}\)\s*)(?!(?:the|this)\b)"
    rf"{_ENGLISH_NAME}"
)
#: Of a front page: X, LLC, as Purchaser. The name is looked for before what calls it.
_as = re.compile(r",?\s{1,4}as\s{1,4}(?:the\s+)?(?P<words>[a-z]{4,20})\b")
_whole_name = re.compile(rf"\s*{_ENGLISH_NAME}")
#: In this letter "the Bank" means X Bank plc.
_english_means = re.compile(
    rf"\"(?:the\s+)?(?P<words>[a-z][a-z ]{{2,30}})\"\s{{1,4}}means\s{{1,4}}{_ENGLISH_NAME}"
)
#: Right before the bracket: the undersigned, Mary Smith ("Borrower").
_person_alone = re.compile(
    r"(?:,|\b(?:by|to|of|and))\s{1,4}(?P<name>(?:(?!(?:and|the|this|an?|of|in|at|with|having|registered|incorporated"
    r"|organi[sz]ed|individual|located|residing|resident|each|both|together|as|its|his|her|their|any|all|other"
    r"|state|city|county|street|road|company|corporation|partnership|order|party|agreement)\b)"
    r"[a-z][a-z.'-]{0,20}\s{1,2}){2,4})\Z"
)
#: Before a person's name, and the name: Mary Smith (the "Tenant").
_before_person = re.compile(
    r"\b(?:between|among)[\s:]{1,4}(?:\(\w{1,3}\)\s{1,2})?|^[^()\n]{0,3}\)?,?\s{0,4}and\s{1,4}"
    r"|\n\s{0,8}\(\w{1,3}\)\s{1,2}"
)
_english_person = re.compile(
    r"(?P<name>(?:(?!(?:of|an?|whose|residing|with|having|the|this|is|are|made|each|shall|party|agreement)\b)"
    r"[a-z][a-z.'-]{0,20}\s{1,2}){1,6}?(?:(?!(?:and|of|an?|the)\b)[a-z][a-z'-]{1,20}))"
    r"(?=\s{0,4}(?:,|\(|\Z)|\s{1,4}(?:of|an?|whose|residing|with|having)\b)"
)
#: Where the parties of an agreement begin to be named, and each of them that has a number.
_before_parties = re.compile(r"\b(?:between|among)\b|\n\s{0,8}\(\w{1,3}\)\s")
_LONGEST_ROLE, _LONGEST_PERSON = 400, 100
#: Characters at the beginning that say who an agreement is between.
_PREAMBLE = 5_000


def find_roles(folded: str) -> Iterator[Phrase]:
    """Who English agreements call the client, the seller and so on, in brackets behind the name."""
    end = 0
    for role in _english_role.finditer(folded, 0, _PREAMBLE):
        low = max(end, role.start() - _LONGEST_ROLE)
        end = role.end()
        words = "".join(role["words"].split())
        begun = [*_before_parties.finditer(folded, low, role.start())]
        low = begun[-1].start() if begun else low
        named = [*_english_name.finditer(folded, low, role.start())]
        if named:
            yield Phrase(*named[0].span("name"), words)
        elif is_party(words) or words == "shareholder":
            yield from _persons(folded, low, role.start(), words)
    for told in _as.finditer(folded, 0, _PREAMBLE):
        if not is_party(told["words"]):
            continue
        line = folded.rfind("\n", 0, told.start()) + 1
        whole = _whole_name.fullmatch(folded, line, told.start())
        if whole:
            yield Phrase(*whole.span("name"), told["words"])
    for told in _english_means.finditer(folded, 0, _PREAMBLE):
        words = "".join(told["words"].split())
        if is_party(words) or words == "bank":
            yield Phrase(*told.span("name"), words)


def _persons(folded: str, low: int, end: int, words: str) -> Iterator[Phrase]:
    """The person, or persons, before a role in brackets."""
    for before in _before_person.finditer(folded[low:end]):
        named = _english_person.match(folded, low + before.end(), end)
        if named:
            yield Phrase(*named.span("name"), words)
            return
    alone = _person_alone.search(folded, max(low, end - _LONGEST_PERSON), end)
    if alone:
        yield Phrase(alone.start("name"), alone.start("name") + len(alone["name"].rstrip()), words)
