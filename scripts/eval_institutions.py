"""How well the documents of other institutions are read than those that the samples are of.

::

    python scripts/eval_institutions.py [--json FILE]

The documents are ours: ``data/institutions`` holds thirty kinds (loans, leases, invoices, orders,
awards, tenders, lawsuits, deals ...) of fourteen documents, by four institutions of different
wording and layout each, invented by people who had not seen the code. Samples are drawn from two
institutions, and the other two measured (``other``), or from all and the rest measured (``same``);
``names`` are fields without any samples. What was found of the kinds of ``LOOKED_AT`` was looked at
while layouts and labels were written down, and the weights of confidence were learnt from those of
``LEARNT_FROM``, too; the others were only measured, and the names of their fields were known.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from eval_extraction import Pages, Tally, evaluate, interval, sureness_of
from eval_without_samples import counts_of, find_values
from extraction_sets import Task
from harness import ROOT, finish, make_parser, read_lines

from featpipe.extraction.scoring.pretrained import shipped_fields

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Iterator, Sequence

FOLDER = ROOT / "data" / "institutions"
LEARNT_FROM = (
    "loan_contracts", "award_notices", "shareholder_announcements", "invoices",
    "service_agreements",
)  # fmt: skip
LOOKED_AT = (
    *LEARNT_FROM, "litigation_announcements", "purchase_orders", "tender_invitations",
    "acquisition_announcements", "construction_contracts", "deal_notices", "employment_contracts",
    "employment_letters", "facility_letters", "financing_announcements", "house_sales",
    "licence_agreements", "payment_letters", "personnel_announcements", "shipping_documents",
)  # fmt: skip
SAMPLE_COUNTS = (3, 5)
DRAWS = (0, 1, 2)


def main() -> None:
    """Measure every kind, print a table, and the figures of all together."""
    options = make_parser(__doc__).parse_args()
    figures = {key: round(value, 4) for key, value in measure(options)}
    for key, value in figures.items():
        print(f"{key:<44} {value}")
    finish("eval_institutions", options, figures)


def kinds() -> list[str]:
    """Names of the kinds of documents."""
    return sorted(file.stem for file in FOLDER.glob("*.jsonl"))


def read_kind(name: str) -> list[dict]:
    """The documents of a kind: institution, text and fields, and an id of its own each."""
    rows = read_lines(FOLDER / f"{name}.jsonl")
    return [row | {"doc_id": f"{name} {number}"} for number, row in enumerate(rows)]


def measure(options: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """Figures of the kinds that were looked at, of the others, and of all together."""
    whole: dict[str, list[Tally]] = defaultdict(list)
    for name in kinds()[:2] if options.quick else kinds():
        group = "looked_at" if name in LOOKED_AT else "others"
        for what, tally in _measured(name, options):
            whole[f"{group}_{what}"].append(tally)
            whole[f"all_{what}"].append(tally)
    for key, tallies in sorted(whole.items()):
        together = _added(replace(tally, documents=[]) for tally in tallies)
        together.documents = [row for tally in tallies for row in tally.documents]
        yield from _figures_of(key, together)


def _measured(name: str, options: argparse.Namespace) -> Iterator[tuple[str, Tally]]:
    """What is counted of one kind, by the samples."""
    rows, pages = read_kind(name), Pages(None, None, with_entities=not options.quick)
    for draw in DRAWS[:1] if options.quick else DRAWS:
        for n_samples in SAMPLE_COUNTS:
            for where, task in tasks_of(name, rows, n_samples, draw):
                tallies, _ = evaluate(task, n_samples, draw, pages, shipped_fields())
                yield f"{where}_k{n_samples}", _added(tallies.values())
    yield "names", _by_names(rows, pages)


def tasks_of(
    name: str, rows: Sequence[dict], n_samples: int, draw: int
) -> Iterator[tuple[str, Task]]:
    """Samples of two institutions with the documents of the others, and of all with the rest."""
    chance = random.Random(draw)  # noqa: S311  # a draw, no secret
    yield "other", task_of(name, rows, chance.sample(institutions_of(rows), 2))
    samples = chance.sample(rows, n_samples)
    yield "same", Task(name, samples, [row for row in rows if row not in samples])


def institutions_of(rows: Sequence[dict]) -> list[str]:
    """The institutions that documents are of."""
    return sorted({row["institution"] for row in rows})


def task_of(name: str, rows: Sequence[dict], chosen: Collection[str]) -> Task:
    """Samples of some institutions with the documents of the others."""
    parts: tuple[list[dict], list[dict]] = ([], [])
    for row in rows:
        parts[row["institution"] not in chosen].append(row)
    return Task(name, *parts)


def _added(tallies: Iterable[Tally]) -> Tally:
    whole = Tally()
    for tally in tallies:
        whole.add(tally)
    return whole


def _by_names(rows: Sequence[dict], pages: Pages) -> Tally:
    """Of fields that have no samples; values are compared by their texts."""
    pages.prepare(rows)
    names = sorted({name for row in rows for name in row["fields"]})
    whole = Tally()
    for row in rows:
        stated = {name: row["fields"].get(name, []) for name in names}
        counts = [0, 0, 0]
        for name, values in find_values(pages[row["doc_id"]], stated):
            found = list(values)
            counts = [a + b for a, b in zip(counts, counts_of(found, stated[name]), strict=True)]
            whole.judged += [
                (one.probability, one.is_right) for one in found if one.probability is not None
            ]
        n_gold, n_given, n_right = counts
        whole.n_gold, whole.n_given = whole.n_gold + n_gold, whole.n_given + n_given
        whole.n_right += n_right
        whole.documents.append((n_gold, n_given, n_right))
    return whole


def _figures_of(key: str, tally: Tally) -> Iterator[tuple[str, float]]:
    yield f"{key}_f1", tally.f1
    low, high = interval(tally.documents)
    yield from ((f"{key}_low", low), (f"{key}_high", high))
    yield from ((f"{key}_{what}", figure) for what, figure in sureness_of(tally.judged))


if __name__ == "__main__":
    main()
