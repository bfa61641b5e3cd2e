"""scikit-learn's own checks and pipelines meet a cache."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from known_texts import KNOWN, UNKNOWN

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from featpipe.errors import UnknownSpace
from featpipe.integrations.sklearn import EmbeddingTransformer


def test_it_passes_check_estimator(filled: Path, model: Path) -> None:
    transformer = EmbeddingTransformer(str(filled), str(model))
    with warnings.catch_warnings():
        # Said of every estimator of texts: the checks on number tables do not apply.
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(transformer, on_fail=None)
    assert results
    assert [r["check_name"] for r in results if r["status"] not in {"passed", "skipped"}] == []


def test_it_is_a_step_of_a_pipeline(filled: Path, model: Path) -> None:
    transformer = EmbeddingTransformer(filled, model)
    with pytest.raises(NotFittedError):
        transformer.transform(KNOWN)
    classifier = make_pipeline(transformer, LogisticRegression(C=1000))
    labels = [0, 1, 1]
    assert classifier.fit(list(KNOWN), labels).predict(np.array(KNOWN)).tolist() == labels
    assert transformer.encoder_.n_encoded == 0
    vectors = transformer.transform(UNKNOWN)
    assert vectors.shape == (2, transformer.encoder_.dim)
    assert list(transformer.get_feature_names_out()[:2]) == ["tiny0", "tiny1"]
    fresh = clone(transformer)
    assert fresh.get_params() == transformer.get_params()
    again = pickle.loads(pickle.dumps(transformer))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.transform(KNOWN), transformer.transform(KNOWN))
    for bad in ("one text", [b"bytes"], [["two"], [3]]):
        with pytest.raises(ValueError, match="texts are"):
            transformer.transform(bad)
    again.close()
    transformer.close()


def test_a_wrong_model_is_known_before_the_first_text(filled: Path, tmp_path: Path) -> None:
    from tiny_checkpoints import save_encoder

    other = save_encoder(tmp_path / "other", seed=9)
    with pytest.raises(UnknownSpace):
        EmbeddingTransformer(filled, other).fit(KNOWN)
