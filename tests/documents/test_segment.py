"""Paragraphs and sentences: laws as properties, judgement as golden cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featpipe.documents import MAX_SENTENCE, segment

GOLDEN = Path(__file__).parent / "golden" / "sentences.json"
ALPHABET = "中文甲，。！？；：“”‘’（）()\"'.!?;…aB 1\t\n\u3000\u2028《》、的"


def sentences_of(text: str) -> list[str]:
    return [text[a:b] for a, b in segment(text).sentences.tolist()]


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text("utf-8")), ids=lambda c: c["why"])
def test_golden(case: dict[str, list[str] | str]) -> None:
    sentences = case["sentences"]
    assert isinstance(sentences, list)
    assert sentences_of(str(case["text"])) == sentences


@given(st.text(st.sampled_from(ALPHABET), max_size=400) | st.text(max_size=200))
def test_sentences_cover_every_character_that_is_not_blank_and_nest_in_paragraphs(
    text: str,
) -> None:
    cut = segment(text)
    for spans in (cut.paragraphs.astype(int), cut.sentences.astype(int)):
        covered = 0
        for start, end in spans.tolist():
            assert start >= covered
            assert not text[covered:start].strip()
            assert start < end <= len(text)
            assert text[start:end] == text[start:end].strip()
            covered = end
        assert not text[covered:].strip()
    counts = cut.sentence_counts()
    assert counts.sum() == len(cut.sentences)
    assert (counts > 0).all()
    first = 0
    for (start, end), n in zip(cut.paragraphs.tolist(), counts.tolist(), strict=True):
        inside = cut.sentences[first : first + n]
        assert inside[0, 0] == start
        assert inside[-1, 1] == end
        first += n


@given(st.text(st.sampled_from("中文，、a1 \t"), max_size=20), st.integers(1, 300))
def test_no_sentence_is_longer_than_the_limit(unit: str, n: int) -> None:
    assert all(len(s) <= MAX_SENTENCE for s in sentences_of(unit * n))


@given(
    st.lists(st.text(st.sampled_from(ALPHABET.replace("\n", "").replace("\u2028", ""))), max_size=6)
)
def test_a_paragraph_is_cut_without_regard_to_its_neighbours(lines: list[str]) -> None:
    together = sentences_of("\n".join(lines))
    assert together == [sentence for line in lines for sentence in sentences_of(line)]
