"""Statements of English agreements: sentences that say a value without a label.

Whose law governs, when a lease begins and ends, how long notice is, what the rent comes to. Some
are told by their verbs, whatever a field is called (*governed by the laws of* the State of
Ohio); others by the field's own name (*a monthly fee of* $4,500, $900 *as a deposit*, May 1, 2024
*(the "Closing Date")*). The words are those in general use, written down by hand.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from featpipe.extraction.scoring.english_words import (
    DATE,
    MONEY,
    PERCENT,
    PERIOD,
    SPELLED_MONEY,
)
from featpipe.extraction.values.text import matches_at, matches_near, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A blank of a sentence, which may be a line break; any few words of one.
_S = r"\s{1,4}"
_LATER = r"(?:[^.;]|\.(?=\d))"
#: Where a name of a place ends.
_PLACE_ENDS = (
    rf"(?=\s{{0,4}}(?:[,.;()\n]|\Z)|{_S}(?:without|excluding|except|applicable|as|shall|will|in|with|that"
    r"|which|govern|to|have|has|regardless|for|irrespective|and\s{1,4}(?!wales|northern|tobago|herzegovina))\b)"
)
_PLACE = r"[a-z][a-z\s]{2,50}?"
_BORDER = (
    r"(?:at{S}least|not{S}less{S}than|no{S}(?:less|fewer){S}than|a{S}minimum{S}of|giving)".replace(
        "{S}", _S
    )
)
_GIVEN = rf"(?:[a-z]{{2,12}}{_S}){{0,3}}?(?:{_BORDER}{_S})?"
#: A person's name behind a title, which sentences in small letters are known by.
_PERSON = (
    rf"(?:dr|mrs?|ms|miss|prof(?:essor)?)\.?{_S}[a-z][a-z'-]*(?:\.?{_S}[a-z][a-z'-]+){{1,2}}?"
    rf"(?=\s{{0,4}}[,.;(]|{_S}(?:and|to|as|for|or|who|shall|will)\b)"
)
#: Laws that are of no place.
_A_LAW = (
    r"(?!(?:applicable|such|the|that|this|any|no|mandatory|local|federal|state|case|common|which)\b)"
    r"[a-z]{3,20}"
)


class _Words(NamedTuple):
    """Words that matches of a pattern have.

    To look for them first is twenty times as fast as to look for what looks back.
    """

    letters: tuple[str, ...]
    others: tuple[re.Pattern[str], ...]
    """Patterns that begin with letters."""
    n_before: int
    """Characters of a match before them, at most."""

    def places(self, folded: str) -> list[int]:
        """Where they begin, ascending."""
        found = (word.start() for one in self.others for word in one.finditer(folded))
        return sorted({*places_of(self.letters, folded), *found})


def _begins(*words: str) -> _Words:
    return _inside(0, *words)


def _inside(n_before: int, *words: str) -> _Words:
    letters = tuple(word for word in words if word.isalpha())
    others = tuple(re.compile(word) for word in words if not word.isalpha())
    return _Words(letters, others, n_before)


class _Told(NamedTuple):
    """What is looked for, a pattern with named groups, and what a label would call each."""

    words: _Words
    pattern: re.Pattern[str]
    labels: dict[str, str]


def _told(words: str | _Words, pattern: str, **labels: str) -> _Told:
    """A word alone is what matches begin with."""
    return _Told(_begins(words) if isinstance(words, str) else words, re.compile(pattern), labels)


_TOLD = (
    _told(
        "governed",
        rf"governed{_S}(?:(?:in{_S}all{_S}respects|exclusively|solely){_S})?by,?{_S}"
        rf"(?:and{_S}(?:shall{_S}be{_S})?(?:construed|interpreted|enforced)[^.;]{{0,60}}?{_S}(?:with|under|by),?{_S})?"
        rf"(?:the{_S})?(?:(?:internal|substantive|local){_S})?"
        rf"(?:laws?{_S}(?:of|in{_S}force{_S}in){_S}(?:the{_S})?(?P<law>{_PLACE}){_PLACE_ENDS}"
        rf"|(?P<short>{_A_LAW}{_S}law)\b)",
        law="governinglaw",
        short="governinglaw",
    ),
    _told(
        "construed",
        rf"\b(?<!and )construed{_S}(?:according{_S}to|in{_S}accordance{_S}with|under){_S}"
        rf"(?:the{_S})?laws?{_S}of{_S}(?:the{_S})?(?P<law>{_PLACE}){_PLACE_ENDS}",
        law="governinglaw",
    ),
    _told(
        "subject",
        rf"\bsubject{_S}to{_S}(?P<law>{_A_LAW}{_S}law)\b",
        law="governinglaw",
    ),
    _told(
        _inside(24, "law"),
        rf"\b(?P<law>{_A_LAW}{_S}law){_S}(?:applies|governs|(?:shall|will){_S}(?:apply|govern)|is{_S}applicable)\b",
        law="governinglaw",
    ),
    _told(
        _inside(70, rf"place{_S}of{_S}jurisdiction"),
        rf"\bplace{_S}of{_S}jurisdiction{_S}(?:is|shall{_S}be|will{_S}be){_S}(?P<court>{_PLACE}){_PLACE_ENDS}"
        rf"|\b(?P<before>[a-z]{{3,20}}){_S}(?:is|shall{_S}be){_S}the{_S}(?:exclusive{_S})?place{_S}of{_S}jurisdiction\b",
        court="jurisdiction",
        before="jurisdiction",
    ),
    _told(
        "law",
        rf"laws?{_S}of{_S}(?:the{_S})?(?P<law>{_PLACE}){_S}(?:shall{_S}|will{_S})?(?:governs?|apply|applies)\b",
        law="governinglaw",
    ),
    _told(
        "jurisdiction",
        rf"jurisdiction{_S}of{_S}(?:the{_S})?(?P<court>(?:[a-z]{{2,12}}{_S}){{0,4}}?courts?{_S}"
        rf"(?:(?:located|sitting){_S})?(?:of|in|for){_S}[a-z][a-z\s]{{2,50}}?(?:,{_S}[a-z]{{4,20}})?)"
        rf"(?=\s{{0,4}}[,.;(]|{_S}(?:for|to|and{_S}(?!wales)|in|over|with)\b|\s*\Z)",
        court="jurisdiction",
    ),
    _told(
        "courts",
        rf"(?P<court>courts{_S}(?:of|in){_S}(?:the{_S})?[a-z][a-z\s]{{2,50}}?){_S}(?:shall{_S}|will{_S})?have{_S}"
        rf"(?:(?:non-)?exclusive{_S})?jurisdiction",
        court="jurisdiction",
    ),
    _told(
        _inside(360, "notice"),
        rf"\b(?:terminat|cancel|end{_S}(?:this|the|it)|to{_S}an{_S}end|resign|either{_S}party){_LATER}{{0,140}}?\b(?:upon|on|by|with|giv(?:e|es|ing)){_S}"
        rf"{_GIVEN}(?P<notice>{PERIOD})(?:'s?)?{_S}(?:(?:prior|advance|written|and){_S}){{0,3}}notice",
        notice="noticeperiod",
    ),
    _told(
        "confidential",
        rf"confidential{_LATER}{{0,160}}?\bfor{_S}(?:(?:a{_S})?(?:further{_S}|additional{_S})?(?:period|term){_S}of{_S})?"
        rf"(?P<period>{PERIOD})",
        period="confidentialityperiod",
    ),
    _told(
        "liab",
        rf"\b(?:liability|liable){_LATER}{{0,160}}?\b(?:exceed|limited{_S}to|capped{_S}at)"
        rf"(?:{_S}(?:an?|the|total|aggregate|amount|sum|of)){{0,4}}{_S}(?P<cap>{MONEY})",
        cap="liabilitycap",
    ),
    _told(
        "interest",
        rf"(?<!default\s)(?<!late\s)(?<!penalty\s)\binterest{_LATER}{{0,60}}?(?:\brate(?:{_S}of|{_S}equal{_S}to)|\bat){_S}(?P<rate>{PERCENT})",
        rate="interestrate",
    ),
    _told(
        _inside(140, "interest"),
        rf"\b(?:not{_S}paid|unpaid|overdue|late|outstanding|arrears)\b{_LATER}{{0,80}}?\b(?:bears?|accrues?|attracts?|carry|carries"
        rf"|incurs?|pay){_S}(?:late{_S})?interest{_S}(?:(?:on{_S}[a-z\s]{{2,30}}?{_S})?at{_S}(?:(?:the|a){_S})?(?:rate{_S}of{_S})?)"
        rf"(?P<rate>{PERCENT}(?:{_S}(?:per|an?|each){_S}(?:annum|year|month|week|day))?"
        rf"(?:{_S}(?:above|over){_S}[a-z][a-z&\s]{{2,60}}?(?=\s{{0,4}}[,.;(]|\Z|{_S}(?:from|until|on)\b))?)",
        rate="latepaymentinterest",
    ),
    _told(
        "principal",
        rf"\bprincipal{_S}(?:amount|sum|balance)(?:{_S}of{_S}up{_S}to|{_S}of){_S}"
        + SPELLED_MONEY.replace("value", "sum"),
        sum="principalamount",
    ),
    _told(
        _inside(100, rf"due{_S}(?:in|on)", rf"payable{_S}(?:in|on)"),
        rf"\b(?:principal|balance|loan|note){_LATER}{{0,80}}?\b(?:due|payable)(?:{_S}in{_S}full)?{_S}on"
        rf"(?:{_S}or{_S}before)?{_S}(?P<day>{DATE})",
        day="maturitydate",
    ),
    _told(
        _begins("shipped", "dispatched", "despatched"),
        rf"\b(?:shipped|dispatched|despatched)(?:{_S}on{_S}board)?(?:{_S}on)?{_S}(?P<day>{DATE})",
        day="shippeddate",
    ),
    _told(
        _inside(120, "territory"),
        rf"\b(?:in|for|within|throughout){_S}(?:the{_S})?(?P<area>[a-z][a-z,\s]{{3,80}}?)"
        rf"\s{{0,4}}\((?:the{_S})?\"territory\"\)",
        area="territory",
    ),
    _told(
        _begins("distributor", "licensee", "agent", "reseller"),
        rf"\b(?:distributor|licensee|agent|reseller){_S}(?:for|in|throughout|within){_S}(?:the{_S})?"
        rf"(?P<area>[a-z][a-z\s]{{3,60}}?)(?=\s{{0,4}}[(.;]|,{_S}(?:and|which|but|for)\b)",
        area="territory",
    ),
    _told(
        _begins("continue", "run", "last", "remain"),
        rf"\b(?:continues?|runs?|lasts?|remains?{_S}in{_S}force){_S}for{_S}(?:an?{_S})?(?:(?:initial|fixed|minimum){_S})?"
        rf"(?:(?:period|term){_S}of{_S})?(?P<term>{PERIOD})",
        term="term",
    ),
    _told(
        _begins("come", "comes", "enter", "enters"),
        rf"\b(?:comes?|enters?){_S}into{_S}(?:force|effect){_S}on{_S}(?P<day>{DATE})",
        day="effectivedate",
    ),
    _told(
        "agreement",
        rf"\bagreement,?{_S}(?:(?:is|was|shall{_S}be){_S})?(?:dated|made|executed)(?:{_S}(?:at|in){_S}[a-z]{{3,20}})?"
        rf"(?:{_S}(?:and{_S}entered{_S}into|on|as{_S}of|this|the)){{0,3}}{_S}(?P<day>{DATE})",
        day="agreementdate",
    ),
    _told(
        "report",
        rf"\breports?{_S}(?:directly{_S})?to{_S}(?P<boss>(?!the\b|you\b|us\b|your\b|our\b)[a-z][a-z.'-]*"
        rf"(?:[ ](?!who\b|and\b|or\b)[a-z][a-z.'/-]*){{1,3}}?)(?=[,;.(]|{_S}(?:who|and|or)\b)",
        boss="linemanager",
    ),
    _told(
        _inside(60, "first day"),
        rf"\bfirst{_S}day(?:{_S}of{_S}(?:work|employment))?{_S}(?:will{_S}be|is|shall{_S}be){_S}(?P<day>{DATE})",
        day="startdate",
    ),
    _told(
        _begins("close", "closing", "complete", "completion"),
        rf"\b(?:close|closing|completed?|completion)\b{_LATER}{{0,50}}?{_S}(?:on{_S}or{_S}(?:around|about|before)|on|by|in){_S}"
        rf"(?:the{_S})?(?P<day>{DATE}|(?:first|second|third|fourth){_S}quarter{_S}of{_S}\d{{4}}|q[1-4]{_S}\d{{4}})",
        day="expectedclosing",
    ),
    _told(
        "repa",
        rf"\b(?:repaid|repayable|repay{_LATER}{{0,80}}?)(?:,?{_S}in{_S}full,?)?{_S}"
        rf"(?:by|on(?:{_S}or{_S}before)?|no{_S}later{_S}than|not{_S}later{_S}than){_S}(?P<day>{DATE})",
        day="maturitydate",
    ),
    _told(
        "facility",
        rf"\bfacility{_S}(?:in{_S}an{_S}aggregate{_S}(?:principal{_S})?amount{_S})?"
        rf"(?:of(?:{_S}up{_S}to)?|up{_S}to|not{_S}exceeding){_S}" + SPELLED_MONEY.replace("value", "sum"),
        sum="facilityamount",
    ),
    *(
        _told(
            used,
            rf"\b(?:{verbs})\b{_LATER}{{0,60}}?\b(?:loans?|facility|facilities|proceeds|advances?|borrowed|drawn)"
            rf"(?:{_S}by{_S}it)?,?{_S}(?:(?:only|solely|exclusively){_S})?(?:in{_S}or{_S})?(?:for|towards?|to){_S}"
            rf"(?P<purpose>[^.;()\n]{{6,160}}?)(?=\s{{0,4}}[;()]|\.\s|\.?\Z|,{_S}(?:and|which|as)\b)",
            purpose="purpose",
        )
        for used, verbs in (("us", "use|used|using"), ("appl", "apply|applied"))
    ),
    _told(
        "entered",
        rf"\bentered{_S}into(?:{_S}(?:on|as{_S}of|this|effective|the)){{0,3}}{_S}(?P<day>{DATE})",
        day="agreementdate",
    ),
    _told(
        "surviv",
        rf"\bsurviv(?:e|al){_LATER}{{0,100}}?\bfor{_S}(?:(?:a{_S})?(?:period|term){_S}of{_S})?(?P<time>{PERIOD})",
        time="survivalperiod",
    ),
    _told(
        _inside(110, rf"period{_S}of", rf"term{_S}of"),
        rf"\b(?:services?|agreement|lease|engagement|contract){_LATER}{{0,50}}?\bfor{_S}an?{_S}(?:(?:initial|fixed){_S})?"
        rf"(?:period|term){_S}of{_S}(?P<term>{PERIOD}){_S}(?:from|commencing|beginning|starting)\b",
        term="term",
    ),
    _told(
        "monthly",
        rf"\bmonthly{_S}(?:payment{_S})?instal?lments?{_S}of{_S}(?P<sum>{MONEY})",
        sum="monthlypayment",
    ),
    _told(
        "net",
        rf"\b(?P<terms>net{_S}{PERIOD})",
        terms="paymentterms",
    ),
    _told(
        "confidential",
        rf"confidential{_LATER}{{0,160}}?\band{_S}(?:for{_S})?(?:a{_S}period{_S}of{_S})?(?P<period>{PERIOD}){_S}"
        r"(?:thereafter|after|following)\b",
        period="confidentialityperiod",
    ),
    _told(
        _inside(50, rf"runs?{_S}for", rf"lasts?{_S}for"),
        rf"\b(?:contract|agreement|lease|term|appointment){_S}(?:(?:shall|will|is{_S}to){_S})?(?:runs?|lasts?){_S}for{_S}"
        rf"(?:an?{_S}(?:period|term){_S}of{_S})?(?P<term>{PERIOD})",
        term="term",
    ),
    _told(
        _inside(100, rf"continu(?:es?|ing){_S}for"),
        rf"\b(?:commenc[a-z]{{1,4}}|begins?|starts?|takes?{_S}effect)\b{_LATER}{{0,60}}?\bcontinu(?:es?|ing){_S}for{_S}"
        rf"(?:an?{_S}(?:initial{_S})?(?:period|term){_S}of{_S})?(?P<term>{PERIOD})",
        term="term",
    ),
    _told(
        _inside(50, rf"employed{_S}as", rf"serve{_S}as", rf"work{_S}as"),
        rf"\b(?:executive|employee|you){_S}(?:shall|will|agrees?{_S}to){_S}(?:be{_S}employed|serve|work){_S}as{_S}"
        rf"(?:(?:an?|the|its|our){_S})?(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{_S}(?:of{_S}the|and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    _told(
        _begins("premises", "property"),
        rf"\b(?:premises|property){_S}(?:(?:commonly{_S})?(?:located|situated|known))(?:{_S}at|{_S}as|{_S}in){{1,2}}{_S}"
        rf"(?P<place>[^.;()\n]{{6,120}}?)(?=\s{{0,4}}\(|\.\s|[;\n]|\.?\Z|,{_S}(?:together|consisting|which|for|as)\b)",
        place="premises",
    ),
    _told(
        "employ",
        rf"\b(?:employed|employ{_S}the{_S}employee|employs{_S}the{_S}employee){_S}(?:as|in{_S}the{_S}position{_S}of){_S}"
        rf"(?:(?:an?|the){_S})?(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{_S}(?:and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    _told(
        "position",
        rf"\bposition{_S}of{_S}(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{_S}(?:and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    _told(
        _inside(12, rf"hours{_S}(?:per|a|each){_S}week"),
        rf"(?<!beyond\s)(?<!over\s)(?<!exceed\s)(?<!exceeding\s)(?<!than\s)\b(?P<hours>\d{{1,2}}(?:\.\d{{1,2}})?{_S}hours{_S}(?:per|a|each){_S}week)\b",
        hours="workinghours",
    ),
    _told(
        _begins("entitled", "receive"),
        rf"\b(?:entitled{_S}to|receive){_S}(?P<days>{PERIOD})(?:'s?)?{_S}(?:of{_S})?(?:paid{_S})?(?:annual{_S})?"
        r"(?:holidays?|leave|vacation)\b",
        days="holidayentitlement",
    ),
    _told(
        "first",
        rf"\bfirst{_S}(?P<time>{PERIOD}){_S}of{_LATER}{{0,60}}?\bprobation",
        time="probationperiod",
    ),
    *(
        _told(
            word,
            rf"\b(?:{verbs}){_S}(?P<terms>{within}{PERIOD}{_S}(?:after|of|from|following)"
            rf"(?:{_S}(?:the|an?|each|its|receipt|receiving|date|invoice|of|correct|valid|undisputed))"
            rf"{{0,6}}{_S}(?:receipt|invoices?(?:{_S}date)?|delivery|letter|statement|bill{_S}of{_S}lading(?:{_S}date)?))\b",
            terms="paymentterms",
        )
        for word, verbs, within in (
            (
                _inside(100, rf"within{_S}"),
                rf"payable|paid|pay{_LATER}{{0,80}}?|due",
                rf"within{_S}",
            ),
            ("settle", rf"settle{_LATER}{{0,60}}?", rf"(?:within{_S})?"),
            ("remit", rf"remit{_LATER}{{0,60}}?", rf"(?:within{_S})?"),
        )
    ),
    _told(
        "from",
        rf"\bfrom{_S}(?P<first>{DATE}){_S}(?:to|until|through){_S}(?:and{_S}including{_S})?(?P<last>{DATE})",
        first="startdate",
        last="enddate",
    ),
    _told(
        "commenc",
        rf"\b(?:commences|commencing|commence){_S}on{_S}(?P<first>{DATE})"
        rf"(?:(?:,|{_S}and)?(?:{_S}shall)?{_S}(?:end|ends|ending|expir(?:e|es|ing)|terminat(?:e|es|ing)){_S}on{_S}(?P<last>{DATE}))?",
        first="startdate",
        last="enddate",
    ),
    _told(
        _inside(40, rf"begins?{_S}on", rf"starts?{_S}on"),
        rf"\b(?:employment|term|lease|agreement|services|tenancy|period|work|arrangement|licen[cs]e|permission){_S}(?:(?:will|shall){_S})?"
        rf"(?:begins?|starts?){_S}on{_S}(?P<first>{DATE})"
        rf"(?:(?:,|{_S}and)?(?:{_S}shall)?{_S}(?:end|ends|ending|expir(?:e|es|ing)|terminat(?:e|es|ing)){_S}on{_S}(?P<last>{DATE}))?",
        first="startdate",
        last="enddate",
    ),
    _told(
        _inside(60, rf"effect{_S}for"),
        rf"\b(?:remain|continue|be){_S}in{_S}(?:full{_S})?(?:force{_S}and{_S})?effect{_S}for{_S}"
        rf"(?:(?:an?{_S})?(?:initial{_S})?(?:period|term){_S}of{_S})?(?P<term>{PERIOD})",
        term="term",
    ),
    _told(
        _inside(12, rf"effective{_S}(?:as|on|from)", rf"effect{_S}(?:from|on)"),
        rf"\b(?:effective{_S}(?:as{_S}of|on|from)|with{_S}effect{_S}from|takes?{_S}effect{_S}on){_S}(?P<day>{DATE})",
        day="effectivedate",
    ),
    _told(
        _begins("dt"),
        rf"(?<![^\s])dt\.?{_S}(?P<day>{DATE})(?=[^\S\n]*(?:\n|\Z))",
        day="issuedate",
    ),
    _told(
        _inside(60, "dated"),
        rf"\b(?:no|number|ref)\b[^\n]{{1,40}}?(?:\s{{2}}|\t)dated:?{_S}(?P<day>{DATE})",
        day="issuedate",
    ),
    _told(
        "renew",
        rf"\brenew{_LATER}{{0,80}}?\b(?:successive|additional|further|consecutive|another){_S}"
        rf"(?:(?:periods?|terms?){_S}of{_S}(?P<time>{PERIOD})|(?P<short>{PERIOD})){_S}?(?:{_S}(?:periods?|terms?))?",
        time="renewalperiod",
        short="renewalperiod",
    ),
    _told(
        "assign",
        rf"\bassigns?{_S}(?:to{_S}the{_S}(?:project|services|work){_S})?(?P<first>{_PERSON})"
        rf"(?:,{_S}(?P<second>{_PERSON}))?(?:,?{_S}and{_S}(?P<last>{_PERSON}))?",
        first="keypersonnel",
        second="keypersonnel",
        last="keypersonnel",
    ),
    _told(
        _inside(40, rf"known{_S}as"),
        rf"\b(?:project|programme|program|works){_S}(?:(?:to{_S}be|is|are){_S})?known{_S}as{_S}(?:the{_S})?(?P<name>[^.;()\n\"]{{3,80}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|\Z)",
        name="projectname",
    ),
    _told(
        "place",
        rf"\bplace{_S}of{_S}work{_S}(?:is|will{_S}be|shall{_S}be){_S}(?:at{_S})?(?P<place>[^.;()\n]{{3,100}}?)"
        r"(?=\s{0,4}\(|\.\s|[;\n]|\.?\Z)",
        place="placeofwork",
    ),
    *(
        _told(
            what,
            rf"\b{what}\s{{0,2}}(?:no\.?|number|nr\.?|#)[^\S\n]{{1,3}}(?P<code>(?=[a-z/-]{{0,12}}\d)[a-z\d][a-z\d/-]{{1,30}})"
            r"(?=\s|[,.;)]|\Z)",
            code=label,
        )
        for what, label in (
            ("invoice", "invoicenumber"),
            ("order", "ordernumber"),
            ("contract", "contractnumber"),
            ("account", "accountnumber"),
        )
    ),
)

#: Between a name and the verb that says its value: the term *of this agreement* is two years.
_CARRIED = (
    r"(?:of|for|under|payable|due|hereunder|this|the|these|such|agreement|lease|contract|loan|note"
    r"|premises|property|services?|employment|tenancy|licen[cs]e|order|work|products?|goods"
    r"|project|tenant|landlord|customer|client|buyer|seller|borrower|lender|employee|per|month"
    r"|by|to|from|year|annum|monthly|annual)"
)
_VERB = (
    rf"(?:is|are|was|means|will{_S}be|shall{_S}be|shall{_S}equal|equals|amounts{_S}to|of|in{_S}the{_S}amount{_S}of"
    rf"|in{_S}the{_S}sum{_S}of|at|totall?ing)"
)
_SUM = (
    rf"(?:(?:(?:fixed|set|agreed|currently){_S})?(?:(?:at|equal{_S}to|for){_S})?(?:in{_S})?"
    rf"(?:(?:an?|the){_S}(?:(?:total|initial|fixed){_S})?(?:period|term|sum|amount|total|rate){_S}of{_S})?)"
)
_VALUE = rf"(?:{PERCENT}|{DATE}|{PERIOD}|{SPELLED_MONEY})"
_VALUE_BEFORE = rf"(?<![a-z\d.,$/-])(?P<whole>{PERCENT}|{DATE}|{PERIOD}|{MONEY})"
#: Behind a name, up to the value.
_says = re.compile(
    rf"(?:\"|'|\s{{0,2}}\([^()\n]{{1,40}}\))?(?:{_S}{_CARRIED}){{0,6}}?{_S}{_VERB}{_S}{_SUM}"
    rf"(?P<whole>{_VALUE})"
)
#: Characters of a statement behind its words.
_LONGEST_BEHIND = 300
#: Before a name.
_as = re.compile(
    rf"{_VALUE_BEFORE}\)?(?:{_S}per{_S}[a-z]{{3,8}})?{_S}as{_S}(?:an?{_S}|the{_S})?(?:[a-z]{{3,14}}{_S}){{0,2}}\Z"
)
_defined = re.compile(rf"{_VALUE_BEFORE}\)?,?\s{{0,4}}\((?:[a-z]{{2,10}}\s){{0,3}}\"\Z")
_LONGEST_BEFORE = 100
#: Behind the name of a number or a code.
_numbers = re.compile(r"\b(?:number|no|id|code)\Z")
_code = re.compile(
    rf"(?:{_S}is)?\s{{1,3}}(?P<whole>(?=[a-z/-]{{0,12}}\d)[a-z\d][a-z\d/-]{{2,30}})(?=[\s,.;)]|\Z)"
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


def find_english(folded: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and label of what sentences say by their verbs."""
    for told in _TOLD:
        for match in _matches(told, folded):
            for group, label in told.labels.items():
                if match[group] is not None:
                    yield *match.span(group), label


def _matches(told: _Told, folded: str) -> Iterator[re.Match[str]]:
    """Of all of a text; it is searched near the words alone."""
    places = told.words.places(folded)
    n_before = told.words.n_before
    if n_before:
        return matches_near(told.pattern, folded, places, n_before, _LONGEST_BEHIND)
    return matches_at(told.pattern, folded, places)


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
    return re.compile(rf"{_S.join([begins, *others])}s?(?![a-z\d-])")
