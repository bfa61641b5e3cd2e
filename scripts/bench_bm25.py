"""BM25 against rank-bm25 and bm25s on real sentences: same scores first, then speed.

Laws and Tang poems, cut into jieba's words as they stand. Every peer gets the same words; scores
are compared with rank-bm25's before anything is timed. Times are CPU seconds of this process, peers
and we query by query in turn. bm25s runs its numba backend on one thread, in float32.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from harness import finish, make_parser, read_lines, spread

from featpipe.lexical.backend import has_numba
from featpipe.lexical.bm25 import Okapi, score_fields
from featpipe.lexical.index import Index
from featpipe.lexical.segment import Segment
from featpipe.lexical.words import Words
from featpipe.user_cache import ArrayFile

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    import rank_bm25

    Backend = Literal["numba", "numpy"]

SENTENCES_PER_DOCUMENT = 300


class Numbers:
    """Terms to numbers from 0 on, in the order in which they are first added."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, terms: list[str]) -> np.ndarray[Any, Any]:
        """The number of each term, new ones being added."""
        number = self._numbers.setdefault
        return np.array([number(term, len(self._numbers)) for term in terms], np.int32)

    def find(self, terms: list[str]) -> np.ndarray[Any, Any]:
        """The number of each term, -1 for unknown ones."""
        return np.array([self._numbers.get(term, -1) for term in terms], np.int32)


@dataclass
class Corpus:
    """Sentences as words and as numbers in one vocabulary."""

    rows: list[list[str]]
    ids: np.ndarray[Any, Any]
    lengths: np.ndarray[Any, Any]
    vocabulary: Numbers

    def head(self, n_rows: int) -> Corpus:
        """The first sentences, with the same numbers."""
        n_tokens = int(self.lengths[:n_rows].sum())
        return Corpus(
            self.rows[:n_rows], self.ids[:n_tokens], self.lengths[:n_rows], self.vocabulary
        )

    def documents(self) -> tuple[list[str], list[int]]:
        """Names and sentence counts of documents of 300 sentences each."""
        begins = range(0, len(self.rows), SENTENCES_PER_DOCUMENT)
        sizes = [min(SENTENCES_PER_DOCUMENT, len(self.rows) - begin) for begin in begins]
        return [f"document {begin}" for begin in begins], sizes


def main() -> None:
    """Run everything; the last line is the JSON of the figures."""
    os.environ["DISABLE_TQDM"] = "1"
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    arguments = parse_arguments()
    sizes = [1_000, 10_000, 100_000] + ([] if arguments.quick else [1_000_000])
    if arguments.sizes:
        sizes = arguments.sizes
    whole = read_corpus(arguments.data, max(sizes) + 1_000)
    figures: dict[str, float] = {"max_abs_diff": 0.0}
    fields_figures(whole, figures)
    for size in sizes:
        print(f"\n{size:,} sentences")
        query_figures(whole.head(size), figures, name_of(size))
        if size == 100_000:
            adding_figures(whole, size, figures)
        opening_figures(whole.head(size), figures, name_of(size))
        gc.collect()
    finish("bench_bm25", arguments, figures)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", help="sentences, instead of the usual")
    return parser.parse_args()


def name_of(size: int) -> str:
    """100000 -> 100k."""
    return f"{size // 1_000_000}m" if size >= 1_000_000 else f"{size // 1000}k"


def read_corpus(data: Path, n_rows: int) -> Corpus:
    """Laws and poems in turn, so that every size has both; cut and numbered."""
    streams = [sentences(path) for path in sorted((data / "corpus").glob("*.jsonl.xz"))]
    texts: list[str] = []
    while len(texts) < n_rows and streams:
        for stream in list(streams):
            taken = [text for _, text in zip(range(200), stream, strict=False)]
            texts.extend(taken)
            if not taken:
                streams.remove(stream)
    # There are 640,000 of them; more are made of the halves of two.
    choice = np.random.default_rng(5)
    n_real = len(texts)
    for left, right in choice.integers(n_real, size=(max(0, n_rows - n_real), 2)).tolist():
        texts.append(texts[left][: len(texts[left]) // 2] + texts[right][len(texts[right]) // 2 :])
    words, vocabulary = Words(), Numbers()
    rows: list[list[str]] = []
    ids = []
    lengths = []
    for low in range(0, n_rows, 20_000):
        part = texts[low : min(low + 20_000, n_rows)]
        batch = words.encode(part)
        ids.append(vocabulary.add(batch.vocabulary)[batch.ids])
        lengths.append(batch.lengths)
        named = [batch.vocabulary[number] for number in batch.ids.tolist()]
        ends = np.cumsum(batch.lengths).tolist()
        rows.extend(named[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True))
    return Corpus(rows, np.concatenate(ids), np.concatenate(lengths), vocabulary)


def sentences(path: Path) -> Iterator[str]:
    """The sentences of one file of documents."""
    for row in read_lines(path):
        whole = "\n".join(each for each in row.values() if isinstance(each, str))
        yield from (text for text in re.split(r"(?<=[。！？；\n])", whole) if text.strip())


def queries_from(corpus: Corpus, n: int, n_words: int) -> list[list[str]]:
    """Runs of words cut from sentences, as somebody would paste them."""
    choice = np.random.default_rng(11)
    found: list[list[str]] = []
    while len(found) < n:
        row = corpus.rows[int(choice.integers(len(corpus.rows)))]
        if len(row) >= n_words:
            begin = int(choice.integers(len(row) - n_words + 1))
            found.append(row[begin : begin + n_words])
    return found


def cpu_ms(work: Callable[[], object], times: int = 1) -> float:
    """The least CPU milliseconds of several runs."""
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best * 1e3


def query_figures(corpus: Corpus, figures: dict[str, float], name: str) -> None:
    """Top 10 of queries of 11 words: rank-bm25, bm25s and our backends."""
    queries = queries_from(corpus, 60, 11)
    names, sizes = corpus.documents()
    indexes: dict[str, Index] = {}
    for backend in backends():
        index = Index(backend=backend)
        begin = time.process_time()
        index.add_many(names, corpus.ids, corpus.lengths, sizes)
        _ = index.statistics
        print(f"  build from ids, {backend}: {time.process_time() - begin:.2f} s")
        index.top_k([corpus.vocabulary.find(queries[0])], 10)
        indexes[backend] = index
    rank_bm25_figures(corpus, indexes, queries[: 3 if name == "1m" else 12], figures, name)
    gc.collect()
    bm25s_figures(corpus, indexes, queries, figures, name)


def rank_bm25_figures(
    corpus: Corpus,
    indexes: dict[str, Index],
    queries: list[list[str]],
    figures: dict[str, float],
    name: str,
) -> None:
    """Query by query in turn; a caller of either has words, not numbers."""
    import rank_bm25

    begin = time.process_time()
    peer = rank_bm25.BM25Okapi(corpus.rows)
    print(f"  build, rank-bm25: {time.process_time() - begin:.2f} s")
    compare_scores(corpus, peer, indexes, queries, figures)
    ratios: dict[str, list[float]] = {backend: [] for backend in indexes}
    for query in queries:
        slow = cpu_ms(lambda q=query: np.argsort(peer.get_scores(q))[::-1][:10])
        for backend, index in indexes.items():
            ours = cpu_ms(lambda q=query, i=index: i.top_k([corpus.vocabulary.find(q)], 10), 5)
            ratios[backend].append(slow / ours)
    for backend, values in ratios.items():
        print_ratio(f"top 10, {backend} against rank-bm25", values)
        figures[f"query_vs_rank_bm25_{name}{suffix(backend)}"] = round(statistics.median(values), 1)


def bm25s_figures(
    corpus: Corpus,
    indexes: dict[str, Index],
    queries: list[list[str]],
    figures: dict[str, float],
    name: str,
) -> None:
    """The same queries in one batch, several rounds in turn."""
    import bm25s

    begin = time.process_time()
    other = bm25s.BM25(method="atire", backend="numba")
    other.index(corpus.rows, show_progress=False)
    print(f"  build, bm25s: {time.process_time() - begin:.2f} s")

    def ask_bm25s() -> object:
        return other.retrieve(queries, k=10, show_progress=False, n_threads=1)

    ask_bm25s()
    ratios: dict[str, list[float]] = {backend: [] for backend in indexes}
    for _ in range(7):
        theirs = cpu_ms(ask_bm25s)
        for backend, index in indexes.items():
            ours = cpu_ms(lambda i=index: i.top_k([corpus.vocabulary.find(q) for q in queries], 10))
            ratios[backend].append(theirs / ours)
            last = ours
    print(
        f"  batch of {len(queries)}: bm25s {theirs / len(queries):.3f} ms a query, "
        f"we ({backend}) {last / len(queries):.3f}"
    )
    for backend, values in ratios.items():
        print_ratio(f"batch top 10, {backend} against bm25s", values)
        figures[f"query_vs_bm25s_{name}{suffix(backend)}"] = round(statistics.median(values), 2)


def backends() -> list[Backend]:
    """The backends there are, the one to be reported under the plain key last."""
    return ["numpy", *(["numba"] if has_numba() else [])]


def suffix(backend: str) -> str:
    """What tells the numpy backend's figures from the reported ones."""
    return "_numpy" if backend == "numpy" and has_numba() else ""


def print_ratio(what: str, values: list[float]) -> None:
    """One line of the table."""
    print(f"  {what}: {spread(values)}")


def compare_scores(
    corpus: Corpus,
    peer: rank_bm25.BM25Okapi,
    indexes: dict[str, Index],
    queries: list[list[str]],
    figures: dict[str, float],
) -> None:
    """Note the greatest difference from rank-bm25's scores, for every backend."""
    for query in queries:
        expected = peer.get_scores(query)
        for index in indexes.values():
            found = index.scores([corpus.vocabulary.find(query)])[0]
            differs = float(np.abs(found - expected).max())
            figures["max_abs_diff"] = max(figures["max_abs_diff"], differs)


def fields_figures(whole: Corpus, figures: dict[str, float]) -> None:
    """60 field queries of 8 words against a document of 300 sentences, postings included."""
    document = whole.head(SENTENCES_PER_DOCUMENT)
    queries = queries_from(whole.head(10_000), 60, 8)
    for backend in backends():
        ratios = [field_ratio(document, queries, backend, figures) for _ in range(5)]
        print_ratio(f"60 fields x 300 sentences, {backend} against rank-bm25", ratios)
        figures[f"fields_vs_rank_bm25{suffix(backend)}"] = round(statistics.median(ratios), 1)


def field_ratio(
    document: Corpus, queries: list[list[str]], backend: Backend, figures: dict[str, float]
) -> float:
    """How many times faster than rank-bm25; the differences are noted."""
    import rank_bm25

    asked = [document.vocabulary.find(query) for query in queries]

    def ours() -> object:
        return score_fields(document.ids, document.lengths, asked, Okapi(), backend=backend)

    def theirs() -> object:
        peer = rank_bm25.BM25Okapi(document.rows)
        return [peer.get_scores(query) for query in queries]

    differs = float(np.abs(np.array(ours()) - np.array(theirs())).max())
    figures["max_abs_diff"] = max(figures["max_abs_diff"], differs)
    return cpu_ms(theirs, 2) / cpu_ms(ours, 20)


def adding_figures(whole: Corpus, size: int, figures: dict[str, float]) -> None:
    """One more document of 300 sentences: its words numbered, its postings, the new statistics."""
    import rank_bm25

    base = whole.head(size)
    extra = whole.rows[size : size + SENTENCES_PER_DOCUMENT]
    names, sizes = base.documents()
    index = Index()
    index.add_many(names, base.ids, base.lengths, sizes)
    _ = index.statistics
    lengths = np.array([len(row) for row in extra])

    def add(name: str) -> None:
        ids = whole.vocabulary.find([word for row in extra for word in row])
        index.add(name, ids, lengths)
        _ = index.statistics

    add("first")
    queries = queries_from(base, 5, 11)
    peer = rank_bm25.BM25Okapi([*base.rows, *extra])
    compare_scores(base, peer, {"grown": index}, queries, figures)
    best = [cpu_ms(lambda n=number: add(f"more {n}")) for number in range(9)]
    figures["add_document_ms_100k"] = round(statistics.median(best), 2)
    print(
        f"  adding a document of 300 sentences: {statistics.median(best):.2f} ms "
        f"({min(best):.2f} .. {max(best):.2f})"
    )


def opening_figures(corpus: Corpus, figures: dict[str, float], name: str) -> None:
    """From arrays in files to statistics at hand, mapped or derived anew; then the first query."""
    names, sizes = corpus.documents()
    query = [corpus.vocabulary.find(queries_from(corpus, 1, 11)[0])]
    with tempfile.TemporaryDirectory() as folder:
        segment = Segment.from_ids(corpus.ids, corpus.lengths, backend=backends()[-1])
        derived, truth = segment.derived(), {"ids": corpus.ids, "lengths": corpus.lengths}
        kept = {**derived, "lengths": segment.lengths}
        ArrayFile.write(Path(folder) / "postings", {}, kept)
        for each, array in truth.items():
            np.save(Path(folder) / f"{each}.npy", array)
        n_bytes = sum(array.nbytes for array in derived.values())

        def open_mapped() -> Index:
            arrays = ArrayFile.map(Path(folder) / "postings").arrays
            index = Index()
            own = Segment.from_arrays(arrays["lengths"], arrays)
            index.add_segment(names, own, sizes)
            _ = index.statistics
            return index

        def rebuild() -> Index:
            index = Index()
            ids = np.load(Path(folder) / "ids.npy", mmap_mode="r")
            lengths = np.load(Path(folder) / "lengths.npy", mmap_mode="r")
            index.add_many(names, ids, lengths, sizes)
            _ = index.statistics
            return index

        opened = cpu_ms(open_mapped, 5)
        rebuilt = cpu_ms(rebuild, 3)
        index = open_mapped()
        first = cpu_ms(lambda: index.top_k(query, 10))
    figures[f"open_ms_{name}"] = round(opened, 2)
    figures[f"rebuild_ms_{name}"] = round(rebuilt, 1)
    figures[f"postings_bytes_{name}"] = n_bytes
    print(
        f"  open {opened:.1f} ms, derived anew {rebuilt:.0f} ms, first query {first:.2f} ms; "
        f"postings {n_bytes / 1e6:.1f} MB, ids {segment.ids.nbytes / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
