"""Files that others made: each ends as text or as a named reason. Skipped where they are absent."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from featpipe.documents import load_document, segment
from featpipe.errors import DocumentError

RAW = Path(__file__).resolve().parents[3] / "shared" / "data" / "raw"

#: Files that are no text by their makers' intent, or of a format that is not read.
REASONS = {
    "docling_2206.01062_pg3.pdf": "locked by a password",
    "docling_legacy_sample.doc": "a Word file of the old binary format",
    "unstructured_simple.doc": "a Word file of the old binary format",
    "unstructured_fake-doc.rtf": "a Rich Text file",
    "unstructured_fake-text-all-whitespace.txt": "no text in it",
}


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
