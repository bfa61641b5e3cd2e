"""A workspace as the pages presume it: ``contracts``, ``templates`` and a cache of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from featpipe import Pipeline

DATA = Path(__file__).resolve().parents[2] / "data"
CONTRACTS = ("loan_bridge.md", "loan_guaranteed.txt", "loan_working_capital.txt",
             "lease_factory.txt")  # fmt: skip


@pytest.fixture
def workspace(built: Path) -> Iterator[Path]:
    """As it was built, at the path where it was built: ids depend on it."""
    kept = built.with_name("kept")
    if not kept.exists():
        shutil.copytree(built, kept)
    yield built
    shutil.rmtree(built)
    shutil.copytree(kept, built)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cache; changed by those who use `workspace` only."""
    if not DATA.is_dir():
        pytest.skip("the installed package has no documents")
    home = tmp_path_factory.mktemp("guide") / "home"
    (home / "contracts").mkdir(parents=True)
    for name in CONTRACTS:
        shutil.copy(DATA / "documents" / "contracts" / name, home / "contracts" / name)
    (home / "templates").mkdir()
    loan = (DATA / "templates" / "loan.toml").read_text("utf-8")
    loan = loan.replace("../documents/contracts/", "../contracts/")
    (home / "templates" / "loan.toml").write_text(loan, "utf-8")
    with Pipeline(home / "cache.h5", devices=["cpu"]) as pipeline:
        assert pipeline.build(home / "contracts").is_complete
    return home
