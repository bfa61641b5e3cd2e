"""The dictionary against its peers, with the same data in the same run.

    python scripts/bench_store.py [--quick] [--json FILE] [--folder DIR]

Peers: one dataset per key (h5py), one chunked matrix (h5py), LMDB, SQLite, one file per key; and
as the limits of what can be, for reading a raw memory map, for writing a bare file that gets the
vectors alone by one pwrite and one sync a batch, and one that gets the same writes and syncs as
ours (nobody durable is much above 1 there). A sync is most of a batch's time, so those shares
depend on the disk: ``write_batch_us`` is the second file's time for a batch, and ``write_ours_us``
what ours adds to it. Every store is first asked for the same vectors and must give the same answer.
Rounds are interleaved; a ratio is taken within each round, and its median is the figure. The last
line is one JSON object.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from harness import finish, make_parser
from store_peers import (
    PEERS,
    ChunkedMatrix,
    DatasetPerKey,
    Dictionary,
    FilePerKey,
    Lmdb,
    RawFile,
    SameWrites,
    Sqlite,
)

from featpipe.store import Reader, TableSpec, Writer, keys_of
from featpipe.store.sound_rows import SETTLED_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from store_peers import Peer

DIM, BATCH = 768, 256
N_PARTS = 10  #: rounds of writing


class Rounds:
    """Times of several ways to do one thing, taken in turn."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def take(self, name: str, action: Callable[[], object]) -> None:
        """One more time of ``name``."""
        started = time.perf_counter()
        action()
        self.times.setdefault(name, []).append(time.perf_counter() - started)

    def take_in_turn(self, number: int, actions: dict[str, Callable[[], object]]) -> None:
        """One more time of each, in the other order every other round.

        The first finds cold what the last left warm.
        """
        for name in list(actions) if number % 2 else reversed(actions):
            self.take(name, actions[name])

    def ratios(self, peer: str, ours: str = "featpipe") -> list[float]:
        """How many times as long the peer took, round by round."""
        pairs = zip(self.times[peer], self.times[ours], strict=True)
        return [theirs / mine for theirs, mine in pairs]

    def show(self, what: str, n: int, unit: str = "rows/s") -> None:
        """One line per way: median speed, and how much slower it is than ours."""
        for name, times in self.times.items():
            ratios = sorted(self.ratios(name))
            speed = n / statistics.median(times)
            spread = f"x{statistics.median(ratios):8.2f}  ({ratios[0]:.2f} - {ratios[-1]:.2f})"
            print(f"  {what:<18} {name:<28} {speed:14,.0f} {unit}   {spread}")

    def median_us(self, name: str, n: int) -> float:
        """The median time of one of ``n`` equal steps, in microseconds."""
        return round(statistics.median(self.times[name]) / n * 1e6, 1)

    def added_us(self, peer: str, n: int, ours: str = "featpipe") -> float:
        """How much longer ours took for one of ``n`` equal steps, the median over the rounds."""
        pairs = zip(self.times[peer], self.times[ours], strict=True)
        return round(statistics.median(mine - theirs for theirs, mine in pairs) / n * 1e6, 1)

    def figure(self, peer: str) -> float:
        """The median ratio."""
        return round(statistics.median(self.ratios(peer)), 3)


def make_data(n: int) -> tuple[list[str], NDArray[np.uint8], NDArray[np.float16]]:
    """Texts of a sentence's length, their keys, and vectors like an encoder's."""
    texts = [f"第 {i} 句: 甲方应在合同签订后三十日内向乙方支付全部价款。" for i in range(n)]
    vectors = np.random.default_rng(0).standard_normal((n, DIM), np.float32).astype(np.float16)
    return texts, keys_of(texts), vectors


def write_all(
    stores: Sequence[Peer | RawFile],
    same: SameWrites,
    keys: NDArray[np.uint8],
    vectors: NDArray[np.float16],
) -> Rounds:
    """Durable appends of one batch at a time; a round is a tenth of the rows, store after store.

    ``same`` repeats what the first store, ours, has written in the round.
    """
    same.repeat()  # what opening wrote
    rounds = Rounds()
    slices = [slice(i, i + BATCH) for i in range(0, len(keys), BATCH)]
    for part in range(N_PARTS):
        mine = slices[part * len(slices) // N_PARTS : (part + 1) * len(slices) // N_PARTS]
        for store in stores:

            def write(store: Peer | RawFile = store, mine: list[slice] = mine) -> None:
                for piece in mine:
                    store.append(keys[piece], vectors[piece])

            rounds.take(store.name, write)
            if store is stores[0]:
                rounds.take(same.name, same.repeat)
    return rounds


def look_up_all(stores: Sequence[Peer], texts: list[str], n_keys: int, n_rounds: int) -> Rounds:
    """Random texts to a matrix of their vectors, hashing included."""
    rounds, source = Rounds(), np.random.default_rng(n_keys)
    for store in stores:
        store.look_up(keys_of(texts[:: max(1, len(texts) // 5000)]))  # warm
    for _ in range(n_rounds):
        wanted = [texts[i] for i in source.integers(0, len(texts), n_keys)]
        for store in stores:
            rounds.take(store.name, lambda store=store, w=wanted: store.look_up(keys_of(w)))
    return rounds


def look_up_single(stores: Sequence[Peer], keys: NDArray[np.uint8], n_rounds: int) -> Rounds:
    """One key after the other, warm."""
    rounds, source = Rounds(), np.random.default_rng(1)
    for _ in range(n_rounds):
        wanted = [keys[i].tobytes() for i in source.integers(0, len(keys), 2000)]
        for store in stores:

            def look_up(store: Peer = store, wanted: list[bytes] = wanted) -> None:
                for key in wanted:
                    store.look_up_one(key)

            rounds.take(store.name, look_up)
    return rounds


def gather_first(ours: Dictionary, raw: Path, n: int, n_rounds: int) -> Rounds:
    """As :func:`gather`, by readers that have not read a row yet: each row is checked."""
    rounds = Rounds()
    rows = np.asarray(np.memmap(raw, np.float16, "r", shape=(n, DIM)))
    out = np.empty((10_000, DIM), np.float16)
    for number in range(n_rounds):
        wanted = np.random.default_rng(number).integers(0, n, len(out))
        with Reader(ours.path) as reader:
            table = reader.table("vectors")
            actions: dict[str, Callable[[], object]] = {
                "featpipe": lambda t=table, w=wanted: t.gather("vectors", w, out),
                "raw memory map": lambda w=wanted: np.take(rows, w, axis=0, out=out, mode="clip"),
            }
            rounds.take_in_turn(number, actions)
    return rounds


def gather(ours: Dictionary, raw: Path, n: int, n_rounds: int) -> Rounds:
    """Rows to a matrix against a raw memory map, when each has been read before."""
    rounds, source = Rounds(), np.random.default_rng(2)
    rows = np.asarray(np.memmap(raw, np.float16, "r", shape=(n, DIM)))  # its class costs time
    out = np.empty((10_000, DIM), np.float16)
    table = ours.table
    table.row("vectors", 0)
    time.sleep(SETTLED_S)  # checks of a file that was just written are not remembered
    table.gather("vectors", np.arange(n))
    for number in range(n_rounds):
        wanted = source.integers(0, n, len(out))
        actions: dict[str, Callable[[], object]] = {
            "featpipe": lambda w=wanted: table.gather("vectors", w, out),
            # With out= and mode="clip" numpy copies once; plain indexing is slower, and no limit.
            "raw memory map": lambda w=wanted: np.take(rows, w, axis=0, out=out, mode="clip"),
        }
        rounds.take_in_turn(number, actions)
    return rounds


def scan(ours: Dictionary, raw: Path, n: int, n_rounds: int) -> Rounds:
    """Every byte once, as one sum."""
    rounds = Rounds()
    rows = np.asarray(np.memmap(raw, np.float16, "r", shape=(n, DIM)))
    add = lambda part: np.add.reduce(part.reshape(-1).view(np.uint64))  # noqa: E731
    actions: dict[str, Callable[[], object]] = {
        "featpipe": lambda: [add(b) for b in ours.table.blocks("vectors")],
        "raw memory map": lambda: add(rows),
    }
    for number in range(n_rounds):
        rounds.take_in_turn(number, actions)
    return rounds


def forget(path: Path) -> None:
    """Drop a file's pages from memory; whoever maps it still would keep them there."""
    gc.collect()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size = path.stat().st_size
        memory = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
        pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
        view = np.frombuffer(memory, np.uint8)
        address, length = ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size)
        ctypes.CDLL(None).mincore(address, length, ctypes.c_void_p(pages.ctypes.data))
        if (pages & 1).mean() > 0.05:
            print(f"  ({path.name} is not cold: {(pages & 1).mean():.0%} of it stayed in memory)")


def cold(path: Path, raw: Path, n: int, n_rounds: int) -> Rounds:
    """Random rows that are not in memory, against one pread per row."""
    rounds, source = Rounds(), np.random.default_rng(3)
    copies = [shutil.copyfile(each, each.with_suffix(".cold")) for each in (path, raw)]
    descriptor = os.open(copies[1], os.O_RDONLY)
    size = DIM * 2
    for _ in range(n_rounds):
        wanted = source.integers(0, n, 2000)
        forget(copies[0])
        with Reader(copies[0]) as reader:
            table = reader.table("vectors")
            rounds.take("featpipe", lambda t=table, w=wanted: t.gather("vectors", w, is_cold=True))
        del reader, table
        forget(copies[1])
        read = lambda w=wanted: [os.pread(descriptor, size, i * size) for i in w.tolist()]  # noqa: E731
        rounds.take("pread", read)
    os.close(descriptor)
    return rounds


def plain_loop(ours: Dictionary, per_key: DatasetPerKey, keys: NDArray[np.uint8]) -> Rounds:
    """``ds[i]`` by plain h5py on our file, against one dataset per key."""
    rounds, source = Rounds(), np.random.default_rng(4)
    with h5py.File(ours.path, "r") as file:
        vectors = file["vectors/vectors"]
        for _ in range(5):
            wanted = source.integers(0, len(keys), 1000).tolist()
            names = [keys[i].tobytes().hex() for i in wanted]
            rounds.take("featpipe", lambda w=wanted: [vectors[i] for i in w])
            rounds.take(per_key.name, lambda w=names: [per_key.group[name][()] for name in w])
    return rounds


def index_of(folder: Path, n: int) -> dict[str, float]:
    """A dictionary of ``n`` keys alone: time to open it and find the first, bytes a key."""
    path = folder / f"keys{n}.h5"
    source = np.random.default_rng(n)
    with Writer.open(path) as writer:
        table = writer.table("keys", TableSpec(()))
        table.reserve(n)
        for start in range(0, n, 1 << 16):
            size = min(1 << 16, n - start)
            table.append({"keys": source.integers(0, 256, (size, 16), np.uint8)})
        writer.commit()
    times = []
    with Reader(path) as reader:
        seen = reader.table("keys")
        place = seen.now.view.index
        wanted = seen.slice("keys", 0, n)[source.integers(0, n, 10_000)]
        key = wanted[0].tobytes()
    for _ in range(9):
        started = time.perf_counter()
        with Reader(path) as reader:
            reader.table("keys").find_one(key)
        times.append((time.perf_counter() - started) * 1e3)
    with Reader(path) as reader:
        seen = reader.table("keys")
        rounds = Rounds()
        for _ in range(9):
            rounds.take("find", lambda: seen.find(wanted))
    found = statistics.median(rounds.times["find"]) * 1e3
    path.unlink()
    capacity = place.capacity if place else 0
    print(
        f"  index {n:>12,} keys: open {statistics.median(times):.2f} ms, "
        f"10 k keys {found:.2f} ms, {capacity * 4 / n:.1f} bytes a key"
    )
    return {"open_ms": statistics.median(times), "bytes": capacity * 4 / n}


READER = """
import sys, numpy as np, psutil, time
from featpipe.store import Reader
memory = psutil.Process().memory_full_info
before = memory().uss
reader = Reader(sys.argv[1]); table = reader.table("vectors")
source = np.random.default_rng(0)
out = np.empty((256, table.gather("vectors", [0]).shape[1]), np.float16)
n, stop = 0, time.perf_counter() + float(sys.argv[2])
while time.perf_counter() < stop:
    reader.refresh()
    table.gather("vectors", source.integers(0, table.n_rows, 256), out)
    n += 256
print(n / float(sys.argv[2]), (memory().uss - before) / 2**20)
"""


def concurrent(folder: Path, keys: NDArray[np.uint8], vectors: NDArray[np.float16]) -> None:
    """No, one and two reading processes beside a writer: what each gets done."""
    for n_readers in (0, 1, 2):
        (beside := folder / f"beside{n_readers}").mkdir()
        ours = Dictionary(beside, DIM)
        ours.append(keys[:BATCH], vectors[:BATCH])
        command = [sys.executable, "-c", READER, str(ours.path), "1.5"]
        readers = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_readers)
        ]
        n, stop = BATCH, time.perf_counter() + 2.5
        while time.perf_counter() < stop and n < len(keys):
            ours.append(keys[n : n + BATCH], vectors[n : n + BATCH])
            n += BATCH
        seconds = time.perf_counter() - stop + 2.5
        parts = [reader.communicate()[0].split() for reader in readers]
        lines = [f"{float(speed):,.0f} rows/s, {float(mib):.1f} MiB" for speed, mib in parts]
        print(f"  {n_readers} readers: writer {n / seconds:,.0f} rows/s; {'; '.join(lines)}")
        ours.finish()
        ours.close()


def check_answers(
    stores: Sequence[Peer], keys: NDArray[np.uint8], vectors: NDArray[np.float16]
) -> None:
    """Everybody gives the same vectors."""
    wanted = np.random.default_rng(9).integers(0, len(keys), 200)
    for store in stores:
        if not np.array_equal(store.look_up(keys[wanted]), vectors[wanted]):
            raise SystemExit(f"{store.name} gives other vectors")
        one = store.look_up_one(keys[7].tobytes())
        if not np.array_equal(one, vectors[7]):
            raise SystemExit(f"{store.name} gives another vector")


def run(folder: Path, *, is_quick: bool) -> dict[str, float]:
    """All measurements; the figures of the last line."""
    n, n_rounds = (20_000, 7) if is_quick else (100_000, 15)
    texts, keys, vectors = make_data(n)
    ours = Dictionary(folder, DIM)
    stores: list[Peer] = [ours, *(kind(folder, DIM) for kind in PEERS)]
    print(f"{n:,} vectors of {DIM} float16, batches of {BATCH}; ratios are peer's time / ours")
    limit = RawFile(folder, DIM)
    figures = measure_writing(stores, limit, keys, vectors)
    figures["size_vs_raw"] = round(ours.n_bytes() / (vectors.nbytes + keys.nbytes), 4)
    figures |= measure_reading(stores, texts, keys, is_quick=is_quick)
    first = gather_first(ours, limit.path, n, n_rounds)
    first.show("gather 10 k, first read", 10_000)
    gathered = gather(ours, limit.path, n, n_rounds)
    gathered.show("gather 10 k", 10_000)
    scanned = scan(ours, limit.path, n, n_rounds)
    scanned.show("scan", n)
    per_key = next(store for store in stores if isinstance(store, DatasetPerKey))
    looped = plain_loop(ours, per_key, keys)
    looped.show("plain h5py ds[i]", 1000)
    for store in stores:
        store.close()
    chilled = cold(ours.path, limit.path, n, 3 if is_quick else 7)
    chilled.show("cold rows", 2000)
    concurrent(folder, keys, vectors)
    for size in (100_000, 1_000_000) if is_quick else (100_000, 1_000_000, 10_000_000):
        index = index_of(folder, size)
    return figures | {
        "gather_first_vs_memmap": first.figure("raw memory map"),
        "gather_vs_memmap": gathered.figure("raw memory map"),
        "scan_vs_memmap": scanned.figure("raw memory map"),
        "plain_loop_vs_dataset_per_key": looped.figure(DatasetPerKey.name),
        "cold_vs_pread": chilled.figure("pread"),
        "index_bytes_per_key": round(index["bytes"], 2),
        "index_open_ms": round(index["open_ms"], 3),
    }


def measure_writing(
    stores: Sequence[Peer], limit: RawFile, keys: NDArray[np.uint8], vectors: NDArray[np.float16]
) -> dict[str, float]:
    """Durable appends, sizes, and the same answers from all."""
    ours = stores[0]
    if not isinstance(ours, Dictionary):
        raise TypeError("the first store is ours")
    same = SameWrites(ours.path.parent, ours.disk)
    wrote = write_all([*stores, limit], same, keys, vectors)
    wrote.show("durable write", len(keys) // 10)
    limit.close()
    same.close()
    for store in stores:
        store.finish()
    check_answers(stores, keys, vectors)
    for store in stores:
        size, raw = store.n_bytes(), vectors.nbytes
        print(
            f"  size  {store.name:<40} {size / (raw + keys.nbytes):.4f} of raw vectors and keys, "
            f"{size / raw:.4f} of vectors alone"
        )
    n_batches = -(-len(keys) // BATCH) // N_PARTS
    return {
        "write_vs_dataset_per_key": wrote.figure(DatasetPerKey.name),
        "write_vs_lmdb": wrote.figure(Lmdb.name),
        "write_vs_sqlite": wrote.figure(Sqlite.name),
        "write_vs_h5py_fsync": wrote.figure(ChunkedMatrix.name),
        "write_vs_raw_file": wrote.figure(RawFile.name),
        "write_vs_same_writes": wrote.figure(SameWrites.name),
        "write_batch_us": wrote.median_us(SameWrites.name, n_batches),
        "write_ours_us": wrote.added_us(SameWrites.name, n_batches),
    }


def measure_reading(
    stores: Sequence[Peer], texts: list[str], keys: NDArray[np.uint8], *, is_quick: bool
) -> dict[str, float]:
    """Look-ups by text, many at a time and one by one."""
    figures = {}
    for n_keys in (1000, 10_000) if is_quick else (1000, 10_000, 100_000):
        slow = (FilePerKey, DatasetPerKey) if n_keys > 1000 else ()
        asked = [store for store in stores if not isinstance(store, slow)]
        found = look_up_all(asked, texts, n_keys, 3 if n_keys > 10_000 else 7)
        found.show(f"{n_keys:,} texts", n_keys)
        if n_keys == 10_000:
            figures["lookup10k_vs_lmdb"] = found.figure(Lmdb.name)
            figures["lookup10k_vs_h5py"] = found.figure(ChunkedMatrix.name)
    single = look_up_single(stores, keys, 7)
    single.show("one key", 2000)
    figures["single_vs_h5py"] = single.figure(DatasetPerKey.name)
    figures["single_vs_lmdb"] = single.figure(Lmdb.name)
    return figures


def main() -> None:
    """Parse, run, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--folder", type=Path, help="where to write: the disk to be measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        figures = run(Path(folder), is_quick=arguments.quick)
    finish("bench_store", arguments, figures)


if __name__ == "__main__":
    main()
