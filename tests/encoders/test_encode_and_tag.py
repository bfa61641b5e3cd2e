"""One forward for vectors and entities: byte for byte what two give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tiny_checkpoints import save_tagger

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger, encode_and_tag
from featpipe.errors import EncodingError

if TYPE_CHECKING:
    from featpipe.encoders.packing import Pack

Text = Callable[[int, int], str]
COLUMNS = ("lengths", "start", "end", "label", "score")


def load(folder: Path, precision: str, **options: object) -> tuple[Encoder, Tagger]:
    settings = EncoderSettings(precision=precision, **options)  # type: ignore[arg-type]
    encoder = Encoder.load(folder, settings)
    tagger = Tagger.load(folder, TaggerSettings(precision=precision), trunk=encoder.trunk)  # type: ignore[arg-type]
    assert tagger.trunk is encoder.trunk
    return encoder, tagger


@pytest.mark.parametrize("precision", ["exact", "mixed"])
@pytest.mark.parametrize(
    "options",
    [{}, {"pooling": "cls"}, {"normalise": True, "dtype": "float32"}],
    ids=str,
)
def test_both_are_what_they_are_apart(
    tagger_folder: Path, write_text: Text, precision: str, options: dict[str, object]
) -> None:
    encoder, tagger = load(tagger_folder, precision, **options)
    lengths = (1, 0, 5, 5, 30, 61, 62, 63, 64, 200, 17, 500, 30)
    texts = [write_text(seed, length) for seed, length in enumerate(lengths)]
    encoded, entities = encode_and_tag(encoder, tagger, texts)
    expected, expected_entities = encoder.encode(texts), tagger.find_entities(texts)
    assert encoded.vectors.tobytes() == expected.vectors.tobytes()
    np.testing.assert_array_equal(encoded.n_windows, expected.n_windows)
    np.testing.assert_array_equal(encoded.n_tokens, expected.n_tokens)
    assert entities.lengths.sum() > 10
    for column in COLUMNS:
        found, wanted = getattr(entities, column), getattr(expected_entities, column)
        assert found.tobytes() == wanted.tobytes(), column


def test_the_trunk_runs_once(
    tagger_folder: Path, write_text: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, tagger = load(tagger_folder, "exact")
    texts = [write_text(seed, 20) for seed in range(8)]
    forward, n_tokens = encoder.trunk.forward, []

    def count(pack: Pack, *, n_layers: int | None = None) -> object:
        n_tokens.append(len(pack.ids))
        return forward(pack, n_layers=n_layers)

    monkeypatch.setattr(encoder.trunk, "forward", count)
    encode_and_tag(encoder, tagger, texts)
    assert sum(n_tokens) == encoder.count_tokens(texts).sum()


def test_only_long_texts_and_no_texts(tagger_folder: Path, write_text: Text) -> None:
    encoder, tagger = load(tagger_folder, "exact")
    for texts in ([write_text(1, 300), write_text(2, 90)], []):
        encoded, entities = encode_and_tag(encoder, tagger, texts)
        assert encoded.vectors.tobytes() == encoder.encode(texts).vectors.tobytes()
        assert entities.start.tobytes() == tagger.find_entities(texts).start.tobytes()


def test_a_text_that_the_tagger_cannot_read_is_an_error(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path)
    with (folder / "vocab.txt").open("a", encoding="utf-8") as vocabulary:
        vocabulary.write("龘\n")
    encoder, tagger = load(folder, "exact")
    with pytest.raises(EncodingError):
        encode_and_tag(encoder, tagger, ["公司", "龘", "合同"])
