"""Queries by onnxruntime: queries alone, remembered apart, and by torch where it fails."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from featpipe import Cache, Pipeline
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.errors import UsageError
from featpipe.on_demand.messages import Embedded
from featpipe.on_demand.space import Checkpoints
from featpipe.on_demand.text_encoder import TextEncoder
from featpipe.on_demand.worker import LoadedModels

NEW = ["从来没有见过的一句话。", "甲方应当通知。", "合同金额" * 40]


@pytest.fixture(autouse=True)
def _has_packages() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, encoder_folder: Path) -> Path:
    home = tmp_path_factory.mktemp("queries")
    (home / "a.txt").write_text("双方协商解决争议。\n", "utf-8")
    settings = EncoderSettings(precision="exact", dtype="float32")
    with Pipeline(
        home / "c.h5", encoder_folder, "none", encoder=settings, devices=["cpu"]
    ) as pipeline:
        pipeline.build(home / "a.txt")
    return home / "c.h5"


def test_vectors_of_queries_and_of_rows_are_remembered_apart(
    cache: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened:
        known = next(iter(opened.dictionary(level="sentence").texts()))
    with TextEncoder(cache, encoder_folder) as by_torch:
        rows = by_torch.encode([*NEW, known])
    with TextEncoder(cache, encoder_folder, query_backend="onnx") as encoder:
        queries = encoder.encode_queries([*NEW, known])
        np.testing.assert_allclose(queries, rows, rtol=0, atol=2e-5)
        assert encoder.n_encoded == 3  # the cache holds the fourth
        assert queries[3].tobytes() == rows[3].tobytes()
        for _ in range(2):
            assert encoder.encode([*NEW, known]).tobytes() == rows.tobytes()
            assert encoder.encode_queries([*NEW, known]).tobytes() == queries.tobytes()
            assert encoder.n_encoded == 6
        assert queries[:3].tobytes() != rows[:3].tobytes()  # else the test could not tell
        travelled = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    with travelled:
        assert travelled.encode_queries(NEW).tobytes() == queries[:3].tobytes()


def test_callers_in_many_threads_get_their_own_vectors(cache: Path, encoder_folder: Path) -> None:
    texts = [f"第{number}条，{NEW[number % 3]}" for number in range(40)]
    with TextEncoder(cache, encoder_folder, query_prompt="合同：", query_backend="onnx") as encoder:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda text: encoder.encode_queries([text])[0], texts))
        expected = encoder.encode([f"合同：{text}" for text in texts])
    np.testing.assert_allclose(np.stack(found), expected, rtol=0, atol=2e-5)


def test_what_onnx_does_not_compute_is_computed_by_torch_and_the_log_tells(
    encoder_folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from featpipe.encoders import onnx_trunk
    from featpipe.encoders.onnx_graph import Graph

    def check(settings: EncoderSettings, reason: str) -> None:
        caplog.clear()
        chosen = Checkpoints(str(encoder_folder), encoder=settings, query_backend="onnx")
        answers = LoadedModels(chosen, None, None).encode(NEW, "合同：")
        expected = Encoder.load(encoder_folder, settings).encode(NEW, prompt="合同：").vectors
        for row, answer in enumerate(answers):
            assert isinstance(answer, Embedded)
            assert answer.vectors[0].tobytes() == expected[row].tobytes()
        [record] = [record for record in caplog.records if "queries are" in record.message]
        assert record.levelname == "WARNING"
        assert "queries are computed by torch" in record.message
        assert reason in record.message

    check(EncoderSettings(precision="approx", dtype="float32"), "int8")
    build = onnx_trunk.build_graph

    def spoil(*arguments: object) -> object:
        graph = build(*arguments)  # type: ignore[arg-type]
        graph.weights["words"] = graph.weights["words"][::-1].copy()
        return graph

    monkeypatch.setattr(onnx_trunk, "build_graph", spoil)
    check(EncoderSettings(precision="exact", dtype="float32"), "differ from those of torch")
    monkeypatch.setattr(onnx_trunk, "build_graph", lambda *_: Graph(b"no graph", {}))
    check(EncoderSettings(precision="exact", dtype="float32"), "onnxruntime refuses")


def test_an_unknown_backend_is_refused_before_a_worker_starts(cache: Path) -> None:
    with pytest.raises(UsageError, match="none of torch, onnx"):
        TextEncoder(cache, query_backend="onxx")  # type: ignore[arg-type]
