"""10,000 keys looked up over 1,024 shards, against one file of the same rows.

::

    python scripts/distribution_lookups.py [--quick] [--json FILE]

Both answer from warm pages, after first use; rounds are interleaved. The figure is our time over
that of one file: lower is better, 5 is the bar.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from harness import Report, interleave, make_parser, ratios_of, spread

from featpipe.store import Column, FolderReader, Reader, TableSpec, Writer
from featpipe.store.folder_layout import FolderLayout, shard_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BITS, _DIM, _N_KEYS, _ROUNDS = 10, 640, 10_000, 25
_TABLE = "embeddings/bench@0"
#: From then on, rows that were found sound are remembered (see `featpipe.store.sound_rows`).
_SETTLED_S = 3.0


def lookup_figures(folder: Path, n_rows: int) -> dict[str, float]:
    """Write both, look the same keys up in both: the ratio, and seconds of the first look-up."""
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 256, (n_rows, 16), dtype=np.uint8)
    one, layout = folder / "one.h5", FolderLayout(folder / "many.fp", _BITS)
    (layout.path / "shards").mkdir(parents=True)
    layout.description.write_text(json.dumps({"format": 1, "bits": _BITS}))
    _write(one, keys)
    shards = shard_of(keys, _BITS)
    for shard in range(layout.n_shards):
        _write(layout.shard_file(shard), keys[shards == shard])
    with Reader(one) as file, FolderReader(layout.path) as reader:
        tables = file.table(_TABLE), reader.table(_TABLE)
        began = time.perf_counter()
        tables[1].look_up("vectors", keys[:_N_KEYS])
        first_s = time.perf_counter() - began
        for table in tables:
            table.look_up("vectors", keys)
        time.sleep(_SETTLED_S)
        found = [table.look_up("vectors", keys) for table in tables]
        if not (np.array_equal(found[0][0], found[1][0]) and found[1][1].all()):
            raise SystemExit("the folder answers otherwise than the file")
        order = iter([rng.permutation(n_rows)[:_N_KEYS] for _ in range(2 * _ROUNDS + 2)])
        times = interleave(
            _ROUNDS,
            one=lambda: tables[0].look_up("vectors", keys[next(order)]),
            many=lambda: tables[1].look_up("vectors", keys[next(order)]),
        )
    ratios = ratios_of(times["many"], times["one"])
    print(f"{'10,000 keys over 1,024 shards':44} {spread(ratios)}", flush=True)
    return {"lookup10k_1024_vs_one_file": median(ratios), "first_lookup_1024_s": first_s}


def _write(path: Path, keys: NDArray[np.uint8]) -> None:
    spec = TableSpec((Column("vectors", "float16", (_DIM,)),), attributes={"spec": "{}"})
    with Writer.open(path) as writer:
        table = writer.table(_TABLE, spec)
        for start in range(0, len(keys), 8192):
            some = keys[start : start + 8192]
            values = np.repeat(some[:, :8].astype(np.float16), _DIM // 8, axis=1)
            table.append({"keys": some, "vectors": values})


def main() -> None:
    """Read the options, run, print."""
    options = make_parser(__doc__).parse_args()
    report = Report("distribution_lookups", options)
    folder = Path(tempfile.mkdtemp(prefix="featpipe-bench-"))
    try:
        for name, value in lookup_figures(folder, 50_000 if options.quick else 500_000).items():
            report.note(name, value, digits=3)
    finally:
        shutil.rmtree(folder)
    report.finish()


if __name__ == "__main__":
    main()
