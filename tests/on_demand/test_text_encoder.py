"""Text encoder: the bytes that a build stores, from the cache or from a worker, and none twice."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from featpipe import Cache, Pipeline
from featpipe.errors import CheckpointError, UnknownDevice, UnknownSpace, UsageError
from featpipe.on_demand.text_encoder import TextEncoder

NEW = ["甲方应当通知。", "从来没有见过的一句话。", "甲方应当通知。"]


@pytest.fixture
def cache(tmp_path: Path, corpus: Path, encoder_folder: Path) -> Path:
    with Pipeline(tmp_path / "c.h5", encoder_folder, "none", devices=["cpu"]) as pipeline:
        pipeline.build(corpus)
    return tmp_path / "c.h5"


def test_known_and_new_texts_have_the_bytes_that_a_build_stores(
    cache: Path, corpus: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened:
        known = list(opened.dictionary(level="sentence").texts())[:4]
    with TextEncoder(cache, encoder_folder) as encoder:
        vectors = encoder.encode([known[0], NEW[0], *known[1:], *NEW[1:]])
        assert encoder.n_encoded == 2
        again = encoder.encode(NEW)
        assert encoder.n_encoded == 2
        travelled = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
    with travelled:
        np.testing.assert_array_equal(travelled.encode(NEW[:1]), again[:1])
    (corpus / "new.txt").write_text("\n".join(NEW), "utf-8")
    with Pipeline(cache, encoder_folder, "none", devices=["cpu"]) as pipeline:
        pipeline.build(corpus)
    with Cache.open(cache) as opened:
        stored, found = opened.dictionary().lookup([known[0], NEW[0], *known[1:], *NEW[1:]])
    assert found.all()
    np.testing.assert_array_equal(vectors, np.asarray(stored, np.float32))
    np.testing.assert_array_equal(again, np.asarray(stored, np.float32)[[1, 5, 6]])


@pytest.mark.parametrize(
    ("texts", "named"),
    [("合同", "not one text"), (["合同", None], "number 1"), ([float("nan")], "number 0")],
)
def test_one_text_is_not_read_as_its_characters(
    cache: Path, encoder_folder: Path, texts: Sequence[str], named: str
) -> None:
    with TextEncoder(cache, encoder_folder, query_prompt="问：") as encoder:
        for door in (encoder.encode, encoder.encode_queries, encoder.dictionary.lookup):
            with pytest.raises(UsageError, match=named):
                door(texts)


def test_what_a_build_adds_meanwhile_is_not_encoded(
    cache: Path, corpus: Path, encoder_folder: Path
) -> None:
    with TextEncoder(cache, encoder_folder) as encoder:
        (corpus / "new.txt").write_text("\n".join(NEW), "utf-8")
        with Pipeline(cache, encoder_folder, "none", devices=["cpu"]) as pipeline:
            pipeline.build(corpus)
        assert encoder.encode(NEW).shape == (3, encoder.dim)
        assert encoder.n_encoded == 0
        assert encoder.encode([]).shape == (0, encoder.dim)


def test_a_query_and_a_stored_text_never_get_one_anothers_vector(
    cache: Path, encoder_folder: Path
) -> None:
    with Cache.open(cache) as opened:
        known = next(iter(opened.dictionary(level="sentence").texts()))
    texts = [known, NEW[0]]
    with TextEncoder(cache, encoder_folder) as encoder:
        assert encoder.query_prompt == ""
        assert "as passages" in encoder.query_prompt_source
        np.testing.assert_array_equal(encoder.encode_queries([known]), encoder.encode([known]))
        assert encoder.n_encoded == 0
        expected = encoder.encode([f"合同：{text}" for text in texts])
    with TextEncoder(cache, encoder_folder, query_prompt="合同：") as encoder:
        passages = encoder.encode(texts)
        for _ in range(2):
            np.testing.assert_array_equal(encoder.encode_queries(texts), expected)
            np.testing.assert_array_equal(encoder.encode(texts), passages)
        assert encoder.n_encoded == 3  # the new text, and both as queries
        assert (encoder.query_prompt, encoder.query_prompt_source) == ("合同：", "as given")
        travelled = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own bytes
        travelled.close()
        assert travelled.query_prompt == "合同："


def test_another_model_is_refused_before_and_after_the_choice(
    cache: Path, encoder_folder: Path, tmp_path: Path
) -> None:
    from tiny_checkpoints import save_encoder

    other = save_encoder(tmp_path / "other", seed=5)
    with pytest.raises(UnknownSpace, match="holds no vectors by"):
        TextEncoder(cache, other)
    with pytest.raises(UnknownDevice):
        TextEncoder(cache, encoder_folder, device="tpu")
    model = Path(shutil.copytree(encoder_folder, tmp_path / "changing"))
    with TextEncoder(cache, model) as encoder:
        shutil.copy(other / "model.safetensors", model / "model.safetensors")
        for _ in range(2):
            with pytest.raises(CheckpointError, match="is not the model that filled"):
                encoder.encode(NEW)


def test_a_forked_process_has_a_worker_of_its_own(cache: Path, encoder_folder: Path) -> None:
    """As where gunicorn loads the program first, has it warm up, and forks its workers then."""
    code = f"""
import os
from featpipe import TextEncoder

encoder = TextEncoder({str(cache)!r}, {str(encoder_folder)!r})
encoder.encode(["先来的一句话。"])
if pid := os.fork():
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), encoder.encode(["再来的一句话。"]).shape[0])
else:
    failed = 1
    try:
        assert len(encoder.encode(["先来的一句话。", "另外的一句话。"])) == 2
        encoder.close()
        failed = 0
    finally:
        os._exit(failed)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"], done.stderr


def test_the_caller_imports_no_torch(cache: Path, encoder_folder: Path) -> None:
    code = (
        "import sys; from featpipe.on_demand.text_encoder import TextEncoder\n"
        f"with TextEncoder({str(cache)!r}, {str(encoder_folder)!r}) as encoder:\n"
        "    print(encoder.encode(['一句新的话。']).shape, encoder.n_encoded)\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"
    assert done.stdout.splitlines()[0].endswith(" 1")
