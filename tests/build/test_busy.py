"""The share of a build in which its cards computed, and the stage that is named as the limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from featpipe import Pipeline
from featpipe.build.busy import CardTimes
from featpipe.build.encode_worker import EncodeRole
from featpipe.build.messages import EncoderPlan, FeatureTask
from featpipe.build.progress import RunRecord
from featpipe.build.roles import count_readers, prepare_role
from featpipe.cache.places import Preparation
from featpipe.cache.texts import UnitCollector
from featpipe.encoders import forward
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.report import Counts, report_from_dict
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    from featpipe.pool import Role

EXACT = EncoderSettings(precision="exact")
ONE, TWO = ("cuda:0",), ("cuda:0", "cuda:0")


@pytest.mark.parametrize(
    ("times", "share", "words"),
    [
        (CardTimes(ONE, 100.0, 99.0, 5.0, 95.0), 0.95, "computed for 95% of the build"),
        (CardTimes(ONE, 100.0, 98.0, 49.0, 60.0), 0.6, "(50% of it for tokens); give a card one"),
        (CardTimes(ONE, 100.0, 50.0, 10.0, 45.0), 0.45, "waited for texts to be read"),
        (CardTimes(TWO, 100.0, 190.0, 60.0, 97.0), 0.97, "computed for 97% of the build"),
        (CardTimes(TWO, 100.0, 190.0, 60.0, 80.0), 0.8, "--device cuda:0 --device cuda:0 --dev"),
        (CardTimes(("cuda:0", "cuda:1"), 100.0, 198.0, 9.0, 190.0), 0.95, "95% of the build"),
        (CardTimes(ONE, 100.0, 100.0, 5.0, 101.0), 1.0, "100% of the build"),
        (CardTimes(ONE, 100.0, 0.0, 0.0, 0.0), 0.0, "waited for texts to be read"),
    ],
)
def test_the_share_and_the_limit(times: CardTimes, share: float, words: str) -> None:
    assert times.share == pytest.approx(share)
    assert words in times.describe()
    assert (": " in times.describe()) == (share < 0.9)


def test_without_a_card_there_is_no_share(tmp_path: Path, encoder_folder: Path) -> None:
    assert CardTimes((), 100.0, 90.0, 5.0, 0.0).describe() == ""
    (tmp_path / "a.txt").write_text("合同金额为三万元。", "utf-8")
    with Pipeline(
        cache=tmp_path / "c.h5", model=encoder_folder, ner="none", devices=["cpu"], encoder=EXACT
    ) as pipeline:
        report = pipeline.build(tmp_path / "a.txt")
    assert report.card_share is None
    assert not [note for note in report.notes if "cards computed" in note]
    assert report_from_dict(report.as_dict()) == report


@pytest.mark.parametrize(
    ("devices", "cores", "n"),
    [
        (("cpu", "cpu"), 64, 1),
        (ONE, 64, 6),
        (TWO, 64, 6),
        (("cuda:0", "cuda:1", "cpu"), 64, 12),
        (("cuda:0", "cuda:1"), 6, 4),
        (ONE, 1, 1),
    ],
)
def test_more_processes_read_beside_a_card(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...], cores: int, n: int
) -> None:
    monkeypatch.setattr("featpipe.build.roles.usable_cores", lambda: cores)
    assert count_readers(devices) == n
    preparation = Preparation("")
    assert len(prepare_role(preparation, BuildSettings(), devices).devices) == n
    assert len(prepare_role(preparation, BuildSettings(n_prepare_workers=2), devices).devices) == 2


def test_every_process_that_was_asked_for_reads_at_once(
    tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, place, documents = 5, tmp_path / "workers", tmp_path / "documents"
    place.mkdir()
    documents.mkdir()
    for number in range(4 * n):  # a worker may hold two while others start
        (documents / f"{number}.txt").write_text(f"第{number}号合同。", "utf-8")

    def meeting(*arguments: object) -> Role:
        role = prepare_role(*arguments)  # type: ignore[arg-type]
        given = {**role.arguments, "place": str(place), "n": n}
        return replace(role, target="meeting_reader:MeetingReader", arguments=given)

    monkeypatch.setattr("featpipe.build.pipeline.prepare_role", meeting)
    monkeypatch.setattr("featpipe.build.intake._CHUNK_FILES", 1)
    with Pipeline(
        cache=tmp_path / "c.h5",
        model=encoder_folder,
        ner="none",
        devices=["cpu"],
        encoder=EXACT,
        settings=BuildSettings(n_prepare_workers=n),
    ) as pipeline:
        report = pipeline.build(documents)
    assert report.n_loaded == 4 * n
    assert len(list(place.iterdir())) == n


def test_the_report_tells_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featpipe.build.progress.monotonic", lambda: 50.0)
    record = RunRecord("run", 0, cards=ONE, encode_s=19.0, _started=30.0)
    record.counts += Counts(card_s=10.0, tokenize_s=1.0)
    record.counts += Counts(card_s=5.0, tokenize_s=1.0)
    vectors = SimpleNamespace(n_unique=0, n_hits=0, n_stored=0, failed={})
    report = record.report(vectors, [], was_interrupted=False)  # type: ignore[arg-type]  # counts
    assert report.card_share == pytest.approx(0.75)
    assert "cards computed for 75% of the build: " in report.notes[-1]


def test_batches_tell_what_the_card_computed_since_the_one_before(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward.Arrival, "card_s", 2.0)
    fingerprint = Encoder.load(encoder_folder, EXACT).fingerprint
    role = EncodeRole(EncoderPlan("v", str(encoder_folder), EXACT, fingerprint), None, 1, "cpu")
    collector = UnitCollector()
    collector.add(["合同", "金额为三万元"], "sentence")
    counts = [role.run(FeatureTask("v", collector.units())).counts for _ in range(2)]
    assert [found.card_s for found in counts] == [2.0, 2.0]
    assert all(found.tokenize_s > 0 for found in counts)
