"""Part of ``bench_encode.py``: what the processor does for a card, in tokens a second by stage.

The tokens are those that a model computes for the documents: of their distinct paragraphs,
sentences and words. Read, hash and lookup are the work of processes that read documents; tokenize,
pack and finish that of a worker with a card; write that of the writer. Seconds are the processor's
of one thread, but the writer's, which are of the wall. The launch of a pack is not among them: it
needs a card.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from featpipe.build.workers import spans_by_level
from featpipe.cache import tables
from featpipe.cache.texts import UnitCollector
from featpipe.cache.write import CacheWriter
from featpipe.documents import LoadLimits, load_document
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.forward import CUDA_BUDGET
from featpipe.encoders.packing import Sequences, plan_packs
from featpipe.encoders.spec import EncoderSettings
from featpipe.lexical.words import Words
from featpipe.settings import LEVELS
from featpipe.store import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Report

    from featpipe.cache.texts import Units
    from featpipe.encoders.tokens import Tokens

#: Tokens a second that one card is to get from texts to rows.
_ASKED = 2.0e6

_READER = ("read", "hash", "lookup")
_WORKER = ("tokenize", "pack", "finish")


def bench_stages(report: Report, folder: Path, documents: Sequence[str], rounds: int) -> None:
    """Rates of all stages, and how many processes of each kind feed a card from them."""
    encoder = Encoder.load(folder, EncoderSettings(precision="exact", dtype="float16"))
    words = Words()
    texts = [load(document) for document in documents]
    units = collect([cut(text, words) for text in texts])
    strings = units.texts.strings()
    tokens = encoder.tokenizer.encode(strings)
    n_tokens = int(encoder.count_tokens(strings).sum())
    vectors = np.random.default_rng(0).standard_normal((len(units), encoder.dim), np.float32)
    spans = [cut(text, words) for text in texts]
    every = np.arange(len(units))
    stages: dict[str, Callable[[], object]] = {
        "read": lambda: [cut(load(document), words) for document in documents],
        "hash": lambda: collect(spans),
        "tokenize": lambda: encoder.tokenizer.encode(units.texts.strings()),
        "pack": lambda: pack_all(encoder, tokens),
        "finish": lambda: encoder.make_encoded(vectors, every + 1, tokens, every, on_fault="raise"),
    }
    rates = {name: n_tokens / _processor_s(stage, rounds) for name, stage in stages.items()}
    rates |= {
        name: n_tokens / seconds
        for name, seconds in store_seconds(units, vectors.astype(np.float16), rounds).items()
    }
    print(f"{len(documents)} documents, {len(units)} distinct units, {n_tokens} tokens")
    for name, rate in rates.items():
        report.note(f"stage_{name}_tokens_s", round(rate), f"{name}, tokens a second")
    for kind, names in (("readers", _READER), ("workers", _WORKER)):
        seconds = sum(1 / rates[name] for name in names)
        report.note(
            f"{kind}_for_2m_tokens_s",
            max(1, ceil(_ASKED * seconds)),
            f"{kind} that do {', '.join(names)} for 2.0 M tokens a second",
        )


def load(document: str) -> str:
    """The text of a document as a prepare worker reads it."""
    data = document.encode("utf-8", "surrogatepass")
    return load_document(data, source="document.txt", limits=LoadLimits()).text


def cut(text: str, words: Words) -> dict[str, list[str]]:
    """Its units by level."""
    spans = spans_by_level(text, words)
    return {level: [text[a:b] for a, b in spans[level].tolist()] for level in LEVELS}


def collect(cuts: Sequence[dict[str, list[str]]]) -> Units:
    """The distinct ones, hashed."""
    collector = UnitCollector()
    for by_level in cuts:
        for level, texts in by_level.items():
            collector.add(texts, level)
    return collector.units()


def pack_all(encoder: Encoder, tokens: Tokens) -> None:
    """Lay all texts out in packs of a card."""
    prefix, suffix = encoder.tokenizer.prefix, encoder.tokenizer.suffix
    starts = tokens.ends - tokens.lengths
    sequences = Sequences(tokens.ids, starts, tokens.lengths, prefix, suffix)
    for numbers in plan_packs(sequences.lengths_with_special, budget=CUDA_BUDGET):
        sequences.pack(numbers)


def store_seconds(units: Units, vectors: np.ndarray, rounds: int) -> dict[str, float]:
    """Of the writer for all rows, and of a reader that looks for all keys."""
    spec = tables.vectors_spec({}, "0" * 64, vectors.shape[1], "float16")
    taken = []
    for _ in range(max(1, rounds)):
        with tempfile.TemporaryDirectory() as scratch:
            cache = Path(scratch) / "c.h5"
            with CacheWriter.open(cache, {"vectors/x": spec}) as writer:
                writer.append({})
                writer.settle()
                begun = time.perf_counter()
                writer.append({"vectors/x": {"keys": units.keys, "vectors": vectors}})
                writer.settle()
                taken.append(time.perf_counter() - begun)
            with Reader(cache) as reader:
                find = partial(reader.table("vectors/x").find, units.keys)
                found = _processor_s(find, rounds)
    return {"lookup": found, "write": median(taken)}


def _processor_s(stage: Callable[[], object], rounds: int) -> float:
    seconds = []
    for number in range(rounds + 1):
        begun = time.process_time()
        stage()
        if number or not rounds:
            seconds.append(time.process_time() - begun)
    return median(seconds)
