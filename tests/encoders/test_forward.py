"""A card that is too small, stood in for by a trunk that raises as torch does."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
import torch
from test_weights import tokenizer_json
from tiny_checkpoints import vocabulary
from transformers import BertConfig, BertModel, Qwen3Config, Qwen3Model

from featpipe.encoders.bert import PackedBert
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.packing import Sequences
from featpipe.encoders.spec import EncoderSettings
from featpipe.encoders.tagger import Tagger

if TYPE_CHECKING:
    from featpipe.encoders.packing import Pack


class SmallCard:
    """Says it is a card, and has room for so many tokens."""

    def __init__(self, trunk: PackedBert, *, room: int) -> None:
        self._trunk = trunk
        self._room = room
        self.device = torch.device("cuda", 0)
        self.width, self.n_words = trunk.width, trunk.n_words
        self.is_invariant, self.needs_one_thread, self.notes = True, False, ()
        self.sizes: list[int] = []
        self.rows: list[int] = []

    def copy_to(self, **_options: object) -> PackedBert:
        return self._trunk

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        self.sizes.append(len(pack.ids))
        self.rows.append(max(len(pack.ids), pack.n_rows))
        if self.rows[-1] > self._room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return self._trunk.forward(pack, n_layers=n_layers)


@pytest.fixture
def without_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events, by which a card's time is taken, need one."""
    monkeypatch.setattr("featpipe.encoders.forward.mark", lambda _device: None)


TEXTS = ["合" * length for length in (1, 2, 3, 5, 8, 8, 20, 30, 55, 60, 60, 200)]


@pytest.mark.usefixtures("without_events")
@pytest.mark.parametrize("room", [16_384, 10_000, 200, 62, 40, 5, 0])
def test_nothing_is_lost_on_a_card_that_is_too_small(encoder_folder: Path, room: int) -> None:
    plain = Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
    assert isinstance(plain.trunk, PackedBert)
    card = SmallCard(plain.trunk, room=room)
    encoder = Encoder(card, plain.tokenizer, plain.spec)
    expected = plain.encode(TEXTS)
    found = encoder.encode(TEXTS)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert (encoder.notes != ()) == (max(card.rows) > room)
    card.rows.clear()
    encoder.encode(TEXTS)
    assert (max(card.rows) > room) == (max(card.sizes) > room)  # it has learnt its size
    if room == 40:
        assert "did not fit the card and were computed on the CPU" in encoder.notes[-1]


def test_memory_that_is_short_on_the_cpu_is_an_error(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(encoder_folder)

    def fail(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(encoder.trunk, "forward", fail)
    with pytest.raises(torch.OutOfMemoryError):
        encoder.encode(["合同"])


def test_a_pack_that_fails_on_its_thread_fails_the_call_and_nothing_else(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(encoder_folder, threads=2)
    texts = [*TEXTS, *("同" * length for length in range(1, 60))]
    expected = encoder.encode(texts).vectors
    before = torch.get_num_threads()
    forward = encoder.trunk.forward
    threads = set()

    def fail_with_short_ones(pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        threads.add((threading.current_thread().name, torch.get_num_threads()))
        if pack.lengths.min() < 5:
            raise torch.OutOfMemoryError("no memory")
        return forward(pack, n_layers=n_layers)

    monkeypatch.setattr(encoder.trunk, "forward", fail_with_short_ones)
    with pytest.raises(torch.OutOfMemoryError):
        encoder.encode(texts)
    monkeypatch.undo()
    assert threading.current_thread().name not in {name for name, _ in threads}
    assert {count for _, count in threads} == {1}
    assert torch.get_num_threads() == before
    np.testing.assert_array_equal(encoder.encode(texts).vectors, expected)


def test_a_pack_runs_on_as_many_threads_as_its_size_is_worth(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EncoderSettings(dtype="float32", precision="exact")
    encoder = Encoder.load(encoder_folder, settings, threads=3)
    expected = {text: encoder.encode([text]).vectors for text in TEXTS}
    before, forward = torch.get_num_threads(), encoder.trunk.forward
    threads: list[int] = []

    def count(pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        threads.append(torch.get_num_threads())
        return forward(pack, n_layers=n_layers)

    monkeypatch.setattr(encoder.trunk, "forward", count)
    monkeypatch.setattr("featpipe.encoders.forward.NUMBERS_A_THREAD", 20 * encoder.trunk.width)
    for length, n_threads in ((1, 1), (30, 1), (55, 2), (60, 3)):
        text = "合" * length
        np.testing.assert_array_equal(encoder.encode([text]).vectors, expected[text])
        assert threads.pop() == n_threads, length
    assert torch.get_num_threads() == before


def test_one_thread_computes_a_pack_whose_bits_depend_on_their_number(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    forward = PackedBert.forward

    def count(self: PackedBert, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        threads.append(torch.get_num_threads())
        return forward(self, pack, n_layers=n_layers)

    monkeypatch.setattr(PackedBert, "forward", count)
    monkeypatch.setattr(PackedBert, "needs_one_thread", True)
    monkeypatch.setattr("featpipe.encoders.forward.NUMBERS_A_THREAD", 1)
    for n in (1, 3):
        Encoder.load(encoder_folder, EncoderSettings(precision="exact"), threads=n).encode(["合同"])
    assert threads == [1, 1]


@pytest.mark.parametrize("n_rows", [1, 700, 701, 3000])
def test_rows_beyond_a_packs_tokens_change_none_of_its_bytes(
    encoder_folder: Path, n_rows: int
) -> None:
    encoder = Encoder.load(encoder_folder, EncoderSettings(precision="exact"))
    tokens = encoder.tokenizer.encode(TEXTS[:-1])
    sequences = Sequences(tokens.ids, tokens.ends - tokens.lengths, tokens.lengths, (1,), (2,))
    numbers = np.arange(len(TEXTS) - 1)
    with torch.inference_mode():
        plain = encoder.trunk.forward(sequences.pack(numbers))
        found = encoder.trunk.forward(sequences.pack(numbers, n_rows=n_rows))
    assert torch.equal(found, plain)


@pytest.mark.usefixtures("without_events")
def test_every_pack_of_a_card_has_as_many_rows(encoder_folder: Path) -> None:
    plain = Encoder.load(encoder_folder, EncoderSettings(precision="exact"))
    assert isinstance(plain.trunk, PackedBert)
    card = SmallCard(plain.trunk, room=20_000)
    encoder = Encoder(card, plain.tokenizer, plain.spec)
    encoder.encode(TEXTS * 40)
    encoder.encode([text + str(number) for text in TEXTS for number in range(60)])
    encoder.encode(TEXTS[:1])
    assert len(card.rows) > 3
    assert set(card.rows) == {16_384}


class OverflowingCard(SmallCard):
    """As fp16 does with large activations: infinity for some sequences."""

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        states = super().forward(pack, n_layers=n_layers)
        at = 0
        for length in pack.lengths.tolist():
            if length in {5, 62}:
                states[at + 1] = float("inf")
            at += length
        return states


@pytest.mark.usefixtures("without_events")
def test_what_overflows_fp16_is_repeated_in_float32(encoder_folder: Path) -> None:
    plain = Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
    assert isinstance(plain.trunk, PackedBert)
    card = OverflowingCard(plain.trunk, room=20_000)
    encoder = Encoder(card, plain.tokenizer, plain.spec | {"precision": "mixed"})
    found = encoder.encode(TEXTS)
    np.testing.assert_array_equal(found.vectors, plain.encode(TEXTS).vectors)
    assert "overflowed fp16" in encoder.notes[-1]


# --- on a real card -------------------------------------------------------------------------------

needs_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.mark.gpu
@needs_card
@pytest.mark.parametrize(("precision", "least"), [("exact", 0.999999), ("mixed", 0.9999)])
def test_a_card_gives_the_vectors_of_the_cpu(
    encoder_folder: Path, precision: str, least: float
) -> None:
    settings = EncoderSettings(dtype="float32", precision=precision)
    on_cpu = (
        Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))
        .encode(TEXTS)
        .vectors
    )
    on_card = Encoder.load(encoder_folder, settings, device="cuda:0").encode(TEXTS).vectors
    lengths = np.linalg.norm(on_cpu, axis=1) * np.linalg.norm(on_card, axis=1)
    assert ((on_cpu * on_card).sum(1) / lengths).min() >= least


@pytest.mark.gpu
@needs_card
def test_copies_beside_the_computation_mix_nothing_up(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of packs in flight one behind the other, many times over: the same bytes."""
    settings = EncoderSettings(dtype="float32", precision="exact")
    texts = ["合" * (1 + n % 60) + str(n) for n in range(2000)]
    expected = Encoder.load(encoder_folder, settings).encode(texts).vectors
    monkeypatch.setattr("featpipe.encoders.forward.CUDA_BUDGET", 256)
    encoder = Encoder.load(encoder_folder, settings, device="cuda:0")
    first = encoder.encode(texts).vectors
    np.testing.assert_allclose(first, expected, atol=1e-4)
    for _ in range(20):
        np.testing.assert_array_equal(encoder.encode(texts).vectors, first)


@pytest.mark.gpu
@needs_card
@pytest.mark.parametrize("precision", ["exact", "mixed"])
def test_a_text_has_the_same_bytes_in_any_company_on_a_card(
    tmp_path: Path, precision: Literal["exact", "mixed"]
) -> None:
    """At BERT-base's width, where kernels are chosen by the number of rows."""
    config = BertConfig(vocab_size=len(vocabulary()), num_hidden_layers=3)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    settings = EncoderSettings(dtype="float32", precision=precision)
    encoder = Encoder.load(tmp_path, settings, device="cuda:0")
    texts = ["合同" * (1 + n % 200) + str(n) for n in range(400)]
    together = encoder.encode(texts).vectors
    for some in ([0], [7, 3], list(range(0, 400, 3)), list(range(399, -1, -1))):
        found = encoder.encode([texts[n] for n in some]).vectors
        np.testing.assert_array_equal(found, together[some])


@pytest.mark.gpu
@needs_card
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")  # memory ran out while it was made
def test_memory_that_is_short_on_a_card_halves_the_pack(encoder_folder: Path) -> None:
    """Torch refuses memory beyond a share of the card's, as a full card does."""
    settings = EncoderSettings(dtype="float32", precision="mixed")
    encoder = Encoder.load(encoder_folder, settings, device="cuda:0")
    texts = ["合" * (1 + n % 60) + str(n) for n in range(4000)]
    expected = encoder.encode(texts).vectors
    encoder = Encoder.load(encoder_folder, settings, device="cuda:0")  # nothing is recorded yet
    _, total = torch.cuda.mem_get_info()
    torch.cuda.empty_cache()
    held = torch.cuda.memory_reserved()
    torch.cuda.set_per_process_memory_fraction((held + (2 << 20)) / total)
    try:
        found = encoder.encode(texts).vectors
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert any("halved" in note or "on the CPU" in note for note in encoder.notes)
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    assert ((expected * found).sum(1) / lengths).min() >= 0.9999


@pytest.mark.gpu
@needs_card
def test_a_decoder_on_a_card_gives_the_vectors_of_the_cpu(tmp_path: Path) -> None:
    heads = {"head_dim": 32, "num_key_value_heads": 2, "num_attention_heads": 4}
    sizes = {"hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 256}
    torch.manual_seed(0)
    Qwen3Model(Qwen3Config(vocab_size=len(vocabulary()), **heads, **sizes)).save_pretrained(
        tmp_path
    )
    (tmp_path / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    on_cpu = Encoder.load(tmp_path, EncoderSettings(precision="exact", dtype="float32"))
    settings = EncoderSettings(precision="mixed", dtype="float32")
    on_card = Encoder.load(tmp_path, settings, device="cuda:0")
    assert "its own attention replaced" in on_card.notes[0]
    expected, found = on_cpu.encode(TEXTS).vectors, on_card.encode(TEXTS).vectors
    lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    assert ((expected * found).sum(1) / lengths).min() >= 0.9999


@pytest.mark.gpu
@needs_card
def test_recorded_forwards_on_a_card_give_the_bytes_of_others(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EncoderSettings(dtype="float32", precision="mixed")
    texts = ["合" * (1 + n % 60) + str(n) for n in range(2000)]
    monkeypatch.setenv("FEATPIPE_CUDA_GRAPHS", "0")
    expected = Encoder.load(encoder_folder, settings, device="cuda:0").encode(texts).vectors
    monkeypatch.delenv("FEATPIPE_CUDA_GRAPHS")
    encoder = Encoder.load(encoder_folder, settings, device="cuda:0")
    for _ in range(3):
        np.testing.assert_array_equal(encoder.encode(texts).vectors, expected)
    assert not any("recorded" in note for note in encoder.notes)


@pytest.mark.gpu
@needs_card
def test_a_cards_time_is_taken(encoder_folder: Path) -> None:
    encoder = Encoder.load(encoder_folder, device="cuda:0")
    encoder.encode(TEXTS)
    assert encoder.forwarder.take_card_s() > 0
    assert encoder.forwarder.take_card_s() == 0


@pytest.mark.gpu
@needs_card
def test_a_card_finds_the_entities_of_the_cpu(tagger_folder: Path) -> None:
    on_cpu = Tagger.load(tagger_folder).find_entities(TEXTS)
    on_card = Tagger.load(tagger_folder, device="cuda:0").find_entities(TEXTS)
    # Random weights leave some labels all but tied, and the precisions round otherwise.
    assert 0.99 < on_cpu.lengths.sum() / on_card.lengths.sum() < 1.01
    found, expected = (
        {
            (unit, *rest)
            for unit, *rest in zip(
                np.repeat(np.arange(len(TEXTS)), entities.lengths).tolist(),
                entities.start.tolist(),
                entities.end.tolist(),
                entities.label.tolist(),
                strict=True,
            )
        }
        for entities in (on_card, on_cpu)
    )
    assert len(found & expected) > 0.98 * len(expected)
