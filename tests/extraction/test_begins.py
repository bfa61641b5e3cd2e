"""Places where values may begin: patterns that are tried there alone find all that they find."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featpipe.extraction.scoring import brackets
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.values import amounts, codes, counts, periods
from featpipe.extraction.values.begins import money_places, numeral_places, phone_places
from featpipe.extraction.values.text import (
    fold_width,
    line_starts,
    matches_at,
    matches_near,
    places_of,
)
from featpipe.extraction.values.values import _phone, find_periods, find_values
from featpipe.store.sorted_values import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

PIECES = (
    *"0123456789 .,:-+/()\n%年月日元万亿半一二三十百千负x€$¥", "￥", "人民币", "USD", "US$", "RMB ",
    "EUR ", "u.s. dollars", "港元", "百分之", "percent", "bps", "个月", "工作日", "three ",
    "twenty-", "years", "days", "12", "2023", "1,234", "12:30",
    "6222 0212 3456 7890", "0016 6993 5104", "沪A12345", "借字第", "号", "(2023)",
    "HT-", "甲", "ab", "\u0663", "\U0001d7dd",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join).map(fold_width)


def spans(matches: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    return [match.span() for match in matches]


@given(texts)
def test_amounts_begin_at_these_places_alone(text: str) -> None:
    found = matches_at(amounts._money, text, money_places(text, amounts._LENGTHS))
    assert spans(found) == spans(amounts._money.finditer(text))


@pytest.mark.parametrize("pattern", [counts._number, counts._percent])
@given(text=texts)
def test_counts_and_shares_begin_at_numerals(pattern: re.Pattern[str], text: str) -> None:
    assert spans(matches_at(pattern, text, numeral_places(text))) == spans(pattern.finditer(text))


@given(texts)
def test_periods_begin_at_numerals_and_at_words_of_numbers(text: str) -> None:
    places = sorted({*numeral_places(text), *places_of(periods._WORDS, text)})
    assert spans(matches_at(periods._period, text, places)) == spans(periods._period.finditer(text))


@given(texts)
def test_cuts_are_those_of_patterns_tried_everywhere(text: str) -> None:
    found = list(codes.find_codes(text))
    plain = chain(codes._thousands.finditer(text), codes._clock.finditer(text))
    expected = np.zeros(len(text) + 1, bool)
    for start, end in (*found, *spans(plain)):
        expected[start + 1 : end] = True
    assert codes.cut_places(text, found).tolist() == expected.tolist()


@given(texts)
def test_cards_and_lettered_codes_are_found_wherever_they_stand(text: str) -> None:
    numbered = codes._numbering.sub(r"\1 ", text)
    cards = (m for m in codes._grouped.finditer(numbered) if not codes._years.fullmatch(m[0]))
    wanted = spans((*cards, *codes._lettered.finditer(numbered)))
    assert set(wanted) <= set(codes.find_codes(text))


@given(texts)
def test_periods_beside_known_dates_are_those_of_the_text(text: str) -> None:
    beside = find_periods(text, [(date.start, date.end) for date in find_values(text, "date")])
    assert list(beside) == list(find_values(text, "period"))


def test_an_account_s_loss_is_found_behind_its_sign() -> None:
    [amount] = amounts.find_money("net loss $ (1,234.50) thousand")
    assert (amount.key, amount.unit) == ("-1234500", "USD")


def test_three_groups_of_digits_show_that_a_point_parts_groups() -> None:
    keys = [amount.key for amount in amounts.find_money("€1.234.567,89 and €1.234")]
    assert keys == ["1234567.89", "1234"]


@given(st.lists(st.integers(-3, 3)))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    own = np.array(values, np.int64)
    assert distinct(own).tolist() == np.unique(own).tolist()


def test_a_bracket_behind_a_mark_belongs_to_no_word() -> None:
    features = PageFeatures(page_of_text("甲公司(上海)分公司,(北京)乙"))
    marks = brackets.BracketMarks.of(features.folded, features.tokens)
    starts = features.tokens.start[np.flatnonzero(marks.goes_on)].tolist()
    assert [features.folded[at : at + 3] for at in starts] == ["(上海"]


@given(st.text("01389(+)-. *×x转a\u0663", max_size=40))
def test_telephone_numbers_begin_where_digits_do(text: str) -> None:
    assert spans(matches_at(_phone, text, phone_places(text))) == spans(_phone.finditer(text))


@given(st.text("no. ab\n1", max_size=60))
def test_what_is_looked_for_near_words_is_all_that_there_is(text: str) -> None:
    pattern = re.compile(r"[ab]{1,3}\bno|\bno\.1{1,2}|a no(?!\n)")
    near = matches_near(pattern, text, places_of(("no",), text), 4, 6)
    assert spans(near) == spans(pattern.finditer(text))


@given(st.text("ab\n ", max_size=60))
def test_lines_begin_where_a_pattern_for_it_does(text: str) -> None:
    assert line_starts(text) == [one.start() for one in re.finditer("(?m)^", text)]
