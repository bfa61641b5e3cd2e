"""Every test leaves the room as it found it: no child process, no open HDF5 handle."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import HealthCheck, settings
from waiting import descendants

if TYPE_CHECKING:
    from folder_cache import Pair

# Before torch is imported. By default its threads spin while they wait for one another: on two
# processors that others use as well, the same calls took fifty times as long, beyond any limit.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples in every run, judged by what they find and not by how long they take: a busy
# machine fails no test. `--hypothesis-profile=explore` draws others.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("tests"), derandomize=False)
settings.load_profile("tests")

SHARED = "本公司及董事会全体成员保证公告内容的真实、准确、完整，不存在虚假记载。"


@pytest.fixture(autouse=True, scope="session")
def keeps_out_of_the_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Compiled words and remembered digests go into a folder of this test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("xdg")))
        yield


@pytest.fixture
def scripts_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in `scripts` is imported by its name, as it is when one of them runs."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent / "scripts"))


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    before = {child.pid for child in descendants()}
    yield
    left = [child for child in descendants() if child.pid not in before]
    # A child that was told to stop may need a moment to be gone; one that stays is a leak.
    _, alive = psutil.wait_procs(left, timeout=60)
    assert not alive, f"child processes left behind: {alive}"
    h5py = sys.modules.get("h5py")
    if h5py is not None:
        n_open = h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)
        assert n_open == 0, f"{n_open} HDF5 files left open"


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder with random weights."""
    from tiny_checkpoints import save_encoder

    return save_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tagger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tagger with random weights."""
    from tiny_checkpoints import save_tagger

    return save_tagger(tmp_path_factory.mktemp("taggers") / "tiny-ner")


@pytest.fixture(scope="session")
def pair(
    tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path, tagger_folder: Path
) -> Pair:
    """A folder cache, and the file of the same documents; neither is to be changed."""
    from folder_cache import build_pair

    return build_pair(tmp_path_factory.mktemp("pair"), encoder_folder, tagger_folder)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Twelve documents with shared sentences, in two formats and a sub-folder."""
    from tiny_checkpoints import CHINESE

    chance = random.Random(7)  # noqa: S311 - texts, not secrets
    folder = tmp_path / "docs"
    (folder / "inner").mkdir(parents=True)
    for number in range(12):
        own = "".join(chance.choice(CHINESE[:60]) for _ in range(40))
        body = [f"第{number}号合同", SHARED, own + "。" + SHARED, f"合同金额为{number},000万元。"]
        name = f"{number:02d}"
        if number % 3:
            (folder / f"{name}.txt").write_text("\n".join(body), "utf-8")
        else:
            html = "".join(f"<p>{line}</p>" for line in body)
            (folder / "inner" / f"{name}.html").write_text(f"<html><body>{html}</body></html>")
    return folder
