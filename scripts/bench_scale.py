"""A million documents on one machine, against ten thousand of the same kind.

Makes two caches of small documents (a sentence of eleven words each, in one JSONL file) through the
writer itself, with random vectors in the place of encoded ones, and asks both the same: open, one
document, one look-up, one page of documents, searches, nearest neighbours, a summary, and a run
over documents that are all known. Each group of questions has a process of its own. Seconds of
small things are processor seconds, the least of several, since other work on the machine only adds.
Memory is that which no file backs: beside the mapped pages of the cache.

    python scripts/bench_scale.py --quick
    python scripts/bench_scale.py --cache scale --json scale.json    # keeps the caches there
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from harness import Report, make_parser, seconds_of

from featpipe import Cache, Pipeline
from featpipe.build.plan import make_plan
from featpipe.cache import tables
from featpipe.cache.places import read_identified, source_rows
from featpipe.cache.summary import summarise
from featpipe.cache.texts import LEVEL_BIT, Texts, join_keys
from featpipe.cache.write import CacheWriter, LocalTerms, write_role
from featpipe.documents import LoadLimits
from featpipe.documents.find import search
from featpipe.documents.source import GivenText, Source
from featpipe.encoders.builtin import find_builtin_model
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.lexical.terms import Analyser
from featpipe.pool import Pool
from featpipe.settings import BuildSettings
from featpipe.store import keys_of
from featpipe.store.verify import verify_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.build.plan import Plan
    from featpipe.cache.tables import Rows

N_SMALL, N_LARGE, N_QUICK = 10_000, 1_000_000, 50_000
N_WORDS, WORDS_EACH, BATCH = 60_000, 11, 10_000
PAGE = 50
_EXACT = (EncoderSettings(precision="exact"), TaggerSettings(precision="exact"))


# ---- the caches


def words() -> NDArray[np.str_]:
    """Distinct words of two characters."""
    numbers = np.arange(N_WORDS)
    codes = np.stack([0x4E00 + numbers % 300, 0x5000 + numbers // 300], axis=1).astype("<u4")
    return codes.view("<U2").reshape(-1)


def texts_of(start: int, stop: int) -> NDArray[np.int64]:
    """Numbers of the words of some documents: (n, WORDS_EACH); frequent words are frequent."""
    chance = np.random.default_rng(start)
    return (N_WORDS * chance.random((stop - start, WORDS_EACH)) ** 3).astype(np.int64)


def make_documents(path: Path, n: int) -> None:
    """A JSONL file of ``n`` texts; the number makes each different from all others."""
    all_words = words()
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, n, BATCH):
            for at, row in enumerate(all_words[texts_of(start, min(n, start + BATCH))], start):
                record = {"id": f"{at:07}", "text": f"{''.join(row)}{at}。"}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def plan_of() -> Plan:
    """As a run with the built-in model makes it."""
    model = find_builtin_model()
    return make_plan(model, _EXACT[0], model, _EXACT[1], BuildSettings(), ("cpu",))


def make_cache(path: Path, documents: Path, n: int) -> None:
    """A cache as a build makes it; vectors and entities are invented."""
    plan, chance = plan_of(), np.random.default_rng(1)
    role = write_role(path, plan.specs, plan.terms, is_lazy=False)
    sources = iter(search([documents], expand=True).sources)
    lines = documents.open(encoding="utf-8")
    with CacheWriter(Pool([role])) as writer, lines:
        known = words()
        word_keys = keys_of(known.tolist())
        rows = _unit_rows(word_keys, Texts.from_strings(known.tolist()), "word")
        writer.append(rows | _vectors(plan, word_keys, chance))
        for start in range(0, n, BATCH):
            some = list(islice(sources, BATCH))
            texts = [json.loads(line)["text"] for line in islice(lines, BATCH)]
            numbers = texts_of(start, start + len(texts))
            writer.append(*_batch(plan, some, texts, word_keys[numbers], chance))
            writer.settle(most_open=2)


def _batch(
    plan: Plan,
    sources: Sequence[Source],
    texts: Sequence[str],
    word_keys: NDArray[np.uint8],
    chance: np.random.Generator,
) -> tuple[dict[str, Rows], LocalTerms]:
    keys, packed, n = keys_of(texts), Texts.from_strings(texts), len(texts)
    identities = [
        read_identified(Source("t", Path("<t>"), GivenText(text)), LoadLimits(), plan.preparation)[
            1
        ]
        for text in texts
    ]
    rows = _unit_rows(keys, packed, "paragraph", "sentence")
    rows[tables.DOCUMENTS] = {
        "keys": join_keys(one.key for one in identities),
        "text": packed.ragged,
        "meta": Texts.from_strings([_meta(one.bytes_hash) for one in identities]).ragged,
    }
    lengths = np.array([len(text) for text in texts], np.uint32)
    whole = np.stack([np.zeros(n, np.uint32), lengths], axis=1)
    each = np.arange(WORDS_EACH, dtype=np.uint32) * 2
    spans = np.tile(np.stack([each, each + 2], axis=1), (n, 1))
    ones, many = np.ones(n, np.int64), np.full(n, WORDS_EACH, np.int64)
    for level, found, span, count in (
        ("paragraph", keys, whole, ones),
        ("sentence", keys, whole, ones),
        ("word", word_keys.reshape(-1, 16), spans, many),
    ):
        rows[tables.DOCUMENTS] |= {f"{level}_spans": (span, count), f"{level}_keys": (found, count)}
    rows[tables.SOURCES] = source_rows(sources, [one.key for one in identities])
    entities = next(name for name in plan.specs if name.startswith("entities/"))
    rows[entities] = {
        "keys": keys,
        "spans": (np.tile(np.array([[0, 2]], np.uint32), (n, 1)), ones),
        "labels": (np.zeros(n, np.uint16), ones),
        "scores": (np.ones(n, np.float32), ones),
    }
    counted = Analyser("chars").count(texts)
    vocabulary = Texts.from_strings(counted.vocabulary)
    terms = LocalTerms(keys, vocabulary, counted.ids, counted.lengths.astype(np.int64))
    return rows | _vectors(plan, keys, chance), terms


def _unit_rows(keys: NDArray[np.uint8], texts: Texts, *levels: str) -> dict[str, Rows]:
    bits = np.full(len(keys), sum(LEVEL_BIT[level] for level in levels), np.uint8)
    return {
        tables.TEXTS: {"keys": keys, "text": texts.ragged},
        tables.TEXT_LEVELS: {"text": keys, "bits": bits},
    }


def _vectors(plan: Plan, keys: NDArray[np.uint8], chance: np.random.Generator) -> dict[str, Rows]:
    dim = plan.specs[plan.encoder.table].columns[0].shape[0]
    vectors = chance.standard_normal((len(keys), dim), np.float32).astype(np.float16)
    return {plan.encoder.table: {"keys": keys, "vectors": vectors}}


def _meta(bytes_hash: str) -> str:
    return json.dumps(
        {
            "bytes_hash": bytes_hash,
            "text_hash": bytes_hash,
            "title": "",
            "media_type": "text/x-given",
            "encoding": "utf-8",
            "loader": "given",
            "notes": [],
            "pages": [],
            "tables": [],
            "headings": [],
        },
        separators=(",", ":"),
    )


# ---- the questions; each runs in a process of its own


def anonymous_mb(pid: int | str = "self") -> float:
    """Memory of a process that no file backs."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def require(is_so: bool, what: str) -> None:
    """End where an answer is wrong: its time would mean nothing."""
    if not is_so:
        raise SystemExit(f"not {what}")


def seconds_each(path: Path, question: Callable[[Cache, int], object], n: int) -> float:
    """The least over ``n`` newly opened caches."""
    seconds = []
    for number in range(n):
        with Cache.open(path) as cache:
            began = time.process_time()
            question(cache, number)
            seconds.append(time.process_time() - began)
    return min(seconds)


def ask_small_things(path: Path, n: int) -> dict[str, float]:
    """Open, one document by id and by path, one look-up, one page: seconds, of each the median."""
    with Cache.open(path) as cache:
        page = [(d.id, d.path, d.text) for d in islice(cache.documents(), n // 2, n // 2 + 40)]
        space = cache.spaces()[0]
    opened = min(seconds_of(lambda: Cache.open(path).close(), time.process_time) for _ in range(20))

    def document(cache: Cache, number: int) -> None:
        name = page[number][number % 2]
        require(cache.document(name).text == page[number][2], "the document asked for")

    return {
        "open": opened,
        "document": seconds_each(path, document, 40),
        "lookup": seconds_each(path, lambda c, i: c.dictionary(space)[page[i][2]], 40),
        "miss": seconds_each(path, lambda c, i: c.dictionary(space).get(f"{i} is no text"), 9),
        "page": seconds_each(path, lambda c, _: [d.text for d in islice(c.documents(), PAGE)], 20),
        "dim": seconds_each(path, lambda c, _: c.dictionary(space).dim, 9),
        "entities": seconds_each(path, lambda c, i: c.document(page[i][0]).entities(), 9),
        "small_mb": anonymous_mb(),
    }


def ask_searches(path: Path, _: int) -> dict[str, float]:
    """First search ever, first in a process, then warm; by words and with vectors."""
    all_words, figures = words(), {}
    queries = ["".join(all_words[texts_of(0, 12)[i, :3]]) for i in range(12)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEATPIPE_CACHE_DIR"] = folder
        for name in ("search_cold", "search_mapped"):
            with Cache.open(path) as cache:
                began, used = time.perf_counter(), time.process_time()
                require(bool(cache.search(queries[0])), "hits")
                figures[name] = time.perf_counter() - began
                figures[f"{name}_cpu"] = time.process_time() - used
        with Cache.open(path) as cache:
            index, dictionary = cache.sentence_search(), cache.dictionary()
            vector = np.random.default_rng(2).standard_normal(dictionary.dim).astype(np.float32)
            asks: dict[str, Callable[[str], object]] = {
                "search_warm": cache.search,
                "hybrid_warm": lambda query: index.search_hybrid(query, vector, dictionary),
            }
            for name, ask in asks.items():
                ask(queries[0])
                seconds, spent = [], []
                for query in queries[1:6]:
                    began, used = time.perf_counter(), time.process_time()
                    ask(query)
                    seconds.append(time.perf_counter() - began)
                    spent.append(time.process_time() - used)
                figures[name], figures[f"{name}_cpu"] = min(seconds), min(spent)
            figures["reader_mb"] = anonymous_mb()
    return figures


def ask_nearest(path: Path, _: int) -> dict[str, float]:
    """One exact search against a pass of numpy over the same mapped rows, in turns."""
    with Watch() as watch, Cache.open(path) as cache:
        dictionary = cache.dictionary()
        query = np.random.default_rng(2).standard_normal(dictionary.dim).astype(np.float32)
        table = cache.reader.table(f"embeddings/{dictionary.name}")
        table.find_one(bytes(16))

        def peer() -> float:
            """Cosines of all rows, converted piece by piece; the largest."""
            best = -1.0
            for block in table.blocks("vectors"):
                rows = np.asarray(block).astype(np.float32)
                best = max(best, float(((rows @ query) / np.linalg.norm(rows, axis=1)).max()))
            return best / float(np.linalg.norm(query))

        seconds: dict[str, list[float]] = {"numpy": [], "nearest": []}
        for _ in range(4):
            began = time.perf_counter()
            best = peer()
            seconds["numpy"].append(time.perf_counter() - began)
            began = time.perf_counter()
            found = dictionary.nearest(query)[0]
            seconds["nearest"].append(time.perf_counter() - began)
            require(abs(found[0].score - best) < 1e-4, "the score of numpy")
        began = time.perf_counter()
        cache.dictionary(level="word").nearest(query)
        of_level = time.perf_counter() - began
    figures = {name: min(each) for name, each in seconds.items()}
    return figures | {"nearest_of_level": of_level, "nearest_mb": watch.peak_mb}


def ask_whole(path: Path, n: int) -> dict[str, float]:
    """What reads everything: the summary and the deep check."""
    began = time.perf_counter()
    with Watch() as watch, Cache.open(path) as cache:
        require(summarise(cache).documents == n, "all documents")
    figures = {"inspect": time.perf_counter() - began, "inspect_mb": watch.peak_mb}
    began = time.perf_counter()
    with Watch() as watch:
        found = verify_dictionary(path, is_deep=True, asks_libhdf5=False)
    require(found.is_good, "a good file")
    return figures | {"verify": time.perf_counter() - began, "verify_mb": watch.peak_mb}


def ask_run(path: Path, n: int) -> dict[str, float]:
    """A run over documents that are all known."""
    documents = path.with_suffix(".jsonl")
    began, used = time.perf_counter(), cpu_s()
    with (
        Watch() as watch,
        Pipeline(
            path, find_builtin_model(), devices=["cpu"], encoder=_EXACT[0], tagger=_EXACT[1]
        ) as pipeline,
    ):
        report = pipeline.build([documents])
    require((report.n_unchanged, report.n_encoded) == (n, 0), "nothing to do")
    seconds = time.perf_counter() - began
    return {"known_run": seconds, "known_run_cpu": cpu_s() - used, "known_run_mb": watch.peak_mb}


def cpu_s() -> float:
    """Processor seconds of this process and of children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Watch:
    """The largest anonymous memory of this process and its children, together."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(0.1):
            self.peak_mb = max(self.peak_mb, sum(anonymous_mb(pid) for pid in family()))


def family() -> Iterator[int]:
    """The processes from here downwards."""
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        yield pid
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += map(int, task.read_text().split())
            except OSError:
                continue


# ---- all of it


def answers(path: Path, n: int) -> dict[str, float]:
    """All questions, one process each."""
    figures: dict[str, float] = {}
    spawn = multiprocessing.get_context("spawn")
    for ask in (ask_small_things, ask_searches, ask_nearest, ask_whole, ask_run):
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            figures |= pool.submit(ask, path, n).result()
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{n:>9,}  {name:{width}} {value:.5g}", flush=True)
    return figures


def prepared(folder: Path, n: int) -> Path:
    """The cache of ``n`` documents, made where there is none for the models of now."""
    path, documents = folder / f"{n}.h5", folder / f"{n}.jsonl"
    if not path.exists() or not _is_filled(path):
        began = time.perf_counter()
        aside = folder / f"{n}.making"
        aside.unlink(missing_ok=True)
        make_documents(documents, n)
        make_cache(aside, documents, n)
        aside.rename(path)
        print(
            f"{n:>9,}  made in {time.perf_counter() - began:.0f} s: {path.stat().st_size:,} bytes"
        )
    return path


def _is_filled(path: Path) -> bool:
    """Whether a run has nothing to compute: another model would have, for every text."""
    with Cache.open(path) as cache:
        return set(plan_of().specs) - {tables.RUNS} <= set(cache.reader.tables())


def main() -> None:
    """Measure, print, and end with one line of JSON."""
    parser = make_parser(__doc__)
    parser.add_argument("--cache", type=Path, help="folder that keeps the caches")
    options = parser.parse_args()
    report = Report("bench_scale", options)
    n_large = N_QUICK if options.quick else N_LARGE
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        small, large = (answers(prepared(folder, n), n) for n in (N_SMALL, n_large))
    for key in ("open", "document", "lookup", "miss", "page", "entities"):
        report.note(f"{key}_ratio", large[key] / small[key])
    for key in (
        "search_warm",
        "search_cold",
        "search_cold_cpu",
        "search_mapped",
        "hybrid_warm",
        "hybrid_warm_cpu",
        "known_run",
        "known_run_cpu",
    ):
        report.note(f"{key}_s", large[key])
    report.note("nearest_vs_numpy", large["nearest"] / large["numpy"])
    for key in ("known_run_mb", "reader_mb", "nearest_mb", "inspect_mb", "verify_mb"):
        report.note(key, large[key])
    for key in ("inspect", "verify"):
        report.note(f"{key}_s", large[key])
    report.finish()


if __name__ == "__main__":
    main()
