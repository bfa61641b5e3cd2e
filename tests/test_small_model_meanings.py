"""How the built-in model is taught what words mean: lexicon, table, targets, and their place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

if TYPE_CHECKING:
    from small_model.meanings import Meanings
    from small_model.network import Network
    from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.usefixtures("scripts_are_importable")


@pytest.fixture
def tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(ROOT / "data" / "models" / "zh-small" / "tokenizer.json"))


def make_table(*words: str) -> Meanings:
    from small_model.meanings import Meanings
    from small_model.shape import MEANING

    chance = np.random.default_rng(0)
    table = chance.normal(size=(len(words), MEANING)).astype(np.float32)
    weights = np.ones(len(words), np.float32)
    return Meanings({word: row for row, word in enumerate(words)}, table, weights)


def make_network(seed: int) -> Network:
    from small_model.network import Network, small_config
    from small_model.shape import FEATURES, KEPT

    torch.manual_seed(seed)
    start = np.random.default_rng(seed).normal(size=(60, KEPT + FEATURES)).astype(np.float32) / 20
    return Network(small_config(60), start).eval()


def spell(text: str) -> list[int]:
    return list(map(ord, text))


def test_no_group_or_filler_stands_twice() -> None:
    from small_model.lexicon import read_fillers, read_groups

    groups = [tuple(sorted(group)) for group in read_groups()]
    assert len(groups) == len(set(groups)) > 900
    assert not [one for one in groups for other in groups if set(one) < set(other)]
    assert all(len(group) == len(set(group)) > 1 for group in groups)
    assert len(read_fillers()) == len(set(read_fillers())) > 200


def test_members_of_a_group_are_exchanged_longest_first() -> None:
    from small_model.lexicon import Synonyms, read_groups

    synonyms = Synonyms(spell)
    text = "老公醉酒驾驶，xyz"
    mates = {
        member: {one for group in read_groups() if member in group for one in group}
        for member in ("老公", "醉酒驾驶")
    }
    allowed = {f"{one}{other}，xyz" for one in mates["老公"] for other in mates["醉酒驾驶"]}
    rng = np.random.default_rng(4)
    found = {
        "".join(map(chr, synonyms.exchange(np.array(spell(text)), rng, 1.0))) for _ in range(200)
    }
    assert found <= allowed
    assert len(found) > len(allowed) // 2
    assert "".join(map(chr, synonyms.exchange(np.array(spell(text)), rng, 0.0))) == text
    for _ in range(50):
        one, other = ("".join(map(chr, ids)) for ids in synonyms.draw_pair(rng))
        assert one
        assert other


def test_words_of_a_passage_are_exchanged_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """美 息 书 are members: nothing of them may be found inside 美国, 信息 or 书记员."""
    from small_model import joint
    from small_model.corpus import Corpus
    from small_model.lexicon import read_groups
    from small_model.masking import MaskedTask
    from tokenizers import Tokenizer

    members = {word for group in read_groups() for word in group}
    assert {"美", "息", "书"} <= members
    assert not {"美国", "信息", "书记员"} & members
    monkeypatch.setattr(joint, "EXCHANGED", 1.0)
    whole = Tokenizer.from_file(str(ROOT / "data" / "models" / "zh-small" / "tokenizer.json"))
    corpus = Corpus({"own": ["本合同"]})
    masked = MaskedTask(corpus, whole, "cpu", 256)
    task = joint.JointTask(corpus, whole, masked, "cpu", make_table("合同"))
    text = "美国老公收到信息，书记员"
    exchanged = {task._exchange(text, np.random.default_rng(seed)) for seed in range(40)}
    assert len(exchanged) > 2
    for one in exchanged:
        assert one.startswith("美国")
        assert "信息，书记员" in one


def test_fillers_only_follow_the_clause() -> None:
    from small_model.lexicon import MOST_FILLERS, Fillers, read_fillers

    clause, rng, longest = np.array(spell("违约")), np.random.default_rng(5), 0
    fillers = Fillers(spell)
    for _ in range(100):
        text = "".join(map(chr, fillers.add_to(clause, rng, 1.0)))
        assert text.startswith("违约")
        longest = max(longest, len(text) - 2)
    assert 0 < longest <= MOST_FILLERS * max(map(len, read_fillers()))
    assert fillers.add_to(clause, rng, 0.0) is clause


def test_each_token_is_asked_for_its_own_word(tokenizer: Tokenizer) -> None:
    meanings = make_table("合同", "违约金")
    texts = ["合同，违约金。", "ABC合同蝴蝶，合同，合同"]
    encoded = tokenizer.encode_batch(texts)
    numbers, wanted = meanings.targets(texts, encoded)
    assert numbers.shape == (2, max(len(one.ids) for one in encoded))
    assert not wanted[0].any()
    for row, text in enumerate(texts):
        asked = sorted(set(numbers[row].tolist()) - {-1, 0})
        np.testing.assert_allclose(wanted[asked].sum(0), meanings.sum_of(text), atol=1e-5)
    first = dict(zip(encoded[0].tokens, numbers[0].tolist(), strict=False))
    assert first["违"] == first["约"] == first["金"] != first["合"] == first["同"]
    assert first["，"] == first["。"] == first["[CLS]"] == first["[SEP]"] == 0
    second = dict(zip(encoded[1].tokens, numbers[1].tolist(), strict=False))
    assert second["合"] > first["金"]
    assert second["蝶"] == -1  # no vector: nothing is asked
    assert second[encoded[1].tokens[1]] == 0  # not Chinese
    padding = numbers[0, len(encoded[0].ids) :]
    assert len(padding)
    assert padding.eq(-1).all()


def test_heaps_hold_the_words_by_their_weights() -> None:
    from small_model.meanings import Meanings

    table = make_table("合同", "蝴蝶", "违约")
    heavy = Meanings(table.places, table.table, np.array([0.0, 3.0, 1.0], np.float32))
    rng = np.random.default_rng(6)
    heaps = [heavy.draw_heap(rng, 64) for _ in range(100)]
    assert all(len(heap) <= 64 for heap in heaps)
    joined = "".join(heaps)
    assert "合同" not in joined
    assert 2 < joined.count("蝴蝶") / joined.count("违约") < 4


def test_words_that_keep_company_become_alike() -> None:
    """Two subjects of ten words each; every passage is of one of them."""
    from small_model.contrast import Lesson, learn_pairs
    from small_model.lexicon import Fillers, Synonyms
    from small_model.meanings import PLAN, Pairing

    chance = np.random.default_rng(1)
    streams = [chance.integers(0, 10, 80) + 10 * (n % 2) for n in range(60)]
    pairing = Pairing(streams, Synonyms(lambda _: []), Fillers(lambda _: []))
    start = chance.normal(size=(20, 8)).astype(np.float32) / 20
    lesson, said = Lesson(300, 32, 3), list[str]()
    table = learn_pairs(start.copy(), pairing.draw_step, PLAN, lesson, said.append)
    again = learn_pairs(start.copy(), pairing.draw_step, PLAN, lesson, said.append)
    np.testing.assert_array_equal(table, again)
    assert len(said) == 6

    def contrast(vectors: np.ndarray) -> float:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        near = unit @ unit.T
        same = np.add.outer(np.arange(20) // 10, np.arange(20) // 10) % 2 == 0
        return float(near[same & ~np.eye(20, dtype=bool)].mean() - near[~same].mean())

    assert contrast(table) > contrast(start) + 0.5


def test_groups_are_drawn_together_and_rare_words_move_to_them() -> None:
    from small_model.meanings import draw_together

    begun = np.eye(6, dtype=np.float32)
    rare = np.array([False, False, True, False, False, False])
    table = draw_together(begun, [[(0,), (1,), (2,)], [(3, 4), (5,)]], is_rare=rare)
    np.testing.assert_allclose(np.linalg.norm(table, axis=1), 1, atol=1e-6)
    near = table @ table.T
    assert 0.5 < near[0, 1] < 0.9  # halfway: they keep what the texts told
    assert near[2, 0] > 0.9  # nothing but its group is known of it
    assert near[5, 3] > 0.3
    np.testing.assert_array_equal(table[[3, 4]], begun[[3, 4]])  # parts of a phrase stay
    assert not near[:3, 3:].any()


def test_saying_meanings_changes_no_label_and_no_guess() -> None:
    from small_model.shape import MEANT

    network = make_network(2)
    ids = torch.randint(5, 60, (3, 12))
    asked = torch.where(torch.rand(3, 12) < 0.3, ids, -100)
    with torch.inference_mode():
        before = network.states(ids), network.classifier(network.states(ids))
        guessed = network.masked_loss(ids, asked)
    for loudness in (1.0, 0.7):
        network.say_meanings(loudness)
        with torch.inference_mode():
            after = network.states(ids), network.classifier(network.states(ids))
            torch.testing.assert_close(after[1], before[1], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(network.masked_loss(ids, asked)[0], guessed[0])
        louder = (after[0] / before[0])[..., MEANT]
        wanted = torch.full_like(louder, loudness / 0.2)
        torch.testing.assert_close(louder, wanted, atol=1e-3, rtol=1e-3)
        others = torch.ones(after[0].shape[-1], dtype=torch.bool)
        others[MEANT] = False
        assert torch.equal(after[0][..., others], before[0][..., others])


def test_the_loss_is_the_share_of_the_meaning_that_is_not_said() -> None:
    from small_model.shape import LEXICAL, MEANING, MEANT

    network = make_network(3)
    network.say_meanings(1.0)
    ids = torch.randint(5, 60, (2, 9))
    numbers = torch.tensor([[1, 1, 2, -1, 3, 3, 3, 4, 4], [5, 5, -1, 6, 6, 7, 8, 8, -1]])
    with torch.inference_mode():
        states = network.states(ids)
        bag = network.masked.bert.embeddings.word_embeddings.weight[:, :LEXICAL][ids]
        scale = (states[..., :LEXICAL] * bag).sum() / bag.square().sum()
        said = torch.zeros(9, MEANING)
        for number, state in zip(
            numbers.flatten(), (states[..., MEANT] / scale).flatten(0, 1), strict=True
        ):
            if number > 0:
                said[number] += state
        half = network.text_losses(ids, None, (numbers, 2 * said))
        nothing = network.text_losses(ids, None, (numbers, said))
        silent = torch.zeros_like(numbers)
        loud = network.text_losses(ids, None, (silent, torch.cat([said * 0, said])))
    assert set(half) == {"bag", "meaning"}
    assert float(half["meaning"]) == pytest.approx(0.25, abs=1e-4)
    assert float(nothing["meaning"]) == pytest.approx(0, abs=1e-6)
    noise = (states[..., MEANT] / scale).square().sum() / said.square().sum()
    assert float(loud["meaning"]) == pytest.approx(1 + float(noise), rel=1e-4)


def test_what_is_written_says_meanings_and_labels_as_the_network_does(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    from small_model.export import QUIETER, write_model
    from small_model.shape import KEPT, MEANT, WIDTH
    from small_model.vocabulary import write_tokenizer
    from transformers import AutoModelForTokenClassification

    pieces = [tokenizer.id_to_token(number) for number in range(60)]
    write_tokenizer(tmp_path, pieces)
    network = make_network(4)
    network.say_meanings(1.2)
    quiet = network.masked.bert.encoder.layer[-1].output.LayerNorm.weight.detach().clone()
    write_model(tmp_path / "out", network, tmp_path)
    written = AutoModelForTokenClassification.from_pretrained(
        tmp_path / "out", dtype=torch.float32
    ).eval()
    loudness = written.bert.encoder.layer[-1].output.LayerNorm.weight.detach()
    is_quiet = torch.arange(WIDTH) >= KEPT
    is_quiet[MEANT] = False
    torch.testing.assert_close(
        loudness[MEANT], torch.full_like(loudness[MEANT], 1.2), rtol=1e-3, atol=0
    )
    torch.testing.assert_close(loudness[is_quiet], QUIETER * quiet[is_quiet], rtol=1e-3, atol=0)
    torch.testing.assert_close(loudness[:KEPT], quiet[:KEPT], rtol=1e-3, atol=0)
    ids = torch.randint(5, 60, (2, 9))
    with torch.inference_mode():
        wanted = network.classifier(network.states(ids))
        torch.testing.assert_close(written(ids).logits, wanted, rtol=0.02, atol=0.02)
