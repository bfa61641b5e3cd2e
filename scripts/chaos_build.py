"""Kill random children of real builds for some minutes; the caches must be those of a quiet build.

``python scripts/chaos_build.py [--minutes 5] [--every 2.0] [--data DIR] [--model DIR]``

A quiet build of the documents is made first. Then builds are made while a random child, whatever
its role and state, is killed every few seconds; each cache is compared with the quiet one, key by
key, byte by byte, with h5py alone. Exit code 1 if one differs, hangs, or does not end well.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import psutil

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Derived, or about the run rather than the documents: a term's id is its turn in this file.
IGNORED = {"index", "indexed", "checks", "id"}
#: A build that takes this many times as long as the quiet one is taken to hang.
PATIENCE = 40.0


def command(options: argparse.Namespace, cache: Path) -> list[str]:
    """The build as a user would type it."""
    parts = [sys.executable, "-m", "featpipe", "build-cache", *map(str, options.data)]
    parts += ["--cache", str(cache), "--json"]
    return parts + (["--model", str(options.model)] if options.model else [])


def contents(path: Path) -> dict[str, dict[bytes, tuple[bytes, ...]]]:
    """Every keyed table: its keys, and the bytes of each row's columns in order of their names.

    Terms stand for their ids, which follow from the order in which counted units arrive.
    """
    tables: dict[str, dict[bytes, tuple[bytes, ...]]] = {}

    def visit(name: str, thing: object) -> None:
        if isinstance(thing, h5py.Group) and "keys" in thing:
            rows = rows_of(thing)
            if "ids" in thing:
                terms = terms_of(thing.parent["vocabulary"])
                rows = {
                    key: (terms[np.frombuffer(ids, "<u4")].tobytes(),)
                    for key, (ids,) in rows.items()
                }
            tables[name] = rows

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return tables


def terms_of(vocabulary: h5py.Group) -> NDArray[np.void]:
    """The key of each term, by id."""
    ids = vocabulary["id"][...]
    keys = np.zeros(int(ids.max(initial=0)) + 1, "V16")
    keys[ids] = vocabulary["keys"][...].view("V16").ravel()
    return keys


def rows_of(group: h5py.Group) -> dict[bytes, tuple[bytes, ...]]:
    """Key -> columns. A ragged column is the slice that its row's end says."""
    keys = group["keys"][...]
    columns: list[list[bytes]] = []
    for name in sorted(set(group) - IGNORED - {"keys"}):
        if name.endswith("_end") and name.removesuffix("_end") in group:
            continue
        values = group[name][...]
        if f"{name}_end" in group:
            ends = [0, *group[f"{name}_end"][...].tolist()]
            column = [values[a:b].tobytes() for a, b in pairwise(ends)]
        else:
            column = [row.tobytes() for row in values]
        columns.append(column)
    return dict(zip((key.tobytes() for key in keys), zip(*columns, strict=True), strict=True))


def disturbed_build(
    options: argparse.Namespace, cache: Path, dice: random.Random, limit_s: float
) -> tuple[int, int]:
    """(exit code, kills); the code is -1 when the build had to be ended."""
    n_killed = 0
    ends_at = time.monotonic() + limit_s
    with subprocess.Popen(
        command(options, cache), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as build:
        parent = psutil.Process(build.pid)
        while build.poll() is None:
            try:
                build.wait(dice.uniform(0.5, 1.5) * options.every)
            except subprocess.TimeoutExpired:
                if time.monotonic() > ends_at:
                    build.kill()
                    return -1, n_killed
                children = parent.children(recursive=True)
                if children:
                    dice.choice(children).kill()
                    n_killed += 1
        if build.returncode and build.stderr is not None:
            print(build.stderr.read()[-2000:], file=sys.stderr)
        return build.returncode, n_killed


def differences(quiet: dict[str, dict[bytes, tuple[bytes, ...]]], path: Path) -> list[str]:
    """What a disturbed cache has otherwise, in words."""
    found = contents(path)
    words = [f"{name} is missing" for name in quiet.keys() - found.keys()]
    for name, rows in found.items():
        expected = quiet.get(name, {})
        n_missing = len(expected.keys() - rows.keys())
        n_extra = len(rows.keys() - expected.keys())
        n_other = sum(rows[key] != expected[key] for key in rows.keys() & expected.keys())
        if n_missing or n_extra or n_other:
            words.append(f"{name}: {n_missing} missing, {n_extra} extra, {n_other} different")
    return words


def main() -> int:
    """Run until the time is over; 0 when every cache was the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).parents[1]
    parser.add_argument("--data", type=Path, nargs="+", default=[root / "data" / "documents"])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--every", type=float, default=2.0, help="seconds between kills, on average"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice = random.Random(options.seed)  # noqa: S311  # dice
    with tempfile.TemporaryDirectory() as folder:
        quiet = Path(folder) / "quiet.h5"
        started = time.monotonic()
        subprocess.run(command(options, quiet), stdout=subprocess.DEVNULL, check=True)
        quiet_s = time.monotonic() - started
        expected = contents(quiet)
        print(f"quiet build: {quiet_s:.1f} s, {sum(map(len, expected.values()))} rows", flush=True)
        ends_at = time.monotonic() + options.minutes * 60
        n_builds = n_kills = n_bad = 0
        while time.monotonic() < ends_at:
            cache = Path(folder) / f"disturbed-{n_builds}.h5"
            code, n_killed = disturbed_build(options, cache, dice, PATIENCE * quiet_s + 60)
            words = [f"exit code {code}"] if code else differences(expected, cache)
            n_builds, n_kills, n_bad = n_builds + 1, n_kills + n_killed, n_bad + bool(words)
            print(f"build {n_builds}: {n_killed} kills: {words or 'the same'}", flush=True)
            cache.unlink(missing_ok=True)
        print(f"{n_builds} builds, {n_kills} kills, {n_bad} bad")
        return 1 if n_bad or not n_kills else 0


if __name__ == "__main__":
    sys.exit(main())
