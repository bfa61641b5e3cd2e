"""What ``auto`` means: the cache decides, then the machine; nothing is encoded twice for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from safetensors.torch import load_file, save_file
from tiny_checkpoints import save_encoder

from featpipe import Cache, Pipeline
from featpipe.build import plan
from featpipe.build.plan import choose_precision
from featpipe.encoders import precision as devices
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.errors import UsageError
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    from featpipe.report import RunReport

CPU = ("cpu",)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine whose probe is known; ``fast`` or ``slow`` at bf16 by `is_fast`."""
    is_fast(monkeypatch, True)
    return monkeypatch


def is_fast(machine: pytest.MonkeyPatch, fast: bool) -> None:
    found = "mixed" if fast else "exact"
    machine.setattr(plan, "probe", lambda _: found)
    machine.setattr(plan, "find_precision", lambda asked, **_: found if asked == "auto" else asked)


def build(
    cache: Path, docs: Path, model: Path, *, asked: str = "auto", ner: Path | None = None
) -> RunReport:
    with Pipeline(
        cache=cache,
        model=model,
        ner=ner or "none",
        devices=["cpu"],
        encoder=EncoderSettings(precision=asked),  # type: ignore[arg-type]
        tagger=TaggerSettings(precision=asked),  # type: ignore[arg-type]
        settings=BuildSettings(levels=("paragraph",)),
    ) as pipeline:
        return pipeline.build(docs)


def precisions(cache: Path) -> list[str]:
    with Cache.open(cache) as opened:
        return sorted(str(opened.dictionary(name).spec["precision"]) for name in opened.spaces())


@pytest.mark.parametrize("fast", [True, False])
def test_a_new_cache_is_made_in_what_is_worthwhile_here(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path, encoder_folder: Path, fast: bool
) -> None:
    is_fast(machine, fast)
    report = build(tmp_path / "c.h5", corpus, encoder_folder)
    assert precisions(tmp_path / "c.h5") == ["mixed" if fast else "exact"]
    assert any("mixed precision" in note for note in report.notes) == fast


@pytest.mark.parametrize("begun", ["exact", "mixed"])
def test_a_cache_goes_on_as_it_was_begun_on_any_machine(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path, tagger_folder: Path, begun: str
) -> None:
    first = build(tmp_path / "c.h5", corpus, tagger_folder, ner=tagger_folder, asked=begun)
    (corpus / "new.txt").write_text("全新条款。", "utf-8")
    is_fast(machine, begun == "exact")
    again = build(tmp_path / "c.h5", corpus, tagger_folder, ner=tagger_folder)
    assert (again.n_encoded, again.n_hits) == (1, first.n_unique)
    assert precisions(tmp_path / "c.h5") == [begun]
    assert any(
        note.startswith("vectors and entities in") and "as the cache holds them" in note
        for note in again.notes
    )


def test_a_stated_precision_fills_a_space_of_its_own(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    assert machine
    build(tmp_path / "c.h5", corpus, encoder_folder)
    assert build(tmp_path / "c.h5", corpus, encoder_folder, asked="exact").n_hits == 0
    assert precisions(tmp_path / "c.h5") == ["exact", "mixed"]
    # Both are there: the machine decides again, and nothing new is computed.
    assert build(tmp_path / "c.h5", corpus, encoder_folder).n_encoded == 0


def test_a_model_folder_that_was_renamed_fills_no_second_space(
    tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    build(tmp_path / "c.h5", corpus, encoder_folder, asked="exact")
    renamed = shutil.copytree(encoder_folder, tmp_path / "another-name")
    report = build(tmp_path / "c.h5", corpus, renamed, asked="exact")
    assert (report.n_encoded, len(precisions(tmp_path / "c.h5"))) == (0, 1)


@pytest.mark.parametrize("other", ["another precision", "a folder renamed"])
def test_a_build_that_was_planned_before_another_had_written_goes_on_in_its_space(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path, encoder_folder: Path, other: str
) -> None:
    """As of two that begin at once, the second of which waits for the lock."""
    cache, settings = tmp_path / "c.h5", BuildSettings(levels=("paragraph",))
    is_fast(machine, other == "another precision")
    renamed = shutil.copytree(encoder_folder, tmp_path / "another-name")
    with Pipeline(cache, renamed, "none", devices=["cpu"], settings=settings) as second:
        first = build(cache, corpus, encoder_folder, asked="exact")
        (corpus / "new.txt").write_text("全新条款。", "utf-8")
        report = second.build(corpus)
        assert (report.n_encoded, report.n_hits) == (1, first.n_unique)
        assert second.build(corpus).n_encoded == 0
    assert precisions(cache) == ["exact"]


def test_vectors_of_another_kind_of_device_are_told_of(machine: pytest.MonkeyPatch) -> None:
    assert machine
    choice = choose_precision("auto", CPU, lambda p, d: (p, d) == ("mixed", "cuda:0"))
    assert (choice.precision, "made on a card and stay beside" in choice.note) == ("mixed", True)


def test_processors_and_cards_together_compute_exactly(machine: pytest.MonkeyPatch) -> None:
    assert machine
    together = ("cuda:0", "cpu")
    assert choose_precision("auto", together, lambda *_: False).precision == "exact"


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(UsageError, match="'fast' is none of"):
        choose_precision("fast", CPU, lambda *_: False)


def test_the_probe_is_made_in_a_child_and_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    found = plan.probe("cpu")
    assert found == devices.find_precision("auto")
    monkeypatch.setattr(plan, "Pool", lambda *_: pytest.fail("measured again"))
    assert plan.probe("cpu") == found


def test_approx_says_how_far_from_exact_it_is_on_these_very_texts(
    tmp_path: Path, corpus: Path, tagger_folder: Path
) -> None:
    with Pipeline(
        cache=tmp_path / "c.h5",
        model=tagger_folder,
        ner=tagger_folder,
        devices=["cpu"],
        encoder=EncoderSettings(precision="approx"),
        tagger=TaggerSettings(precision="exact"),
    ) as pipeline:
        report = pipeline.build(corpus)
    assert precisions(tmp_path / "c.h5") == ["approx"]
    [note] = [note for note in report.notes if note.startswith("approx: ")]
    least = float(note.partition("exact vectors is ")[2].split()[0])
    assert 0.9 < least < 1


def save_coarse(folder: Path) -> Path:
    """A model whose attention is so sharp that rounding decides which token it is paid to."""
    save_encoder(folder)
    tensors = load_file(folder / "model.safetensors")
    sharp = {name: tensor * 40 for name, tensor in tensors.items() if "query.weight" in name}
    save_file(tensors | sharp, folder / "model.safetensors", {"format": "pt"})
    return folder


def plan_anew(model: Path) -> tuple[str, bool]:
    """Precision of a new cache, and whether it would be measured."""
    made = plan.make_plan(
        model, EncoderSettings(), None, TaggerSettings(), BuildSettings(), CPU
    ).encoder
    return made.settings.precision, made.is_unproven


def test_a_model_that_mixed_precision_distorts_stays_in_float32(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path
) -> None:
    machine.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    coarse = save_coarse(tmp_path / "coarse")
    report = build(tmp_path / "c.h5", corpus, coarse)
    assert precisions(tmp_path / "c.h5") == ["exact"]
    assert report.is_complete
    [note] = [note for note in report.notes if "precision exact: in mixed precision" in note]
    assert float(note.rpartition(" ")[2]) < devices.LEAST_COSINE
    with Cache.open(tmp_path / "c.h5") as opened:
        [name] = opened.spaces()
        dictionary = opened.dictionary(name)
        texts = list(dictionary.texts())
        exact = Encoder.load(coarse, EncoderSettings(precision="exact")).encode(texts).vectors
        assert dictionary.lookup(texts)[0].tobytes() == exact.tobytes()
    # The next cache is begun in float32 at once, as is an encoder without a cache.
    assert plan_anew(coarse) == ("exact", False)
    machine.setattr(devices, "measure_bf16_gain", lambda **_: 2.0)
    assert Encoder.load(coarse).spec["precision"] == "exact"


def test_a_model_that_mixed_precision_suits_is_measured_once(
    machine: pytest.MonkeyPatch, tmp_path: Path, corpus: Path, encoder_folder: Path
) -> None:
    machine.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    assert plan_anew(encoder_folder) == ("mixed", True)
    (corpus / "many.txt").write_text("\n".join(f"第{n}号合同。" for n in range(40)), "utf-8")
    build(tmp_path / "c.h5", corpus, encoder_folder)
    assert precisions(tmp_path / "c.h5") == ["mixed"]
    assert plan_anew(encoder_folder) == ("mixed", False)


def test_what_was_measured_of_a_held_space_is_told() -> None:
    choice = choose_precision("auto", CPU, lambda p, _: p == "mixed", lambda _: 0.9948)
    assert choice.precision == "mixed"
    assert "fall to 0.9948; --precision exact makes them anew" in choice.note
