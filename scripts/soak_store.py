"""The long sweeps behind the store's tests: kills, power cuts, refusals, hammers, fuzz.

    python scripts/soak_store.py [--quick] [--part K/N] [--json FILE]
                                 [kills power refusals hammer rows fuzz damage]

``--part 2/4`` does the second quarter of the drawn sweeps (power, hammer, fuzz, damage), with draws
of its own, and every fourth kill point and refusal from the second on, so that a long sweep can be
run in pieces. Each sweep prints one line; the last line is one JSON object of figures. Exit code 1
when anything that was acknowledged was lost, anything half was seen, or any file did not open.
"""

from __future__ import annotations

import errno
import os
import random
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # as pytest has it
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from harness import finish, make_parser

from featpipe.store import Column, Reader, TableSpec, Writer, keys_of
from featpipe.store.verify import verify_dictionary
from tests.store.crashing_disk import CountingDisk, FailingDisk
from tests.store.damage import STATES, Outcome, Victim
from tests.store.hostile import check_hostile, damaged_copies
from tests.store.other_readers import H5DUMP
from tests.store.power_loss import Image, TracingDisk, states
from tests.store.sweeps import check_after_kill, check_state, killed_at, points_of_the_workload
from tests.store.test_concurrency import start_reader, write_beside_readers
from tests.store.test_refusals import write_insisting
from tests.store.workload import BATCHES, check_featpipe, write_batches

if TYPE_CHECKING:
    from collections.abc import Callable

Figures = dict[str, float]


@dataclass(frozen=True)
class Size:
    """How much of a sweep to do, and which part: parts have different draws, 1/1 is the whole."""

    is_quick: bool = False
    part: int = 1
    n_parts: int = 1

    @classmethod
    def of(cls, text: str, *, is_quick: bool) -> Size:
        """From ``K/N``. Raises ValueError when that is no part."""
        part, n_parts = map(int, text.split("/"))
        if not 1 <= part <= n_parts:
            raise ValueError(f"{text} is no part of a whole")
        return cls(is_quick, part, n_parts)

    def steps(self, n_quick: int, n_full: int) -> int:
        """Steps of this part; the parts together make at least the whole."""
        return -(-(n_quick if self.is_quick else n_full) // self.n_parts)

    def points(self, n_points: int) -> range:
        """Those of this part; the parts together are the whole."""
        return range(self.part, n_points + 1, self.n_parts * (10 if self.is_quick else 1))

    def draws(self, sweep: int) -> random.Random:
        """A source that can be repeated."""
        return random.Random(sweep + 1000 * (self.part - 1))  # noqa: S311 - not for secrets


def require(condition: bool, complaint: str) -> None:
    """Complain unless."""
    if not condition:
        raise RuntimeError(complaint)


class Tally:
    """Counts steps, and says what went wrong without stopping at it."""

    def __init__(self) -> None:
        self.n = self.n_bad = 0

    def step(self, what: str, action: Callable[[], object]) -> None:
        """Do it and count it."""
        self.n += 1
        try:
            action()
        except Exception:
            self.n_bad += 1
            if self.n_bad <= 3:
                print(f"BAD {what}", traceback.format_exc(), sep="\n")


def kills(folder: Path, size: Size) -> Figures:
    """SIGKILL at every write-like call, whole and torn; h5py, h5dump, pyfive and featpipe judge."""
    tally, n_points = Tally(), points_of_the_workload(folder)
    for is_torn in (False, True):
        for point in size.points(n_points):

            def step(point: int = point, is_torn: bool = is_torn) -> None:
                path = folder / "kill.h5"
                path.unlink(missing_ok=True)
                n_acknowledged, was_killed = killed_at(point, path, is_torn=is_torn)
                require(was_killed, "not killed")
                check_after_kill(path, n_acknowledged, with_h5dump=bool(H5DUMP))

            tally.step(f"kill at {point}, torn {is_torn}", step)
    return {"kill_points": tally.n, "kill_bad": tally.n_bad}


def power(folder: Path, size: Size) -> Figures:
    """Files that a disk may hold after a power cut, also after one during recovery."""
    tally, source = Tally(), size.draws(1)
    disk = TracingDisk()
    write_batches(folder / "power.h5", disk, disk.acknowledge)
    path = folder / "state.h5"
    n_states = size.steps(300, 10_000)
    for image, n_acknowledged in states(disk.calls, Image(), source, n_states):
        tally.step("power", lambda i=image, n=n_acknowledged: check_state(i, n, path))
    for image, n_acknowledged in states(disk.calls, Image(), source, n_states // 20):
        image.save(path)
        again = TracingDisk()
        with Writer.open(path, disk=again):
            pass
        for second, _ in states(again.calls, image, source, 5):
            tally.step("recovery", lambda i=second, n=n_acknowledged: check_state(i, n, path))
    return {"power_states": tally.n, "power_bad": tally.n_bad}


def refusals(folder: Path, size: Size) -> Figures:
    """ENOSPC, EIO and EDQUOT at every write-like call, once and several times over."""
    counting, tally = CountingDisk(), Tally()
    write_insisting(folder / "count.h5", counting)
    codes = [errno.ENOSPC, errno.EIO, errno.EDQUOT]
    for point in size.points(counting.n_points):
        for n_times in (1, 2, 4):

            def step(point: int = point, n_times: int = n_times) -> None:
                path = folder / "refused.h5"
                path.unlink(missing_ok=True)
                disk = FailingDisk(codes[point % 3], point, n_times)
                require(write_insisting(path, disk) > 0, "not refused")
                check_featpipe(path, len(BATCHES))

            tally.step(f"refusal at {point} x {n_times}", step)
    return {"refusals": tally.n, "refusals_bad": tally.n_bad}


def hammered(folder: Path, size: Size) -> Figures:
    """Plain h5py and featpipe readers in two processes while tables are made without a pause."""
    path, n = folder / "hammer.h5", size.steps(300, 10_000)
    with Writer.open(path):
        pass
    tally = Tally()
    readers = [start_reader("plain", path, n), start_reader("featpipe", path, n // 10)]
    tally.step("hammer", lambda: write_beside_readers(path, readers))
    return {"plain_opens": n, "opens_bad": tally.n_bad}


def rows(folder: Path, size: Size) -> Figures:
    """10^6 rows in batches, with several sessions; every one is found and right at the end."""
    n, dim, batch = (50_000 if size.is_quick else 1_000_000), 64, 1000
    spec = TableSpec((Column("vectors", "f2", (dim,)),))
    path, started = folder / "rows.h5", time.perf_counter()
    vectors = np.random.default_rng(0).standard_normal((batch, dim)).astype(np.float16)
    writer = Writer.open(path)
    for start in range(0, n, batch):
        texts = [str(i) for i in range(start, start + batch)]
        scaled = (vectors + np.float16(start % 97)).astype(np.float16)
        writer.table("t", spec).append({"keys": keys_of(texts), "vectors": scaled})
        writer.commit()
        if start % (n // 5) == 0:
            writer.close()
            writer = Writer.open(path)
    writer.close()
    tally = Tally()

    def check() -> None:
        with Reader(path) as reader:
            table = reader.table("t")
            require(table.n_rows == n, "rows lost")
            for start in range(0, n, batch):
                found = table.find(keys_of(str(i) for i in range(start, start + batch)))
                require(np.array_equal(found, np.arange(start, start + batch)), "lost keys")
                expected = (vectors + np.float16(start % 97)).astype(np.float16)
                same = np.array_equal(table.gather("vectors", found), expected)
                require(same, "wrong vectors")
        found = verify_dictionary(path, is_deep=True)
        require(found.is_good, str(found))

    tally.step("rows", check)
    share = path.stat().st_blocks * 512 / (n * (dim * 2 + 16))
    print(f"rows: {n:,} in {time.perf_counter() - started:.0f} s, {share:.3f} of the raw size")
    return {"rows": n, "rows_bad": tally.n_bad}


def fuzz(folder: Path, size: Size) -> Figures:
    """Damaged copies: bits flipped, words overwritten, pieces cut off; readers stay in bounds."""
    tally, source = Tally(), size.draws(2)
    for number, path in enumerate(damaged_copies(folder, source, size.steps(500, 20_000))):
        tally.step(f"fuzz {number}", lambda path=path: check_hostile(path))
    return {"fuzzed": tally.n, "fuzzed_bad": tally.n_bad}


def damage(folder: Path, size: Size) -> Figures:
    """Flipped bits and cut files in three states; each is read, verified, repaired, built again."""
    source, total = size.draws(3), Outcome()
    victims = [Victim(folder, state) for state in STATES]
    n_flips, n_cuts = size.steps(150, 5000), size.steps(15, 500)
    for number in range(n_flips):
        victim = victims[number % len(victims)]
        total.add(victim.check_flip(*victim.draw(source)))
    for number in range(n_cuts):
        victim = victims[number % len(victims)]
        total.add(victim.check_cut(source.randrange(victim.end)))
    counts = {f"damage_{name}_bad": len(found) for name, found in vars(total).items()}
    print(*(line for found in vars(total).values() for line in found[:3]), sep="\n")
    return {"flips": n_flips, "cuts": n_cuts, **counts}


SWEEPS = {
    "damage": damage,
    "kills": kills,
    "power": power,
    "refusals": refusals,
    "hammer": hammered,
    "rows": rows,
    "fuzz": fuzz,
}


def main() -> int:
    """Run the named sweeps, all by default."""
    parser = make_parser(__doc__)
    parser.add_argument("sweeps", nargs="*", choices=[*SWEEPS, []])
    parser.add_argument("--part", default="1/1", metavar="K/N")
    arguments = parser.parse_args()
    size = Size.of(arguments.part, is_quick=arguments.quick)
    figures: Figures = {}
    memory = Path("/dev/shm")  # noqa: S108 - a private folder is made in it
    shared = memory if os.access(memory, os.W_OK) else None
    for name in arguments.sweeps or SWEEPS:
        with tempfile.TemporaryDirectory(dir=shared) as folder:
            started = time.perf_counter()
            found = SWEEPS[name](Path(folder), size)
        print(f"{name}: {found} in {time.perf_counter() - started:.0f} s", flush=True)
        figures |= found
    finish("soak_store", arguments, figures, part=arguments.part)
    return int(any(value for name, value in figures.items() if name.endswith("_bad")))


if __name__ == "__main__":
    sys.exit(main())
