"""LangChain's own standard tests, for whoever has ``langchain-tests`` installed.

It is no part of the development extras: it brings seven plugins of pytest that would then be at
work in every test here. By hand: ``pip install --no-deps --target DIR langchain-tests syrupy vcrpy
wrapt py-cpuinfo pytest-benchmark pytest-codspeed pytest-recording pytest-socket``; then, with DIR
on ``PYTHONPATH``, pytest with ``-o strict=false -W ignore::pytest.PytestUnknownMarkWarning
-p no:benchmark -p no:codspeed -p no:recording -p no:socket -p no:syrupy`` and this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from known_texts import KNOWN
from tiny_checkpoints import save_encoder

from featpipe import Pipeline

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from featpipe.integrations.langchain import FeatpipeEmbeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A cache and its model. Own fixtures: `model` is LangChain's name."""
    folder = tmp_path_factory.mktemp("langchain-standard")
    tiny = save_encoder(folder / "tiny")
    (folder / "a.txt").write_text("\n".join(KNOWN), "utf-8")
    with Pipeline(folder / "c.h5", tiny, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(folder / "a.txt").is_complete
    return {"cache": folder / "c.h5", "model": tiny}


class Opened:
    """The embeddings of these tests, closed after each."""

    embedding_model_params: dict[str, object]

    @property
    def embeddings_class(self) -> type[Embeddings]:
        return FeatpipeEmbeddings

    @pytest.fixture(autouse=True)
    def takes_what_there_is(self, given: dict[str, object]) -> None:
        type(self).embedding_model_params = given

    @pytest.fixture
    def model(self, given: dict[str, object]) -> Iterator[FeatpipeEmbeddings]:
        with FeatpipeEmbeddings(**given) as embeddings:  # type: ignore[arg-type]  # as above
            yield embeddings


class TestUnit(Opened, EmbeddingsUnitTests):
    pass


class TestIntegration(Opened, EmbeddingsIntegrationTests):
    pass
