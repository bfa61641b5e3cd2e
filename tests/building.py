"""Builds a cache and reads what it holds, for the tests of several rooms."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from featpipe import Cache, Pipeline, RunReport


def build(cache: Path, documents: object, model: Path, **options: object) -> RunReport:
    options.setdefault("ner", "none")
    options.setdefault("devices", ["cpu"])
    with Pipeline(cache, model=model, **options) as pipeline:  # type: ignore[arg-type]
        return pipeline.build(documents)  # type: ignore[arg-type]


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
