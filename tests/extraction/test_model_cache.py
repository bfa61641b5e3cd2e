"""Fitted fields outlive their process: read back with the same bits, and never a wrong one."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pages import features_of

from featpipe import Extractor
from featpipe.extraction import model_cache
from featpipe.extraction.model_cache import ModelCache, hash_code
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.model_file import UnreadableModel, pack_model, unpack_model
from featpipe.user_cache import KeptFiles

if TYPE_CHECKING:
    from featpipe.extraction.scoring.field_model import FieldModel

TEXTS = ("甲方：海南毓坤有限公司\n合同金额：3万元\n", "甲方为包头华信有限公司。合同金额：5万元。\n")
NAMES = ("海南毓坤有限公司", "包头华信有限公司")


def fit() -> FieldModel:
    documents = [features_of(text) for text in TEXTS]
    samples = [sample_of(v, [n], "organisation") for v, n in zip(documents, NAMES, strict=True)]
    return fit_field(samples, "organisation", ("甲方", "\ud800"))


def refuse() -> FieldModel:
    raise AssertionError("it was fitted again")


def test_a_model_comes_back_with_every_bit() -> None:
    model = fit()
    again = unpack_model(pack_model(model, "f"), "f")
    features = features_of("甲方：柳州恒峰有限公司\n乙方：三亚景信有限公司\n")
    first, second = model.score(features), again.score(features)
    assert first.probabilities.tobytes() == second.probabilities.tobytes()
    assert [g.value for g in first.groups] == [g.value for g in second.groups]
    assert pack_model(again, "f") == pack_model(model, "f")


@pytest.mark.parametrize("cut", [0, 7, 20, 40, 300, -1])
def test_a_damaged_model_is_refused(cut: int) -> None:
    data = pack_model(fit(), "f")
    for bad in (data[:cut], data[:cut] + b"\0" + data[cut:][1:]):
        if bad != data:
            with pytest.raises(UnreadableModel):
                unpack_model(bad, "f")
    with pytest.raises(UnreadableModel, match="another field"):
        unpack_model(data, "g")


def test_a_model_is_fitted_once_and_read_by_the_next_process(tmp_path: Path) -> None:
    first = ModelCache(tmp_path)
    first.get("ab12", fit)
    second = ModelCache(tmp_path)
    assert second.has("ab12")
    assert not second.has("ab13")
    second.get("ab12", refuse)
    assert (first.n_fitted, second.n_fitted) == (1, 0)
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".field"]


def test_threads_that_ask_at_once_get_one_fit(tmp_path: Path) -> None:
    models, gate = ModelCache(tmp_path), threading.Barrier(4)

    def ask(_: int) -> FieldModel:
        gate.wait()
        return models.get("ab12", fit)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len({id(model) for model in found}) == 1
    assert models.n_fitted == 1


def test_a_damaged_file_is_fitted_again_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ModelCache(tmp_path).get("ab12", fit)
    (file,) = tmp_path.rglob("*.field")
    good = file.read_bytes()
    file.write_bytes(good[:-5])
    models = ModelCache(tmp_path)
    models.get("ab12", fit)
    assert models.n_fitted == 1
    assert "is fitted again" in caplog.text
    assert file.read_bytes() == good


def make_file(folder: Path, name: str, *, age_h: float, size: int = 10) -> Path:
    file = folder / name[:2] / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    used = time.time() - age_h * 3600
    os.utime(file, (used, used))
    return file


def test_the_folder_is_held_to_a_size_and_an_age(tmp_path: Path) -> None:
    code = "0123456789ab"
    now = make_file(tmp_path, f"aa-{code}.field", age_h=0.5, size=60)
    lately = make_file(tmp_path, f"ab-{code}.field", age_h=3, size=60)
    before = make_file(tmp_path, f"bc-{code}.field", age_h=5, size=60)
    old = make_file(tmp_path, f"bd-{code}.field", age_h=24 * 91)
    left = make_file(tmp_path, f"ca-{code}.17-34", age_h=2)
    busy = make_file(tmp_path, f"cb-{code}.17-35", age_h=0.1)
    foreign = [
        make_file(tmp_path, name, age_h=10_000)
        for name in ("aa-letter.field", f"ab-{code}.txt", "photo.jpg")
    ]
    folder = KeptFiles(tmp_path)
    assert folder.sweep(most_bytes=130) == 3
    assert [file.exists() for file in (now, lately, before, old, left, busy)] == [
        True, True, False, False, False, True
    ]  # fmt: skip
    assert folder.sweep(most_bytes=0) == 1  # what is in use stays
    assert (now.exists(), lately.exists()) == (True, False)
    assert all(file.exists() for file in foreign)


def test_what_is_read_counts_as_used(tmp_path: Path) -> None:
    ModelCache(tmp_path).get("ab12", fit)
    (file,) = tmp_path.rglob("*.field")
    os.utime(file, (1e9, 1e9))
    ModelCache(tmp_path).get("ab12", refuse)
    assert KeptFiles(tmp_path).sweep() == 0
    os.utime(file, (1e9, 1e9))
    ModelCache(tmp_path).get("cd34", fit)  # a process that keeps something sweeps
    assert not file.exists()
    again = ModelCache(tmp_path)
    again.get("ab12", fit)
    assert again.n_fitted == 1


def test_other_code_fits_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ModelCache(tmp_path).get("ab12", fit)
    monkeypatch.setattr(model_cache, "code_version", lambda: "0123456789ab")
    assert not ModelCache(tmp_path).has("ab12")


CODE = '''"""Doc."""
LIMIT = 3
"""Most values."""

class Thing:
    """One thing."""

    def size(self):
        """Its size."""
        return LIMIT  # of all
'''


def test_only_sentences_of_the_code_may_change_without_a_fit(tmp_path: Path) -> None:
    def hashed(source: str) -> str:
        (tmp_path / "a.py").write_text(source, "utf-8")
        return hash_code([tmp_path / "a.py"])

    before = hashed(CODE)
    sentences = CODE.replace("Doc", "Other").replace("Most", "Many").replace("One", "A")
    assert (
        hashed(sentences.replace("Its size", "A size").replace("# of all", "# twice\n")) == before
    )
    for code in (CODE.replace("3", "4"), CODE.replace("size(", "length("), CODE + "'end'.strip()"):
        assert hashed(code) != before


def test_without_a_place_to_write_nothing_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    models = ModelCache(tmp_path / "file")
    for name in ("ab12", "cd34"):
        models.get(name, fit)
        models.get(name, refuse)
    assert caplog.text.count("are not kept") == 1


def test_memory_is_bounded_and_what_left_it_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_cache, "_MOST_IN_MEMORY", 1)
    models = ModelCache(tmp_path)
    for name in ("ab12", "cd34"):
        models.get(name, fit)
    models.get("ab12", refuse)
    assert models.n_fitted == 2


def test_an_extractor_on_a_known_template_fits_nothing(
    cache: Path, templates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path / "kept"))
    found = []
    for _ in range(2):
        with Extractor(templates / "lease.toml", cache) as extractor:
            found.append(
                (extractor.extract("contracts/lease_shop.txt"), extractor.engine.models.n_fitted)
            )
    with Extractor(templates / "lease.toml", cache, models={}) as extractor:
        found.append((extractor.extract("contracts/lease_shop.txt"), 0))
    assert [n for _, n in found] == [10, 0, 0]
    assert found[0][0] == found[1][0] == found[2][0]


def test_a_sample_without_vectors_is_another_sample(cache: Path, templates: Path) -> None:
    file = templates / "inline.toml"
    file.write_text(
        'name = "inline"\n[[fields]]\nname = "甲方"\n[[samples]]\n'
        'text = "甲方：海南毓坤有限公司"\n[samples.fields]\n"甲方" = "海南毓坤有限公司"\n', "utf-8"
    )  # fmt: skip
    prints = []
    with Extractor(file, cache, checkpoints="none") as extractor:
        prints.append(extractor.engine.templates["inline"].fingerprint)
    with Extractor(file, cache, encode=lambda t: np.ones((len(t), 32), np.float16)) as extractor:
        prints.append(extractor.engine.templates["inline"].fingerprint)
    assert prints[0] != prints[1]
