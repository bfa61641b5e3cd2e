"""A cache over our own documents, built once with a tiny encoder, and the templates over them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_checkpoints import save_encoder

from featpipe import Pipeline

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen of our documents, in a folder that tests may not change."""
    folder = tmp_path_factory.mktemp("own") / "documents"
    for pattern in ("contracts/lease_*", "contracts/loan_*", "announcements/reduction_*",
                    "announcements/bid_*"):  # fmt: skip
        for file in sorted((DATA / "documents").glob(pattern)):
            target = folder / file.relative_to(DATA / "documents")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, documents: Path) -> Path:
    """The cache; copy it before writing."""
    folder = tmp_path_factory.mktemp("cache")
    model = save_encoder(folder / "tiny")
    with Pipeline(folder / "c.h5", model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete
    return folder / "c.h5"


@pytest.fixture
def cache(built: Path, tmp_path: Path) -> Path:
    """A copy of the cache for one test."""
    return Path(shutil.copy(built, tmp_path / "c.h5"))


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    """A folder with two of our templates, whose samples are cached documents."""
    folder = tmp_path / "templates"
    folder.mkdir()
    for name in ("lease", "reduction"):
        text = (DATA / "templates" / f"{name}.toml").read_text("utf-8")
        (folder / f"{name}.toml").write_text(text.replace("../documents/", ""), "utf-8")
    return folder
