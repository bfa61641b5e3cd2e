"""What a folder costs beside one file: processor time of a build and of a merge, without engine."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ONE = """\
import sys
from featpipe import Pipeline
cache, documents, model = sys.argv[1:4]
with Pipeline(cache, model, "none", devices=["cpu"]) as pipeline:
    print(pipeline.build(documents).n_encoded)
"""

_FOLDER = """\
import sys
from featpipe.build.folder_pipeline import FolderPipeline
from featpipe.build.jobs import Seat
from featpipe.build.shards.folder_plan import Models
cache, documents, model, shards = sys.argv[1:5]
seat = Seat(("cpu",))
pipeline = FolderPipeline(cache, Models(model, "none"), n_shards=int(shards), seat=seat)
print(pipeline.build([documents], n_parts=2).n_encoded)
"""

#: A first merge loads the code; the second one is counted, in this process, which has no children.
_MERGE = """\
import sys, time
from featpipe.cache.merge import merge_caches
source, *outputs = sys.argv[1:]
for output in outputs:
    began = time.process_time()
    n_rows = merge_caches([source], output).n_rows
    seconds = time.process_time() - began
print(f"{seconds} {n_rows}")
"""


def cpu_seconds(program: str, *arguments: object) -> tuple[float, int]:
    """Processor seconds of a program with all its children, and the number that it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = _run(program, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, int(printed[-1])


def _run(program: str, *arguments: object) -> list[str]:
    """The words that a program prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def cpu_vs_one_machine(
    place: Path, documents: Path, model: Path, n_shards: int, rounds: int = 1
) -> list[float]:
    """Processor time of a folder's build over that of one file's, in turns."""
    ratios = []
    for number in range(rounds):
        one, n_one = cpu_seconds(_ONE, place / f"cpu-{number}.h5", documents, model)
        both, n_both = cpu_seconds(_FOLDER, place / f"cpu-{number}.fp", documents, model, n_shards)
        if n_one != n_both:
            raise SystemExit(f"{n_both} texts were encoded, not {n_one}")
        print(f"  one file {one:.1f} CPU s, {n_shards} shards {both:.1f} CPU s", flush=True)
        ratios.append(both / one)
    return ratios


def merge_rows_per_cpu_s(place: Path, folder: Path) -> float:
    """Rows a second of processor time in merging a folder into one file, once the code is loaded.

    Start and imports of a process take as much as some 100,000 rows.
    """
    seconds, n_rows = _run(_MERGE, folder, place / "first.h5", place / "merged.h5")[-2:]
    print(f"  merge of {n_rows} rows {float(seconds):.2f} CPU s", flush=True)
    return int(n_rows) / float(seconds)
