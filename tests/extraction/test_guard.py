"""More samples never make it worse: repeated, empty, contradicting and misleading ones included."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from pages import features_of
from test_scoring import announcement, samples_of, share_right

from featpipe.extraction.scoring import field_fitting
from featpipe.extraction.scoring.field_fitting import Sample, fit_field, sample_of
from featpipe.extraction.scoring.mentions import prior_model
from featpipe.extraction.scoring.ranking import VALUE_COLUMNS, fit_values

if TYPE_CHECKING:
    import pytest

    from featpipe.extraction.scoring.field_model import FieldModel

TEST = range(3000, 3040)


def fit(samples: list[Sample]) -> FieldModel:
    return fit_field(samples, "organisation", ("甲方",), is_many=False)


def mislead(number: int, chance: random.Random) -> Sample:
    """The value of this sample is any few characters of its document."""
    text, _ = announcement(number)
    start = chance.randrange(len(text) - 12)
    return sample_of(features_of(text), [text[start : start + 9].replace("\n", "")], "organisation")


def test_repeated_samples_do_no_harm() -> None:
    good = samples_of("甲方", range(6))
    assert share_right(fit([*good, *good[:1] * 20]), "甲方", TEST) >= (
        share_right(fit(good), "甲方", TEST) - 0.05
    )


def test_samples_without_a_value_or_with_one_that_is_nowhere_do_no_harm() -> None:
    good = samples_of("甲方", range(6))
    empty = [sample_of(features_of(announcement(n)[0]), [], "organisation") for n in range(50, 53)]
    lost = [
        sample_of(features_of(announcement(n)[0]), ["无处可寻有限公司"], "organisation")
        for n in range(60, 63)
    ]
    assert share_right(fit([*good, *empty, *lost]), "甲方", TEST) >= (
        share_right(fit(good), "甲方", TEST) - 0.1
    )


def test_a_few_wrong_samples_among_good_ones_do_little_harm() -> None:
    chance = random.Random(5)  # noqa: S311  # texts, no secret
    good = samples_of("甲方", range(16))
    wrong = [mislead(number, chance) for number in range(100, 104)]
    before, after = (share_right(fit(s), "甲方", TEST) for s in (good, [*good, *wrong]))
    assert after >= before - 0.1


def test_samples_that_only_mislead_rank_no_worse_than_none() -> None:
    """What they taught does not hold on those left out: what is known without any is kept."""
    chance = random.Random(7)  # noqa: S311  # texts, no secret
    wrong = [mislead(number, chance) for number in range(200, 212)]
    model = fit(wrong)
    ranked = field_fitting._rank_left_out(wrong, prepared(wrong), "organisation", None)
    plain = [
        field_fitting._rank(s, p, prior_model(), "organisation")
        for s, p in zip(wrong, prepared(wrong), strict=True)
    ]
    fell_back = not model.mentions.hashed.any()
    assert fell_back == (field_fitting._rank_score(ranked) < field_fitting._rank_score(plain))


def prepared(samples: list[Sample]) -> list[field_fitting._Prepared]:
    boundaries = field_fitting._learn(samples, "organisation")
    return field_fitting._prepare(samples, boundaries, ("甲方",))


def test_a_model_that_ranks_worse_than_none_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = samples_of("甲方", range(8))
    learned = field_fitting.fit_mentions([p.rows for p in prepared(good)])
    turned = type(learned)(-learned.hashed, -learned.measured, learned.bias)

    monkeypatch.setattr(field_fitting, "fit_mentions", lambda *_, **__: turned)
    assert not fit(good).mentions.hashed.any()


def test_value_scores_that_do_worse_than_the_prior_are_not_used() -> None:
    """Labels by chance: on documents left out the prior is better than what they teach."""
    chance = np.random.default_rng(3)
    rows = [chance.normal(size=(12, len(VALUE_COLUMNS))) for _ in range(10)]
    labels = [chance.random(12) < 0.02 for _ in rows]
    model = fit_values(rows, labels, [1] * 10)
    p = np.concatenate([model.probabilities(part) for part in rows])
    assert abs(p.mean() - 0.02) < 0.2


def test_probabilities_are_right_as_often_as_they_say_on_new_documents() -> None:
    chance = np.random.default_rng(5)

    def document() -> tuple[np.ndarray, np.ndarray]:
        rows = np.zeros((6, len(VALUE_COLUMNS)))
        rows[:, 0] = chance.normal(size=6)
        return rows, chance.random(6) < 1 / (1 + np.exp(-(1.5 * rows[:, 0] - 1)))

    seen, new = ([document() for _ in range(n)] for n in (60, 2000))
    model = fit_values([r for r, _ in seen], [t for _, t in seen], [1] * 60)
    p = np.concatenate([model.probabilities(r) for r, _ in new])
    truth = np.concatenate([t for _, t in new])
    for low in (0.1, 0.3, 0.5, 0.7):
        inside = (p >= low) & (p < low + 0.2)
        assert abs(p[inside].mean() - truth[inside].mean()) < 0.12
