"""Builds a cache and reads what it holds, for the tests of several rooms."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from featpipe import Cache, Pipeline, RunReport
from featpipe.cache.texts import UnitCollector, Units


def build(cache: Path, documents: object, model: Path, **options: object) -> RunReport:
    options.setdefault("ner", "none")
    options.setdefault("devices", ["cpu"])
    with Pipeline(cache, model=model, **options) as pipeline:  # type: ignore[arg-type]
        return pipeline.build(documents)  # type: ignore[arg-type]


def units(texts: list[str]) -> Units:
    """Sentences, as a reader of documents collects them."""
    collector = UnitCollector()
    collector.add(texts, "sentence")
    return collector.units()


def contents(path: Path) -> dict[str, bytes]:
    """Every text of the only space, with the bytes of its vector."""
    with Cache.open(path) as cache:
        dictionary = cache.dictionary()
        return {text: dictionary[text].tobytes() for text in dictionary.texts()}


def stored_terms(cache: Cache) -> dict[bytes, list[str]]:
    (name,) = [t for t in cache.reader.tables() if t.startswith("terms/") and t.endswith("/units")]
    vocabulary = cache.reader.table(name.replace("/units", "/vocabulary"))
    terms = {
        int(vocabulary.gather("id", [row])[0]): bytes(vocabulary.ragged("term", row)).decode()
        for row in range(vocabulary.n_rows)
    }
    units = cache.reader.table(name)
    keys = np.asarray(units.gather("keys", np.arange(units.n_rows)))
    return {
        key.tobytes(): [terms[int(number)] for number in units.ragged("ids", row)]
        for row, key in enumerate(keys)
    }


#: A loader whose documents name a file, and are read when it is there.
WAITS = """
import time
import os
from pathlib import Path
from featpipe.documents.builder import DocumentBuilder
from featpipe.documents.load import Loader

def load(data, limits, *, is_traced=False):
    word = Path(data.decode().split()[1])
    while not word.exists():
        time.sleep(0.005)
    builder = DocumentBuilder(limits)
    builder.add("甲方与乙方签订合同。")
    return builder

LOADER = Loader("waits", 1, ("application/x-waits",), load, lambda d, s: d[:5] == b"WAITS")
"""


def with_waiting_loader(folder: Path) -> dict[str, str]:
    """The environment of a program that has it, as a package in this folder."""
    (folder / "waits.py").write_text(WAITS, "utf-8")
    info = folder / "waits-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: waits\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[featpipe.loaders]\nwaits = waits:LOADER\n", "utf-8")
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path}
