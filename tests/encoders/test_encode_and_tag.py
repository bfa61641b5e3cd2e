"""One forward for vectors and entities: byte for byte what two give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from tiny_checkpoints import save_tagger

from featpipe.encoders.encode_and_tag import encode_and_tag
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.errors import EncodingError

if TYPE_CHECKING:
    from featpipe.encoders.packing import Pack

Text = Callable[[int, int], str]
SMALL = Path(__file__).parents[2] / "data" / "models" / "zh-small"
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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["exact", "mixed"])
def test_on_a_card_both_are_what_they_are_apart(precision: str) -> None:
    numbers = np.random.default_rng(0).permutation(6000).tolist()
    sentence = "江苏长电科技股份有限公司与王建国在上海签订合同。"
    texts = [f"{chr(0x4E00 + n % 900)}{sentence * (1 + n % 9)}{n}" for n in numbers]
    encoder = Encoder.load(SMALL, EncoderSettings(precision=precision), device="cuda:0")  # type: ignore[arg-type]
    settings = TaggerSettings(precision=precision)  # type: ignore[arg-type]
    tagger = Tagger.load(SMALL, settings, device="cuda:0", trunk=encoder.trunk)
    encoded, entities = encode_and_tag(encoder, tagger, texts)
    apart = tagger.find_entities(texts)
    assert encoded.vectors.tobytes() == encoder.encode(texts).vectors.tobytes()
    for column in COLUMNS:
        assert getattr(entities, column).tobytes() == getattr(apart, column).tobytes(), column
    some = range(0, len(texts), 20)
    slow = Tagger.load(SMALL, TaggerSettings(precision="exact")).find_entities(
        [texts[at] for at in some]
    )
    same = entities.take(np.array(some))
    assert len(slow.start) > 500
    on_card, on_processor = (
        set(zip(np.repeat(some, e.lengths), e.start, e.end, e.label, strict=True))
        for e in (same, slow)
    )
    assert len(on_card & on_processor) >= 0.995 * len(on_card | on_processor)
