"""The one form of all benchmarks and evaluations: arguments, time in turns, figures, the last line.

::

    options = read_options(__doc__)                 # --data, --quick, --json
    report = Report("bench_words", options)
    seconds = interleave(5, peer=peer, we=we)
    report.row("words", seconds["peer"], seconds["we"], "ids_vs_jieba")
    report.finish()                                 # one JSON object, the last line printed

Peer and we run in one process run, in turns. A figure is the median over the rounds of the peer's
seconds divided by ours, so above 1 we are faster; tables add the smallest and the largest ratio.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Piece = TypeVar("Piece")

#: The project's own folder.
ROOT = Path(__file__).resolve().parent.parent
#: Real documents and retrieval sets, where they are at hand.
SHARED = ROOT.parent / "shared" / "data"
BUILT_IN_MODEL = ROOT / "data" / "models" / "zh-small"


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the arguments that every script takes; a script adds its own."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of the real data")
    parser.add_argument("--quick", action="store_true", help="under a minute: does it run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the last line there, too")
    return parser


def read_options(description: str | None) -> argparse.Namespace:
    """The command line of a script without arguments of its own."""
    return make_parser(description).parse_args()


class Report:
    """Prints figures as they come, and all of them as the last line.

    Args:
        name: of the benchmark, such as ``bench_words``.
        options: with ``quick`` and ``json``.

    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.figures: dict[str, float] = {}

    def row(
        self, what: str, peer: Sequence[float], ours: Sequence[float], key: str, digits: int = 3
    ) -> float:
        """Print and keep the median of the ratios peer / ours; returns it."""
        ratios = ratios_of(peer, ours)
        self.figures[key] = round(median(ratios), digits)
        print(f"{what:44} {spread(ratios)}   we {median(ours):.4g} s", flush=True)
        return self.figures[key]

    def note(self, key: str, value: float, what: str = "", digits: int = 7) -> None:
        """Keep and print a figure that is no ratio of times."""
        self.figures[key] = round(float(value), digits)
        print(f"{what or key:44} {value:.7g}", flush=True)

    def add(self, figures: Mapping[str, float]) -> None:
        """Keep figures that were printed otherwise."""
        self.figures.update(figures)

    def finish(self) -> None:
        """See :func:`finish`."""
        finish(self.name, self.options, self.figures)


def finish(
    name: str, options: argparse.Namespace, figures: Mapping[str, float], **facts: object
) -> None:
    """Print the figures as one JSON object, and write it where ``--json`` names a file."""
    line = json.dumps({"bench": name, "quick": options.quick, **facts, "figures": figures})
    if options.json:
        options.json.write_text(line + "\n", "utf-8")
    print(line)


def add_piece_options(parser: argparse.ArgumentParser) -> None:
    """The options of :func:`measure_or_merge`."""
    parser.add_argument("--keep", type=Path, help="add a line for every piece to this file")
    parser.add_argument("--merge", nargs="+", type=Path, help="kept pieces; nothing is measured")


def measure_or_merge(
    options: argparse.Namespace,
    measure: Callable[[], Iterable[Piece]],
    read: Callable[[str], Piece],
    write: Callable[[Piece], str],
) -> list[Piece]:
    """The pieces of a long run: those of ``--merge``'s files, or measured, each kept at once.

    ``write`` makes a piece one line of the file that ``--keep`` names; ``read`` is the way back.
    """
    if options.merge:
        return [
            read(line) for file in options.merge for line in file.read_text("utf-8").splitlines()
        ]
    pieces = []
    for piece in measure():
        pieces.append(piece)
        if options.keep:
            with options.keep.open("a", encoding="utf-8") as kept:
                kept.write(write(piece) + "\n")
    return pieces


def interleave(
    rounds: int, *, clock: Callable[[], float] = time.perf_counter, **runs: Callable[[], object]
) -> dict[str, list[float]]:
    """Seconds per contestant and round; one round of each before the first is not counted.

    With no rounds that first one counts, to see that all runs.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            taken = seconds_of(run, clock)
            if number or not rounds:
                seconds[name].append(taken)
    return seconds


def seconds_of(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one call takes."""
    started = clock()
    run()
    return clock() - started


def ratios_of(peer: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Peer / ours, round by round."""
    return [theirs / mine for theirs, mine in zip(peer, ours, strict=True)]


def spread(ratios: Sequence[float]) -> str:
    """Median, least and most, for a table."""
    return f"{median(ratios):8.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def read_lines(file: Path, count: int | None = None) -> Iterator[dict[str, Any]]:
    """The first rows of a ``.jsonl`` or ``.jsonl.xz`` file; all of them by default."""
    with (lzma.open if file.suffix == ".xz" else open)(file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number == count:
                return
            yield json.loads(line)
