"""A space that another kind of machine filled: found by weights and settings, and said to be so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sentence_cache import write_documents
from tiny_checkpoints import save_encoder

from featpipe import Cache
from featpipe.cache import tables
from featpipe.cli.search import search
from featpipe.encoders import precision as devices
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, encoder_spec, fingerprint_of
from featpipe.errors import UnknownSpace
from featpipe.on_demand.space import find_query_space, find_space
from featpipe.on_demand.text_encoder import TextEncoder
from featpipe.store import Writer, key_of, keys_of

SENTENCES = ["合同金额为三万元。", "双方协商解决争议。", "会议审议通过了利润分配方案。"]


def fill(path: Path, model: Path, device: str, settings: EncoderSettings) -> Path:
    """Sentences with the vectors of this processor under the spec of ``device``."""
    write_documents(path, {"a": SENTENCES})
    spec = encoder_spec(describe_checkpoint(model), settings, device)
    vectors = Encoder.load(model, settings).encode(SENTENCES).vectors
    fingerprint = fingerprint_of(spec)
    with Writer.open(path) as writer:
        table = writer.table(
            tables.space_table("m", fingerprint),
            tables.vectors_spec(spec, fingerprint, vectors.shape[1], "float16"),
        )
        table.append({"keys": keys_of(SENTENCES), "vectors": vectors})
        writer.commit()
    return path


@pytest.fixture
def made_on_a_card(tmp_path: Path, encoder_folder: Path) -> Path:
    settings = EncoderSettings(precision="mixed")
    return fill(tmp_path / "card.h5", encoder_folder, "cuda:0", settings)


def test_a_space_made_on_a_card_is_found_without_one(
    made_on_a_card: Path, encoder_folder: Path
) -> None:
    with Cache.open(made_on_a_card) as cache:
        with pytest.raises(UnknownSpace, match="arithmetic"):
            find_space(cache, encoder_folder)
        dictionary, settings, note = find_query_space(cache, encoder_folder)
        assert settings.precision == "exact"
        assert "float16" in note
        [found] = Encoder.load(encoder_folder, settings).encode(SENTENCES[:1]).vectors
        vector = np.asarray(found, np.float32)
        stored = np.asarray(dictionary[SENTENCES[0]], np.float32)
        [[best]] = dictionary.nearest(vector, 1)
    cosine = vector @ stored / np.linalg.norm(vector) / np.linalg.norm(stored)
    assert cosine > 0.9999
    assert best.key == key_of(SENTENCES[0])


def test_search_says_that_the_precision_is_not_the_spaces(
    made_on_a_card: Path, encoder_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = [str(made_on_a_card), SENTENCES[1], "--hybrid", "--weight", "0", "-k", "1"]
    result = CliRunner().invoke(search, [*words, "--model", str(encoder_folder)])
    assert result.exit_code == 0, result.output
    assert SENTENCES[1] in result.stdout
    assert "computed in float16" in caplog.text


def test_new_texts_are_encoded_beside_it_and_known_ones_are_not(
    made_on_a_card: Path, encoder_folder: Path
) -> None:
    exact = Encoder.load(encoder_folder, EncoderSettings(precision="exact"))
    with TextEncoder(made_on_a_card, encoder_folder) as encoder:
        assert "float16" in encoder.note
        vectors = encoder.encode([SENTENCES[0], "从来没有见过的一句话。"])
        assert encoder.n_encoded == 1
        with Cache.open(made_on_a_card) as cache:
            stored = np.asarray(cache.dictionary()[SENTENCES[0]], np.float32)
    np.testing.assert_array_equal(vectors[0], stored)
    [expected] = exact.encode(["从来没有见过的一句话。"]).vectors
    np.testing.assert_array_equal(vectors[1], np.asarray(expected, np.float32))


@pytest.mark.parametrize(
    "change",
    [{"pooling": "cls"}, {"prompt": "query: "}, {"max_length": 32}],
    ids=str,
)
def test_other_settings_are_another_space_and_stay_so(
    tmp_path: Path, encoder_folder: Path, change: dict[str, object]
) -> None:
    """The space says with which settings to ask; only weights and precision are the caller's."""
    settings = EncoderSettings(precision="mixed", **change)  # type: ignore[arg-type]  # a table
    path = fill(tmp_path / "c.h5", encoder_folder, "cuda:0", settings)
    with Cache.open(path) as cache:
        found = find_query_space(cache, encoder_folder)
    for name, value in change.items():
        assert getattr(found.settings, name) == value


def test_other_weights_are_refused_whatever_the_precision(
    made_on_a_card: Path, tmp_path: Path
) -> None:
    other = save_encoder(tmp_path / "other", seed=9)
    with Cache.open(made_on_a_card) as cache, pytest.raises(UnknownSpace, match="weights"):
        find_query_space(cache, other)


def test_a_processor_without_bf16_asks_in_float32(
    tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fill(tmp_path / "c.h5", encoder_folder, "cpu", EncoderSettings(precision="mixed"))
    with Cache.open(path) as cache:
        monkeypatch.setattr(devices, "describe_processor", lambda: "flags : sse2 avx2 avx512_bf16")
        assert find_query_space(cache, encoder_folder)[1:] == (
            find_space(cache, encoder_folder)[1],
            "",
        )
        monkeypatch.setattr(devices, "describe_processor", lambda: "flags : sse2 avx2")
        found = find_query_space(cache, encoder_folder)
    assert found.settings.precision == "exact"
    assert "bfloat16" in found.note


def test_a_space_that_needs_no_lower_precision_is_preferred(
    made_on_a_card: Path, encoder_folder: Path
) -> None:
    exact = EncoderSettings(precision="exact")
    fill(made_on_a_card, encoder_folder, "cpu", exact)
    with Cache.open(made_on_a_card) as cache:
        assert len(cache.spaces()) == 2
        found = find_query_space(cache, encoder_folder)
    assert (found.settings.precision, found.note) == ("exact", "")


def test_approximate_vectors_are_compared_with_their_like_alone(
    tmp_path: Path, encoder_folder: Path
) -> None:
    path = fill(tmp_path / "c.h5", encoder_folder, "cpu", EncoderSettings(precision="approx"))
    with Cache.open(path) as cache:
        found = find_query_space(cache, encoder_folder)
    assert (found.settings.precision, found.note) == ("approx", "")
