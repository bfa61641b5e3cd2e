"""The service under load, with workers killed: nothing lost, nothing wrong, memory flat.

A real server process over a cache of our own documents and the built-in model; clients in threads
mix cached documents, texts that were never seen, uploads, embeddings and searches, while a worker
is killed every few seconds. Every answer is compared with the first one that the undisturbed
service gave. Then, undisturbed: latency of cached documents, and embeddings against the library.

    python scripts/bench_service.py --quick
    python scripts/bench_service.py --minutes 10 --json service.json
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from harness import finish, make_parser

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data"
TEMPLATES = ("loan", "lease", "reduction")
DEADLINE_S = 30.0


@dataclass
class Tally:
    """What all clients saw."""

    seconds: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    n_killed: int = 0


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S + 5)

    def post(self, path: str, body: dict[str, object]) -> tuple[int, bytes]:
        """Status and body; a connection that was closed while idle is opened again."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        for attempt in (0, 1):
            try:
                self._connection.request("POST", path, data, headers)
                response = self._connection.getresponse()
                return response.status, response.read()
            except (http.client.RemoteDisconnected, BrokenPipeError):
                self._connection.close()
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def get(self, path: str) -> tuple[int, bytes]:
        """As `post`."""
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        return response.status, response.read()


def build(folder: Path) -> Path:
    """A cache of our own documents, and a folder of templates over them."""
    from featpipe import Pipeline

    cache = folder / "c.h5"
    with Pipeline(cache) as pipeline:
        report = pipeline.build(DATA / "documents")
    print(report.summary())
    (folder / "templates").mkdir()
    for name in TEMPLATES:
        text = (DATA / "templates" / f"{name}.toml").read_text("utf-8")
        text = text.replace("../documents/", "")
        (folder / "templates" / f"{name}.toml").write_text(text, "utf-8")
    return cache


def start(folder: Path, cache: Path, *options: str) -> tuple[subprocess.Popen[bytes], int]:
    """The service, ready."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [
            sys.executable, "-m", "featpipe", "serve", "--cache", str(cache), "--port", str(port),
            "--templates", str(folder / "templates"), "--deadline", str(DEADLINE_S), *options,
        ],
        stdout=log,
        stderr=log,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            if Client(port).get("/readyz")[0] == 200:
                return process, port
        except OSError:
            pass
        time.sleep(0.1)
    process.kill()
    raise SystemExit("the service did not become ready:\n" + (folder / "log").read_text())


def make_requests(folder: Path) -> list[tuple[str, dict[str, object]]]:
    """What is asked, again and again: each has one right answer."""
    names = list(json.loads((folder / "names.json").read_text()))
    asked: list[tuple[str, dict[str, object]]] = []
    for name in names[:12]:
        template = "auto"
        asked.append(("/extract", {"document": name, "template": template}))
    for number in range(6):
        text = (
            f"借款合同。贷款人：第{number}银行股份有限公司。借款人：甲{number}有限公司。"
            f"借款金额为人民币{number + 1},000万元。借款期限为{number + 1}年。"
        )
        asked.append(("/extract", {"text": text, "template": "auto", "with_text": True}))
    for number in range(6):
        texts = [f"第{number}号合同的第{line}条约定了违约责任。" for line in range(8)]
        body = {"model": "zh-small", "input": texts, "encoding_format": "base64"}
        asked.append(("/v1/embeddings", body))
    asked += [("/search", {"query": word, "k": 5}) for word in ("违约责任", "合同金额", "减持")]
    return asked


def essence(path: str, data: bytes) -> str:
    """What of an answer must always be the same."""
    content = json.loads(data)
    if path == "/extract":
        return json.dumps(content["extractions"], sort_keys=True)
    return json.dumps(content, sort_keys=True)


def load(
    port: int,
    asked: list[tuple[str, dict[str, object]]],
    right: list[str],
    until: float,
    tally: Tally,
    seed: int,
) -> None:
    """One client."""
    chance, client = random.Random(seed), Client(port)  # noqa: S311  # a mix, not a secret
    while time.monotonic() < until:
        number = chance.randrange(len(asked))
        path, body = asked[number]
        began = time.perf_counter()
        try:
            status, data = client.post(path, body)
        except (OSError, http.client.HTTPException) as error:
            tally.lost.append(repr(error))
            client = Client(port)
            continue
        tally.seconds.append(time.perf_counter() - began)
        if status != 200:
            tally.lost.append(f"{path}: {status} {data[:200]!r}")
        elif essence(path, data) != right[number]:
            tally.wrong.append(f"{path}: {data[:200]!r}")


def kill_now_and_then(server: int, every_s: float, until: float, tally: Tally) -> None:
    """Ends a random process below the service; the fork servers are among them."""
    chance = random.Random(5)  # noqa: S311  # as above
    while time.monotonic() + every_s < until:
        time.sleep(every_s)
        children = psutil.Process(server).children(recursive=True)
        if children:
            try:
                os.kill(chance.choice(children).pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            tally.n_killed += 1


def memory_of(port: int) -> dict[str, float]:
    """Resident bytes by process."""
    _, data = Client(port).get("/metrics")
    found = {}
    for line in data.decode().splitlines():
        if line.startswith("featpipe_resident_bytes{"):
            found[line.split('"')[1]] = float(line.split()[-1])
    return found


def watch_memory(port: int, until: float, seen: list[tuple[float, float, float]]) -> None:
    """(time, service, largest extracting worker), once a second."""
    while time.monotonic() < until:
        try:
            found = memory_of(port)
        except (OSError, http.client.HTTPException):
            found = {}
        workers = [size for name, size in found.items() if name.startswith("extract")]
        if found and workers:
            seen.append((time.monotonic(), found["service"], max(workers)))
        time.sleep(1.0)


def measure_cached(port: int, n: int) -> float:
    """Median milliseconds of one cached document under one template."""
    client = Client(port)
    body: dict[str, object] = {"document": CACHED[0], "template": CACHED[1]}
    seconds = []
    for _ in range(n):
        began = time.perf_counter()
        status, _ = client.post("/extract", body)
        seconds.append(time.perf_counter() - began)
        if status != 200:
            raise SystemExit(f"a cached document was answered with {status}")
    return 1000 * statistics.median(seconds[n // 5 :])


CACHED = ["", ""]


def measure_embeddings(port: int, rounds: int) -> float:
    """Texts per second of the service over the library's, same texts, interleaved rounds."""
    from featpipe.cache.cache import Cache
    from featpipe.encoders.builtin import find_builtin_model
    from featpipe.encoders.encoder import Encoder
    from featpipe.on_demand.space import find_space
    from featpipe.pool.devices import usable_cores

    with Cache.open(CACHE_PATH[0]) as cache:
        _, settings = find_space(cache, find_builtin_model())
    encoder = Encoder.load(find_builtin_model(), settings, threads=usable_cores())
    chance = random.Random(11)  # noqa: S311  # as above
    ratios = []
    for number in range(rounds):
        texts = [
            f"第{number}批第{line}条："
            + "".join(chance.choices("合同金额违约责任甲乙双方约定支付期限交货地点", k=40))
            for line in range(2048)
        ]
        began = time.perf_counter()
        expected = encoder.encode(texts).vectors.astype(np.float32)
        library_s = time.perf_counter() - began
        began = time.perf_counter()
        found = ask_embeddings(port, texts)
        ratios.append(library_s / (time.perf_counter() - began))
        if found.tobytes() != expected.tobytes():
            raise SystemExit("the service gave other vectors than the library")
    return statistics.median(ratios[1:])


def ask_embeddings(port: int, texts: list[str]) -> np.ndarray:
    """Vectors of all texts, asked for by four clients at a time."""
    parts = [texts[at : at + 512] for at in range(0, len(texts), 512)]

    def ask(part: list[str]) -> np.ndarray:
        body = {"model": "zh-small", "input": part, "encoding_format": "base64"}
        status, data = Client(port).post("/v1/embeddings", body)
        if status != 200:
            raise SystemExit(f"embeddings were answered with {status}: {data[:300]!r}")
        rows = [one["embedding"] for one in json.loads(data)["data"]]
        return np.stack([np.frombuffer(base64.b64decode(row), "<f4") for row in rows])

    with ThreadPoolExecutor(len(parts)) as threads:
        return np.concatenate(list(threads.map(ask, parts)))


CACHE_PATH = [Path()]


def main() -> None:
    """Measure, print, and end with one line of JSON."""
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--kill-every", type=float, default=3.0, metavar="SECONDS")
    options = parser.parse_args()
    seconds = 15.0 if options.quick else 60 * options.minutes
    with tempfile.TemporaryDirectory() as name:
        figures = run(Path(name), seconds, options.clients, options.kill_every, options.quick)
    finish("bench_service", options, figures)


def run(
    folder: Path, seconds: float, n_clients: int, kill_every_s: float, is_quick: bool
) -> dict[str, float]:
    """All figures."""
    from featpipe.cache.cache import Cache

    cache = build(folder)
    CACHE_PATH[0] = cache
    with Cache.open(cache) as opened:
        names = [document.id for document in opened.documents()]
    (folder / "names.json").write_text(json.dumps(names))
    process, port = start(folder, cache)
    try:
        asked = make_requests(folder)
        client = Client(port)
        right = []
        for path, body in asked:
            status, data = client.post(path, body)
            if status != 200:
                raise SystemExit(f"{path} was answered with {status}: {data!r}")
            right.append(essence(path, data))
        CACHED[:] = [names[0], json.loads(right[0])[0]["template"]]
        quiet = undisturbed(port, is_quick)
        tally, seen = under_load(
            process.pid, port, asked, right, (seconds, n_clients, kill_every_s)
        )
        process.send_signal(signal.SIGTERM)
        if process.wait(60) != 0:
            raise SystemExit("the service did not end in order")
    finally:
        process.kill()
        process.wait()
    for reason in [*tally.lost[:5], *tally.wrong[:5]]:
        print("!", reason)
    if tally.lost:
        said = (folder / "log").read_text("utf-8", "replace").splitlines()
        print(*[line for line in said if " ERROR " in line or "last words" in line][:10], sep="\n")
    return summarise(tally, seen, seconds) | quiet


def undisturbed(port: int, is_quick: bool) -> dict[str, float]:
    """Latency and throughput while nothing is killed."""
    return {
        "cached_p50_ms": round(measure_cached(port, 100 if is_quick else 400), 2),
        "embeddings_vs_library": round(measure_embeddings(port, 3 if is_quick else 6), 3),
    }


def under_load(
    server: int,
    port: int,
    asked: list[tuple[str, dict[str, object]]],
    right: list[str],
    plan: tuple[float, int, float],
) -> tuple[Tally, list[tuple[float, float, float]]]:
    """Clients, a killer and a watcher at a time."""
    seconds, n_clients, kill_every_s = plan
    tally, until = Tally(), time.monotonic() + seconds
    seen: list[tuple[float, float, float]] = []
    threads = [
        threading.Thread(target=load, args=(port, asked, right, until, tally, seed))
        for seed in range(n_clients)
    ]
    threads.append(
        threading.Thread(target=kill_now_and_then, args=(server, kill_every_s, until, tally))
    )
    threads.append(threading.Thread(target=watch_memory, args=(port, until, seen)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally, seen


def summarise(
    tally: Tally, seen: list[tuple[float, float, float]], seconds: float
) -> dict[str, float]:
    """The figures of the load. Growth: the last fifth over the second, of the service itself."""
    taken = sorted(tally.seconds)
    fifth = max(1, len(seen) // 5)
    early = statistics.median(size for _, size, _ in seen[fifth : 2 * fifth] or seen)
    late = statistics.median(size for _, size, _ in seen[-fifth:])
    early_worker = max(size for _, _, size in seen[fifth : 2 * fifth] or seen)
    late_worker = max(size for _, _, size in seen[-fifth:])
    print(f"{len(taken)} answers in {seconds:.0f} s, {tally.n_killed} processes killed")
    return {
        "rps": round(len(taken) / seconds, 1),
        "p50_ms": round(1000 * taken[len(taken) // 2], 1),
        "p99_ms": round(1000 * taken[int(0.99 * len(taken))], 1),
        "max_ms": round(1000 * taken[-1], 1),
        "deadline_ms": 1000 * DEADLINE_S,
        "lost": len(tally.lost),
        "wrong": len(tally.wrong),
        "killed": tally.n_killed,
        "memory_growth": round(late / early - 1, 4),
        "worker_memory_growth": round(late_worker / early_worker - 1, 4),
    }


if __name__ == "__main__":
    main()
