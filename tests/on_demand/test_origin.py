"""A cache by a model that is not named: its own checkpoint where it is known, else an error."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tiny_checkpoints import save_encoder, save_tagger

from featpipe import Cache, Pipeline
from featpipe.build.plan import Plan
from featpipe.cli.main import featpipe
from featpipe.errors import UnknownSpace
from featpipe.extraction.extractor import Extractor
from featpipe.on_demand.origin import recorded_folders
from featpipe.on_demand.space import choose_checkpoints
from featpipe.on_demand.text_encoder import TextEncoder
from featpipe.service.engine import Engine
from featpipe.service.settings import ServiceSettings

TEXTS = ["合同金额为三万元。", "双方协商解决争议。"]
TEMPLATE = (
    '[[fields]]\nname = "金额"\n[[samples]]\ndocument = "a.txt"\nfields = { "金额" = "三万元" }\n'
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache by models beside it; the encoder has more layers than the built-in one."""
    home = tmp_path_factory.mktemp("home")
    save_encoder(home / "deep", num_hidden_layers=6)
    save_tagger(home / "tagger")
    build(home / "c.h5", home / "deep", home / "tagger")
    (home / "t.toml").write_text(f'name = "t"\n{TEMPLATE}', "utf-8")
    return home


def build(cache: Path, model: Path, ner: Path | str = "none") -> None:
    (cache.parent / "a.txt").write_text("\n".join(TEXTS), "utf-8")
    with Pipeline(cache, model, ner, devices=["cpu"]) as pipeline:
        assert pipeline.build(cache.parent / "a.txt").is_complete


@pytest.fixture
def orphan(home: Path, tmp_path: Path) -> Path:
    """A cache whose model was deleted."""
    model = save_encoder(tmp_path / "gone", num_hidden_layers=6, seed=3)
    (tmp_path / "c").mkdir()
    build(tmp_path / "c" / "c.h5", model)
    shutil.copy(home / "t.toml", tmp_path / "c")
    shutil.rmtree(model)
    return tmp_path / "c" / "c.h5"


def run(*words: object) -> Result:
    return CliRunner().invoke(featpipe, [str(word) for word in words])


def test_the_models_that_filled_a_cache_serve_it_without_being_named(home: Path) -> None:
    with Cache.open(home / "c.h5") as cache:
        chosen = choose_checkpoints(cache)
        [space] = cache.spaces()
        assert recorded_folders(cache, f"embeddings/{space}") == [str(home / "deep")]
    assert (chosen.model, chosen.space, chosen.notes) == (str(home / "deep"), space, ())
    assert chosen.checkpoints is not None
    assert chosen.checkpoints.ner == str(home / "tagger")
    with TextEncoder(home / "c.h5") as encoder, TextEncoder(home / "c.h5", home / "deep") as named:
        new = ["从来没有见过的一句话。"]
        np.testing.assert_array_equal(encoder.encode(new), named.encode(new))


def test_the_command_finds_by_meaning_without_a_model_being_named(home: Path) -> None:
    found = run("search", home / "c.h5", "从来没有见过的合同", "--hybrid", "-k", "1")
    assert found.exit_code == 0, found.output
    assert "合同金额为三万元" in found.output


def test_a_model_that_is_gone_is_named_with_its_folder_and_the_option(orphan: Path) -> None:
    where = f"then in {orphan.parents[1] / 'gone'}, which is there no longer"
    with pytest.raises(UnknownSpace, match="was made by the model gone") as caught:
        TextEncoder(orphan)
    assert where in caught.value.message
    assert "--model PATH (in Python: model=...)" in str(caught.value.hint)
    refused = run("search", orphan, "合同", "--hybrid")
    assert isinstance(refused.exception, UnknownSpace)
    with pytest.raises(UnknownSpace, match="was made by the model gone"):
        Engine(ServiceSettings(orphan))
    with Extractor(orphan.parent / "t.toml", orphan) as extractor:
        assert where in extractor.notes[0]
        assert "--model PATH" in extractor.notes[0]
    assert run("search", orphan, "合同").exit_code == 0


def test_another_model_is_refused_by_the_name_of_the_right_one(home: Path, tmp_path: Path) -> None:
    """Also one that cannot even follow the settings: it has fewer layers."""
    other = save_encoder(tmp_path / "other", seed=8)
    for open_it in (
        lambda: TextEncoder(home / "c.h5", other),
        lambda: Engine(ServiceSettings(home / "c.h5", model=str(other))),
        lambda: Extractor(home / "t.toml", home / "c.h5", model=other),
    ):
        with pytest.raises(UnknownSpace, match="was made by the model deep, then in") as caught:
            open_it()
        assert "layer 6 of" not in str(caught.value)
        assert f"--model {home / 'deep'}" in str(caught.value.hint)


def test_a_folder_that_holds_another_model_by_now_is_not_taken(orphan: Path) -> None:
    save_encoder(orphan.parents[1] / "gone", num_hidden_layers=6, seed=4)
    with pytest.raises(UnknownSpace, match="was made by the model gone, then in") as caught:
        TextEncoder(orphan, save_encoder(orphan.parents[1] / "other"))
    assert "--model PATH" in str(caught.value.hint)
    with pytest.raises(UnknownSpace, match="was made by the model gone, then in"):
        TextEncoder(orphan)


def test_a_cache_without_a_record_finds_its_model_by_name_in_the_hub_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caches of before the record; the fingerprint decides."""
    repository = tmp_path / "hub" / "models--somebody--small"
    save_encoder(repository / "snapshots" / "abc", num_hidden_layers=5)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    shutil.copytree(repository / "snapshots" / "abc", tmp_path / "small")
    monkeypatch.setattr(Plan, "checkpoints", {})
    build(tmp_path / "c.h5", tmp_path / "small")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with TextEncoder(tmp_path / "c.h5") as encoder:
        assert encoder.space.startswith("small@")
    with Cache.open(tmp_path / "c.h5") as cache:
        assert choose_checkpoints(cache).model == str(repository / "snapshots" / "abc")


def test_of_several_spaces_none_is_guessed(home: Path, tmp_path: Path) -> None:
    cache = Path(shutil.copy(home / "c.h5", tmp_path / "c.h5"))
    build(cache, save_encoder(tmp_path / "second", seed=5))
    with pytest.raises(UnknownSpace, match=r"by the model deep.*by the model second"):
        TextEncoder(cache)
    with Cache.open(cache) as opened:
        chosen = choose_checkpoints(opened, space="second")
    assert chosen.model == str(tmp_path / "second")


def test_a_model_in_the_first_of_several_folders_is_recorded_as_the_whole(tmp_path: Path) -> None:
    """Older layouts of sentence-transformers: the weights lie in 0_Transformer."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    plain = save_encoder(tmp_path / "plain")
    parts = [modules.Transformer(str(plain)), modules.Pooling(32, "cls"), modules.Normalize()]
    library.SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "old"))
    inner = tmp_path / "old" / "0_Transformer"
    inner.mkdir()
    beside = {"modules.json", "config_sentence_transformers.json", "README.md"}
    for file in [f for f in (tmp_path / "old").iterdir() if f.is_file() and f.name not in beside]:
        file.rename(inner / file.name)
    listed = tmp_path / "old" / "modules.json"
    listed.write_text(listed.read_text("utf-8").replace('"path": ""', '"path": "0_Transformer"', 1))
    build(tmp_path / "c.h5", tmp_path / "old")
    with Cache.open(tmp_path / "c.h5") as cache:
        found = np.asarray(cache.dictionary()[TEXTS[0]], np.float32)
        assert choose_checkpoints(cache).model == str(tmp_path / "old")
    whole = library.SentenceTransformer(str(tmp_path / "old"), device="cpu")
    np.testing.assert_allclose(found, whole.encode([TEXTS[0]])[0], atol=2e-3)
