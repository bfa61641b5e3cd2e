"""Lines as evidence: whole lines are candidates, and a value ends where its lines do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.candidates import Boundaries, Candidates
from featpipe.extraction.scoring.learned_boundaries import learn_boundaries
from featpipe.extraction.scoring.lines import Lines
from featpipe.extraction.scoring.similarity import INSIDE, SampleMentions

OF_LINES = ("last line", "line before", "line behind")
RECEIPT = "{}\n{}\nTEL : 03-{}\nINVOICE\nCASH\n5.00\nCHANGE\n1.00\n"


def _texts(text: str, boundaries: Boundaries) -> set[str]:
    """Candidates of a document."""
    features = features_of(text)
    found, tokens = boundaries.propose(features), features.tokens
    spans = zip(tokens.start[found.first], tokens.end[found.last - 1], strict=True)
    return {text[start:end] for start, end in spans}


def _company(receipts: list[str], company: str) -> Boundaries:
    samples = [(features_of(text), [(0, len(company))]) for text in receipts]
    return learn_boundaries("text", samples, {company.lower()})


@given(text=st.text(st.sampled_from("a1,\n "), max_size=40), most=st.integers(1, 4))
def test_runs_are_those_of_the_text(text: str, most: int) -> None:
    features = features_of(text)
    tokens = features.tokens
    first, last = features.lines.runs(most)
    found = [text[a:b] for a, b in zip(tokens.start[first], tokens.end[last - 1], strict=True)]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    runs = [lines[n : n + size] for n in range(len(lines)) for size in range(1, most + 1)]
    wanted = [run for n, run in enumerate(runs) if n // most + n % most < len(lines)]
    assert [[line.strip() for line in one.split("\n") if line.strip()] for one in found] == wanted


def test_tokens_beside_a_place_are_of_one_line() -> None:
    lines = Lines.of(features_of("a b\n\nc d e\nf").tokens)
    # Tokens: a b break break c d e break f.
    assert lines.since.tolist() == [0, 0, 0, 0, 0, 4, 4, 4, 4, 8]
    assert lines.until.tolist() == [2, 2, 7, 7, 7, 7, 7, 9, 9, 9]


def test_a_name_may_be_wrapped_where_no_sample_has_one() -> None:
    sample = RECEIPT.format("GREEN LEAF SDN BHD", "NO. 4, JALAN JAYA", 91)
    learned = _company([sample], "GREEN LEAF SDN BHD")
    assert "POPULAR BOOK\nCO. (M) SDN BHD" in _texts(
        RECEIPT.format("POPULAR BOOK\nCO. (M) SDN BHD", "NO. 5, JALAN SATU", 92), learned
    )


def test_paragraphs_are_not_joined() -> None:
    sentence = "The seller delivers the goods to the warehouse of the buyer within ten days."
    learned = _company([f"Green Leaf Ltd\n{sentence}\n{sentence} {sentence}"], "Green Leaf Ltd")
    assert learned.most_lines == 0
    assert not any("\n" in text for text in _texts(f"Red Ltd\nBlue\n{sentence}", learned))


def test_words_of_values_beside_a_span_say_that_it_is_cut() -> None:
    features = features_of("jalan a\ntaman b\ntel c")
    # Tokens: jalan a break taman b break tel c; those of the address are words of values.
    samples = SampleMentions.of([])
    inside = np.zeros_like(samples.inside)
    inside[features.words_inside[[0, 1, 3, 4]]] = 1.0
    inside[features.words_inside[[6, 7]]] = -1.0
    first, last = np.array([0, 0, 3]), np.array([2, 5, 5])
    columns = np.empty((len(INSIDE), 3))
    found = Candidates(first, last, np.zeros(3, np.int64))
    replace(samples, inside=inside).likeness_inside(features, found, columns)
    last_line, before, behind = columns[[INSIDE.index(f"{name} like") for name in OF_LINES]]
    assert last_line.tolist() == [1.0, 1.0, 1.0]
    assert before.tolist() == [0.0, 0.0, 2 / 3]  # a break is no word of values
    assert behind.tolist() == [2 / 3, -2 / 3, -2 / 3]
