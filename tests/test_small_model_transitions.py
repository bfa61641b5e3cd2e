"""How the built-in model is taught which label follows which. Oracles: every path, pytorch-crf."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from random import Random

    from small_model.transitions import Crf, Lot

FOLDER = Path(__file__).resolve().parent.parent / "data" / "models" / "zh-small"
pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def make_crf(n_labels: int) -> Crf:
    from small_model.transitions import Crf

    return Crf(torch.randn(n_labels, n_labels), torch.randn(n_labels), torch.randn(n_labels))


def place_of(label: str) -> int:
    from small_model.network import LABELS

    return LABELS.index(label)


def say_nothing(_: str) -> None:
    pass


def test_all_paths_are_added_up() -> None:
    from small_model.transitions import add_up

    torch.manual_seed(0)
    crf, scores, lengths = make_crf(3), torch.randn(3, 4, 3), (4, 1, 2)
    for text, length in enumerate(lengths):
        paths = [
            crf.start[path[0]]
            + sum(scores[text, place, label] for place, label in enumerate(path))
            + sum(crf.between[one, two] for one, two in pairwise(path))
            + crf.end[path[-1]]
            for path in product(range(3), repeat=length)
        ]
        found = add_up(scores, torch.tensor(lengths), crf)[text]
        torch.testing.assert_close(found, torch.logsumexp(torch.stack(paths), 0))


def test_the_loss_is_that_of_pytorch_crf_and_unknown_labels_count_for_all() -> None:
    from small_model.network import LABELS
    from small_model.transitions import Lot, loss_of
    from torchcrf import CRF

    torch.manual_seed(1)
    n_labels, lengths = len(LABELS), torch.tensor([5, 3])
    crf, scores = make_crf(n_labels), torch.randn(2, 5, n_labels)
    oracle = CRF(n_labels, batch_first=True)
    oracle.load_state_dict({k.removeprefix("crf."): v for k, v in crf.named().items()})
    wanted = torch.randint(n_labels, (2, 5))
    mask = torch.arange(5) < lengths[:, None]

    def likelihood(labels: torch.Tensor) -> torch.Tensor:
        return oracle(scores, labels, mask, reduction="sum").detach()

    torch.testing.assert_close(loss_of(Lot(scores, wanted, lengths), crf), -likelihood(wanted) / 8)
    alternatives = wanted.repeat(n_labels, 1, 1)
    alternatives[:, 0, 2] = torch.arange(n_labels)
    wanted[0, 2] = -100
    every = torch.logsumexp(torch.stack([likelihood(one) for one in alternatives]), 0)
    torch.testing.assert_close(loss_of(Lot(scores, wanted, lengths), crf), -every / 8)


def test_an_inside_without_a_beginning_begins() -> None:
    from small_model.transitions import mend

    names = ["I-PER", "I-PER", "O", "I-ORG", "I-LOC", "B-LOC", "I-LOC", "?", "I-LAW", "B-PER"]
    wanted = np.array([-100 if name == "?" else place_of(name) for name in names])
    expected = ["B-PER", "I-PER", "O", "B-ORG", "B-LOC", "B-LOC", "I-LOC", "?", "I-LAW", "B-PER"]
    assert mend(wanted).tolist() == [-100 if name == "?" else place_of(name) for name in expected]


def make_lots() -> list[Lot]:
    """A company's inside looks like nothing, or like a place, to the scores alone."""
    from small_model.network import LABELS
    from small_model.transitions import Lot

    chance = np.random.default_rng(3)
    lots = []
    for _ in range(4):
        wanted = np.zeros((8, 12), np.int64)
        for row in wanted:
            at = int(chance.integers(0, 6))
            row[at] = place_of("B-ORG")
            row[at + 1 : at + 6] = place_of("I-ORG")
        scores = np.eye(len(LABELS), dtype=np.float32)[wanted] * 6
        blurred = wanted == place_of("I-ORG")
        scores[blurred, place_of("I-ORG")] = 2
        for label in ("O", "I-LOC", "B-ORG"):
            scores[blurred, place_of(label)] = chance.normal(2, 0.5, blurred.sum())
        lots.append(Lot(torch.from_numpy(scores), torch.from_numpy(wanted), torch.full((8,), 12)))
    return lots


def test_what_is_learnt_keeps_names_whole_and_is_the_same_each_time() -> None:
    from small_model.transitions import FORBIDDEN, learn_crf

    from featpipe.encoders.viterbi import Transitions, find_best_paths

    lots = make_lots()
    crf = learn_crf(lots, 100, 5, say_nothing)
    again = learn_crf(lots, 100, 5, say_nothing)
    assert all(torch.equal(one, two) for one, two in zip(crf, again, strict=True))
    transitions = Transitions(*(value.numpy() for value in crf))
    for lot in lots:
        scores = lot.scores.flatten(0, 1).numpy()
        path = find_best_paths(scores, lot.lengths.numpy(), transitions)
        assert path.tolist() == lot.wanted.flatten().tolist()
        assert scores.argmax(1).tolist() != path.tolist()
    assert crf.start[place_of("I-ORG")] == FORBIDDEN
    assert crf.between[place_of("O"), place_of("I-ORG")] == FORBIDDEN
    assert crf.between[place_of("B-PER"), place_of("I-ORG")] == FORBIDDEN
    assert crf.between[place_of("I-ORG"), place_of("I-ORG")] > -20
    assert crf.between[place_of("I-ORG"), place_of("B-PER")] > -20


class Drawing:
    """Gives these samples, one after another."""

    def __init__(self, *samples: tuple[str, list[tuple[int, int, str]]]) -> None:
        self.samples = list(samples)

    def draw(self, _: Random) -> tuple[str, list[tuple[int, int, str]]]:
        return self.samples.pop(0)


def test_samples_are_scored_as_the_tagger_scores_them() -> None:
    from small_model.network import LABELS
    from small_model.transitions import score_samples

    from featpipe.encoders.spec import TaggerSettings
    from featpipe.encoders.tagger import Tagger

    texts = ["王建国在北京。", "由abc公司和某某公司签署，2021年生效", "", " "]
    spans: list[tuple[int, int, str]] = [(0, 3, "PER"), (4, 6, "LOC")]
    drawing = Drawing(
        (texts[2], []),
        (texts[1], [(1, 6, "ORG"), (7, 11, "?")]),
        (texts[3], []),
        (texts[0], spans),
    )
    [lot] = score_samples(FOLDER, drawing, 4, 0)  # type: ignore[arg-type]
    tagger = Tagger.load(FOLDER, TaggerSettings(precision="exact"))
    tokens = tagger.tokenizer.encode(texts[:2], with_offsets=True)
    assert lot.lengths.tolist() == tokens.lengths.tolist()
    scores = tagger.score_tokens(texts[:2], tokens)
    for row, (end, length) in enumerate(zip(tokens.ends, tokens.lengths, strict=True)):
        found = lot.scores[row, :length].numpy()
        np.testing.assert_allclose(found, scores[end - length : end], atol=1e-3)
        assert (lot.wanted[row, length:] == -100).all()
    first, second = (
        ["?" if number < 0 else LABELS[number] for number in row] for row in lot.wanted.tolist()
    )
    assert first[:7] == ["B-PER", "I-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
    assert second == ["O", "B-ORG", *["I-ORG"] * 4, "O", *["?"] * 4, *["O"] * 7]


def test_tensors_are_added_to_a_written_file_and_the_others_stay(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file
    from small_model.export import add_tensors

    file = tmp_path / "model.safetensors"
    before = {"a.weight": torch.randn(3, 2).half(), "crf.transitions": torch.ones(2, 2).half()}
    save_file(before, file, metadata={"format": "pt"})
    crf = make_crf(2).named()
    add_tensors(file, crf | {"crf.start_transitions": torch.tensor([-10_000.0, 0.5])})
    after = load_file(file)
    assert after.keys() == before.keys() | crf.keys()
    assert torch.equal(after["a.weight"], before["a.weight"])
    assert torch.equal(after["crf.transitions"], crf["crf.transitions"].half())
    assert after["crf.start_transitions"].tolist() == [-10_000, 0.5]
    assert {value.dtype for value in after.values()} == {torch.float16}
    assert list(tmp_path.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o644
