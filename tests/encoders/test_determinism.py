"""The same bytes whatever the batch, its order, the packs and the threads: compared bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_checkpoints import save_encoder, save_tagger

from featpipe.encoders.bert import PackedBert
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.packing import Sequences
from featpipe.encoders.pooling import find_single
from featpipe.encoders.spec import EncoderSettings
from featpipe.encoders.tagger import Tagger

Text = Callable[[int, int], str]

#: Widths and heads that reach every kernel: narrow, like MiniLM's, like BERT-base's.
SHAPES = {
    "narrow": {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64},
    "like MiniLM": {
        "hidden_size": 384,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
        "num_hidden_layers": 1,
    },
    "like BERT-base": {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "num_hidden_layers": 1,
    },
    "odd": {"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 100},
}


@pytest.fixture(scope="module", params=SHAPES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("shape"), **SHAPES[request.param])


@pytest.fixture(scope="module")
def texts(write_text: Text) -> list[str]:
    """Every length from nothing to beyond a window, many of them more than once."""
    lengths = [*range(62), 1, 1, 2, 2, 3, 3, 5, 5, 17, 17, 17, 30, 30, 61, 61, 80, 200, 500]
    return list(dict.fromkeys(write_text(seed, length) for seed, length in enumerate(lengths)))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("precision", ["exact", "mixed", "approx"])
def test_no_byte_depends_on_other_texts_order_packs_or_threads(
    folder: Path, texts: list[str], precision: str, pooling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EncoderSettings(dtype="float32", precision=precision, pooling=pooling)
    encoder = Encoder.load(folder, settings, threads=1)
    assert encoder.is_invariant
    expected = dict(zip(texts, encoder.encode(texts).vectors, strict=True))
    chance = random.Random(7)  # noqa: S311 - an order, not a secret
    changed: list[str] = []
    for threads, budget, share in [
        (1, 16, 1),
        (2, 64, 2),
        (3, 500, 1),
        (5, 100, 1),
        (2, 4096, 3),
        (1, 9000, 2),
    ]:
        monkeypatch.setattr("featpipe.encoders.forward.CPU_BUDGET", budget)
        other = Encoder.load(folder, settings, threads=threads)
        chosen = chance.sample(texts, len(texts) // share)
        changed += [
            f"{threads} threads, packs of {budget}: {text[:20]!r}"
            for text, vector in zip(chosen, other.encode(chosen).vectors, strict=True)
            if vector.tobytes() != expected[text].tobytes()
        ]
    changed += [
        f"alone: {text[:20]!r}"
        for text in chance.sample(texts, 25)
        if encoder.encode([text]).vectors[0].tobytes() != expected[text].tobytes()
    ]
    assert changed == []


@pytest.mark.parametrize("pooling", ["cls", "last"])
@pytest.mark.parametrize("precision", ["exact", "mixed", "approx"])
def test_a_token_computed_without_the_others_has_the_bytes_that_it_has_among_them(
    folder: Path, texts: list[str], precision: str, pooling: str
) -> None:
    settings = EncoderSettings(dtype="float32", precision=precision, pooling=pooling)
    encoder = Encoder.load(folder, settings)
    trunk, tokenizer = encoder.trunk, encoder.tokenizer
    assert isinstance(trunk, PackedBert)
    tokens = tokenizer.encode(texts[:60])
    starts = tokens.ends - tokens.lengths
    sequences = Sequences(tokens.ids, starts, tokens.lengths, tokenizer.prefix, tokenizer.suffix)
    for numbers in ([5], [0, 1], [*range(60)], [59, 59, 3]):
        pack = sequences.pack(np.array(numbers))
        rows = find_single(pack, pooling)
        assert rows is not None
        with torch.inference_mode():
            for n_layers in (0, None):
                alone = trunk.forward_rows(pack, rows, n_layers=n_layers)
                among = trunk.forward(pack, n_layers=n_layers)[rows]
                np.testing.assert_array_equal(alone.numpy(), among.numpy())


def test_copies_of_a_text_in_one_group_are_alike(folder: Path, write_text: Text) -> None:
    """Equal lengths are computed as one batch; a sequence's place in it must not matter."""
    encoder = Encoder.load(folder, EncoderSettings(dtype="float32", precision="mixed"))
    text = write_text(1, 20)
    expected = encoder.encode([text]).vectors[0]
    for count in (2, 3, 8, 33):
        others = [write_text(100 + number, 20) for number in range(count)]
        for place in (0, count // 2, count):
            batch = [*others[:place], text, *others[place:]]
            np.testing.assert_array_equal(encoder.encode(batch).vectors[place], expected)


def test_entities_do_not_depend_on_other_texts_either(tmp_path: Path, texts: list[str]) -> None:
    tagger = Tagger.load(save_tagger(tmp_path))

    def entities_of(batch: list[str]) -> list[bytes]:
        found = tagger.find_entities(batch)
        stops = np.cumsum(found.lengths)
        columns = (found.start, found.end, found.label, found.score)
        return [
            b"".join(column[stop - n : stop].tobytes() for column in columns)
            for stop, n in zip(stops, found.lengths, strict=True)
        ]

    together = entities_of(texts)
    assert sum(map(len, together)) > 1000
    assert [entities_of([text])[0] for text in texts] == together
    tagger.threads = 2
    assert entities_of(texts[::-1])[::-1] == together
