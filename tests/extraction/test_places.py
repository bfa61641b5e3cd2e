"""A pattern that is tried at some places alone finds what it finds in the whole text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from featpipe.extraction.scoring import context
from featpipe.extraction.values import codes, dates
from featpipe.extraction.values.text import fold_width

PIECES = (
    *"-/. \n_第号京借年月日²٣(", "2023", "12", "8", "20230512", "(2019)", "[2020]", "ab", "jan",
    "may 5", "5th of march", "st", "inc", "l.p", "co", "company's", "ltd", "公司", "rm", "1.",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join).map(fold_width)


@given(text=TEXTS)
@settings(deadline=None, max_examples=300)
def test_dates(text: str) -> None:
    patterns = (dates._ordered, dates._english, dates._day_first, dates._packed)
    if "年" in text:
        patterns = (dates._chinese, *patterns)
    whole = [(match.re, match.span()) for one in patterns for match in one.finditer(text)]
    assert [(match.re, match.span()) for match in dates._matches(text)] == whole


@given(text=TEXTS)
@settings(deadline=None, max_examples=300)
def test_codes(text: str) -> None:
    numbered = codes._numbering.sub(r"\1 ", text)
    whole = {match.span() for match in codes._joined.finditer(numbered)}
    runs = codes._runs_with_digits(numbered)
    found = {m.span() for a, b in runs for m in codes._joined.finditer(numbered, a, b)}
    assert found <= whole
    # What is left out holds digits alone, or none.
    assert not any(codes._mixed.match(numbered[a:b]) for a, b in whole - found)
    years = [match.span() for match in codes.of_year.finditer(numbered)]
    spans = list(codes.find_codes(text))
    assert spans[len(spans) - len(years) :] == years


@given(text=TEXTS)
@settings(deadline=None, max_examples=300)
def test_ends_of_names_of_organisations(text: str) -> None:
    patterns = (context._organisation_end, context._company_end)
    ends = sorted({match.end() for one in patterns for match in one.finditer(text)})
    assert sorted(set(context._organisation_ends(text).tolist())) == ends
