"""A folder cache on a cluster whose workers, nodes and drivers are killed, against one machine.

::

    python scripts/bench_distribution.py [--data ../shared/data] [--quick] [--json FILE]
    python scripts/bench_distribution.py --only costs frozen --keep pieces.jsonl
    python scripts/bench_distribution.py --merge pieces.jsonl --json distribution.json

The peer is one machine that writes one file: every end state must hold its rows, byte by byte, each
once. Nodes are simulated: Ray's processes on this machine, one core a node. Counted besides: texts
computed twice (a log in the encode workers), seconds until a build with a frozen node has ended,
memory of a driver with 100,000 jobs; and, without Ray, the processor time of a folder's build over
that of one file's, and of a merge, and the time of look-ups over 1,024 shards.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from compare_folder import compare_folder
from distribution_costs import cpu_vs_one_machine, merge_rows_per_cpu_s
from distribution_lookups import lookup_figures
from encode_counts import LOG_PATH, LOG_VARIABLE, count_twice, n_computed
from harness import ROOT, Report, add_piece_options, make_parser, measure_or_merge, read_lines
from ray_cluster import running_cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from ray_cluster import Nodes

    Figures = dict[str, float]

#: A driver, as a program of its own: documents, folder, shards, seats, scratch, model.
_DRIVE = """\
import json, sys
from featpipe.build.shards.folder_plan import Models
from featpipe.integrations.ray import build
documents, folder, shards, seats, scratch, model = sys.argv[1:]
report = build(documents, folder, shards=int(shards), workers=int(seats), scratch=scratch,
               models=Models(model, "none"))
print(json.dumps({"n_encoded": report.n_encoded, "notes": report.notes}))
"""

#: A driver of jobs that do nothing: how many.
_STUB = """\
import sys
from pathlib import Path
from dataclasses import dataclass
import psutil
from featpipe.build.jobs import Job, JobReport, Seat
from featpipe.build.shards.job import Total
from featpipe.integrations.ray import connected
from featpipe.integrations.ray_engine import RayEngine
from featpipe.report import RunReport

class Nothing:
    def __init__(self, seat): pass
    def run(self, job):
        run = RunReport(str(job), 0, 0, 0, (), {"sentence": 1}, 1, 0, 1, (), 0, 0, 0, .1,
                        notes=("a note",), checkpoints={"embeddings/a": "/models/a"})
        return JobReport(job, run, (f"shards/{job.number}.h5",))
    def close(self): pass

with connected():
    engine, total = RayEngine(Nothing, workers=2), Total("stub")
    most = 0
    for number, report in enumerate(engine.run([Job("encode", n) for n in range(int(sys.argv[1]))],
                                               Seat(threads=1))):
        total.add(report)
        if number % 1000 == 0:
            most = max(most, psutil.Process().memory_info().rss)
    assert total.finish(0.0).n_encoded == int(sys.argv[1])
print(max(most, psutil.Process().memory_info().rss) / 1e6)
"""


@dataclass(slots=True)
class Bench:
    """What all cases share, and what came of them."""

    folder: Path
    documents: Path
    model: Path
    single: Path
    n_texts: int
    nodes: Nodes
    n_unequal: int = 0
    n_lost: int = 0
    shares: list[float] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """Of the vectors computed."""
        return Path(os.environ[LOG_VARIABLE])

    def drive(self, name: str, shards: int, seats: int, scratch: str) -> subprocess.Popen[str]:
        """Start a driver."""
        where = [str(self.documents), str(self.folder / name)]
        what = [str(shards), str(seats), scratch, str(self.model)]
        command = [sys.executable, "-c", _DRIVE, *where, *what]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def figures(self) -> Figures:
        """What all cases left; the share of the worst one in place, where there was one."""
        shares = {"computed_twice_share": max(self.shares)} if self.shares else {}
        return {"rows_unequal": self.n_unequal, "lost": self.n_lost} | shares

    @contextmanager
    def case(self, name: str, *, in_place: bool = False) -> Iterator[None]:
        """Count what a case computes, and compare what it leaves."""
        self.log.unlink(missing_ok=True)
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        found = compare_folder(self.folder / name, self.single)
        n_texts, n_twice = count_twice(self.log)
        self.n_unequal += found.n_unequal
        self.n_lost += found.n_missing
        if in_place:
            self.shares.append(n_twice / n_texts)
        print(
            f"{name:28} {seconds:6.1f} s  {n_texts} texts, {n_twice} computed twice; "
            f"{found.n_unequal} rows unequal, {found.n_missing} missing",
            flush=True,
        )
        shutil.rmtree(self.folder / name)


def finish(driver: subprocess.Popen[str]) -> dict[str, object]:
    """What a driver says in its last line; its errors are ours."""
    said, wrong = driver.communicate(timeout=300)
    if driver.returncode:
        raise SystemExit(f"a driver failed:\n{wrong[-4000:]}")
    told: dict[str, object] = json.loads(said.splitlines()[-1])
    return told


def wait_until(holds: Callable[[], bool], driver: subprocess.Popen[str]) -> None:
    """Until something holds; it must before the driver ends."""
    while not holds():
        if driver.poll() is not None:
            finish(driver)
            raise SystemExit("the build ended before it could be disturbed")
        time.sleep(0.02)


# ---- cases


def sizes(bench: Bench, seats: tuple[int, ...], shards: tuple[int, ...]) -> None:
    """Nothing is killed."""
    for n_seats in seats:
        for n_shards in shards:
            name = f"{n_seats} seats, {n_shards} shards"
            with bench.case(name):
                finish(bench.drive(name, n_shards, n_seats, ""))


def killed_workers(bench: Bench) -> None:
    """A seat's process, three times, in place."""
    name = "3 workers killed"
    with bench.case(name, in_place=True):
        driver = bench.drive(name, 4, 2, "none")
        for part in (0.1, 0.4, 0.7):
            wait_until(lambda part=part: n_computed(bench.log) > part * bench.n_texts, driver)  # type: ignore[misc]
            kill_one(bench, driver)
        finish(driver)


def kill_one(bench: Bench, driver: subprocess.Popen[str]) -> None:
    """A seat, as soon as there is one."""
    killed: list[int] = []

    def kill() -> bool:
        for number in bench.nodes.alive:
            seat = bench.nodes.seat(number)
            if seat is not None and not killed:
                seat.kill()
                killed.append(seat.pid)
        return bool(killed)

    wait_until(kill, driver)


def killed_node(bench: Bench) -> None:
    """A raylet, in place; another node joins."""
    name = "node killed, another joins"
    with bench.case(name, in_place=True):
        driver = bench.drive(name, 4, 2, "none")
        wait_until(lambda: n_computed(bench.log) > 0.3 * bench.n_texts, driver)
        bench.nodes.kill(bench.nodes.alive[0])
        bench.nodes.add()
        finish(driver)


def killed_driver(bench: Bench) -> None:
    """SIGKILL, in place; the same command again."""
    name = "driver killed, started again"
    with bench.case(name, in_place=True):
        driver = bench.drive(name, 4, 2, "none")
        wait_until(lambda: n_computed(bench.log) > 0.3 * bench.n_texts, driver)
        driver.kill()
        driver.communicate()
        finish(bench.drive(name, 4, 2, "none"))


def frozen_node(bench: Bench) -> float:
    """SIGSTOP to a raylet and its children, on scratch; seconds from then to the end."""
    name = "node frozen"
    over = threading.Event()
    with bench.case(name):
        driver = bench.drive(name, 4, 2, "")
        wait_until(lambda: n_computed(bench.log) > 0.3 * bench.n_texts, driver)
        with bench.nodes.frozen(bench.nodes.alive[0]):
            began = time.monotonic()
            finish(driver)
            seconds = time.monotonic() - began
        over.set()
    return seconds


def driver_memory(n_jobs: int) -> float:
    """MB of a driver with so many jobs that do nothing."""
    done = subprocess.run(
        [sys.executable, "-c", _STUB, str(n_jobs)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the stub driver failed:\n{done.stderr[-4000:]}")
    return float(done.stdout.splitlines()[-1])


# ---- what they share


def write_documents(options: argparse.Namespace, folder: Path, n: int) -> None:
    """Announcements as text files; from our own documents where the data is absent."""
    folder.mkdir()
    source = options.data / "fields" / "fddc_hetong.jsonl.xz"
    if source.exists():
        for row in read_lines(source, n):
            (folder / f"{row['doc_id']}.txt").write_text(row["text"], "utf-8")
        return
    for file in sorted((ROOT / "data" / "documents").iterdir())[:n]:
        shutil.copy(file, folder)


def save_model(folder: Path) -> Path:
    """A BERT of four layers with random weights: slow enough to be killed in the middle of it."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from tiny_checkpoints import save_encoder\n"
        "save_encoder(Path(sys.argv[2]), hidden_size=256, num_hidden_layers=4,\n"
        "             intermediate_size=1024)"
    )
    command = [sys.executable, "-c", code, str(ROOT / "tests"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def build_single(bench_folder: Path, documents: Path, model: Path) -> tuple[Path, int]:
    """One machine's file, and how many texts it encoded; by a process of its own."""
    single = bench_folder / "single.h5"
    code = (
        "import sys; from featpipe import Pipeline\n"
        "with Pipeline(sys.argv[1], sys.argv[2], 'none', devices=['cpu']) as pipeline:\n"
        "    print(pipeline.build(sys.argv[3]).n_encoded)"
    )
    command = [sys.executable, "-c", code, str(single), str(model), str(documents)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return single, int(done.stdout)


# ---- parts, each with documents, a model and a cluster of its own


def costs(options: argparse.Namespace, folder: Path) -> Figures:
    """What a folder costs beside one file, without engine; shards of about a minute."""
    documents, model = folder / "documents", save_model(folder / "model")
    write_documents(options, documents, 12 if options.quick else 800)
    ratios = cpu_vs_one_machine(folder, documents, model, 2, rounds=1 if options.quick else 3)
    return {
        "cpu_vs_one_machine": median(ratios),
        "merge_rows_per_cpu_s": merge_rows_per_cpu_s(folder, folder / "cpu-0.fp"),
    }


def lookups(options: argparse.Namespace, folder: Path) -> Figures:
    """10,000 keys over 1,024 shards."""
    return lookup_figures(folder, 50_000 if options.quick else 500_000)


def all_sizes(options: argparse.Namespace, folder: Path) -> Figures:
    """Nothing is killed: seats x shards."""
    with disturbable(options, folder, 2 if options.quick else 4) as bench:
        if options.quick:
            sizes(bench, (2,), (4,))
        else:
            sizes(bench, (1, 2, 4), (1, 4, 16))
        return bench.figures()


def kills(options: argparse.Namespace, folder: Path) -> Figures:
    """Seats, a driver and a node are killed."""
    with disturbable(options, folder, 2) as bench:
        killed_workers(bench)
        if not options.quick:
            killed_driver(bench)
            killed_node(bench)
        return bench.figures()


def frozen(options: argparse.Namespace, folder: Path) -> Figures:
    """A node stands still."""
    with disturbable(options, folder, 2) as bench:
        seconds = frozen_node(bench)
        return bench.figures() | {"frozen_node_s": seconds}


def driver(options: argparse.Namespace, folder: Path) -> Figures:
    """Memory of a driver with many jobs; needs no documents."""
    del folder
    with running_cluster(2):
        return {"driver_mb": driver_memory(2_000 if options.quick else 100_000)}


PARTS: dict[str, Callable[[argparse.Namespace, Path], Figures]] = {
    "costs": costs,
    "lookups": lookups,
    "sizes": all_sizes,
    "kills": kills,
    "frozen": frozen,
    "driver": driver,
}
#: Waits a minute for Ray to give a node up.
_NOT_QUICK = ("frozen",)


@contextmanager
def disturbable(options: argparse.Namespace, folder: Path, n_nodes: int) -> Iterator[Bench]:
    """A cluster, and what one machine makes of the same documents."""
    documents, model = folder / "documents", save_model(folder / "model")
    write_documents(options, documents, 12 if options.quick else 40)
    single, n_texts = build_single(folder, documents, model)
    os.environ[LOG_VARIABLE] = str(folder / "computed")
    with running_cluster(n_nodes, paths=[LOG_PATH]) as nodes:
        yield Bench(folder, documents, model, single, n_texts, nodes)


def measure(options: argparse.Namespace) -> Iterator[Figures]:
    """The figures of each part."""
    for name in options.only:
        if options.quick and name in _NOT_QUICK:
            continue
        with tempfile.TemporaryDirectory(prefix="featpipe-bench-") as folder:
            yield PARTS[name](options, Path(folder))


def joined(parts: Sequence[Figures]) -> Figures:
    """Rows add up over the parts, of shares the largest counts; other figures are of one part."""
    made: Figures = {}
    for name, value in (each for part in parts for each in part.items()):
        if name in {"rows_unequal", "lost"}:
            made[name] = made.get(name, 0) + value
        else:
            made[name] = max(made.get(name, 0), value)
    return made


def main() -> None:
    """Read the options, run or merge, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    add_piece_options(parser)
    options = parser.parse_args()
    report = Report("bench_distribution", options)
    parts = measure_or_merge(options, lambda: measure(options), json.loads, json.dumps)
    for name, value in joined(parts).items():
        report.note(name, value, digits=4)
    report.finish()


if __name__ == "__main__":
    main()
