"""Verbs and prepositions of a clause: the nearest ones, and none from another clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jieba.posseg
from pages import features_of

from featpipe.extraction.scoring.field_fitting import fit_field, sample_of

if TYPE_CHECKING:
    from featpipe.extraction.scoring.features import PageFeatures

STOPS = set(",。")
TEXT = "海山集团将其所持全部股份质押给云田银行,随后减持。因此法院向北林公司发出通知,并对其罚款"


def nearest(features: PageFeatures, token: int, letter: str, *, behind: bool) -> str | None:
    """By the tags of jieba's dictionary, read one by one."""
    text, place = features.page.text, int(features.tokens.start[token])
    found = None
    for start, end in features.page.words.tolist():
        if not jieba.posseg.dt.word_tag_tab.get(text[start:end], "").startswith(letter):
            continue
        if behind and start >= place and not set(text[max(place - 1, 0) : start]) & STOPS:
            return text[start:end]
        # A mark belongs to the clause that it ends.
        if not behind and end <= place and not set(text[end:place]) & STOPS:
            found = text[start:end]
    return found


def test_the_nearest_of_the_clause_are_those_that_a_reader_of_the_tags_finds() -> None:
    features = features_of(TEXT)
    tokens, near = features.tokens, features.word_kinds.clause_words
    named: dict[int, str | None] = {0: None}
    for column, letter, behind in (
        (near.verb_before, "v", False), (near.verb_behind, "v", True),
        (near.preposition_before, "p", False), (near.preposition_behind, "p", True),
    ):  # fmt: skip
        assert len(column) == len(tokens) + 1
        for token in range(len(tokens)):
            word = nearest(features, token, letter, behind=behind)
            assert named.setdefault(int(column[token]), word) == word
    assert {"所持", "质押", "减持", "给", "向", "对"} <= set(named.values())
    assert len(set(named.values())) == len(named)  # one number for each word


def test_every_place_has_its_words() -> None:
    for text in ("", " ", "。", "a", "质押", "给", "\n\n1 2", TEXT):
        features = features_of(text)
        for column in features.word_kinds.clause_words:
            assert len(column) == len(features.tokens) + 1


def test_who_does_it_is_told_by_a_verb_that_stands_far_behind() -> None:
    """Names have the same neighbours; only the verbs of their clauses differ."""
    beside = ("日前因为资金十分紧张将全部的旧房产", "此前由于这方面的原因将名下大量土地")
    lines = [
        ("{}集团{}质押了,{}集团{}出售了", "海山", "东湖", 0),
        ("{}集团{}收购了,{}集团{}质押了", "西岭", "南桥", 1),
        ("{}集团{}质押了,{}集团{}转让了", "江畔", "石门", 1),
        ("{}集团{}租赁了,{}集团{}质押了", "高原", "林海", 0),
    ]
    samples = []
    for line, one, other, number in lines:
        text = line.format(one, beside[number], other, beside[number])
        value = one if text.index("质押") < text.index(other) else other
        samples.append(sample_of(features_of(text), [value + "集团"], "organisation"))
    model = fit_field(samples, "organisation")
    for line in ("金沙集团{}质押了,银川集团{}出售了", "银川集团{}转让了,金沙集团{}质押了"):
        features = features_of(line.format(*beside))
        keys = [group.value.key for group in model.score(features).groups]
        assert keys.index("金沙集团") < keys.index("银川集团")
