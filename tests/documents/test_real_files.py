"""Files that others made: each ends as text or as a named reason. Skipped where they are absent."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from featpipe.documents import load_document, segment
from featpipe.documents.formats.doc import find_converter
from featpipe.errors import DocumentError

RAW = Path(__file__).resolve().parents[3] / "shared" / "data" / "raw"

#: Files that are no text by their makers' intent, or of a format that is not read.
REASONS = {
    "docling_2206.01062_pg3.pdf": "locked by a password",
    "unstructured_fake-text-all-whitespace.txt": "no text in it",
}
if find_converter(os.environ.get("PATH", "")) is None:
    without = "LibreOffice, which is not installed"
    REASONS |= {"docling_legacy_sample.doc": without, "unstructured_simple.doc": without}


def outcome(data: bytes, name: str) -> str:
    """The reason why a file is not read, or "" for one that is."""
    try:
        document = load_document(data, source=name)
    except DocumentError as error:
        return error.message
    return "" if len(segment(document.text).sentences) else "no sentence"


@pytest.mark.parametrize("folder", ["docs_zh", "docs_edge"])
def test_every_file_is_accounted_for(folder: str) -> None:
    archive = RAW / f"{folder}.tar.xz"
    if not archive.exists():
        pytest.skip("the data is not here")
    with tarfile.open(archive) as tar:
        files = [(Path(m.name).name, tar.extractfile(m)) for m in tar if m.isfile()]
        outcomes = {name: outcome(file.read(), name) for name, file in files if file}
    for name, reason in outcomes.items():
        assert bool(reason) == (name in REASONS), (name, reason)
        assert REASONS.get(name, "") in reason
