"""Loaders of others: registered by entry point, first in line, never passed over in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featpipe.documents import load_document
from featpipe.documents.load import BUILT_IN, registered
from featpipe.errors import UnreadableDocument, UsageError

READER = """
from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.load import Loader

def load(data, limits, *, is_traced=False):
    if data == b"ACME broken":
        raise RuntimeError("out of paper")
    builder = DocumentBuilder(limits)
    builder.add(data.decode().removeprefix("ACME "))
    return builder

LOADER = Loader("acme", 3, ("application/x-acme",), load, lambda data, source: data[:4] == b"ACME")
HTML = Loader("other", 1, ("text/html",), load)
"""


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package with entry points, for the length of a test."""

    def write(**entries: str) -> None:
        (tmp_path / "acme_reader.py").write_text(READER, "utf-8")
        info = tmp_path / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n", "utf-8")
        lines = [f"{name} = {target}" for name, target in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[featpipe.loaders]", *lines]), "utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        registered.cache_clear()

    yield write
    registered.cache_clear()


def test_a_user_s_loader_reads_its_kind(install: Install) -> None:
    install(acme="acme_reader:LOADER")
    document = load_document(b"ACME hello", source="a.acme")
    assert (document.text, document.loader) == ("hello", "acme/3")
    assert document.media_type == "application/x-acme"


def test_a_user_s_loader_may_replace_ours(install: Install) -> None:
    install(html="acme_reader:HTML")
    assert load_document(b"<html><p>x", source="a").loader == "other/1"


def test_what_a_user_s_loader_raises_costs_one_document(install: Install) -> None:
    install(acme="acme_reader:LOADER")
    with pytest.raises(
        UnreadableDocument, match=r"a: cannot be read \(RuntimeError: out of paper\)"
    ):
        load_document(b"ACME broken", source="a")


@pytest.mark.parametrize(
    ("target", "reason"),
    [("acme_reader:ABSENT", "cannot be imported"), ("acme_reader:load", "is no featpipe Loader")],
)
def test_a_broken_installation_is_an_error_of_the_run(
    install: Install, target: str, reason: str
) -> None:
    install(acme=target)
    with pytest.raises(UsageError, match=reason):
        load_document(b"x", source="a.txt")


def test_every_built_in_loader_can_be_imported_and_has_its_own_name() -> None:
    assert len({loader.name for loader in BUILT_IN}) == len(BUILT_IN)
    taken = [kind for loader in BUILT_IN for kind in loader.media_types]
    assert len(set(taken)) == len(taken)
    for loader in BUILT_IN:
        assert callable(loader.function())
