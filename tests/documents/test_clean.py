"""Cleaning and the map to the source: the round trip holds for any text."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featpipe.documents.clean import clean, clean_traced
from featpipe.documents.document import OffsetMap

HARD = "中文a1 \t\n\r\u3000\xa0\u200b\ufeff\u00ad\x00\x07"
HARD += "１Ａ．⼀⻓⺡豈ﬁé\u0301e\ud800\u2028，“”—각ᄀ\u1161\u11a8"
texts = st.text(st.sampled_from(HARD), max_size=60) | st.text(
    st.characters(exclude_categories=()), max_size=60
)


def traced(raw: str) -> tuple[str, OffsetMap]:
    at = np.arange(len(raw))
    text, starts, ends = clean_traced(raw, at, at + 1)
    return text, OffsetMap.from_characters(starts, ends)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("  a \t b  ", "a b"),
        ("中\n   文", "中文"),
        ("中\n   a", "中 a"),
        ("a\nb", "a b"),
        ("董 事 会", "董 事 会"),
        ("中文“\n引\n”后", "中文“引”后"),
        ("“\nFoo", "“ Foo"),
        ("２０１７年Ａ座，（甲）", "2017年A座，（甲）"),
        ("１２．５％", "12.5%"),
        ("⼀⼆豈ﬁne", "一二豈fine"),
        ("⻓期借款，⻘岛⻋⻔⺠⻅⻚⺟⻳⻰⻬", "长期借款，青岛车门民见页母龟龙齐"),
        ("⺡⻌", "⺡⻌"),
        ("cafe\u0301", "café"),
        ("a\u200bb\ufeff\x07c\xadd", "abcd"),
        ("a\u200b \u200b b", "a b"),
        ("e\u200b\u0301", "é"),
        ("\ud800", "\ufffd"),
        ("\x00\x01", ""),
    ],
)
def test_cleaning(raw: str, text: str) -> None:
    assert clean(raw) == text


@given(texts)
def test_cleaning_is_stable_and_leaves_no_noise(raw: str) -> None:
    text = clean(raw)
    assert clean(text) == text
    assert text == text.strip()
    assert "  " not in text
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} or c in "\t\n\u2028" for c in text)
    text.encode()


@given(texts)
def test_tracing_changes_nothing(raw: str) -> None:
    assert traced(raw)[0] == clean(raw)


@given(texts, st.data())
def test_a_span_goes_to_its_source_and_back(raw: str, data: st.DataObject) -> None:
    text, origin = traced(raw)
    if not text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    source_start, source_end = origin.to_source(start, end)
    assert 0 <= source_start < source_end <= len(raw)
    first, last = origin.to_text(source_start, source_end)
    assert first <= start
    assert last >= end
    # What the source span holds is what the text span says.
    assert (
        text[start:end] in clean(f"|{raw[source_start:source_end]}|") or first < start or last > end
    )


@given(texts)
def test_the_map_keeps_order_and_every_character(raw: str) -> None:
    text, origin = traced(raw)
    starts, ends = origin.characters()
    assert len(starts) == len(text) == origin.n_characters
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(ends) >= 0).all()
    again = OffsetMap.from_characters(starts, ends)
    assert np.array_equal(again.runs, origin.runs)
    for i, character in enumerate(text):
        if ends[i] - starts[i] == 1 and raw[starts[i]] == character:
            assert origin.to_source(i, i + 1) == (starts[i], ends[i])


@pytest.mark.parametrize("span", [(0, 0), (-1, 1), (0, 4), (2, 1)])
def test_a_span_outside_the_text_is_refused(span: tuple[int, int]) -> None:
    _, origin = traced("abc")
    with pytest.raises(ValueError, match="is no span of 3 characters"):
        origin.to_source(*span)
