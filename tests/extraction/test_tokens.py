"""Tables by character give what looking at each character in turn gives."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.candidates import Candidates
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_names import name_columns
from featpipe.extraction.scoring.page import page_of_text
from featpipe.extraction.scoring.tokens import hash_of
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.values.text import compact, fold, fold_width

TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\n\t]|\S")
#: Letters, digits of several kinds, all sorts of marks and blanks, characters that fold to several.
ALPHABET = "abZ'’ 12①②⑴٣\t\n。:：,，公司甲方()《》\"-\u00a0\u3000\x00\U0001f600㎡…İﬁ"
TEXTS = st.text(st.sampled_from(ALPHABET), max_size=60)


@given(text=TEXTS)
@settings(deadline=None)
def test_tokens_are_the_matches_of_the_pattern(text: str) -> None:
    tokens = features_of(text).tokens
    spans = [match.span() for match in TOKEN.finditer(fold_width(text))]
    assert list(zip(tokens.start.tolist(), tokens.end.tolist(), strict=True)) == spans
    words = [fold_width(text)[a:b] for a, b in spans]
    codes = [
        hash_of(f"digits {min(len(word), 9)}" if word[0].isdigit() else word) for word in words
    ]
    assert tokens.code.tolist() == codes
    assert tokens.is_mark.tolist() == [not word[0].isalnum() for word in words]
    assert tokens.is_latin.tolist() == ["a" <= word[0] <= "z" for word in words]
    assert tokens.is_capital.tolist() == [text[a].isupper() for a, _ in spans]
    assert tokens.line.tolist() == np.cumsum([word == "\n" for word in words]).tolist()


@given(text=st.one_of(TEXTS, st.text(max_size=60)))
@settings(deadline=None)
def test_folding_a_long_text_is_folding_its_parts(text: str) -> None:
    long = text * 5 + "x" * 200
    assert fold_width(long) == fold_width(text) * 5 + "x" * 200
    whole = compact(long)
    assert whole.text == fold(text) * 5 + "x" * 200
    for at in range(0, len(whole.text), 7):
        place = int(whole.places[at])
        assert whole.text[at] in fold(long[place])


@pytest.mark.parametrize(
    "text", ["甲方：" + " \n" * 30_000, "甲方：\n乙\n" * 12_000, " \n" * 30_000]
)
def test_the_time_that_labels_take_is_by_the_length_of_the_text(text: str) -> None:
    features = features_of(text)
    start = time.process_time()
    assert len(features.tokens)
    # Half a second at most; by the square of the number of lines it is ten and more.
    assert time.process_time() - start < 4


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("甲方：长沙公司，乙方无。另行", ["", "", *["甲方"] * 9, "", "", ""]),
        ("a：b：c", ["", "a", "a", "b", "b"]),
        ("（一）价款：五万元", [*[""] * 5, *["价款"] * 4]),
    ],
)
def test_a_label_lasts_to_the_next_mark(text: str, labels: list[str]) -> None:
    tokens = features_of(text).tokens
    assert [tokens.label_text.get(label, "") for label in tokens.label.tolist()] == labels


def test_a_table_header_is_a_label_where_there_is_no_other() -> None:
    from dataclasses import replace

    page = replace(page_of_text("张三，姓名：李四"), headers=(LabelledSpan(0, 8, "股东Ａ"),))
    tokens = PageFeatures(page).tokens
    assert [tokens.label_text[label] for label in tokens.label.tolist()] == [
        *["股东a"] * 5, *["姓名"] * 3
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "label"),
    [("Unit Price", "unitprice"), ("甲　方：", "甲方"), ("金额(元):", "金额(元)")],
)
def test_a_table_header_is_the_label_that_stands_before_a_colon(cell: str, label: str) -> None:
    from dataclasses import replace

    page = replace(page_of_text("12.50"), headers=(LabelledSpan(0, 5, cell),))
    assert set(PageFeatures(page).tokens.label_text.values()) == {label}
    columns = name_columns(
        PageFeatures(page),
        Candidates.gathered([(np.array([0]), np.array([3]), 1)]),
        (fold_width(cell.rstrip("：:")),),
    )
    assert columns[0, 0] == 1.0


def test_a_short_line_is_the_heading_of_what_follows() -> None:
    tokens = features_of("\n一、价款\n人民币五万元整。\n二、期限\n一年").tokens
    price, term = hash_of("一价款"), hash_of("二期限")
    assert tokens.heading.tolist() == [*[0] * 5, *[price] * 14, *[term] * 3]
