"""A document that hangs, is slow or is greedy costs itself; a new loader costs what it changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from featpipe import Cache, Pipeline, RunReport
from featpipe.documents.load import registered
from featpipe.settings import LEVELS, BuildSettings

READER = """
import threading, time
from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.load import Loader

def load(data, limits, *, is_traced=False):
    _, how, text = data.decode().split(" ", 2)
    if how == "hang":
        threading.Event().wait()
    if how == "slow":
        time.sleep(0.6)
    if how == "greedy":
        len([bytearray(64 << 20) for _ in range(64)])
    builder = DocumentBuilder(limits)
    builder.add(text.replace(*REPLACED))
    return builder

REPLACED = {replaced!r}
LOADER = Loader("acme", {version}, ("application/x-acme",), load, lambda d, s: d[:4] == b"ACME")
"""


class Corpus:
    """A folder of documents, and the package with the loader that reads them."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model = folder, model
        self.documents = folder / "docs"
        self.documents.mkdir()
        info = folder / "acme-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: acme\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text("[featpipe.loaders]\nacme = acme_reader:LOADER\n")
        self.install(1)

    def install(self, version: int, replaced: tuple[str, str] = ("", "")) -> None:
        text = READER.format(version=version, replaced=replaced)
        (self.folder / "acme_reader.py").write_text(text, "utf-8")

    def add(self, name: str, how: str, text: str) -> None:
        (self.documents / name).write_text(f"ACME {how} {text}", "utf-8")

    def build(self, settings: BuildSettings | None = None) -> RunReport:
        with Pipeline(
            self.folder / "c.h5", model=self.model, ner="none", devices=["cpu"], settings=settings
        ) as pipeline:
            return pipeline.build(self.documents)


@pytest.fixture
def acme(tmp_path: Path, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Corpus]:
    monkeypatch.syspath_prepend(str(tmp_path))
    registered.cache_clear()
    yield Corpus(tmp_path, encoder_folder)
    registered.cache_clear()  # or the tests that follow know a loader that their children do not
    sys.modules.pop("acme_reader", None)


def test_one_that_hangs_is_named_and_the_slow_ones_beside_it_have_all_their_time(
    acme: Corpus,
) -> None:
    for number in range(6):
        acme.add(f"{number}_slow.acme", "slow", f"第{number}号合同有效。")
    acme.add("3_hang.acme", "hang", "永远")
    # All seven in one task: were the deadline the task's, the slow ones would not fit into it.
    report = acme.build(BuildSettings(document_deadline_s=3.0))
    assert [lost.source for lost in report.quarantined] == ["docs/3_hang.acme"]
    assert report.quarantined[0].error == "TaskTimedOut"
    assert report.n_loaded == 6


def test_one_that_wants_too_much_memory_is_named_and_the_others_are_read(acme: Corpus) -> None:
    acme.add("a.acme", "well", "第一号合同有效。")
    acme.add("b.acme", "greedy", "贪心")
    acme.add("c.acme", "well", "第二号合同有效。")
    report = acme.build(BuildSettings(max_worker_memory_bytes=1 << 30))
    assert [lost.source for lost in report.quarantined] == ["docs/b.acme"]
    assert "memory" in report.quarantined[0].reason.lower()
    assert report.n_loaded == 2


def test_another_version_of_a_loader_reads_again_and_encodes_only_what_it_changed(
    acme: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.add("a.acme", "well", "第一号合同有效。\n价格面议。")
    acme.add("b.acme", "well", "第二号合同有效。")
    assert acme.build().n_loaded == 2
    assert acme.build().n_unchanged == 2
    before = units(acme)

    acme.install(2, ("面议", "详谈"))
    registered.cache_clear()
    monkeypatch.delitem(sys.modules, "acme_reader")
    report = acme.build()
    assert (report.n_loaded, report.n_unchanged) == (2, 0)
    changed = units(acme) - before
    assert "价格详谈。" in changed
    assert "第二号合同有效。" not in changed
    assert report.n_encoded == len(changed)


def units(corpus: Corpus) -> set[str]:
    with Cache.open(corpus.folder / "c.h5") as cache:
        return {
            unit.text
            for document in cache.documents()
            for level in LEVELS
            for unit in document.units(level)
        }
