"""Fields of clauses: the words of sentences as evidence, and clauses behind headings in a line."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.model_file import pack_model, unpack_model
from featpipe.extraction.scoring.sentence_model import SentenceModel, fit_sentences
from featpipe.extraction.scoring.sentence_words import N_PLACES
from featpipe.extraction.scoring.tokens import hash_of, mix

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel

TEXTS = st.text(st.sampled_from("ab。, \n12甲"), max_size=60)
FILLERS = (
    "The Supplier shall deliver the Goods to the Buyer within thirty days.",
    "Payment is due upon receipt of an invoice by the Buyer.",
    "Each party keeps the terms of this Agreement confidential.",
    "The Goods are packed in boxes of wood marked with the name of the Buyer.",
    "Notices are given in writing to the addresses stated above.",
    "The Supplier warrants that the Goods are free of defects for one year.",
    "Any amendment of this Agreement needs the signature of both parties.",
)
CLAUSES = (
    "Neither party may assign this Agreement without the consent of the other party.",
    "The Supplier shall not assign or transfer its rights under this Agreement.",
    "This Agreement may not be assigned by either party; any attempt to assign it is void.",
    "The Buyer may assign this Agreement to an affiliate, but not to any other person.",
)


def contract(number: int, clause: str) -> str:
    """A text of sentences in an order of its own, the clause among them."""
    chance = random.Random(number)  # noqa: S311  # texts, no secret
    sentences = [*FILLERS, clause] if clause else [*FILLERS]
    chance.shuffle(sentences)
    return " ".join(sentences) + f" Signed on the {number + 1}th of May."


def fit() -> FieldModel:
    samples = []
    for number in range(12):
        clause = (*CLAUSES[:3], "")[number % 4]
        features = features_of(contract(number, clause))
        samples.append(sample_of(features, [clause] if clause else [], "clause"))
    return fit_field(samples, "clause", ("Transfer",))


@given(text=TEXTS, seed=st.integers(0, 9))
@settings(deadline=None)
def test_log_odds_are_the_sum_over_the_distinct_words_and_pairs(text: str, seed: int) -> None:
    features = features_of(text)
    chance = np.random.default_rng(seed)
    model = SentenceModel(chance.normal(size=N_PLACES).astype(np.float32), 0.25)
    tokens = features.tokens
    expected = np.full(max(len(features.page.sentences), 1), 0.25)
    for number in range(len(expected)):
        at = np.flatnonzero(tokens.sentence == number).tolist()
        words = {int(tokens.code[n]) for n in at if not tokens.is_mark[n]}
        pairs, before = set(), 0
        for n in at:
            pairs.add(int(mix(mix(np.array(before), np.array(tokens.code[n])), 1)))
            before = int(tokens.code[n])
        for code in (*words, *pairs):
            expected[number] += float(model.weights[code % N_PLACES])
    assert np.allclose(model.logits(features), expected)


def test_a_document_without_the_clause_has_no_sentence_of_high_log_odds() -> None:
    samples = []
    for number in range(6):
        clause = CLAUSES[number % 3]
        features = features_of(contract(number, clause))
        start = features.page.text.index(clause)
        samples.append((features, ((start, start + len(clause)),)))
    model = fit_sentences(samples)
    new = features_of(contract(11, CLAUSES[3]))
    log_odds = model.logits(new)
    best = new.page.sentences[int(np.argmax(log_odds))].tolist()
    assert new.page.text[slice(*best)] == CLAUSES[3]
    without = model.logits(features_of(contract(11, "")))
    assert log_odds.max() > without.max() + 2
    # Words that no sample shows change nothing.
    assert model.weights[hash_of("zebra") % N_PLACES] == 0
    nothing_known = fit_sentences([(features, ()) for features, _ in samples])
    assert not nothing_known.weights.any()


def test_a_clause_is_likely_only_where_there_is_one() -> None:
    model = fit()
    features = features_of(contract(21, CLAUSES[3]))
    scored, without = model.score(features), model.score(features_of(contract(21, "")))
    start, end = scored.groups[0].spans[0]
    assert features.page.text[start:end] == CLAUSES[3]
    assert scored.probabilities[0] > 5 * without.probabilities[0]
    assert model.choose(without) == []


def test_a_field_of_clauses_comes_back_from_its_file_with_every_bit() -> None:
    model = fit()
    data = pack_model(model, "f")
    again = unpack_model(data, "f")
    features = features_of(contract(21, CLAUSES[3]))
    first, second = model.score(features), again.score(features)
    assert first.probabilities.tobytes() == second.probabilities.tobytes()
    assert pack_model(again, "f") == data


def test_other_fields_know_nothing_of_sentences() -> None:
    features = features_of("甲方：海南毓坤有限公司\n合同金额：3万元\n")
    model = fit_field([sample_of(features, ["海南毓坤有限公司"], "organisation")], "organisation")
    assert model.sentence_model is None


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("by both. 15. Duration of Term     This Agreement shall run.", "This Agreement"),
        ("of the Buyer 8.1 The term ends.", "The term"),
        ("of the Buyer 8.1. The term ends.", "The term"),
        ("in this. Term A) The term ends.", "The term"),
        ("by law. 17. Transfer During the term, no party may.", "During the"),
        ("by law. 16. Liability and Limits Either Party is liable.", "Either Party"),
        ("GOVERNING LAW   This Agreement is governed.", "This Agreement"),
    ],
)
def test_a_clause_may_begin_behind_a_heading_without_a_mark(text: str, first: str) -> None:
    features = features_of(text)
    starts = features.tokens.start[features.clause_edges[0]].tolist()
    assert text.index(first) in starts
    assert set(features.tokens.start[features.boundaries.clause_starts].tolist()) <= set(starts)


def test_words_inside_a_sentence_begin_no_clause() -> None:
    text = "We pay the Bank of Ohio, see 3.5 Above and section 8.1 of it  Then 2 Boxes."
    features = features_of(text)
    starts = features.tokens.start[features.clause_edges[0]].tolist()
    for word in ("Bank", "Ohio", "of it", "section", "Then", "and"):
        assert text.index(word) not in starts


def test_a_clause_may_end_before_a_wide_gap() -> None:
    text = "It is not liable for damages   22.2 A Party may object."
    features = features_of(text)
    ends = features.tokens.end[features.clause_edges[1] - 1].tolist()
    assert text.index("   22.2") in ends
