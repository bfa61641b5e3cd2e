"""Statements of English loans, licences, shipments, deals and contracts of employment.

What is lent, for what, and when it is due; where a licence holds and for how long; when goods were
shipped, and when a deal closes; whom somebody reports to.
"""

from __future__ import annotations

from featpipe.extraction.statements.english_words import (
    DATE,
    LATER,
    PERIOD,
    SPELLED_MONEY,
    S,
    begins,
    inside,
    told,
)

DEALS = (
    told(
        begins("shipped", "dispatched", "despatched"),
        rf"\b(?:shipped|dispatched|despatched)(?:{S}on{S}board)?(?:{S}on)?{S}(?P<day>{DATE})",
        day="shippeddate",
    ),
    told(
        inside(120, "territory"),
        rf"\b(?:in|for|within|throughout){S}(?:the{S})?(?P<area>[a-z][a-z,\s]{{3,80}}?)"
        rf"\s{{0,4}}\((?:the{S})?\"territory\"\)",
        area="territory",
    ),
    told(
        begins("distributor", "licensee", "agent", "reseller"),
        rf"\b(?:distributor|licensee|agent|reseller){S}(?:for|in|throughout|within){S}(?:the{S})?"
        rf"(?P<area>[a-z][a-z\s]{{3,60}}?)(?=\s{{0,4}}[(.;]|,{S}(?:and|which|but|for)\b)",
        area="territory",
    ),
    told(
        begins("continue", rf"runs?{S}for", rf"lasts?{S}for", rf"remains?{S}in{S}force"),
        rf"\b(?:continues?|runs?|lasts?|remains?{S}in{S}force){S}for{S}(?:an?{S})?(?:(?:initial|fixed|minimum){S})?"
        rf"(?:(?:period|term){S}of{S})?(?P<term>{PERIOD})",
        term="term",
    ),
    told(
        begins(rf"comes?{S}into", rf"enters?{S}into"),
        rf"\b(?:comes?|enters?){S}into{S}(?:force|effect){S}on{S}(?P<day>{DATE})",
        day="effectivedate",
    ),
    told(
        inside(
            60,
            rf"dated{S}",
            rf"executed{S}(?:at|in|on|this|as)\b",
            rf"made{S}(?:on|this|as|at)\b",
        ),
        rf"\bagreement,?{S}(?:(?:is|was|shall{S}be){S})?(?:dated|made|executed)(?:{S}(?:at|in){S}[a-z]{{3,20}})?"
        rf"(?:{S}(?:and{S}entered{S}into|on|as{S}of|this|the)){{0,3}}{S}(?P<day>{DATE})",
        day="agreementdate",
    ),
    told(
        "report",
        rf"\breports?{S}(?:directly{S})?to{S}(?P<boss>(?!the\b|you\b|us\b|your\b|our\b)[a-z][a-z.'-]*"
        rf"(?:[ ](?!who\b|and\b|or\b)[a-z][a-z.'/-]*){{1,3}}?)(?=[,;.(]|{S}(?:who|and|or)\b)",
        boss="linemanager",
    ),
    told(
        inside(60, "first day"),
        rf"\bfirst{S}day(?:{S}of{S}(?:work|employment))?{S}(?:will{S}be|is|shall{S}be){S}(?P<day>{DATE})",
        day="startdate",
    ),
    told(
        inside(120, "expected", "anticipated", "scheduled"),
        rf"\b(?:close|closing|completed?|completion)\b{LATER}{{0,50}}?{S}(?:on{S}or{S}(?:around|about|before)|on|by|in){S}"
        rf"(?:the{S})?(?P<day>{DATE}|(?:first|second|third|fourth){S}quarter{S}of{S}\d{{4}}|q[1-4]{S}\d{{4}})",
        day="expectedclosing",
    ),
    told(
        "repa",
        rf"\b(?:repaid|repayable|repay{LATER}{{0,80}}?)(?:,?{S}in{S}full,?)?{S}"
        rf"(?:by|on(?:{S}or{S}before)?|no{S}later{S}than|not{S}later{S}than){S}(?P<day>{DATE})",
        day="maturitydate",
    ),
    told(
        "facility",
        rf"\bfacility{S}(?:in{S}an{S}aggregate{S}(?:principal{S})?amount{S})?"
        rf"(?:of(?:{S}up{S}to)?|up{S}to|not{S}exceeding){S}"
        + SPELLED_MONEY.replace("value", "sum"),
        sum="facilityamount",
    ),
    told(
        inside(
            100,
            *(
                rf"{lent}(?:{S}by{S}it)?,?{S}(?:only|solely|exclusively|in{S}or|for|towards?|to)\b"
                for lent in (
                    "loans?",
                    "facilit(?:y|ies)",
                    "proceeds",
                    "advances?",
                    "borrowed",
                    "drawn",
                )
            ),
        ),
        rf"\b(?:use|used|using|apply|applied)\b{LATER}{{0,60}}?\b(?:loans?|facility|facilities|proceeds|advances?|borrowed|drawn)"
        rf"(?:{S}by{S}it)?,?{S}(?:(?:only|solely|exclusively){S})?(?:in{S}or{S})?(?:for|towards?|to){S}"
        rf"(?P<purpose>[^.;()\n]{{6,160}}?)(?=\s{{0,4}}[;()]|\.\s|\.?\Z|,{S}(?:and|which|as)\b)",
        purpose="purpose",
    ),
)
