"""Tagger: oracle transformers' pipeline with simple aggregation, where it sees the whole text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from featpipe.features.tagger import Tagger

Text = Callable[[int, int], str]


def pipeline_entities(folder: Path, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    run = pipeline(
        "token-classification",
        model=AutoModelForTokenClassification.from_pretrained(folder).eval(),
        tokenizer=AutoTokenizer.from_pretrained(folder),
        aggregation_strategy="simple",
    )
    return [
        [(e["start"], e["end"], e["entity_group"], float(e["score"])) for e in run(text)]
        for text in texts
    ]


def found_entities(tagger: Tagger, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
    found = tagger.find_entities(texts)
    flat = list(
        zip(
            found.start.tolist(),
            found.end.tolist(),
            [tagger.labels[number] for number in found.label],
            found.score.tolist(),
            strict=True,
        )
    )
    stops = np.cumsum(found.lengths).tolist()
    return [flat[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def test_entities_are_those_of_transformers_on_texts_of_one_window(
    tagger_folder: Path, write_text: Text
) -> None:
    texts = [write_text(seed, 3 + seed % 40) for seed in range(60)]
    expected = pipeline_entities(tagger_folder, texts)
    found = found_entities(Tagger.load(tagger_folder), texts)
    assert sum(map(len, expected)) > 100
    for want, have in zip(expected, found, strict=True):
        assert [e[:3] for e in have] == [e[:3] for e in want]
        np.testing.assert_allclose([e[3] for e in have], [e[3] for e in want], atol=1e-5)
