"""Words against jieba: equality on every sentence of the corpus, then speed, threads and start.

Equality comes first and covers all sentences, HMM on and off, numba and numpy; with ``--quick`` a
part of them. Speeds are ratios of CPU seconds within this process, interleaved, jieba beside us.
"""

from __future__ import annotations

import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from harness import finish, make_parser, read_lines, seconds_of, spread

from featpipe.lexical.backend import has_numba
from featpipe.lexical.words import Words

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

START_PROGRAM = """
import pickle, sys, time
import numpy, json, pathlib, hashlib, tempfile, shutil, dataclasses
data = sys.stdin.buffer.read()
begin = time.perf_counter()  # the processor clock of some kernels ticks in 4 ms
if data == b"bare":
    pass
elif data:
    words = pickle.loads(data)
    words.cut("甲方应向乙方支付违约金")
else:
    import warnings
    warnings.simplefilter("ignore")
    import jieba
    jieba.setLogLevel(60)
    jieba.lcut("甲方应向乙方支付违约金")
spent = time.perf_counter() - begin
lines = open("/proc/self/smaps_rollup").read().splitlines()
print(spent * 1e3, sum(int(line.split()[1]) for line in lines if "Private_Dirty" in line))
"""

cpu_seconds = partial(seconds_of, clock=time.process_time)


def main() -> None:
    """Run everything; the last line is the JSON of the figures."""
    arguments = parse_arguments()
    texts = list(sentences(arguments.data, limit=30_000 if arguments.quick else None))
    print(f"{len(texts):,} sentences, {sum(map(len, texts)):,} characters")
    figures: dict[str, float] = {}
    if arguments.only != "speed":
        figures["sentences"] = len(texts)
        figures["mismatches"] = count_mismatches(texts)
    if arguments.only != "equality":
        sample = texts[:: max(1, len(texts) // (4_000 if arguments.quick else 12_000))]
        figures |= measure_speed(sample, rounds=3 if arguments.quick else 5)
        figures |= measure_threads(sample * 10)
        figures |= measure_start(rounds=3 if arguments.quick else 7)
    finish("bench_words", arguments, figures)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", choices=["equality", "speed"])
    return parser.parse_args()


def sentences(data: Path, limit: int | None) -> Iterator[str]:
    """Every sentence of the corpus: laws first, then poems."""
    count = 0
    for path in sorted((data / "corpus").glob("*.jsonl.xz")):
        for record in read_lines(path):
            whole = "\n".join(value for value in record.values() if isinstance(value, str))
            for text in re.split(r"(?<=[。！？；\n])", whole):
                if text.strip():
                    yield text
                    count += 1
                    if count == limit:
                        return


def count_mismatches(texts: list[str]) -> int:
    """Sentences that any kernel cuts otherwise than jieba, HMM on and off."""
    engines = ["numpy", *(["numba"] if has_numba() else [])]
    wrong = 0
    for hmm in (True, False):
        reference = Words(engine="jieba", hmm=hmm)
        ours = [Words(engine=engine, hmm=hmm) for engine in engines]
        for low in range(0, len(texts), 5_000):
            part = texts[low : low + 5_000]
            expected = reference.cut_many(part)
            for words in ours:
                wrong += sum(a != b for a, b in zip(words.cut_many(part), expected, strict=True))
    print(f"sentences cut otherwise than by jieba ({', '.join(engines)}; HMM on, off): {wrong}")
    return wrong


def measure_speed(texts: list[str], rounds: int) -> dict[str, float]:
    """Ids and strings against jieba making lists of strings."""
    n_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    jieba = Words(engine="jieba")
    jieba.cut("打开")
    engines = ["numpy", *(["numba"] if has_numba() else [])]
    ours = {engine: Words(engine=engine) for engine in engines}
    ratios: dict[str, list[float]] = {}
    for words in ours.values():
        words.encode(texts)
    for _ in range(rounds):
        peer = cpu_seconds(lambda: jieba.cut_many(texts[::8])) * 8
        for engine, words in ours.items():
            ids = min(cpu_seconds(lambda w=words: w.encode(texts)) for _ in range(3))
            strings = min(cpu_seconds(lambda w=words: w.cut_many(texts)) for _ in range(3))
            ratios.setdefault(f"ids {engine}", []).append(peer / ids)
            ratios.setdefault(f"strings {engine}", []).append(peer / strings)
            print(
                f"  {engine}: ids {n_bytes / ids / 1e6:.1f} MB/s, strings "
                f"{n_bytes / strings / 1e6:.1f} MB/s; jieba {n_bytes / peer / 1e6:.2f} MB/s"
            )
    for what, values in ratios.items():
        print(f"{what:15} x jieba: {spread(values)}")
    best = engines[-1]
    return {
        "ids_vs_jieba": round(statistics.median(ratios[f"ids {best}"]), 1),
        "strings_vs_jieba": round(statistics.median(ratios[f"strings {best}"]), 1),
        "ids_vs_jieba_numpy": round(statistics.median(ratios["ids numpy"]), 1),
        "strings_vs_jieba_numpy": round(statistics.median(ratios["strings numpy"]), 1),
    }


def measure_threads(texts: list[str]) -> dict[str, float]:
    """Two threads on two halves against one thread on both; wall seconds."""
    if not has_numba():
        return {}
    words = Words(engine="numba")
    halves = [texts[::2], texts[1::2]]

    def one() -> None:
        for half in halves:
            words.spans_many(half)

    def two() -> None:
        threads = [threading.Thread(target=words.spans_many, args=(half,)) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    ratios = []
    for _ in range(5):
        begin = time.perf_counter()
        one()
        middle = time.perf_counter()
        two()
        ratios.append((middle - begin) / (time.perf_counter() - middle))
    print(f"two threads against one: {spread(ratios)}")
    return {"two_threads_vs_one": round(statistics.median(ratios), 2)}


def measure_start(rounds: int) -> dict[str, float]:
    """A fresh worker that has numpy: time until its first text is cut, and memory of its own."""
    words = Words(engine="numpy")
    words.cut("编译")
    travelling = pickle.dumps(words)
    with tempfile.TemporaryDirectory() as folder:
        # An installed package has its bytecode beside it; so do we here, whatever the setting.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        runs = []
        for number in range(rounds + 1):
            ours, theirs = start(travelling, environment), start(b"", environment)
            if number:  # the first run wrote the bytecode
                runs.append((*ours, *theirs))
        bare = start(b"bare", environment)[1]
    ours_ms, ours_kb, their_ms, their_kb = map(statistics.median, zip(*runs, strict=True))
    least = min(run[0] for run in runs)
    print(
        f"start: {ours_ms:.1f} ms ({least:.1f} at best), jieba {their_ms:.0f} ms; memory of its "
        f"own {(ours_kb - bare) / 1024:.2f} MB, jieba {(their_kb - bare) / 1024:.1f} MB"
    )
    return {
        "start_vs_jieba": round(their_ms / ours_ms, 1),
        "start_ms": round(ours_ms, 1),
        "start_private_mb": round((ours_kb - bare) / 1024, 2),
    }


def start(data: bytes, environment: dict[str, str]) -> tuple[float, int]:
    """Milliseconds and private dirty kilobytes of a worker that is handed this."""
    done = subprocess.run(
        [sys.executable, "-c", START_PROGRAM],
        input=data,
        capture_output=True,
        check=True,
        env=environment,
    )
    milliseconds, kilobytes = done.stdout.split()
    return float(milliseconds), int(kilobytes)


if __name__ == "__main__":
    main()
