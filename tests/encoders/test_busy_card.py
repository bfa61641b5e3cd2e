"""A card whose forward takes a set time, by a clock that its users advance: how busy it is kept.

Real texts go through the real encoder; tokens, launches and finished rows take set times of the
host, packs take set times of the card, and a host that waits for rows goes to the time when they
are there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from featpipe.encoders import forward
from featpipe.encoders.encode_and_tag import encode_and_tag
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.packing import cut_portions
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.errors import EncodingError

if TYPE_CHECKING:
    from featpipe.encoders.encoded import Encoded
    from featpipe.encoders.packing import Pack
    from featpipe.encoders.tokens import Ints, Tokens
    from featpipe.encoders.transfer import Rows
    from featpipe.encoders.trunk import Trunk

TEXTS = ["合" * (20 + n % 17) + str(n) for n in range(900)]


@dataclass
class Machine:
    """Times of a host and of a card, in microseconds a token; a launch is paid per pack."""

    card: float
    tokenize: float
    finish: float = 0.1
    launch: float = 20.0
    now: float = 0.0
    free_at: float = 0.0
    busy: float = 0.0
    most_waiting: int = 0
    waiting: set[int] = field(default_factory=set)

    @property
    def share(self) -> float:
        """Of the time until now in which the card computed."""
        return self.busy / self.now

    def compute(self, n_tokens: int) -> None:
        """Send a pack off: the host goes on at once, the card when it is done with those before."""
        self.now += self.launch
        taken = n_tokens * self.card
        self.free_at = max(self.free_at, self.now) + taken
        self.busy += taken


class SimulatedCard:
    """A trunk on a card; its vectors are the processor's."""

    is_invariant, needs_one_thread, notes = True, False, ()

    def __init__(self, trunk: Trunk, machine: Machine) -> None:
        self._trunk, self._machine = trunk, machine
        self.device = torch.device("cuda", 0)
        self.width, self.n_words = trunk.width, trunk.n_words

    def copy_to(self, **_options: object) -> Trunk:
        return self._trunk

    def forward(self, pack: Pack, *, n_layers: int | None = None) -> torch.Tensor:
        self._machine.compute(len(pack.ids))
        return self._trunk.forward(pack, n_layers=n_layers)


def encoder_on(machine: Machine, plain: Encoder, patch: pytest.MonkeyPatch) -> Encoder:
    """The encoder `plain` on a simulated card."""

    class SimulatedArrival:
        def __init__(self, rows: torch.Tensor, _begun: object = None) -> None:
            self._rows, self._at = rows, machine.free_at
            machine.waiting.add(id(self))
            machine.most_waiting = max(machine.most_waiting, len(machine.waiting))

        def take(self) -> Rows:
            machine.now = max(machine.now, self._at)
            machine.waiting.remove(id(self))
            rows: Rows = self._rows.numpy()
            return rows

        card_s = 0.0

    patch.setattr(forward, "Arrival", SimulatedArrival)
    patch.setattr(forward, "mark", lambda _device: None)
    patch.setattr(forward, "CUDA_BUDGET", 512)
    patch.setattr("featpipe.encoders.portions.CUDA_BUDGET", 512)
    patch.setattr("featpipe.encoders.portions.PORTION_CHARACTERS", 8 * 512)
    card = SimulatedCard(plain.trunk, machine)
    encoder = Encoder(card, plain.tokenizer, plain.spec)
    tokenize, finish = plain.tokenizer.encode, encoder.make_encoded

    def tokenize_slowly(texts: list[str], *, with_offsets: bool = False) -> Tokens:
        tokens = tokenize(texts, with_offsets=with_offsets)
        machine.now += len(tokens.ids) * machine.tokenize
        return tokens

    def finish_slowly(
        vectors: Rows, n_windows: Ints, tokens: Tokens, inverse: Ints, *, on_fault: str
    ) -> Encoded:
        machine.now += len(tokens.ids) * machine.finish
        return finish(vectors, n_windows, tokens, inverse, on_fault=on_fault)

    patch.setattr(encoder.tokenizer, "encode", tokenize_slowly)
    patch.setattr(encoder, "make_encoded", finish_slowly)
    return encoder


@pytest.fixture
def plain(encoder_folder: Path) -> Encoder:
    return Encoder.load(encoder_folder, EncoderSettings(precision="exact", dtype="float32"))


@pytest.mark.parametrize(
    ("machine", "least", "most"),
    [
        pytest.param(Machine(card=1.0, tokenize=0.1), 0.95, 1.0, id="host is fast"),
        pytest.param(Machine(card=1.0, tokenize=0.7), 0.9, 1.0, id="host is just fast enough"),
        pytest.param(Machine(card=0.1, tokenize=0.02, finish=0.02), 0.9, 1.0, id="small model"),
        pytest.param(Machine(card=1.0, tokenize=2.0), 0.4, 0.55, id="slow tokenizer"),
    ],
)
def test_the_card_computes_while_the_host_works(
    plain: Encoder, monkeypatch: pytest.MonkeyPatch, machine: Machine, least: float, most: float
) -> None:
    machine = replace(machine, waiting=set())
    expected = plain.encode(TEXTS).vectors
    found = encoder_on(machine, plain, monkeypatch).encode(TEXTS).vectors
    np.testing.assert_array_equal(found, expected)
    assert least <= machine.share <= most
    assert 4 <= machine.most_waiting <= 24  # two portions of 8 packs, and what 512 do not fill


def test_the_slower_of_host_and_card_decides(
    plain: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(card=1.0, tokenize=3.0)
    n_tokens = int(plain.count_tokens(TEXTS).sum())
    encoder_on(machine, plain, monkeypatch).encode(TEXTS)
    assert machine.now <= 1.1 * n_tokens * (machine.tokenize + machine.finish)


def test_entities_come_with_vectors_while_the_card_computes(
    tagger_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EncoderSettings(precision="exact", dtype="float32")
    plain = Encoder.load(tagger_folder, settings)
    alone = Tagger.load(tagger_folder, TaggerSettings(precision="exact"), trunk=plain.trunk)
    texts = [*TEXTS, "", "合" * 700]
    expected, expected_entities = encode_and_tag(plain, alone, texts)
    machine = Machine(card=1.0, tokenize=0.1)
    encoder = encoder_on(machine, plain, monkeypatch)
    tagger = Tagger(encoder.trunk, alone.head, alone.tokenizer, alone.spec)
    monkeypatch.setattr(tagger, "score", alone.score)  # nothing is on a real card
    found, entities = encode_and_tag(encoder, tagger, texts)
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    np.testing.assert_array_equal(found.n_windows, expected.n_windows)
    assert entities.lengths.sum() > 100
    assert machine.share >= 0.9
    assert machine.most_waiting <= 24
    machine.most_waiting = 0
    for given in (entities, tagger.find_entities(texts)):
        for name in ("lengths", "start", "end", "label", "score"):
            column = getattr(given, name)
            np.testing.assert_array_equal(column, getattr(expected_entities, name))
    assert 4 <= machine.most_waiting <= 24


def test_units_of_an_error_are_numbered_as_given(
    tagger_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Encoder.load(tagger_folder, EncoderSettings(precision="exact"))
    encoder = encoder_on(Machine(card=1.0, tokenize=0.1), plain, monkeypatch)
    tagger = Tagger.load(tagger_folder, TaggerSettings(precision="exact"), trunk=plain.trunk)
    score = tagger.score

    def score_badly(states: torch.Tensor, pack: Pack) -> torch.Tensor:
        scores = score(states, pack)
        scores[torch.from_numpy(np.repeat(pack.lengths < 9, pack.lengths))] = torch.nan
        return scores

    monkeypatch.setattr(tagger, "score", score_badly)
    with pytest.raises(EncodingError) as caught:
        encode_and_tag(encoder, tagger, [*TEXTS[:300], "合同", *TEXTS[300:]])
    assert caught.value.units == (300,)


def test_texts_repeat_fail_and_come_in_any_order_as_on_the_processor(
    plain: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*TEXTS[::-3], "", *TEXTS[5:9], "合" * 700]
    monkeypatch.setattr(plain.trunk, "n_words", plain.trunk.n_words - 1)
    expected = plain.encode(texts, on_fault="report")
    encoder = encoder_on(Machine(card=1.0, tokenize=0.5), plain, monkeypatch)
    found = encoder.encode(texts, on_fault="report")
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    np.testing.assert_array_equal(found.n_tokens, expected.n_tokens)
    np.testing.assert_array_equal(found.n_windows, expected.n_windows)
    assert found.faults == expected.faults
    assert found.n_windows[-1] > 1
    assert encoder.encode([]).vectors.shape == plain.encode([]).vectors.shape


def test_portions_hold_all_texts_in_order_and_grow() -> None:
    texts = ["x" * (1 + n % 7) for n in range(200)]
    portions = list(cut_portions(texts, first=10, most=40))
    assert [text for portion in portions for text in portion] == texts
    sizes = [sum(map(len, portion)) for portion in portions]
    assert sizes[:4] == pytest.approx([10, 20, 40, 40], abs=7)
    assert max(sizes) < 47
    assert list(cut_portions([], first=1, most=1)) == []
    assert list(cut_portions(["long" * 9], first=1, most=1)) == [["long" * 9]]
