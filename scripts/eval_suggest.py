"""Samples that `featpipe template suggest` names against samples drawn at random.

::

    python scripts/eval_suggest.py --data ../shared/data [--quick] [--picture suggest.svg]
    python scripts/eval_suggest.py --sets sroie --seeds 10 --keep curves.jsonl
    python scripts/eval_suggest.py --merge curves.jsonl --picture suggest.svg

Per set: the median over the draws of F1 on other documents after 5, 10 and 20 labels, in the order
of the review queue, by other rules, and at random. `label_order.py` says what a draw is and
what the rules are. Fields are fitted without vectors.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from harness import add_piece_options, finish, make_parser, measure_or_merge
from label_order import ARMS, COUNTS, SETS, Curve, arms_of, measure, medians
from learning_curve import draw_curves

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence


def read_curve(line: str) -> Curve:
    """A curve that was kept."""
    row = json.loads(line)
    return Curve(row["name"], row["arm"], row["seed"], tuple(row["f1"]))


def measure_in_turns(options: argparse.Namespace) -> Iterator[Curve]:
    """The curves of all sets, a draw of each in turn."""
    seeds = range(options.first, options.first + options.seeds)
    shared = seeds, options.documents, options.arms
    sets = [measure(options.data, name, *shared) for name in options.sets]
    for found in zip_longest(*sets):
        yield from filter(None, found)


def print_sets(curves: Sequence[Curve]) -> None:
    """A table of each set."""
    for name in sorted({curve.name for curve in curves}):
        by_arm = {
            arm: {c.seed: c.f1 for c in curves if (c.name, c.arm) == (name, arm)}
            for arm in arms_of(curves)
        }
        print(f"\n{name}")
        for arm, own in by_arm.items():
            shared = own.keys() & by_arm.get("random", {}).keys()
            for at, n in enumerate(COUNTS):
                n_better = sum(own[seed][at] > by_arm["random"][seed][at] for seed in shared)
                f1 = medians(curves, arm, name)[at]
                versus = "" if arm == "random" else f", better than random in {n_better}"
                print(f"  {arm:8} {n:3} labels: F1 {f1:.3f} in {len(own)} draws{versus}")


def figures_of(curves: Sequence[Curve]) -> dict[str, float]:
    """Medians by set and count, and the means over the sets."""
    found = {}
    for name in (*sorted({curve.name for curve in curves}), None):
        for arm in arms_of(curves):
            for n, value in zip(COUNTS, medians(curves, arm, name), strict=True):
                prefix = f"{name.partition('_')[0]}_" if name else ""
                found[f"{prefix}{arm}_f1_n{n}"] = round(value, 4)
    return found


def read_options() -> argparse.Namespace:
    """Of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--seeds", type=int, default=10, help="number of draws")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--documents", type=int, default=40, help="test documents of a set")
    add_piece_options(parser)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw the curves")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.documents, options.sets = 1, 10, ("sroie",)
    return options


def main() -> None:
    """Measure or merge, print, draw."""
    options = read_options()
    curves = measure_or_merge(
        options,
        lambda: measure_in_turns(options),
        read_curve,
        lambda curve: json.dumps(asdict(curve)),
    )
    print_sets(curves)
    if options.picture:
        options.picture.write_text(draw_curves(curves), "utf-8")
    n_draws = len({curve.seed for curve in curves})
    finish("eval_suggest", options, figures_of(curves), draws=n_draws)


if __name__ == "__main__":
    main()
