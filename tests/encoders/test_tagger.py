"""Tagger: oracle transformers' pipeline with simple aggregation, where it sees the whole text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_checkpoints import save_tagger, vocabulary

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.entities import Tags, decode
from featpipe.encoders.spec import TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.encoders.tokens import Tokens
from featpipe.encoders.windows import cut_at_sentences, find_sentence_starts, own_starts
from featpipe.errors import EncodingError, UsageError

Text = Callable[[int, int], str]

EXACT = TaggerSettings(precision="exact")


def pipeline_entities(folder: Path, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    run = pipeline(
        "token-classification",
        model=AutoModelForTokenClassification.from_pretrained(folder).eval(),
        tokenizer=AutoTokenizer.from_pretrained(folder),
        aggregation_strategy="simple",
    )
    return [
        [(e["start"], e["end"], e["entity_group"], float(e["score"])) for e in run(text)]
        for text in texts
    ]


def found_entities(tagger: Tagger, texts: list[str]) -> list[list[tuple[int, int, str, float]]]:
    found = tagger.find_entities(texts)
    flat = list(
        zip(
            found.start.tolist(),
            found.end.tolist(),
            [tagger.labels[number] for number in found.label],
            found.score.tolist(),
            strict=True,
        )
    )
    stops = np.cumsum(found.lengths).tolist()
    return [flat[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def test_entities_are_those_of_transformers_on_texts_of_one_window(
    tagger_folder: Path, write_text: Text
) -> None:
    texts = [write_text(seed, 3 + seed % 40) for seed in range(60)]
    expected = pipeline_entities(tagger_folder, texts)
    found = found_entities(Tagger.load(tagger_folder, EXACT), texts)
    assert sum(map(len, expected)) > 100
    for want, have in zip(expected, found, strict=True):
        assert [e[:3] for e in have] == [e[:3] for e in want]
        np.testing.assert_allclose([e[3] for e in have], [e[3] for e in want], atol=1e-5)


# --- long texts -----------------------------------------------------------------------------------


def make_sentences(write_text: Text, n_sentences: int, seed: int = 0) -> str:
    parts = [
        write_text(seed + n, 5 + n % 23).replace("\n", "").replace("。", "")
        for n in range(n_sentences)
    ]
    return "。".join(parts) + "。"


def test_long_texts_give_what_their_windows_give_alone(
    tagger_folder: Path, write_text: Text
) -> None:
    """Cut at sentence ends, a window is a text of its own, and transformers sees all of that."""
    tagger = Tagger.load(tagger_folder, EXACT)
    text = make_sentences(write_text, 60)
    pieces, start = [], 0
    tokens = tagger.tokenizer.encode([text], with_offsets=True)
    breaks = find_sentence_starts(text, tokens.start)  # type: ignore[arg-type]
    windows = cut_at_sentences(len(tokens.ids), breaks, capacity=62, overlap=16)
    assert len(windows) > 10
    for _, stop in windows:
        end = int(tokens.start[stop]) if stop < len(tokens.ids) else len(text)  # type: ignore[index]
        assert text[end - 1] in "。;!?；！？", "every cut is at the end of a sentence"
        pieces.append((start, text[start:end]))
        start = end
    expected = [
        (start + entity[0], start + entity[1], entity[2])
        for (start, _), entities in zip(
            pieces, pipeline_entities(tagger_folder, [piece for _, piece in pieces]), strict=True
        )
        for entity in entities
    ]
    assert [entity[:3] for entity in found_entities(tagger, [text])[0]] == expected


@given(
    st.integers(0, 400),
    st.lists(st.integers(0, 400), max_size=30),
    st.integers(2, 70),
    st.data(),
)
def test_windows_show_every_token_and_answer_for_each_once(
    n_tokens: int, breaks: list[int], capacity: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, capacity // 2))
    places = np.array(sorted(place for place in breaks if place <= n_tokens), np.int64)
    windows = cut_at_sentences(n_tokens, places, capacity=capacity, overlap=overlap)
    owned = [*own_starts(windows), n_tokens]
    assert owned[0] == 0
    for (start, stop), first, last in zip(windows, owned[:-1], owned[1:], strict=True):
        assert start <= first <= last <= stop <= n_tokens
        assert stop - start <= capacity
        # Seen from the middle: a token is nowhere else farther from both ends.
        assert first - start <= (overlap + 1) // 2 + 1
        assert stop - last <= (overlap + 1) // 2 + 1


def test_a_sentence_longer_than_a_window_is_seen_to_its_end(
    tagger_folder: Path, write_text: Text
) -> None:
    tagger = Tagger.load(tagger_folder)
    text = write_text(5, 3000).translate(dict.fromkeys(map(ord, "。；！？\n;!?."), "，"))
    found = found_entities(tagger, [text])[0]
    assert found[-1][1] > 2900
    assert all(a[1] <= b[0] for a, b in pairwise(found)), "entities neither overlap nor repeat"


def test_offsets_are_characters_of_the_text_as_given(tagger_folder: Path) -> None:
    tagger = Tagger.load(tagger_folder)
    texts = ["合\x00同\ud800公司😀  政府\u3000", "", "\n\n", "[SEP]合同", "e\u0301合同"]
    found = found_entities(tagger, texts)
    assert sum(map(len, found)) > 3
    for text, entities in zip(texts, found, strict=True):
        for start, end, _, _ in entities:
            assert 0 <= start < end <= len(text)
            assert text[start:end].strip()


def test_a_unit_that_the_tagger_cannot_read_is_named(tmp_path: Path) -> None:
    folder = save_tagger(tmp_path)
    weights = {k: v.clone() for k, v in load_file(folder / "model.safetensors").items()}
    weights["bert.embeddings.word_embeddings.weight"][vocabulary().index("合")] = 3e38
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(EncodingError, match="NaN") as caught:
        Tagger.load(folder).find_entities(["公司", "合同", "政府"])
    assert caught.value.units == (1,)


# --- tag schemes ----------------------------------------------------------------------------------

SCHEMES = {"BIO": "BIIB", "BIOES": "BIES", "BMES": "BMES", "BILOU": "BILU", "IO": "IIII"}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("separator", ["-", "_"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_every_scheme_gives_back_what_was_tagged(
    scheme: str, separator: str, data: st.DataObject
) -> None:
    begin, inside, end, single = SCHEMES[scheme]
    kinds = ("ORG", "PER")
    labels = [
        "O",
        *dict.fromkeys(f"{p}{separator}{k}" for k in kinds for p in (begin, inside, end, single)),
    ]
    lengths = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=5))
    path: list[str] = []
    expected: list[tuple[int, int, int, str]] = []
    for text, length in enumerate(lengths):
        at = 0
        while at < length:
            size = min(data.draw(st.integers(1, 4)), length - at)
            kind = data.draw(st.sampled_from(["", *kinds]))
            touches = expected and expected[-1][0] == text and expected[-1][2] == at
            if not kind or (scheme == "IO" and touches):
                path += ["O"] * size
            else:
                inner = [begin, *[inside] * (size - 2), end] if size > 1 else [single]
                path += [f"{position}{separator}{kind}" for position in inner]
                expected.append((text, at, at + size, kind))
            at += size
    tags = Tags.of(labels)
    ends = np.cumsum(lengths)
    offsets = np.concatenate([np.arange(n) for n in lengths]).astype(np.uint32)
    tokens = Tokens(np.zeros(len(path), np.int32), ends, offsets, offsets + np.uint32(1))
    numbers = np.array([labels.index(label) for label in path], np.intp)
    found = decode(numbers, np.ones(len(path), np.float32), tokens, tags)
    text_of = np.repeat(np.arange(len(lengths)), found.lengths)
    kinds_found = [tags.types[number] for number in found.label]
    assert list(zip(text_of, found.start, found.end, kinds_found, strict=True)) == expected


# --- one trunk for vectors and entities -----------------------------------------------------------


def test_a_tagger_shares_the_trunk_of_an_encoder_with_the_same_weights(
    tagger_folder: Path, tmp_path: Path, write_text: Text
) -> None:
    texts = [write_text(seed, 30) for seed in range(10)]
    encoder = Encoder.load(tagger_folder)
    shared = Tagger.load(tagger_folder, trunk=encoder.trunk)
    assert shared.shares_trunk
    assert found_entities(shared, texts) == found_entities(Tagger.load(tagger_folder), texts)
    other = Tagger.load(save_tagger(tmp_path, seed=1), trunk=encoder.trunk)
    assert not other.shares_trunk
    other_precision = TaggerSettings(
        precision="exact" if encoder.spec["precision"] == "mixed" else "mixed"
    )
    assert not Tagger.load(tagger_folder, other_precision, trunk=encoder.trunk).shares_trunk


def test_an_encoder_is_no_tagger(encoder_folder: Path) -> None:
    with pytest.raises(UsageError, match="no token-classification"):
        Tagger.load(encoder_folder)
