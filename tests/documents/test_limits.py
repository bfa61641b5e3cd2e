"""What one door accepts every other accepts: there is one set of limits."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace

import pytest

from featpipe import LoadLimits
from featpipe.build.roles import read_limits
from featpipe.documents import load_document
from featpipe.errors import DocumentTooLarge
from featpipe.extraction.deploy import Publication
from featpipe.extraction.on_workers import extract_role
from featpipe.extraction.worker import ExtractRole
from featpipe.service.engine import extraction_workload
from featpipe.service.settings import ServiceSettings
from featpipe.settings import BuildSettings

ACCEPTED = 40_000_000


def test_the_default_is_what_build_cache_has_always_accepted() -> None:
    assert LoadLimits().max_characters == ACCEPTED
    assert LoadLimits().max_bytes == 256 << 20


def test_a_build_adds_nothing_to_the_defaults() -> None:
    assert read_limits(BuildSettings()) == LoadLimits()
    own = read_limits(BuildSettings(max_document_bytes=10, max_document_characters=5, use_ocr=True))
    assert own == LoadLimits(max_bytes=10, max_characters=5, use_ocr=True)


@pytest.mark.parametrize("limits", [None, LoadLimits(max_bytes=10, use_ocr=True)])
def test_the_service_adds_nothing_to_the_limits(tmp_path: Path, limits: LoadLimits | None) -> None:
    publication = Publication.__new__(Publication)
    publication.folder = publication.models = tmp_path
    publication.devices, publication.space, publication._checkpoints = ("cpu",), None, "none"
    cache = SimpleNamespace(path=tmp_path)
    publication._limits = limits
    publication._engine = SimpleNamespace(cache=cache, folder=tmp_path)  # type: ignore[assignment]
    settings = ServiceSettings(cache=tmp_path, max_body_bytes=1000, max_batch_bytes=1000)
    workload = extraction_workload(settings, publication)
    assert (workload.role.arguments["limits"] or LoadLimits()) == (limits or LoadLimits())
    fitting = publication._extract_role(())
    assert fitting.arguments["limits"] == limits


@pytest.mark.parametrize("door", [load_document, extract_role, ExtractRole])
def test_without_limits_of_their_own_the_library_and_its_workers_use_the_defaults(
    door: object,
) -> None:
    assert inspect.signature(door).parameters["limits"].default is None


def test_a_long_document_is_loaded_up_to_the_limit_and_refused_beyond() -> None:
    line = b"a" * 99_999 + b"\n"
    document = load_document(line * (ACCEPTED // len(line)), source="long.txt")
    assert len(document.text) == ACCEPTED - 1
    with pytest.raises(DocumentTooLarge, match="longer than 40,000,000 characters"):
        load_document(line * (ACCEPTED // len(line) + 1), source="longer.txt")
