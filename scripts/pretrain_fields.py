"""Pretrains fields that often occur: weights of their mention models, from labelled documents.

::

    python scripts/pretrain_fields.py --data ../shared/data [--part dev-a] [--out FILE]

Documents of the part for development (``extraction_sets.py``) are parted into samples of ten, half
of them with the entities of the built-in model; the part held out is not read. The candidates of
each sample, compared with the other nine, are the rows. On top of the prior of so few samples, a
logistic regression over the words, and over those measured columns that do not depend on samples,
is fitted to which of them are values (the mean of a field's weights over samples, as in empirical
Bayes: Efron & Hastie 2016, chapter 6). Kept are the largest weights, shrunk: new templates differ.

Without ``--out`` the file that the package ships is written: count up ``TEMPLATES_VERSION``, and
learn the weights of confidence again (``learn_confidence.py``).
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages
from extraction_sets import DEV_PARTS, LEARNT_SETS, read_set
from harness import finish, make_parser

from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.context import N_HASHED
from featpipe.extraction.scoring.field_fitting import rows_of_samples, sample_of
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.scoring.logistic import fit_logistic
from featpipe.extraction.scoring.mentions import (
    PRIOR_BIAS,
    MentionModel,
    add_hard_negatives,
    chosen_rows,
    first_choice,
    prior_model,
)
from featpipe.extraction.scoring.pretrained import SHIPPED, PretrainedField, PretrainedFields
from featpipe.extraction.scoring.sentence_model import (
    SentenceModel,
    fit_sentences,
    no_sentences,
)
from featpipe.extraction.scoring.similarity import INSIDE, SIMILARITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from extraction_sets import Part
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.mentions import ChosenRows, TrainingRows
    from featpipe.extraction.values.values import FieldType

    Floats = NDArray[np.float64]

_N_SAMPLES = 10
#: Documents of a template that are read, and the least with a value of a field.
_MOST_DOCUMENTS, _LEAST_DOCUMENTS = 900, 20
#: Rows that a word must be in to have a weight, and weights that a field keeps.
_LEAST_ROWS, _MOST_WEIGHTS = 3, 10_000
#: Precision of the prior of the weights of words, and of measured columns.
_WORD_STRENGTH, _MEASURED_STRENGTH = 1.0, 2.0
#: What is kept of the weights. On halves of the parts for development, values of the other half
#: (of other event types, for sentences) had the best F1 with .6 to .8.
_SHARE = 0.75
#: Measured columns that samples have no part in.
_BY_SAMPLES = {
    *SIMILARITIES, *INSIDE, "vector", "words of sentence", "sentence odds", "further sentences",
    "from known value",
}  # fmt: skip
_OWN = np.array([name not in _BY_SAMPLES for name in MEASURED])
#: Names that templates have for what a set calls otherwise.
_NAMES = {"合同金额上限": "合同金额"}
_LEFT_OUT = {"合同金额下限"}
#: Weight of the one column that is not fitted: the prior's own log odds.
_HELD = 1e7


def collect(
    documents: Sequence[dict], name: str, kind: FieldType, pages: Sequence[Pages]
) -> Iterator[TrainingRows]:
    """The candidates of each document, beside the other documents of its sample."""
    order = random.Random(_N_SAMPLES).sample(documents, len(documents))  # noqa: S311  # a draw
    for number, first in enumerate(range(0, len(order) - _N_SAMPLES + 1, _N_SAMPLES)):
        own = pages[number % len(pages)]
        samples = [
            sample_of(own[row["doc_id"]], row["fields"].get(name, []), kind)
            for row in order[first : first + _N_SAMPLES]
        ]
        if any(sample.spans for sample in samples):
            yield from (r for r in rows_of_samples(samples, kind, (name,)) if len(r.labels))


def pretrain(name: str, kind: FieldType, rows: Sequence[TrainingRows]) -> PretrainedField:
    """Fit twice: on some negatives, then with those that the first fit was most wrong about."""
    chance = np.random.default_rng(0)
    prior = prior_model(_N_SAMPLES, of_clauses=kind == "clause")
    chosen = [first_choice(one, chance) for one in rows]
    columns, weights, measured, bias = _fit(chosen_rows(rows, chosen), prior)
    table = np.zeros(N_HASHED, np.float32)
    table[columns] = weights
    model = MentionModel(table, prior.measured + measured, bias)
    chosen = add_hard_negatives(rows, chosen, model)
    columns, weights, measured, bias = _fit(chosen_rows(rows, chosen), prior)
    most = np.sort(np.argsort(-np.abs(weights), kind="stable")[:_MOST_WEIGHTS])
    return PretrainedField(
        _NAMES.get(name, name),
        kind,
        columns[most].astype(np.int32),
        (_SHARE * weights[most]).astype(np.float16),
        np.round(_SHARE * measured, 4),
        round(_SHARE * (bias - PRIOR_BIAS), 4),
    )


def _fit(rows: ChosenRows, prior: MentionModel) -> tuple[NDArray[np.int64], Floats, Floats, float]:
    """Places in the hashed space, their weights, those of the measured columns, and the bias."""
    from scipy.sparse import csr_matrix, hstack

    counts = np.bincount(rows.hashed.ravel(), minlength=N_HASHED)
    columns = np.flatnonzero(counts >= _LEAST_ROWS)
    numbers = np.full(N_HASHED, -1)
    numbers[columns] = np.arange(len(columns))
    inside = numbers[rows.hashed]
    at, _ = np.nonzero(inside >= 0)
    words = csr_matrix(
        (np.ones(len(at)), (at, inside[inside >= 0])), shape=(len(inside), len(columns))
    )
    by_prior = (rows.measured @ prior.measured)[:, None]
    fitted = fit_logistic(
        hstack((words, csr_matrix(rows.measured * _OWN), by_prior), "csr"),
        rows.labels,
        rows.weights,
        strength=np.concatenate(
            (
                np.full(len(columns), _WORD_STRENGTH),
                np.full(len(MEASURED), _MEASURED_STRENGTH),
                [_HELD],
            )
        ),
        prior=np.append(np.zeros(len(columns) + len(MEASURED)), 1.0),
        prior_bias=PRIOR_BIAS,
    )
    n = len(columns)
    return columns, fitted.weights[:n], fitted.weights[n:-1], fitted.bias


def pretrain_sentences(documents: Sequence[dict], name: str, pages: Pages) -> SentenceModel:
    """The words of sentences that hold a clause."""
    samples = [
        sample_of(pages[row["doc_id"]], row["fields"].get(name, []), "clause") for row in documents
    ]
    fitted = fit_sentences([(sample.features, sample.spans) for sample in samples])
    bias = no_sentences().bias
    return SentenceModel(
        (_SHARE * fitted.weights).astype(np.float16).astype(np.float32),
        round(bias + _SHARE * (fitted.bias - bias), 4),
    )


@dataclass
class Taught:
    """What the documents of one or several sets teach of a field: fields of one name are one."""

    rows: list[TrainingRows] = dataclass_field(default_factory=list)
    n_having: int = 0
    """Documents with a value; ``n_several`` with several."""
    n_several: int = 0
    sentences: SentenceModel | None = None

    def pretrained(self, name: str, kind: FieldType) -> PretrainedField:
        """The field."""
        several = round(self.n_several / self.n_having, 4)
        return replace(pretrain(name, kind, self.rows), several=several, sentences=self.sentences)


def read_fields(
    data: Path, set_name: str, part: Part, taught: defaultdict[tuple[str, FieldType], Taught]
) -> None:
    """Add what the documents of one set teach, by name and type."""
    tasks = read_set(data, set_name, 10**6, part)
    by_template = {t.name: [*t.pool, *t.test][:_MOST_DOCUMENTS] for t in tasks}
    documents = [row for rows in by_template.values() for row in rows]
    pages = [Pages(None, None), Pages(None, None, with_entities=True)]
    if set_name in {"cuad", "sroie"}:  # the built-in model knows no English
        pages = pages[:1]
    for own in pages:
        own.prepare(documents)
    for name in sorted({name for row in documents for name in row["fields"]} - _LEFT_OUT):
        having = [row for row in documents if row["fields"].get(name)]
        if len(having) < _LEAST_DOCUMENTS:
            continue
        kind = infer_type([(pages[0][r["doc_id"]], v) for r in having for v in r["fields"][name]])
        field = taught[name, kind]
        field.n_having += len(having)
        field.n_several += sum(len(row["fields"][name]) > 1 for row in having)
        for template in by_template.values():
            if any(row["fields"].get(name) for row in template):
                field.rows += collect(template, name, kind, pages)
        if kind == "clause":
            field.sentences = pretrain_sentences(documents, name, pages[0])
        print(f"{set_name} {name} ({kind}): {len(having)} documents", flush=True)


def main() -> None:
    """Read the options, collect, fit, write."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=LEARNT_SETS, default=LEARNT_SETS)
    parser.add_argument("--part", choices=DEV_PARTS, default="dev")
    parser.add_argument("--out", type=Path, default=SHIPPED)
    options = parser.parse_args()
    taught: defaultdict[tuple[str, FieldType], Taught] = defaultdict(Taught)
    for set_name in options.sets:
        read_fields(options.data, set_name, options.part, taught)
    fields = [field.pretrained(name, kind) for (name, kind), field in taught.items()]
    PretrainedFields(fields).save(options.out)
    finish("pretrain_fields", options, {"pretrained_fields": len(fields)})


if __name__ == "__main__":
    main()
