"""Scores of calibrated taggers. Oracles: the features one entity at a time, and by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featpipe.encoders.calibration import FEATURES, measure_spans, read_calibration
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import TaggerSettings, explain_difference, tagger_spec
from featpipe.encoders.tagger import Tagger
from featpipe.errors import CheckpointError

if TYPE_CHECKING:
    from featpipe.encoders.entities import Entities

Text = Callable[[int, int], str]

EXACT = TaggerSettings(precision="exact")
FILE = "entity_calibration.json"


def odds(probability: float) -> float:
    kept = min(max(probability, 1e-4), 1 - 1e-4)
    return math.log(kept / (1 - kept))


@given(st.lists(st.lists(st.tuples(st.booleans(), st.floats(0, 1, width=32)), max_size=9)))
def test_features_are_those_of_each_entity_alone(texts: list[list[tuple[bool, float]]]) -> None:
    """Runs of True are one entity; each third of their tokens begins another one."""
    scores, spans, ends = [], [], []
    for number, tokens in enumerate(texts):
        length = 0
        for is_inside, score in tokens:
            if not is_inside:
                length = 0
            elif length % 3:
                spans[-1][1] = len(scores)
                length += 1
            else:
                spans.append([len(scores), len(scores), number])
                length = 1
            scores.append(score)
        ends.append(len(scores))
    first, last, text = np.array(spans, np.int64).reshape(-1, 3).T
    found = measure_spans(np.array(scores, np.float32), first, last, text, np.array(ends, np.int64))
    starts, begins, stops = [0, *ends], {s for s, _, _ in spans}, {e + 1 for _, e, _ in spans}
    expected = [
        [
            1,
            odds(sum(scores[start : end + 1]) / (end - start + 1)),
            odds(min(scores[start : end + 1])),
            math.log(end - start + 1),
            odds(1.0 if start in {starts[number], *stops} else scores[start - 1]),
            odds(1.0 if end + 1 in {ends[number], *begins} else scores[end + 1]),
        ]
        for start, end, number in spans
    ]
    np.testing.assert_allclose(found, np.array(expected).reshape(-1, len(FEATURES)), atol=1e-6)


def calibrate(source: Path, folder: Path, weights: dict[str, list[float]]) -> Path:
    copytree(source, folder)
    content = {"features": list(FEATURES), "weights": weights}
    (folder / FILE).write_text(json.dumps(content), "utf-8")
    return folder


def assert_same_spans(one: Entities, other: Entities) -> None:
    for name in ("lengths", "start", "end", "label"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_a_calibration_changes_scores_and_the_fingerprint_and_nothing_else(
    tagger_folder: Path, write_text: Text, tmp_path: Path
) -> None:
    texts = [write_text(seed, 3 + seed % 40) for seed in range(40)]
    plain = Tagger.load(tagger_folder, EXACT)
    types = plain.labels
    constant = {kind: [float(n), *[0.0] * 5] for n, kind in enumerate(types)}
    by_type = Tagger.load(calibrate(tagger_folder, tmp_path / "type", constant), EXACT)
    mean = {kind: [0.0, 1, *[0.0] * 4] for kind in types}
    by_mean = Tagger.load(calibrate(tagger_folder, tmp_path / "mean", mean), EXACT)
    raw, typed, meant = (one.find_entities(texts) for one in (plain, by_type, by_mean))
    assert len(raw.score) > 50
    assert_same_spans(raw, typed)
    assert_same_spans(raw, meant)
    np.testing.assert_allclose(typed.score, 1 / (1 + np.exp(-typed.label.astype(float))), rtol=1e-6)
    np.testing.assert_allclose(meant.score, raw.score, atol=1e-4)
    assert len({plain.fingerprint, by_type.fingerprint, by_mean.fingerprint}) == 3
    [line] = explain_difference(by_type.spec, by_mean.spec)
    assert line.startswith("calibration: ")


def test_a_tagger_without_a_calibration_keeps_its_fingerprint(tagger_folder: Path) -> None:
    checkpoint = describe_checkpoint(tagger_folder)
    assert not checkpoint.calibration_files
    assert "calibration" not in tagger_spec(checkpoint, EXACT)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"features": ["bias"], "weights": {}}, "features"),
        ({"features": list(FEATURES), "weights": {}}, "weights of"),
        ({"features": list(FEATURES), "weights": {"PER": [1, 2]}}, "weights of PER"),
        (
            {"features": list(FEATURES), "weights": {"PER": [1, 2, 3, 4, 5, "6"]}},
            "weights of PER",
        ),
        ({"features": list(FEATURES), "weights": {"PER": [1, 2, 3, 4, 5, 1e999]}}, "of PER"),
        ([], "object"),
    ],
)
def test_a_damaged_calibration_is_refused_by_name(
    content: object, named: str, tmp_path: Path
) -> None:
    file = tmp_path / FILE
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(CheckpointError, match=named) as caught:
        read_calibration(file, ("PER",))
    assert str(file) in str(caught.value)
