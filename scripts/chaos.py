"""Everything that may go wrong, for N minutes; every end state must be that of a quiet run.

``python scripts/chaos.py [--minutes 30] [--seed 0] [--only NAME]``

Rounds are drawn at random:

- ``kill``, ``stop``, ``parent``: builds whose children are killed or stopped, or that are killed
  whole; ``eio``, ``clock``, ``memory``, ``full``: builds on a failing disk, under a jumping clock,
  with little memory, on a disk that fills up. Each is followed by builds without faults.
- ``flips``: random bits of a copy flipped. Every vector is read, ``verify`` asked, and ``repair``
  with a build must give the quiet cache again.
- ``backup``: backups while a build writes.
- ``serve``, ``consume``: a service under requests, and a consumer with a queue, whose processes are
  killed and stopped.

Counted: ``lost`` (rows, answers or messages), ``wrong`` (other bytes, other values, a crash without
a message), ``hung`` (past a generous limit, or children left over). Exit code 1 unless all are 0.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from chaos_builds import BUILDS
from chaos_home import Home, Tally
from chaos_services import consume, serve
from harness import ROOT, finish, make_parser, read_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

ROUNDS: dict[str, Callable[[Home, random.Random], Tally]] = {
    **BUILDS,
    "serve": serve,
    "consume": consume,
}


def write_documents(options: argparse.Namespace, folder: Path) -> None:
    """Real announcements where they are at hand, and the project's own documents."""
    shutil.copytree(ROOT / "data" / "documents", folder / "own")
    file = options.data / "fields" / "fddc_hetong.jsonl.xz"
    if file.exists():
        for number, line in enumerate(read_lines(file, options.documents)):
            (folder / f"{number}.txt").write_text(line["text"], "utf-8")


def run_rounds(options: argparse.Namespace, home: Home) -> tuple[Tally, Counter[str]]:
    """Rounds until the time is over; their sum and their number by kind."""
    dice = random.Random(options.seed)  # noqa: S311  # dice
    names = options.only or list(ROUNDS)
    total, played = Tally(), Counter[str]()
    ends_at = time.monotonic() + options.minutes * 60
    deck: list[str] = []
    while time.monotonic() < ends_at:
        deck = deck or dice.sample(names, len(names))
        name = deck.pop()
        started = time.monotonic()
        tally = ROUNDS[name](home, dice)
        played[name] += 1
        total += tally
        seconds = time.monotonic() - started
        verdict = "; ".join(tally.words) or "as the quiet run"
        print(f"{name:8} {seconds:6.1f} s  {tally.kills:3} blows  {verdict}", flush=True)
    return total, played


def main() -> int:
    """Exit code 0 when nothing was lost, wrong or hung."""
    parser = make_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=120)
    parser.add_argument("--only", action="append", choices=sorted(ROUNDS), metavar="NAME")
    options = parser.parse_args()
    if options.quick:
        options.minutes, options.documents = min(options.minutes, 0.5), 20
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        documents = Path(folder) / "documents"
        documents.mkdir()
        write_documents(options, documents)
        home = Home.make(Path(folder), documents)
        total, played = run_rounds(options, home)
    print(json.dumps(played))
    figures = {"minutes": options.minutes, "kills": total.kills}
    figures |= {"lost": total.lost, "wrong": total.wrong, "hung": total.hung}
    finish("chaos", options, figures)
    return 1 if total.lost or total.wrong or total.hung else 0


if __name__ == "__main__":
    sys.exit(main())
