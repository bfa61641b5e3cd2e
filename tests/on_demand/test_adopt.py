"""Vectors of old files: the fingerprint of a model only for what that model made."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from tiny_checkpoints import CHINESE, save_encoder

from featpipe import Cache, Pipeline
from featpipe.cli.main import featpipe
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UnknownSpace, UsageError
from featpipe.on_demand.adopt import TOLERANCE, adopt_vectors, sample_size

TEXTS = ["".join(CHINESE[at : at + 2 + at % 7]) for at in range(0, 120, 3)]


def vectors_of(folder: Path, texts: list[str] = TEXTS, **settings: object) -> np.ndarray:
    given = {"precision": "exact", "dtype": "float32"} | settings
    return Encoder.load(folder, EncoderSettings(**given)).encode(texts).vectors  # type: ignore[arg-type]


def write_old(path: Path, vectors: np.ndarray, texts: list[str] = TEXTS) -> Path:
    with h5py.File(path, "w") as file:
        for text, vector in zip(texts, vectors, strict=True):
            file[f"word_emb/{text}"] = vector
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(featpipe, [str(word) for word in words])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_the_model_made_gets_its_fingerprint_and_is_not_encoded_again(
    tmp_path: Path, encoder_folder: Path, dtype: str
) -> None:
    old = write_old(tmp_path / "old.h5", vectors_of(encoder_folder).astype(dtype))
    done = run("import", old, "--cache", tmp_path / "c.h5", "--assume-model", encoder_folder)
    assert done.exit_code == 0, done.output
    assert f"compared {len(TEXTS)} of {len(TEXTS)} texts, all of them" in done.output
    (tmp_path / "a.txt").write_text(TEXTS[0], "utf-8")
    with Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline:
        report = pipeline.build(tmp_path / "a.txt")
    assert (report.n_hits >= 1, report.n_unique - report.n_encoded) == (True, report.n_hits)
    with Cache.open(tmp_path / "c.h5") as cache:
        assert len(cache.spaces()) == 1
        stored = np.asarray(cache.dictionary()[TEXTS[5]], np.float32)
    np.testing.assert_allclose(stored, vectors_of(encoder_folder)[5], rtol=2e-3, atol=2e-3)


OTHER: dict[str, Callable[[Path, Path], np.ndarray]] = {
    "other weights": lambda _, other: vectors_of(save_encoder(other, seed=4)),
    "another pooling": lambda folder, _: vectors_of(folder, pooling="cls"),
    "another layer": lambda folder, _: vectors_of(folder, layer=1),
    "a prompt": lambda folder, _: vectors_of(folder, prompt="为这"),
    "normalised": lambda folder, _: vectors_of(folder, normalise=True),
    "another width": lambda folder, _: vectors_of(folder)[:, :-1],
    "bfloat16": lambda folder, _: vectors_of(folder, precision="mixed"),
}

#: Of which not all vectors, or none, can be told apart one by one.
PARTLY = {"bfloat16", "another width"}


@pytest.mark.parametrize("kind", OTHER)
def test_what_was_made_otherwise_is_refused_and_nothing_is_written(
    tmp_path: Path, encoder_folder: Path, kind: str
) -> None:
    old = write_old(tmp_path / "old.h5", OTHER[kind](encoder_folder, tmp_path / "other"))
    with pytest.raises(UnknownSpace, match="was not made by") as caught:
        adopt_vectors(old, tmp_path / "c.h5", encoder_folder)
    assert f"{len(TEXTS)} of {len(TEXTS)} compared" in caught.value.message or kind in PARTLY
    assert ("differ in length alone" in str(caught.value.hint)) == (kind == "normalised")
    assert not (tmp_path / "c.h5").exists()


def test_one_foreign_row_among_all_that_are_compared_is_named(
    tmp_path: Path, encoder_folder: Path
) -> None:
    vectors = vectors_of(encoder_folder)
    vectors[7] = vectors[8]
    old = write_old(tmp_path / "old.h5", vectors)
    with pytest.raises(UnknownSpace, match=f"1 of {len(TEXTS)} compared") as caught:
        adopt_vectors(old, tmp_path / "c.h5", encoder_folder)
    assert repr(TEXTS[7]) in caught.value.message


def test_digests_in_place_of_texts_are_said_to_be_the_reason(
    tmp_path: Path, encoder_folder: Path
) -> None:
    names = [f"{number:032x}" for number in range(len(TEXTS))]
    old = write_old(tmp_path / "old.h5", vectors_of(encoder_folder), names)
    with pytest.raises(UnknownSpace, match="was not made by") as caught:
        adopt_vectors(old, tmp_path / "c.h5", encoder_folder)
    assert "digests, not texts" in str(caught.value.hint)


def test_texts_beyond_one_window_and_broken_vectors_are_left_out(
    tmp_path: Path, encoder_folder: Path
) -> None:
    """An old encoder cut long texts off; featpipe reads them whole."""
    long, broken = "合" * 200, TEXTS[0]
    vectors = np.vstack([vectors_of(encoder_folder), np.ones((1, 32), np.float32)])
    vectors[0, 3] = np.nan
    old = write_old(tmp_path / "old.h5", vectors, [*TEXTS, long])
    adoption = adopt_vectors(old, tmp_path / "c.h5", encoder_folder)
    done = adoption.done
    assert adoption.n_compared == len(TEXTS) - 1
    n, share = (
        adoption.n_compared,
        float(re.findall(r"([\d.]+)% of foreign rows", str(adoption))[0]),
    )
    assert (1 - share / 100) ** n == pytest.approx(0.001, rel=0.05)  # of 39, not of 688
    assert {text for text, _ in done.skipped} == {long, broken}
    assert done.n_rows == len(TEXTS) - 1
    only = write_old(tmp_path / "only.h5", vectors[-1:], [long])
    with pytest.raises(UsageError, match="no text of one window"):
        adopt_vectors(only, tmp_path / "c.h5", encoder_folder)


def test_the_sample_finds_a_share_of_foreign_rows_with_the_stated_probability() -> None:
    n = sample_size()
    assert n == 688
    assert 0.99**n <= 0.001 < 0.99 ** (n - 1)
    assert sample_size(0.5, 0.5) == 1
    assert TOLERANCE > 2 * 2.0**-11  # rounding to float16, with room for another float32 sum
