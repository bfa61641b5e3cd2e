"""The text worker: vectors and entities as a build stores them; a faulty text costs itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe import Pipeline
from featpipe.cache.cache import Cache
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.encoders.tagger import Tagger
from featpipe.errors import CheckpointError, EncodingError
from featpipe.on_demand.messages import Embedded, EmbedQuery, TagQuery
from featpipe.on_demand.space import Checkpoints, choose_checkpoints
from featpipe.on_demand.text_encoder import ModelsInWorker
from featpipe.on_demand.worker import LoadedModels, TextRole

if TYPE_CHECKING:
    from featpipe.encoders.encoded import Encoded

TEXTS = ["合同金额为三万元。", "从来没有见过的一句话。", "双方协商解决争议。"]


@pytest.fixture
def cache(tmp_path: Path, encoder_folder: Path, tagger_folder: Path) -> Iterator[Cache]:
    (tmp_path / "a.txt").write_text(f"{TEXTS[0]}\n{TEXTS[2]}\n", "utf-8")
    with Pipeline(tmp_path / "c.h5", encoder_folder, tagger_folder, devices=["cpu"]) as pipeline:
        assert pipeline.build(tmp_path / "a.txt").is_complete
    with Cache.open(tmp_path / "c.h5") as opened:
        yield opened


@pytest.fixture
def checkpoints(cache: Cache, encoder_folder: Path, tagger_folder: Path) -> Checkpoints:
    chosen = choose_checkpoints(cache, encoder_folder, tagger_folder)
    assert chosen.checkpoints is not None
    return chosen.checkpoints


def names(cache: Cache) -> tuple[str, str]:
    [space], [tagger] = cache.spaces(), cache.stored_documents.taggers()
    return space, tagger


def test_the_worker_process_gives_what_this_process_gives(
    cache: Cache, checkpoints: Checkpoints
) -> None:
    here = LoadedModels(checkpoints, cache, *names(cache))
    there = ModelsInWorker(checkpoints, cache, *names(cache))
    try:
        np.testing.assert_array_equal(here.vectors_of(TEXTS), there.vectors_of(TEXTS))
        assert here.entities_of(TEXTS) == there.entities_of(TEXTS)
        assert there.n_encoded == 3
        there.vectors_of(TEXTS)
        assert there.n_encoded == 3
    finally:
        there.close()


def test_only_what_the_cache_lacks_reaches_the_encoder(
    cache: Cache, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    encode = Encoder.encode

    def note(encoder: Encoder, texts: list[str], **options: str) -> Encoded:
        asked.extend(texts)
        return encode(encoder, texts, **options)

    monkeypatch.setattr(Encoder, "encode", note)
    answers = LoadedModels(checkpoints, cache, *names(cache)).encode(TEXTS)
    assert asked == TEXTS[1:2]
    expected = Encoder.load(str(checkpoints.model), checkpoints.encoder)
    for answer, count in zip(answers, expected.count_tokens(TEXTS), strict=True):
        assert isinstance(answer, Embedded)
        assert answer.n_tokens.tolist() == [count]


def test_queries_of_several_prompts_share_a_task(encoder_folder: Path) -> None:
    checkpoints = Checkpoints(str(encoder_folder), encoder=EncoderSettings(precision="exact"))
    role = TextRole(checkpoints=checkpoints, cache=None, space=None, tagger=None, fingerprint=None,
                    threads=1, device="cpu")  # fmt: skip
    own = Encoder.load(encoder_folder, EncoderSettings(precision="exact"))
    asked = [(TEXTS[0], "合同："), (TEXTS[1], None), (TEXTS[2], "合同："), (TEXTS[0], "")]
    answers = role.run([EmbedQuery((text,), prompt=prompt) for text, prompt in asked])
    expected = own.encode([(prompt or "") + text for text, prompt in asked])
    for row, answer in enumerate(answers):
        assert isinstance(answer, Embedded)
        np.testing.assert_array_equal(answer.vectors[0], expected.vectors[row].astype(np.float32))
        assert answer.n_tokens.tolist() == [expected.n_tokens[row]]


def test_a_text_that_cannot_be_encoded_costs_its_own_query(encoder_folder: Path) -> None:
    strict = Checkpoints(
        str(encoder_folder), encoder=EncoderSettings(max_length=16, on_truncate="error")
    )
    role = TextRole(
        checkpoints=strict, cache=None, space=None, tagger=None, fingerprint=None,
        threads=1, device="cpu",
    )  # fmt: skip
    too_long = EmbedQuery((TEXTS[1], "很长的一句话，" * 40))
    answers = role.run([EmbedQuery((TEXTS[0],)), too_long, EmbedQuery(tokens=((5, 6),))])
    assert [type(answer) for answer in answers] == [Embedded, EncodingError, Embedded]
    alone = role.run([EmbedQuery((TEXTS[0],))])
    assert isinstance(answers[0], Embedded)
    assert isinstance(alone[0], Embedded)
    np.testing.assert_array_equal(answers[0].vectors, alone[0].vectors)
    role.close()


def test_a_text_that_cannot_be_tagged_has_no_entities(
    cache: Cache, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = Tagger.find_entities

    def fail(tagger: Tagger, texts: list[str]) -> object:
        if TEXTS[1] in texts:
            raise EncodingError("the tagger gives NaN")
        return find(tagger, texts)

    expected = LoadedModels(checkpoints, cache, *names(cache)).entities_of(TEXTS)
    assert any(expected)
    monkeypatch.setattr(Tagger, "find_entities", fail)
    space, tagger = names(cache)
    role = TextRole(
        checkpoints=checkpoints, cache=str(cache.path), space=space, tagger=tagger,
        fingerprint=None, threads=1, device="cpu",
    )  # fmt: skip
    assert role.run([TagQuery(text) for text in TEXTS]) == [expected[0], [], expected[2]]
    role.close()


def test_another_model_is_refused(cache: Cache, tmp_path: Path) -> None:
    from tiny_checkpoints import save_encoder

    other = Checkpoints(str(save_encoder(tmp_path / "other", seed=7)))
    models = LoadedModels(other, cache, *names(cache))
    with pytest.raises(CheckpointError, match="is not the model that filled"):
        models.vectors_of(TEXTS)
