"""The labelling loop: from a correction to changed values, the order of the queue, the estimate.

::

    python scripts/bench_loop.py --data ../shared/data [--quick] [--json FILE]
    python scripts/bench_loop.py --only correction --work FOLDER --keep pieces.jsonl
    python scripts/bench_loop.py --merge pieces.jsonl --json loop.json

- ``correction``: a service with reviews over 300 cached announcements; a value of one field is
  corrected, and its changes are asked for until they are whole (median of five corrections).
- ``order``: F1 after 5, 10 and 20 labels, by the queue and at random (`label_order.py`; means over
  the sets of the medians over the draws).
- ``estimate``: how far `featpipe template evaluate` with 20 samples is from F1 on documents held
  out (`label_estimate.py`; the largest of the sets' medians over the draws).

Parts measured apart (``--keep`` adds a line for each piece) are merged into one.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import label_estimate
import label_order
from correction_time import Corrected, time_corrections
from eval_suggest import print_sets
from harness import add_piece_options, finish, make_parser, measure_or_merge
from label_estimate import Estimate
from label_order import COUNTS, SETS, Curve, medians

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    Piece = Corrected | Curve | Estimate

PARTS = ("correction", "order", "estimate")
_KINDS = {"correction": Corrected, "order": Curve, "estimate": Estimate}


def measure(options: argparse.Namespace) -> Iterator[Piece]:
    """The pieces of the parts that are asked for."""
    if "correction" in options.only:
        with tempfile.TemporaryDirectory() as folder:
            work = options.work or Path(folder)
            yield from time_corrections(options.data, work, options.announcements, options.quick)
    seeds = range(options.first, options.first + options.seeds)
    for part, draws in (("order", _curves), ("estimate", _estimates)):
        if part in options.only:
            sets = [draws(options, name, seeds) for name in options.sets]
            yield from (piece for found in zip_longest(*sets) for piece in found if piece)


def _curves(options: argparse.Namespace, name: str, seeds: Sequence[int]) -> Iterator[Curve]:
    arms = ("queue", "random")
    return label_order.measure(options.data, name, seeds, options.documents, arms)


def _estimates(options: argparse.Namespace, name: str, seeds: Sequence[int]) -> Iterator[Estimate]:
    n_held_out = options.documents if options.quick else label_estimate.N_HELD_OUT[name]
    return label_estimate.measure(options.data, name, seeds, n_held_out, options.parts)


def as_line(piece: Piece) -> str:
    """One line of JSON; :func:`piece_of` is the way back."""
    part = next(part for part, kind in _KINDS.items() if isinstance(piece, kind))
    return json.dumps({"part": part, **asdict(piece)})


def piece_of(line: str) -> Piece:
    """From :func:`as_line`."""
    content = json.loads(line)
    kind = _KINDS[content.pop("part", "order")]
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in content.items()})


def summarise(pieces: Sequence[Piece]) -> Iterator[tuple[str, float]]:
    """The figures of the parts that were measured."""
    corrected = [piece for piece in pieces if isinstance(piece, Corrected)]
    if corrected:
        yield "correction_to_change_s", median(piece.seconds for piece in corrected)
        yield "encodes", sum(piece.n_encoded for piece in corrected)
        yield "announcements", corrected[0].n_documents
    curves = [piece for piece in pieces if isinstance(piece, Curve)]
    if curves:
        for arm in ("queue", "random"):
            for n, value in zip(COUNTS, medians(curves, arm), strict=True):
                yield f"{arm}_f1_n{n}", value
        yield "draws", len({piece.seed for piece in curves})
    estimates = [piece for piece in pieces if isinstance(piece, Estimate)]
    errors = {
        name: median(piece.error for piece in estimates if piece.name == name)
        for name in sorted({piece.name for piece in estimates})
    }
    for name, error in errors.items():
        yield f"{name.partition('_')[0]}_estimate_error", error
    if errors:
        yield "estimate_error", max(errors.values())
        inside = [piece.low <= piece.truth <= piece.high for piece in estimates]
        yield "estimate_in_interval", sum(inside) / len(inside)


def print_pieces(pieces: Sequence[Piece]) -> None:
    """Tables of what was measured."""
    print_sets([piece for piece in pieces if isinstance(piece, Curve)])
    for piece in pieces:
        if isinstance(piece, Corrected):
            print(f"correction: {piece.seconds:.2f} s, {piece.n_encoded} encoded, {piece.summary}")
        elif isinstance(piece, Estimate):
            print(
                f"{piece.name} draw {piece.seed}: estimate {piece.estimate:.3f} "
                f"({piece.low:.3f} to {piece.high:.3f}), truth {piece.truth:.3f}"
            )


def read_options() -> argparse.Namespace:
    """Of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--seeds", type=int, default=10, help="number of draws")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--documents", type=int, default=40, help="test documents of a set")
    parser.add_argument("--parts", type=int, default=10, help="of the samples, left out in turn")
    parser.add_argument("--announcements", type=int, default=300)
    parser.add_argument("--work", type=Path, help="folder that keeps the cache of announcements")
    add_piece_options(parser)
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.documents, options.parts = 1, 10, 2
        options.sets, options.announcements = ("sroie",), 30
    return options


def main() -> None:
    """Measure or merge, print."""
    options = read_options()
    pieces = measure_or_merge(options, lambda: measure(options), piece_of, as_line)
    print_pieces(pieces)
    finish("bench_loop", options, {key: round(value, 4) for key, value in summarise(pieces)})


if __name__ == "__main__":
    main()
