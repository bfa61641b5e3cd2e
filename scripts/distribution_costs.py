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

_MERGE = """\
import sys
from featpipe.cache.merge import merge_caches
print(merge_caches([sys.argv[1]], sys.argv[2]).n_rows)
"""


def cpu_seconds(program: str, *arguments: object) -> tuple[float, int]:
    """Processor seconds of a program with all its children, and the number that it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, int(done.stdout.split()[-1])


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
    """Rows a second of processor time in merging a folder into one file."""
    seconds, n_rows = cpu_seconds(_MERGE, folder, place / "merged.h5")
    return n_rows / seconds
