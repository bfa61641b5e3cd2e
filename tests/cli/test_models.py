"""``featpipe models`` and the trial of a model by ``featpipe doctor``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_checkpoints import save_encoder

from featpipe.cli.doctor import doctor, examine
from featpipe.cli.models import models
from featpipe.cli.speed import _spread, sample_documents
from featpipe.documents import Source


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.usefixtures("hub")
def test_models_are_a_table_and_json(tmp_path: Path) -> None:
    save_encoder(tmp_path / "tiny")
    done = CliRunner().invoke(models, [])
    heading, row = done.output.splitlines()
    assert done.exit_code == 0
    assert heading.split()[:3] == ["model", "family", "forward"]
    assert row.split()[:4] == ["zh-small", "bert", "own", "own"]
    done = CliRunner().invoke(models, ["--json", str(tmp_path / "tiny"), str(tmp_path / "gone")])
    told = [json.loads(line) for line in done.output.splitlines()]
    assert done.exit_code == 1
    assert [(one["dim"], bool(one["problem"])) for one in told] == [(32, False), (0, True)]


def test_a_trial_tells_speed_precision_and_the_time_for_documents(tmp_path: Path) -> None:
    save_encoder(tmp_path / "tiny")
    (tmp_path / "docs").mkdir()
    for number in range(5):
        text = "".join(f"第{number}号合同的第{n}条。\n" for n in range(50))
        (tmp_path / "docs" / f"{number}.txt").write_text(text, "utf-8")
    found = {
        one.check: one.message
        for one in examine(tmp_path / "c.h5", str(tmp_path / "tiny"), str(tmp_path / "docs"))
    }
    assert float(found["speed"].split()[0].replace(",", "")) > 0
    assert "minutes" in found["time"]
    assert "5 files" in found["time"]
    # Each of the 250 lines is one paragraph and one sentence, of the same characters.
    sample = sample_documents(str(tmp_path / "docs"))
    lines = {f"第{number}号合同的第{n}条。" for number in range(5) for n in range(50)}
    assert sample.n_characters == sum(map(len, lines))
    assert set(sample.texts) == lines
    assert (sample.n_files, sample.n_read) == (5, 5)


def test_an_estimate_needs_a_model_and_documents(tmp_path: Path) -> None:
    done = CliRunner().invoke(doctor, ["--for", str(tmp_path)])
    assert done.exit_code == 2
    assert "--model" in done.output
    found = [
        one for one in examine(None, "zh-small", str(tmp_path / "gone")) if one.check == "model"
    ]
    assert [one.state for one in found] == ["problem"]
    assert "gone" in found[0].message


def test_any_first_documents_of_a_sample_lie_evenly() -> None:
    sources = [Source(f"{number:02}", Path(f"{number:02}")) for number in range(16)]
    order = [int(source.id) for source in _spread(sources)]
    assert order[:4] == [0, 8, 4, 12]
    assert sorted(order) == list(range(16))
