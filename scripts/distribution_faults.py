"""Jobs of ``featpipe shard`` that are killed, stopped or doubled, without engine: what it costs.

::

    python scripts/distribution_faults.py [--data ../shared/data] [--quick] [--json FILE]

Each case ends with the same commands run to their end; its rows are held against those of one
machine, and texts computed twice are counted by a log in the encode workers. Prints a row for each
case of the table in ``featpipe/guide/many_machines.md``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_distribution import build_single, save_model, write_documents
from compare_folder import compare_folder
from encode_counts import LOG_PATH, LOG_VARIABLE, count_twice, n_computed
from harness import Report, make_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

_SHARDS, _PARTS = 4, 2


@dataclass(slots=True)
class Place:
    """What all cases share, and what came of them."""

    folder: Path
    documents: Path
    model: Path
    single: Path
    n_texts: int
    log: Path
    n_unequal: int = 0
    n_lost: int = 0
    most_twice: float = 0.0

    @property
    def cache(self) -> Path:
        """The folder that is built."""
        return self.folder / "c.fp"

    def start(self, kind: str, scratch: str) -> subprocess.Popen[bytes]:
        """All jobs of a kind, as one process."""
        device = ["--device", "cpu"] if kind == "encode" else []
        command = [sys.executable, "-m", "featpipe", "shard", kind, str(self.cache), *device]
        place = scratch if scratch == "none" else str(self.folder / scratch)
        options = ["--cpus", "1", "--scratch", place]
        return subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def plan(self) -> None:
        """A fresh folder."""
        shutil.rmtree(self.cache, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "featpipe", "shard", "plan", str(self.cache)]
        options = ["--shards", str(_SHARDS), "--parts", str(_PARTS), "--precision", "exact"]
        model = ["--model", str(self.model), "--ner", "none", "--device", "cpu"]
        subprocess.run(
            [*command, str(self.documents), *options, *model], check=True, capture_output=True
        )

    def end(self, name: str, began: float) -> None:
        """Compare, count and print."""
        found = compare_folder(self.cache, self.single)
        n_texts, n_twice = count_twice(self.log)
        self.n_unequal += found.n_unequal
        self.n_lost += found.n_missing
        if "in place" in name:
            self.most_twice = max(self.most_twice, n_twice / n_texts)
        print(
            f"| {name:52} | {time.monotonic() - began:5.1f} s | {n_twice} of {n_texts} twice | "
            f"{'equal' if not found.words else '; '.join(found.words)} |",
            flush=True,
        )


def finish(place: Place, scratch: str) -> None:
    """Both kinds of jobs to their end."""
    for kind in ("prepare", "encode"):
        if place.start(kind, scratch).wait(timeout=600) != 0:
            raise SystemExit(f"shard {kind} failed")


def shares(place: Place) -> Iterator[float]:
    """Shares of the texts at which something is done."""
    yield from (share * place.n_texts for share in (0.1, 0.3, 0.5, 0.7, 0.9))


def quiet(place: Place, scratch: str) -> None:
    """Nothing happens."""
    finish(place, scratch)


def disturbed(place: Place, scratch: str, number: signal.Signals) -> None:
    """Five signals to the process that encodes."""
    place.start("prepare", scratch).wait()
    for n in shares(place):
        process = place.start("encode", scratch)
        while n_computed(place.log) < n and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        process.wait()
    finish(place, scratch)


def killed_while_reading(place: Place, scratch: str) -> None:
    """Five kills of the process that prepares."""
    for seconds in (0.8, 1.2, 1.6, 2.0, 2.4):
        process = place.start("prepare", scratch)
        time.sleep(seconds)
        process.kill()
        process.wait()
    finish(place, scratch)


def doubled(place: Place, scratch: str) -> None:
    """Two processes do every job at once."""
    for kind in ("prepare", "encode"):
        processes = [place.start(kind, scratch) for _ in range(2)]
        if any(process.wait(timeout=600) for process in processes):
            raise SystemExit(f"shard {kind} failed")


def cases(options: argparse.Namespace) -> Sequence[tuple[str, object, str, tuple[object, ...]]]:
    """(words, what is done, scratch, arguments)."""
    stops = (signal.SIGKILL,), (signal.SIGTERM,)
    every = [
        ("nothing", quiet, "none", ()),
        ("5 SIGKILLs while documents are read, in place", killed_while_reading, "none", ()),
        ("5 SIGKILLs while a shard is encoded, in place", disturbed, "none", stops[0]),
        ("5 SIGKILLs while a shard is encoded, scratch kept", disturbed, "scratch", stops[0]),
        ("5 SIGTERMs while a shard is encoded, scratch", disturbed, "scratch", stops[1]),
        ("every job by two processes at once, in place", doubled, "none", ()),
        ("every job by two processes at once, on scratch", doubled, "scratch", ()),
    ]
    return every[2:3] if options.quick else every


def main() -> None:
    """Read the options, run, print."""
    options = make_parser(__doc__).parse_args()
    report = Report("distribution_faults", options)
    folder = Path(tempfile.mkdtemp(prefix="featpipe-faults-"))
    try:
        documents, model = folder / "documents", save_model(folder / "model")
        write_documents(options, documents, 12 if options.quick else 40)
        single, n_texts = build_single(folder, documents, model)
        log = folder / "computed"
        os.environ[LOG_VARIABLE] = str(log)
        paths = (str(LOG_PATH), os.environ.get("PYTHONPATH", ""))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        place = Place(folder, documents, model, single, n_texts, log)
        for name, act, scratch, arguments in cases(options):
            place.plan()
            began = time.monotonic()
            act(place, scratch, *arguments)  # type: ignore[operator]  # a function above
            place.end(name, began)
        report.note("rows_unequal", place.n_unequal)
        report.note("lost", place.n_lost)
        report.note("computed_twice_share", place.most_twice, digits=4)
    finally:
        shutil.rmtree(folder)
    report.finish()


if __name__ == "__main__":
    main()
