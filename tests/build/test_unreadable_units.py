"""A unit that a model cannot read costs itself: every other unit has its vector and entities."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_one_forward import build, rows
from tiny_checkpoints import save_tagger, vocabulary, write_tokenizer

from featpipe.store import key_of

#: Its tokenizer knows this character; the model has no embedding for it.
BEYOND = "龘"
UNREADABLE = f"合同金额为{BEYOND}万元。"


@pytest.fixture
def partly_blind(tmp_path: Path) -> Path:
    folder = save_tagger(tmp_path / "partly-blind")
    write_tokenizer(folder, [*vocabulary(), BEYOND])
    return folder


@pytest.mark.parametrize("model", ["another encoder", "the same model"])
def test_a_unit_that_the_tagger_cannot_read_costs_only_itself(
    tmp_path: Path, corpus: Path, encoder_folder: Path, partly_blind: Path, model: str
) -> None:
    encoder = partly_blind if model == "the same model" else encoder_folder
    before = build(tmp_path / "before.h5", corpus, encoder, partly_blind)
    assert before.is_complete
    (corpus / "one_more.txt").write_text(UNREADABLE, "utf-8")
    report = build(tmp_path / "after.h5", corpus, encoder, partly_blind)

    assert report.failed
    assert all("no embedding" in loss.reason for loss in report.failed)
    kinds = {loss.table.partition("/")[0] for loss in report.failed}
    assert kinds == ({"embeddings", "entities"} if model == "the same model" else {"entities"})
    [of_entities] = [loss for loss in report.failed if loss.table.startswith("entities/")]
    assert (of_entities.n_units, of_entities.example) == (1, key_of(UNREADABLE).hex())
    old, new = rows(tmp_path / "before.h5"), rows(tmp_path / "after.h5")
    assert {at: new.get(at) for at in old} == old
    held = {table.partition("/")[0] for table, key in new if key == key_of(UNREADABLE)}
    assert held == (set() if model == "the same model" else {"embeddings"})
