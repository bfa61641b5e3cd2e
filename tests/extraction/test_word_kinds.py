"""Kinds of words: equal for spans of the same kinds, and told apart from others."""

from __future__ import annotations

from dataclasses import replace

import jieba
from pages import features_of

from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of

TEXT = "东旭集团质押给银行3,000万股,并由 Apple 担保。\n"


def test_spans_of_equal_kinds_are_alike() -> None:
    features = features_of("中国质押给银行。中国担保给银行。银行质押给中国。")
    tokens, kinds = features.tokens, features.word_kinds
    assert [jieba.lcut(t) for t in ("中国质押给银行", "中国担保给银行")] == [
        ["中国", "质押", "给", "银行"], ["中国", "担保", "给", "银行"],
    ]  # fmt: skip
    first, last = tokens.spans([(0, 7), (8, 15), (16, 23), (0, 4)])
    inside = kinds.inside(first, last).tolist()
    assert inside[0] == inside[1] == inside[2]  # in whichever order
    assert inside[3] != inside[0]
    ends = kinds.ends(first, last).tolist()
    assert ends[0] == ends[1] != ends[2]
    around = kinds.around(first[:3]).tolist()
    assert around[1] != around[0]  # behind a mark; at the beginning


def test_every_place_has_kinds() -> None:
    for text in ("", " ", TEXT, "。", "a", "\n\n1 2"):
        features = features_of(text)
        kinds, n = features.word_kinds, len(features.tokens)
        assert len(kinds.before) == len(kinds.behind) == len(kinds.sums) == n + 1


def test_kinds_are_the_same_where_line_breaks_are_words_and_where_they_are_none() -> None:
    whole = features_of(TEXT + " \n" + TEXT)
    is_written = [not whole.page.text[a:b].isspace() for a, b in whole.page.words.tolist()]
    assert not all(is_written)
    other = PageFeatures(replace(whole.page, words=whole.page.words[is_written]))
    for name in ("before", "behind", "sums"):
        one, two = getattr(whole.word_kinds, name), getattr(other.word_kinds, name)
        assert one.tolist() == two.tolist()


def test_an_unknown_name_is_more_like_other_names_than_a_known_word_is() -> None:
    lines = ("邵根伙说完离开", "罗永浩听后发笑", "茆庆国看过签字", "柴国生想了又想")
    samples = [sample_of(features_of(line), [line[:3]], "text") for line in lines]
    scored = fit_field(samples, "text").score(features_of("因此李国栋走了"))
    kinds_like = scored.measured[:, MEASURED.index("kinds like")].tolist()
    likeness = dict(zip((group.value.key for group in scored.groups), kinds_like, strict=True))
    assert likeness["李国栋"] > max(likeness["因此"], likeness["走了"])
