"""The engine against its peers: overhead, large results, the single writer, starts, deaths.

``python scripts/bench_engine.py [--quick] [--json FILE]``: peers and we run interleaved in the same
process run, and every answer is checked. The last line is one JSON object; higher is better except
for the figures in us, ms, s and MB. Peers that are not installed are left out.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parent))

import engine_roles
from harness import finish, make_parser

from featpipe.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Rows = list[tuple[str, str, float, float, float]]
ROUNDS = 3
SINKS = {"FileSink": "file", "CacheSink": "cache", "LooseCacheSink": "loose cache"}


def square_role(*, is_lazy: bool = True) -> Role:
    """Two workers that square numbers."""
    return Role("square", "engine_roles:Square", devices=("cpu", "cpu"), is_lazy=is_lazy)


def maker_role(n_bytes: int, *, prefetch: int = 2, then: str | None = None) -> Role:
    """One worker that makes arrays of one size. One thread: others would only start and spin."""
    arguments = {"n_bytes": n_bytes}
    return Role("maker", "engine_roles:Maker", arguments, threads=1, prefetch=prefetch, then=then)


def require(is_right: bool) -> None:
    """A benchmark of wrong answers is worth nothing."""
    if not is_right:
        raise SystemExit("a peer or we gave a wrong answer: nothing was measured")


# overhead per task


def flood_ours(pool: Pool, n: int) -> int:
    """The sum of n squares, one task each."""
    for number in range(n):
        pool.submit("square", number)
    total = 0
    while outcomes := pool.completed():
        total += sum(outcome.value for outcome in outcomes)  # type: ignore[misc]  # ints
    return total


def flood_futures(executor: Any, n: int) -> int:  # noqa: ANN401  # three kinds of executor
    """The same by futures."""
    futures = [executor.submit(engine_roles.square, number) for number in range(n)]
    return sum(future.result() for future in futures)


def flood_pebble(executor: Any, n: int) -> int:  # noqa: ANN401  # an untyped package
    """The same by pebble."""
    futures = [executor.schedule(engine_roles.square, args=(number,)) for number in range(n)]
    return sum(future.result() for future in futures)


@contextmanager
def peers() -> Iterator[dict[str, Callable[[int], int]]]:
    """Every peer that is here, warm, as a function of a number of tasks."""
    context = multiprocessing.get_context("spawn")
    opened: list[tuple[Any, str]] = []
    found: dict[str, Callable[[int], int]] = {}
    executor: Any = ProcessPoolExecutor(2, mp_context=context)
    opened.append((executor, "shutdown"))
    found["executor"] = lambda n: flood_futures(executor, n)
    pool: Any = context.Pool(2)
    opened.append((pool, "terminate"))
    found["mp.Pool"] = lambda n: sum(pool.map(engine_roles.square, range(n), chunksize=1))
    if find_spec("loky") is not None:
        import loky

        loky_executor = loky.ProcessPoolExecutor(2)
        opened.append((loky_executor, "shutdown"))
        found["loky"] = lambda n: flood_futures(loky_executor, n)
    if find_spec("pebble") is not None:
        import pebble

        pebble_pool: Any = pebble.ProcessPool(2, context=context)
        opened.append((pebble_pool, "stop"))
        found["pebble"] = lambda n: flood_pebble(pebble_pool, n)
    try:
        yield found
    finally:
        for thing, end in opened:
            getattr(thing, end)()


def bench_overhead(n: int, rows: Rows) -> dict[str, float]:
    """Time per task that does nothing, with two workers, everywhere."""
    expected = sum(number * number for number in range(n))
    times: dict[str, list[float]] = {}
    trips: list[float] = []
    with Pool([square_role(is_lazy=False)]) as ours, peers() as others:
        candidates = {"ours": lambda n: flood_ours(ours, n), **others}
        for flood in candidates.values():
            flood(100)
        for _ in range(ROUNDS):
            for name, flood in candidates.items():
                started = time.perf_counter()
                total = flood(n)
                times.setdefault(name, []).append((time.perf_counter() - started) / n * 1e6)
                require(total == expected)
        for _ in range(500):
            started = time.perf_counter()
            ours.call("square", 3)
            trips.append((time.perf_counter() - started) * 1e6)
    figures = {"overhead_us": statistics.median(times["ours"])}
    for name in times.keys() - {"ours"}:
        ratios = [peer / own for peer, own in zip(times[name], times["ours"], strict=True)]
        figures[f"overhead_vs_{name.replace('mp.', '').lower()}"] = statistics.median(ratios)
        rows.append(_row("overhead per task, us", name, times[name], times["ours"]))
    figures["round_trip_us"] = statistics.median(trips)
    return figures


# large results


def bench_arrays(n_bytes: int, n: int, label: str, rows: Rows) -> dict[str, float]:
    """Results of one size through our shared memory and through a multiprocessing queue."""
    ours, queue = [], []
    with Pool([maker_role(n_bytes)]) as pool:
        for _ in range(ROUNDS):
            queue.append(_through_a_queue(n_bytes, n))
            _take(pool, 4)
            started = time.perf_counter()
            _take(pool, n)
            ours.append((time.perf_counter() - started) / n)
    ratios = [peer / own for peer, own in zip(queue, ours, strict=True)]
    name = f"results of {label}, MB/s"
    rows.append(_row(name, "mp.Queue", *([n_bytes / t / 1e6 for t in ts] for ts in (queue, ours))))
    return {f"array_{label.lower().replace(' ', '')}_vs_queue": statistics.median(ratios)}


def _take(pool: Pool, n: int) -> None:
    for outcome in pool.map("maker", range(n)):
        value = outcome.value
        require(isinstance(value, np.ndarray))
        require(value[0, 0] == value[-1, -1] == outcome.index % 251)


def _through_a_queue(n_bytes: int, n: int) -> float:
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue(maxsize=2)
    process = context.Process(target=engine_roles.fill_queue, args=(queue, n_bytes, n + 2))
    process.start()
    queue.get()
    queue.get()
    started = time.perf_counter()
    for number in range(n):
        value = queue.get()
        require(value[0, 0] == value[-1, -1] == (number + 2) % 251)
    seconds = (time.perf_counter() - started) / n
    process.join()
    return seconds


def bench_one_huge(gigabytes: float, rows: Rows) -> dict[str, float]:
    """One array above 4 GiB in one piece: how much memory the receiver needs for it."""
    n_bytes = int(gigabytes * 1e9)
    if psutil.virtual_memory().available < 3 * n_bytes:
        return {}
    with Pool([maker_role(n_bytes)]) as pool:
        before = psutil.Process().memory_full_info().uss
        started = time.perf_counter()
        value = pool.call("maker", 7)
        seconds = time.perf_counter() - started
        require(isinstance(value, np.ndarray))
        require(value.nbytes == n_bytes)
        require(value[-1, -1] == 7 and value[0, 0] == 7)
        grown = (psutil.Process().memory_full_info().uss - before) / 1e6
    rows.append((f"one result of {gigabytes} GB, s", "-", 0.0, seconds, 0.0))
    return {"huge_receiver_mb": grown}


# worker to file


def bench_writer(n_blocks: int, rows: Rows) -> dict[str, float]:
    """Blocks from a worker through the single writer, against a queue and against one process.

    The queue is multiprocessing's, between a process that makes and one that writes the same.
    Three sinks, each the same on both sides: a plain file in the page cache, which shows what the
    engine itself lets through; a cache of ours that is made durable with every block, as the
    writer of a build does it; and one that is made durable every few mebibytes.
    """
    figures = {}
    for label, n_bytes, n in (("192kb", 192 << 10, n_blocks), ("3mb", 3 << 20, n_blocks // 8)):
        for sink, name in SINKS.items():
            ours, local, queue = [], [], []
            for _ in range(ROUNDS):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "local"
                    local.append(engine_roles.write_locally(sink, str(path), n_bytes, n))
                    path.unlink()
                    queue.append(_write_by_queue(sink, path, n_bytes, n))
                    path.unlink()
                    ours.append(_write_by_pool(sink, Path(folder) / "pool", n_bytes, n))
            key = f"{name.replace(' ', '_')}_{label}"
            for peer, theirs in (("mp.Queue", queue), ("local", local)):
                rows.append(_row(f"worker to {name}, {label}, MB/s", peer, theirs, ours))
            figures[f"writer_vs_queue_{key}"] = _median_share(ours, queue)
            figures[f"writer_share_of_local_{key}"] = _median_share(ours, local)
            figures[f"writer_mb_s_{key}"] = statistics.median(ours)
    figures["writer_share_of_local"] = figures["writer_share_of_local_cache_192kb"]
    figures["writer_mb_s"] = figures["writer_mb_s_file_192kb"]
    return figures


def _median_share(ours: list[float], peer: list[float]) -> float:
    return statistics.median(own / theirs for own, theirs in zip(ours, peer, strict=True))


def _write_by_queue(sink: str, path: Path, n_bytes: int, n: int) -> float:
    context = multiprocessing.get_context("spawn")
    queue: Any = context.Queue(maxsize=4)
    seconds, took = context.Pipe(duplex=False)
    n_all = n + engine_roles.WARM_BLOCKS
    maker = context.Process(target=engine_roles.fill_queue, args=(queue, n_bytes, n_all))
    writer = context.Process(
        target=engine_roles.drain_queue, args=(queue, sink, str(path), n, took)
    )
    maker.start()
    writer.start()
    megabytes_s = n * n_bytes / seconds.recv() / 1e6
    maker.join()
    writer.join()
    require(path.stat().st_size >= n_all * n_bytes)
    return megabytes_s


def _write_by_pool(sink: str, path: Path, n_bytes: int, n: int) -> float:
    makers = maker_role(n_bytes, prefetch=4, then="write")
    target = f"engine_roles:{sink}"
    writer = Role("write", target, {"path": str(path)}, prefetch=8, threads=1)
    with Pool([makers, writer]) as pool:
        _pump(pool, engine_roles.WARM_BLOCKS)
        started = time.perf_counter()
        _pump(pool, n)
        seconds = time.perf_counter() - started
    require(path.stat().st_size >= (n + engine_roles.WARM_BLOCKS) * n_bytes)
    return n * n_bytes / seconds / 1e6


def _pump(pool: Pool, n: int) -> None:
    n_made = n_written = 0
    while n_written < n:
        while n_made < n and pool.has_room("maker"):
            pool.submit("maker", n_made)
            n_made += 1
        for outcome in pool.completed():
            require(outcome.role == "write" and outcome.has_value)
            n_written += 1


# starts and deaths


def bench_start(rows: Rows) -> dict[str, float]:
    """Two workers and a writer, without models: time until ready, and memory of the three."""
    seconds, megabytes = [], []
    for _ in range(ROUNDS):
        roles = [
            square_role(is_lazy=False),
            Role("write", "engine_roles:Idle", is_lazy=False),
        ]
        started = time.perf_counter()
        with Pool(roles) as pool:
            while [view.state for view in pool.workers()] != ["ready"] * 3:
                time.sleep(0.001)
            seconds.append(time.perf_counter() - started)
            children = [psutil.Process(view.pid) for view in pool.workers()]
            megabytes.append(sum(child.memory_full_info().uss for child in children) / 1e6)
    rows.append(("two workers + writer ready, s", "-", 0.0, statistics.median(seconds), 0.0))
    return {"ready_s": statistics.median(seconds), "ready_mb": statistics.median(megabytes)}


def bench_restart(rows: Rows) -> dict[str, float]:
    """From the death of a worker that needs torch and transformers to its successor's answer."""
    times: dict[str, list[float]] = {"fresh": [], "forked": []}
    for name, preload in (("fresh", ()), ("forked", engine_roles.HEAVY)):
        with Pool([Role("heavy", "engine_roles:Heavy", preload=preload)]) as pool:
            pool.call("heavy", None)
            for _ in range(2):
                pid = pool.call("heavy", None)
                require(isinstance(pid, int))
                os.kill(pid, 9)
                started = time.perf_counter()
                require(pool.call("heavy", None) != pid)
                times[name].append(time.perf_counter() - started)
    rows.append(_row("restart with torch + transformers, s", "fresh", *times.values()))
    ratio = statistics.median(times["fresh"]) / statistics.median(times["forked"])
    return {"restart_vs_fresh": ratio, "restart_s": statistics.median(times["forked"])}


def bench_death(rows: Rows) -> dict[str, float]:
    """From the kill of a busy worker to the error in the caller's hands."""
    notices, lateness = [], []
    role = Role("sleeper", "engine_roles:Sleeper", devices=("cpu", "cpu"), max_losses=1)
    for _ in range(2 * ROUNDS):
        # A pool each: the task that a second kill from outside hits would be run again.
        with Pool([role]) as pool:
            pool.submit("sleeper", 60.0)
            while not (busy := [v.pid for v in pool.workers() if v.state == "busy"]):
                time.sleep(0.001)
            time.sleep(0.05)
            started = time.perf_counter()
            os.kill(busy[0] or 0, 9)
            (outcome,) = pool.completed()
            notices.append((time.perf_counter() - started) * 1e3)
            require(outcome.error is not None)
    with Pool([role]) as pool:
        for _ in range(ROUNDS):
            pool.call("sleeper", 0.0)
            started = time.perf_counter()
            pool.submit("sleeper", 60.0, deadline_s=0.5)
            pool.completed()
            lateness.append((time.perf_counter() - started - 0.5) * 1e3)
    rows.append(("death noticed after, ms", "-", 0.0, statistics.median(notices), 0.0))
    return {
        "death_notice_ms": statistics.median(notices),
        "timeout_late_ms": statistics.median(lateness),
    }


def _row(
    what: str, peer: str, theirs: list[float], ours: list[float]
) -> tuple[str, str, float, float, float]:
    their, our = statistics.median(theirs), statistics.median(ours)
    return what, peer, their, our, their / our


def sections(*, quick: bool) -> dict[str, Callable[[Rows], dict[str, float]]]:
    """What there is to measure, in order."""
    share = 4 if quick else 1
    sizes = (
        ("1KB", 1 << 10, 8_000),
        ("16KB", 16 << 10, 4_000),
        ("64KB", 64 << 10, 2_000),
        ("256KB", 256 << 10, 800),
        ("1MB", 1 << 20, 400),
        ("10MB", 10 << 20, 40),
        ("100MB", 100 << 20, 4 * share),
    )
    parts: dict[str, Callable[[Rows], dict[str, float]]] = {
        "overhead": lambda rows: bench_overhead(8_000 // share, rows),
        **{
            f"arrays-{label}": partial(bench_arrays, n_bytes, n // share, label)
            for label, n_bytes, n in sizes
        },
        "writer": lambda rows: bench_writer(2_000 // share, rows),
        "start": bench_start,
        "restart": bench_restart,
        "death": bench_death,
    }
    if not quick:
        parts["arrays-1GB"] = partial(bench_arrays, 1 << 30, 2, "1GB")
        parts["huge"] = lambda rows: bench_one_huge(4.5, rows)
    return parts


def main() -> None:
    """Measure, print the table as it grows, and the last line."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], help="sections, by the start of their name"
    )
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    )
    # The children of the peers get what ours get by their role: one thread each.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    figures: dict[str, float] = {}
    print(f"{'what':42} {'peer':10} {'peer':>12} {'we':>12} {'peer/we':>9}")
    for name, measure in sections(quick=options.quick).items():
        if options.only and not name.startswith(tuple(options.only)):
            continue
        rows: Rows = []
        figures |= measure(rows)
        for what, peer, their, our, ratio in rows:
            print(f"{what:42} {peer:10} {their:12.2f} {our:12.2f} {ratio:9.2f}", flush=True)
    finish("bench_engine", options, figures)


if __name__ == "__main__":
    main()
