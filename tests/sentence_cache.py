"""A cache of sentences and their terms, written row by row: no workers, no model, milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from featpipe.cache import tables
from featpipe.cache.texts import Texts
from featpipe.cache.write import LocalTerms, TermTables, TermWriter
from featpipe.lexical.terms import Analyser, AnalyserName
from featpipe.settings import LEVELS
from featpipe.store import Writer, keys_of


def write_documents(
    path: Path, documents: Mapping[str, Sequence[str]], analyser: AnalyserName = "chars"
) -> None:
    """Add documents, each a list of sentences, as a build does; a known name is replaced."""
    counter = Analyser(analyser)
    group = tables.terms_group(analyser, counter.fingerprint)
    at = TermTables(f"{group}/vocabulary", f"{group}/units")
    specs = {
        at.vocabulary: tables.vocabulary_spec(counter.spec, counter.fingerprint),
        at.units: tables.term_units_spec(counter.spec, counter.fingerprint),
    }
    with Writer.open(path) as writer:
        terms = TermWriter(path, writer, at, specs)
        for name, sentences in documents.items():
            append_terms(terms, counter, list(dict.fromkeys(sentences)))
            append_document(writer, name, list(sentences))
        writer.commit()


def append_terms(terms: TermWriter, counter: Analyser, texts: list[str]) -> None:
    counted = counter.count(texts)
    local = LocalTerms(
        keys=keys_of(texts),
        vocabulary=Texts.from_strings(counted.vocabulary),
        ids=counted.ids,
        lengths=counted.lengths.astype(np.int64),
    )
    terms.append(local)


def append_document(writer: Writer, name: str, sentences: list[str]) -> None:
    text = "".join(sentences)
    key = np.frombuffer(blake2b(text.encode(), digest_size=16).digest(), np.uint8).reshape(1, 16)
    ends = np.cumsum([len(each) for each in sentences], dtype=np.uint32)
    spans = np.stack((np.concatenate(([0], ends[:-1])), ends), axis=1) if sentences else ends
    nothing = np.zeros(1, np.int64)
    row: dict[str, object] = {
        "keys": key,
        "text": Texts.from_strings([text]).ragged,
        "meta": Texts.from_strings(["{}"]).ragged,
    }
    for level in LEVELS:
        row[f"{level}_spans"] = (np.zeros((0, 2), np.uint32), nothing)
        row[f"{level}_keys"] = (np.zeros((0, 16), np.uint8), nothing)
    n = np.array([len(sentences)])
    row["sentence_spans"] = (spans.reshape(-1, 2).astype(np.uint32), n)
    row["sentence_keys"] = (keys_of(sentences).reshape(-1, 16), n)
    writer.table(tables.DOCUMENTS, tables.documents_spec()).append(row)  # type: ignore[arg-type]  # rows of every kind
    writer.table(tables.SOURCES, tables.sources_spec()).append(
        {
            "document": key,
            "path": Texts.from_strings([f"/docs/{name}"]).ragged,
            "id": Texts.from_strings([name]).ragged,
        }
    )
