"""What comes from strangers ends in a reason: no crash, no endless loop, nothing of it is run."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from tiny_checkpoints import save_encoder

from featpipe.consumer.jobs import read_job
from featpipe.documents import load_document
from featpipe.documents.own_files import describe_own_file
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.errors import CheckpointError, FeatpipeError, TemplateError, UsageError
from featpipe.extraction.doccano import read_doccano
from featpipe.extraction.label_studio import read_label_studio
from featpipe.extraction.template_file import load_template, load_templates
from featpipe.html_report.results import read_file
from featpipe.service.routes.extract import plain_name
from featpipe.store.import_vectors import import_vectors
from featpipe.store.reader import Reader

DEEP = "[" * 200_000


def _samples_of(path: Path) -> object:
    path.with_name("t.toml").write_text('name = "t"\n[[fields]]\nname = "a"\ntype = "text"\n')
    path.rename(path.with_name("t.samples.jsonl"))
    return load_templates(path.parent)


@pytest.mark.parametrize(
    ("name", "text", "reads", "error"),
    [
        ("r.jsonl", DEEP, lambda path: read_file(path, []), UsageError),
        ("t.json", DEEP, load_template, TemplateError),
        ("t.toml", f"a = {DEEP}", load_template, TemplateError),
        ("s.jsonl", DEEP, _samples_of, TemplateError),
        ("d.jsonl", DEEP, read_doccano, TemplateError),
        ("l.json", DEEP, read_label_studio, TemplateError),
        ("m.json", DEEP, lambda path: read_job(path.read_text(), {}), UsageError),
        ("config.json", DEEP, lambda path: describe_checkpoint(path.parent), CheckpointError),
    ],
)
def test_json_nested_without_end_is_an_error_of_its_file(
    tmp_path: Path,
    name: str,
    text: str,
    reads: Callable[[Path], object],
    error: type[FeatpipeError],
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(error):
        reads(path)


def test_a_record_nested_without_end_is_no_document_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"fields": ' + DEEP)
    assert describe_own_file(path) is None


class _Runs:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.trace,)


def test_a_pickle_among_the_weights_is_not_run(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "model")
    for file in folder.glob("*.safetensors"):
        file.unlink()
    trace = tmp_path / "ran"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": _Runs(trace)}))
    with pytest.raises(CheckpointError):
        Encoder.load(folder)
    assert not trace.exists()


SCRIPTED = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 999999999>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R
/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>
/AA<</O<</S/Launch/F(/bin/true)>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F1 12 Tf 20 100 Td (hello world) Tj ET
endstream endobj
trailer<</Root 1 0 R>>"""


def test_actions_of_a_pdf_are_nothing_to_us() -> None:
    pytest.importorskip("pypdfium2")
    assert load_document(SCRIPTED, source="a.pdf").text.strip() == "hello world"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 200_000 + "x",
        "<table><tr><td>" * 20_000 + "x",
        "<table><tr>" + "<td colspan=100000000 rowspan=100000000>x</td>" * 10,
        "<p " + "a=1 " * 500_000 + ">x",
    ],
    ids=["deep", "tables in tables", "spans", "attributes"],
)
def test_a_page_that_swells_ends_in_its_text(page: str) -> None:
    assert "x" in load_document(f"<html>{page}".encode(), source="a.html").text


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of vectors that also leads elsewhere, in every way HDF5 knows."""
    secret = tmp_path / "secret"
    secret.write_bytes(np.ones(4, "f4").tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.ones(4, "f4")
    with h5py.File(tmp_path / "old.h5", "w") as file:
        group = file.create_group("v")
        group["good"] = np.ones(4, "f4")
        group["itself"] = group
        group["soft"] = h5py.SoftLink("/v/good")
        group["external"] = h5py.ExternalLink("other.h5", "/x")
        group.create_dataset("elsewhere", (4,), "f4", external=[(str(secret), 0, 16)])
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        group.create_virtual_dataset("virtual", layout)
        group.create_dataset("vast", (10**13,), "f4", chunks=(1024,))
        group.create_dataset("objects", (1,), h5py.string_dtype())
    return tmp_path / "old.h5"


def test_an_imported_file_leads_nowhere_else_and_ends(old: Path, tmp_path: Path) -> None:
    done = import_vectors(old, tmp_path / "c.h5", table="embeddings/a@old", group="v")
    assert done.n_rows == 1
    assert {"itself", "vast", "objects"} <= {name for name, _ in done.skipped}
    with Reader(tmp_path / "c.h5") as reader:
        assert reader.table("texts").n_rows == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\dir\\a.txt", "a.txt"),
        ("a\r\nSet-Cookie: b.txt", "a__Set-Cookie: b.txt"),
        ("a\x1b]0;owned\x07.txt", "a_]0;owned_.txt"),
        ("a\u202etxt.exe", "a_txt.exe"),
        ("x" * 10_000 + ".txt", "x" * 252 + ".txt"),
        ("..", ".."),
        ("/", "upload"),
    ],
)
def test_the_name_of_an_upload_is_a_plain_label(name: str, label: str) -> None:
    assert plain_name(name) == label
