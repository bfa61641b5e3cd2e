"""A model that is encoder and tagger at once: one forward per paragraph, the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from featpipe import Pipeline
from featpipe.build import plan, run
from featpipe.build.messages import TOGETHER
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.store import Reader

if TYPE_CHECKING:
    from featpipe.report import RunReport


def build(cache: Path, docs: Path, model: Path, ner: object, **options: object) -> RunReport:
    with Pipeline(
        cache=cache,
        model=model,
        ner=ner,  # type: ignore[arg-type]
        devices=["cpu"],
        encoder=EncoderSettings(precision="exact", **options),  # type: ignore[arg-type]
        tagger=TaggerSettings(precision="exact"),
    ) as pipeline:
        return pipeline.build(docs)


def rows(cache: Path) -> dict[tuple[str, bytes], bytes]:
    """Every vector and every paragraph's entities, by table and key."""
    found: dict[tuple[str, bytes], bytes] = {}
    with Reader(cache) as reader:
        for name in reader.tables():
            table = reader.table(name)
            for row in range(table.n_rows):
                if name.startswith("embeddings/"):
                    value = table.gather("vectors", np.array([row])).tobytes()
                elif name.startswith("entities/"):
                    parts = ("spans", "labels", "scores")
                    value = b"|".join(table.ragged(part, row).tobytes() for part in parts)
                else:
                    continue
                key = bytes(np.asarray(table.gather("keys", np.array([row])))[0])
                found[name, key] = value
    return found


def test_one_forward_gives_the_rows_of_two(
    tmp_path: Path, corpus: Path, tagger_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / "long.txt").write_text("合同金额为三万元。" * 60, "utf-8")
    handed_out = []
    submit = run.Run._submit
    monkeypatch.setattr(
        run.Run,
        "_submit",
        lambda self, role, payload: (
            handed_out.append(getattr(payload, "table", "")),
            submit(self, role, payload),
        ),
    )
    together = build(tmp_path / "a.h5", corpus, tagger_folder, tagger_folder)
    assert TOGETHER in handed_out
    handed_out.clear()
    monkeypatch.setattr(plan, "_is_one_trunk", lambda *_: False)
    apart = build(tmp_path / "b.h5", corpus, tagger_folder, tagger_folder)
    assert TOGETHER not in handed_out
    assert together.is_complete
    assert together.n_encoded == apart.n_encoded
    assert together.n_entities == apart.n_entities > 0
    assert rows(tmp_path / "a.h5") == rows(tmp_path / "b.h5")


def test_what_one_feature_has_already_is_computed_for_the_other_alone(
    tmp_path: Path, corpus: Path, tagger_folder: Path
) -> None:
    build(tmp_path / "a.h5", corpus, tagger_folder, "none")
    later = build(tmp_path / "a.h5", corpus, tagger_folder, tagger_folder)
    assert (later.n_encoded, later.is_complete) == (0, True)
    assert later.n_entities > 0
    build(tmp_path / "b.h5", corpus, tagger_folder, tagger_folder)
    assert rows(tmp_path / "a.h5") == rows(tmp_path / "b.h5")


@pytest.mark.parametrize("options", [{"prompt": "公司"}, {"max_length": 32}], ids=str)
def test_settings_that_change_the_tokens_keep_them_apart(
    tmp_path: Path, tagger_folder: Path, options: dict[str, object]
) -> None:
    settings = EncoderSettings(precision="exact", **options)  # type: ignore[arg-type]
    with Pipeline(
        cache=tmp_path / "c.h5", model=tagger_folder, ner=tagger_folder, encoder=settings,
        tagger=TaggerSettings(precision="exact"),
    ) as pipeline:  # fmt: skip
        assert not pipeline._plan.is_together
