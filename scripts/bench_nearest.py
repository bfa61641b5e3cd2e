"""Exact nearest texts of a space against FAISS Flat: the same rows, and the time for them.

Random vectors in a real cache, as stored; queries are stored vectors with noise. Both answer the
same batches in turns, texts included. FAISS holds the space in memory as float32, ours reads it
from the file each time.

    python scripts/bench_nearest.py --quick
    python scripts/bench_nearest.py --rows 200000 --json nearest.json
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from harness import finish, make_parser

from featpipe import Cache
from featpipe.cache import tables as layout
from featpipe.encoders.spec import fingerprint_of
from featpipe.integrations.faiss import SpaceIndex
from featpipe.store import Writer, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from featpipe.cache.nearest import Neighbour

DIM, K = 384, 10
BATCHES = (1, 16, 256)


def fill(path: Path, n: int) -> None:
    """A cache with one space of ``n`` random vectors."""
    spec: dict[str, object] = {"bench": "nearest", "dtype": "float16"}
    fingerprint = fingerprint_of(spec)
    chance = np.random.default_rng(3)
    with Writer.open(path) as writer:
        table = writer.table(
            layout.space_table("random", fingerprint),
            layout.vectors_spec(spec, fingerprint, DIM, "float16"),
        )
        for at in range(0, n, 20_000):
            names = [f"text {number}" for number in range(at, min(n, at + 20_000))]
            vectors = chance.standard_normal((len(names), DIM)).astype(np.float16)
            table.append({"keys": keys_of(names), "vectors": vectors})
        writer.commit()


def seconds_of(call: Callable[[], list[list[Neighbour]]]) -> tuple[float, list[list[Neighbour]]]:
    """Time and answer."""
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def differ(ours: list[list[Neighbour]], theirs: list[list[Neighbour]]) -> int:
    """Queries whose rows are not the same; rows of equal score, to rounding, may change places."""
    n = 0
    for own, other in zip(ours, theirs, strict=True):
        scores = np.array([one.score for one in own]), np.array([one.score for one in other])
        is_near = np.allclose(*scores, atol=1e-5)
        n += not (is_near and {one.key for one in own[:-1]} <= {one.key for one in other})
    return n


def main() -> None:
    """Measure, print, and end with one line of JSON."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    n_rows, n_rounds = (10_000, 3) if options.quick else (options.rows, 7)
    figures: dict[str, float] = {"rows": n_rows, "dim": DIM, "k": K, "differing": 0}
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name) / "c.h5", n_rows)
        with Cache.open(Path(name) / "c.h5") as cache:
            space = cache.dictionary()
            built_s, index = time.perf_counter(), SpaceIndex.build(space)
            figures["faiss_build_s"] = round(time.perf_counter() - built_s, 2)
            first = next(iter(space.blocks()))[1]
            for n in BATCHES:
                chance = np.random.default_rng(n)
                queries = first[:n] + 0.5 * chance.standard_normal((n, DIM)).astype(np.float32)
                ratios, taken = [], []
                for _ in range(n_rounds):
                    theirs_s, theirs = seconds_of(lambda q=queries: index.search(q, K))
                    ours_s, ours = seconds_of(lambda q=queries: space.nearest(q, K))
                    figures["differing"] += differ(ours, theirs)
                    ratios.append(theirs_s / ours_s)
                    taken.append(ours_s)
                figures[f"batch_{n}_ms"] = round(1000 * statistics.median(taken), 2)
                figures[f"batch_{n}_vs_faiss_flat"] = round(statistics.median(ratios[1:]), 3)
    finish("bench_nearest", options, figures)


if __name__ == "__main__":
    main()
