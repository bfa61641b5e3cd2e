"""Statements of English agreements: sentences that say a value without a label.

Whose law governs, when a lease begins and ends, how long notice is, what the rent comes to: told by
their verbs, whatever a field is called (*governed by the laws of* the State of Ohio). The words are
those in general use, written down by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.extraction.statements.english_deals import DEALS
from featpipe.extraction.statements.english_words import (
    DATE,
    LATER,
    MONEY,
    PERCENT,
    PERIOD,
    SPELLED_MONEY,
    S,
    begins,
    inside,
    matches_of,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where a name of a place ends.
_PLACE_ENDS = (
    rf"(?=\s{{0,4}}(?:[,.;()\n]|\Z)|{S}(?:without|excluding|except|applicable|as|shall|will|in|with|that"
    r"|which|govern|to|have|has|regardless|for|irrespective|and\s{1,4}(?!wales|northern|tobago|herzegovina))\b)"
)
_PLACE = r"[a-z][a-z\s]{2,50}?"
_BORDER = (
    r"(?:at{S}least|not{S}less{S}than|no{S}(?:less|fewer){S}than|a{S}minimum{S}of|giving)".replace(
        "{S}", S
    )
)
_GIVEN = rf"(?:[a-z]{{2,12}}{S}){{0,3}}?(?:{_BORDER}{S})?"
#: A person's name behind a title, which sentences in small letters are known by.
_PERSON = (
    rf"(?:dr|mrs?|ms|miss|prof(?:essor)?)\.?{S}[a-z][a-z'-]*(?:\.?{S}[a-z][a-z'-]+){{1,2}}?"
    rf"(?=\s{{0,4}}[,.;(]|{S}(?:and|to|as|for|or|who|shall|will)\b)"
)
#: Laws that are of no place.
_A_LAW = (
    r"(?!(?:applicable|such|the|that|this|any|no|mandatory|local|federal|state|case|common|which)\b)"
    r"[a-z]{3,20}"
)


_TOLD = (
    told(
        "governed",
        rf"governed{S}(?:(?:in{S}all{S}respects|exclusively|solely){S})?by,?{S}"
        rf"(?:and{S}(?:shall{S}be{S})?(?:construed|interpreted|enforced)[^.;]{{0,60}}?{S}(?:with|under|by),?{S})?"
        rf"(?:the{S})?(?:(?:internal|substantive|local){S})?"
        rf"(?:laws?{S}(?:of|in{S}force{S}in){S}(?:the{S})?(?P<law>{_PLACE}){_PLACE_ENDS}"
        rf"|(?P<short>{_A_LAW}{S}law)\b)",
        law="governinglaw",
        short="governinglaw",
    ),
    told(
        "construed",
        rf"\b(?<!and )construed{S}(?:according{S}to|in{S}accordance{S}with|under){S}"
        rf"(?:the{S})?laws?{S}of{S}(?:the{S})?(?P<law>{_PLACE}){_PLACE_ENDS}",
        law="governinglaw",
    ),
    told(
        "subject",
        rf"\bsubject{S}to{S}(?P<law>{_A_LAW}{S}law)\b",
        law="governinglaw",
    ),
    told(
        inside(24, "law"),
        rf"\b(?P<law>{_A_LAW}{S}law){S}(?:applies|governs|(?:shall|will){S}(?:apply|govern)|is{S}applicable)\b",
        law="governinglaw",
    ),
    told(
        inside(70, rf"place{S}of{S}jurisdiction"),
        rf"\bplace{S}of{S}jurisdiction{S}(?:is|shall{S}be|will{S}be){S}(?P<court>{_PLACE}){_PLACE_ENDS}"
        rf"|\b(?P<before>[a-z]{{3,20}}){S}(?:is|shall{S}be){S}the{S}(?:exclusive{S})?place{S}of{S}jurisdiction\b",
        court="jurisdiction",
        before="jurisdiction",
    ),
    told(
        "law",
        rf"laws?{S}of{S}(?:the{S})?(?P<law>{_PLACE}){S}(?:shall{S}|will{S})?(?:governs?|apply|applies)\b",
        law="governinglaw",
    ),
    told(
        "jurisdiction",
        rf"jurisdiction{S}of{S}(?:the{S})?(?P<court>(?:[a-z]{{2,12}}{S}){{0,4}}?courts?{S}"
        rf"(?:(?:located|sitting){S})?(?:of|in|for){S}[a-z][a-z\s]{{2,50}}?(?:,{S}[a-z]{{4,20}})?)"
        rf"(?=\s{{0,4}}[,.;(]|{S}(?:for|to|and{S}(?!wales)|in|over|with)\b|\s*\Z)",
        court="jurisdiction",
    ),
    told(
        "courts",
        rf"(?P<court>courts{S}(?:of|in){S}(?:the{S})?[a-z][a-z\s]{{2,50}}?){S}(?:shall{S}|will{S})?have{S}"
        rf"(?:(?:non-)?exclusive{S})?jurisdiction",
        court="jurisdiction",
    ),
    told(
        inside(360, "notice"),
        rf"\b(?:terminat|cancel|end{S}(?:this|the|it)|to{S}an{S}end|resign|either{S}party){LATER}{{0,140}}?\b(?:upon|on|by|with|giv(?:e|es|ing)){S}"
        rf"{_GIVEN}(?P<notice>{PERIOD})(?:'s?)?{S}(?:(?:prior|advance|written|and){S}){{0,3}}notice",
        notice="noticeperiod",
    ),
    told(
        "confidential",
        rf"confidential{LATER}{{0,160}}?\bfor{S}(?:(?:a{S})?(?:further{S}|additional{S})?(?:period|term){S}of{S})?"
        rf"(?P<period>{PERIOD})",
        period="confidentialityperiod",
    ),
    told(
        "liab",
        rf"\b(?:liability|liable){LATER}{{0,160}}?\b(?:exceed|limited{S}to|capped{S}at)"
        rf"(?:{S}(?:an?|the|total|aggregate|amount|sum|of)){{0,4}}{S}(?P<cap>{MONEY})",
        cap="liabilitycap",
    ),
    told(
        "interest",
        rf"(?<!default\s)(?<!late\s)(?<!penalty\s)\binterest{LATER}{{0,60}}?(?:\brate(?:{S}of|{S}equal{S}to)|\bat){S}(?P<rate>{PERCENT})",
        rate="interestrate",
    ),
    told(
        inside(140, "interest"),
        rf"\b(?:not{S}paid|unpaid|overdue|late|outstanding|arrears)\b{LATER}{{0,80}}?\b(?:bears?|accrues?|attracts?|carry|carries"
        rf"|incurs?|pay){S}(?:late{S})?interest{S}(?:(?:on{S}[a-z\s]{{2,30}}?{S})?at{S}(?:(?:the|a){S})?(?:rate{S}of{S})?)"
        rf"(?P<rate>{PERCENT}(?:{S}(?:per|an?|each){S}(?:annum|year|month|week|day))?"
        rf"(?:{S}(?:above|over){S}[a-z][a-z&\s]{{2,60}}?(?=\s{{0,4}}[,.;(]|\Z|{S}(?:from|until|on)\b))?)",
        rate="latepaymentinterest",
    ),
    told(
        "principal",
        rf"\bprincipal{S}(?:amount|sum|balance)(?:{S}of{S}up{S}to|{S}of){S}"
        + SPELLED_MONEY.replace("value", "sum"),
        sum="principalamount",
    ),
    told(
        inside(100, rf"due{S}(?:in|on)", rf"payable{S}(?:in|on)"),
        rf"\b(?:principal|balance|loan|note){LATER}{{0,80}}?\b(?:due|payable)(?:{S}in{S}full)?{S}on"
        rf"(?:{S}or{S}before)?{S}(?P<day>{DATE})",
        day="maturitydate",
    ),
    told(
        "entered",
        rf"\bentered{S}into(?:{S}(?:on|as{S}of|this|effective|the)){{0,3}}{S}(?P<day>{DATE})",
        day="agreementdate",
    ),
    told(
        "surviv",
        rf"\bsurviv(?:e|al){LATER}{{0,100}}?\bfor{S}(?:(?:a{S})?(?:period|term){S}of{S})?(?P<time>{PERIOD})",
        time="survivalperiod",
    ),
    told(
        inside(110, rf"period{S}of", rf"term{S}of"),
        rf"\b(?:services?|agreement|lease|engagement|contract){LATER}{{0,50}}?\bfor{S}an?{S}(?:(?:initial|fixed){S})?"
        rf"(?:period|term){S}of{S}(?P<term>{PERIOD}){S}(?:from|commencing|beginning|starting)\b",
        term="term",
    ),
    told(
        "monthly",
        rf"\bmonthly{S}(?:payment{S})?instal?lments?{S}of{S}(?P<sum>{MONEY})",
        sum="monthlypayment",
    ),
    told(
        "net",
        rf"\b(?P<terms>net{S}{PERIOD})",
        terms="paymentterms",
    ),
    told(
        "confidential",
        rf"confidential{LATER}{{0,160}}?\band{S}(?:for{S})?(?:a{S}period{S}of{S})?(?P<period>{PERIOD}){S}"
        r"(?:thereafter|after|following)\b",
        period="confidentialityperiod",
    ),
    told(
        inside(50, rf"runs?{S}for", rf"lasts?{S}for"),
        rf"\b(?:contract|agreement|lease|term|appointment){S}(?:(?:shall|will|is{S}to){S})?(?:runs?|lasts?){S}for{S}"
        rf"(?:an?{S}(?:period|term){S}of{S})?(?P<term>{PERIOD})",
        term="term",
    ),
    told(
        inside(100, rf"continu(?:es?|ing){S}for"),
        rf"\b(?:commenc[a-z]{{1,4}}|begins?|starts?|takes?{S}effect)\b{LATER}{{0,60}}?\bcontinu(?:es?|ing){S}for{S}"
        rf"(?:an?{S}(?:initial{S})?(?:period|term){S}of{S})?(?P<term>{PERIOD})",
        term="term",
    ),
    told(
        inside(50, rf"employed{S}as", rf"serve{S}as", rf"work{S}as"),
        rf"\b(?:executive|employee|you){S}(?:shall|will|agrees?{S}to){S}(?:be{S}employed|serve|work){S}as{S}"
        rf"(?:(?:an?|the|its|our){S})?(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{S}(?:of{S}the|and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    told(
        begins("premises", "property"),
        rf"\b(?:premises|property){S}(?:(?:commonly{S})?(?:located|situated|known))(?:{S}at|{S}as|{S}in){{1,2}}{S}"
        rf"(?P<place>[^.;()\n]{{6,120}}?)(?=\s{{0,4}}\(|\.\s|[;\n]|\.?\Z|,{S}(?:together|consisting|which|for|as)\b)",
        place="premises",
    ),
    told(
        "employ",
        rf"\b(?:employed|employ{S}the{S}employee|employs{S}the{S}employee){S}(?:as|in{S}the{S}position{S}of){S}"
        rf"(?:(?:an?|the){S})?(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{S}(?:and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    told(
        "position",
        rf"\bposition{S}of{S}(?P<post>[a-z][a-z\s&/-]{{2,50}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|{S}(?:and|reporting|with|at|based|in|on|by|from|for)\b)",
        post="position",
    ),
    told(
        inside(12, rf"hours{S}(?:per|a|each){S}week"),
        rf"(?<!beyond\s)(?<!over\s)(?<!exceed\s)(?<!exceeding\s)(?<!than\s)\b(?P<hours>\d{{1,2}}(?:\.\d{{1,2}})?{S}hours{S}(?:per|a|each){S}week)\b",
        hours="workinghours",
    ),
    told(
        begins("entitled", "receive"),
        rf"\b(?:entitled{S}to|receive){S}(?P<days>{PERIOD})(?:'s?)?{S}(?:of{S})?(?:paid{S})?(?:annual{S})?"
        r"(?:holidays?|leave|vacation)\b",
        days="holidayentitlement",
    ),
    told(
        "first",
        rf"\bfirst{S}(?P<time>{PERIOD}){S}of{LATER}{{0,60}}?\bprobation",
        time="probationperiod",
    ),
    *(
        told(
            word,
            rf"\b(?:{verbs}){S}(?P<terms>{within}{PERIOD}{S}(?:after|of|from|following)"
            rf"(?:{S}(?:the|an?|each|its|receipt|receiving|date|invoice|of|correct|valid|undisputed))"
            rf"{{0,6}}{S}(?:receipt|invoices?(?:{S}date)?|delivery|letter|statement|bill{S}of{S}lading(?:{S}date)?))\b",
            terms="paymentterms",
        )
        for word, verbs, within in (
            (
                inside(100, rf"within{S}"),
                rf"payable|paid|pay{LATER}{{0,80}}?|due",
                rf"within{S}",
            ),
            ("settle", rf"settle{LATER}{{0,60}}?", rf"(?:within{S})?"),
            ("remit", rf"remit{LATER}{{0,60}}?", rf"(?:within{S})?"),
        )
    ),
    told(
        "from",
        rf"\bfrom{S}(?P<first>{DATE}){S}(?:to|until|through){S}(?:and{S}including{S})?(?P<last>{DATE})",
        first="startdate",
        last="enddate",
    ),
    told(
        "commenc",
        rf"\b(?:commences|commencing|commence){S}on{S}(?P<first>{DATE})"
        rf"(?:(?:,|{S}and)?(?:{S}shall)?{S}(?:end|ends|ending|expir(?:e|es|ing)|terminat(?:e|es|ing)){S}on{S}(?P<last>{DATE}))?",
        first="startdate",
        last="enddate",
    ),
    told(
        inside(40, rf"begins?{S}on", rf"starts?{S}on"),
        rf"\b(?:employment|term|lease|agreement|services|tenancy|period|work|arrangement|licen[cs]e|permission){S}(?:(?:will|shall){S})?"
        rf"(?:begins?|starts?){S}on{S}(?P<first>{DATE})"
        rf"(?:(?:,|{S}and)?(?:{S}shall)?{S}(?:end|ends|ending|expir(?:e|es|ing)|terminat(?:e|es|ing)){S}on{S}(?P<last>{DATE}))?",
        first="startdate",
        last="enddate",
    ),
    told(
        inside(60, rf"effect{S}for"),
        rf"\b(?:remain|continue|be){S}in{S}(?:full{S})?(?:force{S}and{S})?effect{S}for{S}"
        rf"(?:(?:an?{S})?(?:initial{S})?(?:period|term){S}of{S})?(?P<term>{PERIOD})",
        term="term",
    ),
    told(
        inside(12, rf"effective{S}(?:as|on|from)", rf"effect{S}(?:from|on)"),
        rf"\b(?:effective{S}(?:as{S}of|on|from)|with{S}effect{S}from|takes?{S}effect{S}on){S}(?P<day>{DATE})",
        day="effectivedate",
    ),
    told(
        begins("dt"),
        rf"(?<![^\s])dt\.?{S}(?P<day>{DATE})(?=[^\S\n]*(?:\n|\Z))",
        day="issuedate",
    ),
    told(
        inside(60, "dated"),
        rf"\b(?:no|number|ref)\b[^\n]{{1,40}}?(?:\s{{2}}|\t)dated:?{S}(?P<day>{DATE})",
        day="issuedate",
    ),
    told(
        "renew",
        rf"\brenew{LATER}{{0,80}}?\b(?:successive|additional|further|consecutive|another){S}"
        rf"(?:(?:periods?|terms?){S}of{S}(?P<time>{PERIOD})|(?P<short>{PERIOD})){S}?(?:{S}(?:periods?|terms?))?",
        time="renewalperiod",
        short="renewalperiod",
    ),
    told(
        "assign",
        rf"\bassigns?{S}(?:to{S}the{S}(?:project|services|work){S})?(?P<first>{_PERSON})"
        rf"(?:,{S}(?P<second>{_PERSON}))?(?:,?{S}and{S}(?P<last>{_PERSON}))?",
        first="keypersonnel",
        second="keypersonnel",
        last="keypersonnel",
    ),
    told(
        inside(40, rf"known{S}as"),
        rf"\b(?:project|programme|program|works){S}(?:(?:to{S}be|is|are){S})?known{S}as{S}(?:the{S})?(?P<name>[^.;()\n\"]{{3,80}}?)"
        rf"(?=\s{{0,4}}[,.;(\n]|\Z)",
        name="projectname",
    ),
    told(
        "place",
        rf"\bplace{S}of{S}work{S}(?:is|will{S}be|shall{S}be){S}(?:at{S})?(?P<place>[^.;()\n]{{3,100}}?)"
        r"(?=\s{0,4}\(|\.\s|[;\n]|\.?\Z)",
        place="placeofwork",
    ),
    *(
        told(
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


def find_english(folded: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and label of what sentences say by their verbs."""
    for one in (*_TOLD, *DEALS):
        for match in matches_of(one, folded):
            for group, label in one.labels.items():
                if match[group] is not None:
                    yield *match.span(group), label
