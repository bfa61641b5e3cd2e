"""A small cache by a tiny encoder, for the integrations."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from known_texts import KNOWN
from tiny_checkpoints import save_encoder

from featpipe import Pipeline


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Other packages' standard tests are coroutines here and there: each in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder(tmp_path_factory.mktemp("integration-models") / "tiny")


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """A cache; tests that write take a copy."""
    folder = tmp_path_factory.mktemp("integrations")
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text("\n".join(KNOWN[:2]), "utf-8")
    (folder / "docs" / "b.txt").write_text("\n".join(KNOWN[1:]), "utf-8")
    with Pipeline(folder / "c.h5", model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder / "docs").is_complete
    return folder / "c.h5"
