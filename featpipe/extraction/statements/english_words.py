"""Patterns of values in English sentences, for text after folding: amounts, shares, dates, periods.

They are bounded in length, so that a line of 300,000 of anything is read once.
"""

from __future__ import annotations

from featpipe.extraction.values.dates import MONTH_NAMES

_MONTH = rf"(?:{MONTH_NAMES})\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
DATE = (
    rf"(?:{_DAY}\s{{1,4}}(?:day\s{{1,4}}of\s{{1,4}})?{_MONTH},?\s{{1,4}}\d{{4}}"
    rf"|{_MONTH}\s{{1,4}}{_DAY},?\s{{1,4}}\d{{4}}|\d{{1,2}}-{_MONTH}-\d{{4}}"
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
