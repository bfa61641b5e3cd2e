"""Verbs and prepositions of a clause: the nearest ones, and none from another clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jieba.posseg
from pages import features_of

from featpipe.extraction.scoring.field_model import fit_field, sample_of

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
    """Neither name's neighbours are those of a sample; the verbs of its clause are."""
    lines = [
        ("海山集团日前把全部股份质押了,东湖集团也表示满意", "海山集团"),
        ("西岭集团也表示震惊,南桥集团于昨日将若干股票质押了", "南桥集团"),
        ("江畔集团在去年底曾经将所有房产质押了,石门集团也表示同意", "江畔集团"),
        ("高原集团也表示担忧,林海集团此前因资金紧张将土地质押了", "林海集团"),
    ]
    samples = [sample_of(features_of(line), [value], "organisation") for line, value in lines]
    model = fit_field(samples, "organisation")
    for text in (
        "据悉金沙集团又一次以低价将设备质押了,另外银川集团则表示欢迎",
        "另外银川集团则表示欢迎,据悉金沙集团又一次以低价将设备质押了",
    ):
        keys = [group.value.key for group in model.score(features_of(text)).groups]
        assert keys.index("金沙集团") < keys.index("银川集团")
