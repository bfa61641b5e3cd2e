"""Learns the prior weights of fields of clauses: a pooled fit over the clauses of contracts.

::

    python scripts/learn_clauses.py --data ../shared/data [--draws N]

Contracts of the part for development (``extraction_sets.py``) are parted into samples of 20; the
part held out is not read. The candidates of each sample of each field of clauses, compared with
the other samples, are the rows; a logistic regression on the measured columns is fitted to which
of them are values, over all fields and again without each. Printed are the weights in the scale
of `featpipe.extraction.scoring.priors`, and how far they lie apart when a field is left out.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from eval_extraction import Pages
from extraction_sets import read_set
from harness import finish, make_parser
from learn_confidence import FIRST_DRAW

from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.field_fitting import rows_of_samples, sample_of
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.scoring.logistic import fit_logistic, true_weight
from featpipe.extraction.scoring.mentions import first_choice
from featpipe.extraction.scoring.priors import SCALE, prior_weights

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.mentions import TrainingRows

    Floats = NDArray[np.float64]

_N_SAMPLES = 20
#: Precision of the prior.
_STRENGTH = 2.0


class Rows(NamedTuple):
    """Some candidates of one document. Arrays of one length."""

    measured: Floats
    labels: NDArray[np.bool_]
    weights: Floats


def chosen(rows: TrainingRows, chance: np.random.Generator) -> Rows:
    """The values of a document, and some candidates that are none."""
    at, weights = first_choice(rows, chance)
    labels = rows.labels[at]
    return Rows(rows.measured[at], labels, np.where(labels, true_weight(labels), weights))


def collect(documents: Sequence[dict], pages: Pages) -> Iterator[tuple[str, list[TrainingRows]]]:
    """The candidates of samples by their field of clauses."""
    for name in sorted({name for row in documents for name in row["fields"]}):
        values = [(pages[r["doc_id"]], v) for r in documents for v in r["fields"].get(name, [])]
        if infer_type(values) == "clause":
            samples = [
                sample_of(pages[row["doc_id"]], row["fields"].get(name, []), "clause")
                for row in documents
            ]
            yield name, rows_of_samples(samples, "clause", (name,))


def learn(rows: Sequence[Rows]) -> Floats:
    """Weights (len(MEASURED),) in the scale of the priors."""
    measured, labels, weights = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    prior = prior_weights(_N_SAMPLES)
    fitted = fit_logistic(
        measured, labels, weights, strength=_STRENGTH, prior=prior, prior_bias=-4.0, n_steps=200
    )
    return np.asarray(fitted.weights / SCALE)


def main() -> None:
    """Read the options, collect, learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    [task] = read_set(options.data, "cuad", 10**6, "dev")
    documents = [*task.pool, *task.test]
    pages = Pages(None, None)
    pages.prepare(documents)
    by_field: dict[str, list[Rows]] = {}
    for draw in range(options.draws):
        order = random.Random(FIRST_DRAW + draw).sample(documents, len(documents))  # noqa: S311  # a draw
        chance = np.random.default_rng(draw)
        for first in range(0, len(order) - _N_SAMPLES + 1, _N_SAMPLES):
            for name, found in collect(order[first : first + _N_SAMPLES], pages):
                parts = [chosen(rows, chance) for rows in found if len(rows.labels)]
                by_field.setdefault(name, []).extend(parts)
    learnt = learn([rows for parts in by_field.values() for rows in parts])
    without = [
        learn([rows for name, parts in by_field.items() if name != left for rows in parts])
        for left in by_field
    ]
    before = prior_weights(_N_SAMPLES) / SCALE
    for n in np.argsort(-np.abs(learnt - before)).tolist():
        own = [one[n] for one in without]
        print(
            f"{MEASURED[n]:<20} {before[n]:6.2f} -> {learnt[n]:6.2f} "
            f"({min(own):.2f} to {max(own):.2f})"
        )
    spread = float(np.mean([np.abs(one - learnt).max() for one in without]))
    finish("learn_clauses", options, {"clause_priors_spread": round(spread, 3)})


if __name__ == "__main__":
    main()
