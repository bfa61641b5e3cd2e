"""How well fields without samples are found, and how honest their probabilities are.

::

    python scripts/eval_without_samples.py [--json FILE]
    python scripts/eval_without_samples.py --learn --data ../shared/data

The documents are ours: ``data/without_samples`` holds 24 judgments, 30 contracts and other
documents, 30 of all kinds (``mixed``), and twice 30 whose fields are asked for in the words of
users (``wider``, ``unseen``), invented by people who had not seen the code. What is found of
``judgments`` and ``contracts`` was looked at while labels and phrases were written, and then that
of ``wider``; of ``mixed`` the tables of five documents. ``unseen`` was only measured, but for three
values that were seen by chance, and so were the held-out parts of ``thefts``, ``trades``,
``pledges``, ``repurchases``, ``news``, ``dividends`` and ``loans``, and all of ``guarantees`` and
``labour`` (``eval_extraction.py``).

A template names the fields of one document and nothing else. Values are equal if they are the same
text without blanks, or mean the same amount, date, share or telephone number.

``--learn`` prints the weights of `featpipe.extraction.scoring.confidence` for such fields: a
logistic regression on the likeliest values and on those reported, of the first, second and fourth
set and of the part for development of ``freezes`` (``freeze_documents.py``), each of the same
weight.
Documents lack some fields: those of other documents are asked as well, as if they were a fourth of
all. A value of theirs is wrong unless the field's own name or a label tells it: what nobody wrote
down may still be there, so that it counts neither way.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from eval_extraction import Pages, interval, precision_above
from extraction_sets import read_part, read_set
from harness import ROOT, Report, make_parser, read_lines

from featpipe import FieldSpec, Template
from featpipe.extraction.evaluation import calibration_error
from featpipe.extraction.joint_choice import Relations, choose_values
from featpipe.extraction.scoring.columns import MEASURED
from featpipe.extraction.scoring.confidence import UNTAUGHT_TERMS, untaught_columns_of
from featpipe.extraction.scoring.field_fitting import fit_field
from featpipe.extraction.scoring.field_model import score_fields
from featpipe.extraction.scoring.logistic import fit_logistic
from featpipe.extraction.scoring.pretrained import kind_of_values, shipped_fields
from featpipe.extraction.values.values import is_readable, read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import FieldModel, Scored
    from featpipe.extraction.values.values import FieldType

    Stated = Mapping[str, Sequence[str]]

HELD_OUT = ("thefts", "trades", "pledges", "repurchases", "news", "dividends", "loans")
#: Of which no part was looked at.
UNREAD = ("guarantees", "labour")
SETS = ("judgments", "contracts", "mixed", "wider", "unseen", *HELD_OUT, *UNREAD)
LEARNT_SETS = ("judgments", "contracts", "wider", "freezes")
#: Fields of other documents that each is asked for, and their share of all.
_N_ABSENT, _ABSENT = 12, 0.25
_N_FREEZES = 60
_TYPES: tuple[FieldType, ...] = ("money", "date", "percent", "phone")
#: Precision of the prior of the weights of standardised columns.
_STRENGTH = 4.0
_BEHIND_ALIAS, _FROM_LABEL = map(MEASURED.index, ("behind alias", "from label"))


@dataclass(frozen=True)
class Found:
    """A value that is the likeliest of its field, or reported (with a probability)."""

    text: str
    is_right: bool
    probability: float | None
    columns: list[float]
    is_untaught: bool
    is_told: bool
    """By the field's own name or by a label."""


@dataclass(frozen=True)
class Judged:
    """One document: stated, reported and right values, and what was found of its fields."""

    counts: tuple[int, int, int]
    found: list[Found]
    absent: list[Found]
    """Of fields of other documents."""


def main() -> None:
    """Read the options, measure or learn, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--learn", action="store_true", help="print the weights of confidence")
    options = parser.parse_args()
    if options.learn:
        learn(options)
        return
    report = Report("eval_without_samples", options)
    for name in SETS:
        judged = judge_set(read_written(name))
        counts = [one.counts for one in judged]
        stated, given, right = np.sum(counts, axis=0).tolist()
        report.note(f"{name}_precision", right / max(given, 1), digits=4)
        report.note(f"{name}_recall", right / max(stated, 1), digits=4)
        report.note(f"{name}_f1", 2 * right / max(stated + given, 1), digits=4)
        for end, f1 in zip(("low", "high"), interval(counts), strict=True):
            report.note(f"{name}_{end}", f1, digits=4)
        values = [value for one in judged for value in one.found]
        pairs = [(v.probability, v.is_right) for v in values if v.probability is not None]
        report.note(f"{name}_ece", calibration_error(pairs), digits=4)
        report.note(f"{name}_p90_share", np.mean([p >= 0.9 for p, _ in pairs]), digits=4)
        report.note(f"{name}_p90_precision", precision_above(pairs, 0.9) or 0.0, digits=4)
    report.finish()


def read_written(name: str) -> list[dict]:
    """The documents of a set, with text and fields."""
    if name in (*HELD_OUT, *UNREAD):
        return read_part(ROOT, name, "held-out" if name in HELD_OUT else "all")
    return list(read_lines(ROOT / "data" / "without_samples" / f"{name}.jsonl"))


def judge_set(rows: Sequence[dict], *, with_absent: bool = False) -> list[Judged]:
    """Every document, by a template of its own."""
    pages = Pages(None, None, with_entities=True)
    named = [row | {"doc_id": str(number)} for number, row in enumerate(rows)]
    pages.prepare(named)
    names = sorted({name for row in rows for name in row["fields"]})
    chance = random.Random(0)  # noqa: S311  # a draw, no secret
    judged = []
    for row in named:
        features, fields = pages[row["doc_id"]], row["fields"]
        others = [name for name in names if name not in fields] if with_absent else []
        absent = dict.fromkeys(chance.sample(others, min(_N_ABSENT, len(others))), ())
        found = {name: list(values) for name, values in find_values(features, fields)}
        counts = [counts_of(found[name], stated) for name, stated in fields.items()]
        judged.append(
            Judged(
                tuple(np.sum(counts, axis=0).tolist()),
                [value for values in found.values() for value in values],
                [value for _, values in find_values(features, absent) for value in values],
            )
        )
    return judged


def find_values(features: PageFeatures, fields: Stated) -> Iterator[tuple[str, Iterator[Found]]]:
    """What is found of each field by its name, chosen beside the others."""
    if not fields:
        return
    template = Template(name="one", fields=tuple(FieldSpec(name=name) for name in fields))
    models = {name: fit_name(name) for name in fields}
    scored = score_fields(list(models.values()), features)
    found = dict(zip(models, zip(models.values(), scored, strict=True), strict=True))
    chosen = choose_values(found, Relations.of(template))
    for name, (model, own) in found.items():
        given = chosen[name].probabilities(model, own)
        yield name, values_of(features, model, own, given, fields[name])


def fit_name(name: str) -> FieldModel:
    """A field of which nothing but its name is known."""
    kind = kind_of_values([], (name,), shipped_fields())
    return fit_field([], kind, (name,), pretrained=shipped_fields().find((name,), kind))


def values_of(
    features: PageFeatures,
    model: FieldModel,
    scored: Scored,
    given: Mapping[int, float],
    stated: Sequence[str],
) -> Iterator[Found]:
    """The values that are reported, and the likeliest if it could be."""
    sure = np.ones(len(scored.groups))
    able = model.first_of(scored.probabilities, sure, scored.measured)
    columns = untaught_columns_of(scored.rows, scored.measured)
    for number in sorted({*able, *given}):
        text = features.page.text[slice(*scored.groups[number].spans[0])]
        measured = scored.measured[number]
        yield Found(
            text,
            any(is_same(text, one) for one in stated),
            given.get(number),
            columns[number].tolist(),
            model.is_untaught,
            bool(measured[_BEHIND_ALIAS] >= 1 or measured[_FROM_LABEL] > 0),
        )


def is_same(text: str, stated: str) -> bool:
    """Whether two texts are one value; what is stated may have a remark in brackets."""
    if "".join(text.split()) == "".join(stated.split()):
        return True
    stated = stated.replace("（大写）", "").replace("(大写)", "")
    parts = {stated, stated.split("（", maxsplit=1)[0].split("(", maxsplit=1)[0]}
    return any(
        read_value(part, kind).means(read_value(text, kind))
        for kind in _TYPES
        for part in parts
        if is_readable(part, kind) and is_readable(text, kind)
    )


def counts_of(found: Sequence[Found], stated: Sequence[str]) -> tuple[int, int, int]:
    """Stated, reported and right values; several that are the same stated one count once."""
    given = [value.text for value in found if value.probability is not None]
    right = sum(any(is_same(text, one) for text in given) for one in stated)
    wrong = {text for text in given if not any(is_same(text, one) for one in stated)}
    return len(stated), right + len(wrong), right


def learn(options: argparse.Namespace) -> None:
    """Print the weights."""
    columns, right, weights = [], [], []
    for name in LEARNT_SETS:
        rows = rows_to_learn(name, options)
        judged = judge_set(rows, with_absent=name in SETS)
        present = [value for one in judged for value in one.found if value.is_untaught]
        absent = [v for one in judged for v in one.absent if v.is_untaught and not v.is_told]
        n_fields = sum(len(row["fields"]) for row in rows)
        share = _ABSENT / (1 - _ABSENT) * n_fields / (_N_ABSENT * len(judged))
        own = np.repeat([1.0, share], [len(present), len(absent)])
        columns += [value.columns for value in present + absent]
        right += [value.is_right for value in present + absent]
        weights += (own / own.sum() * 400).tolist()
    table = np.array(columns)
    size = np.maximum(table.std(axis=0), 1e-6)
    fitted = fit_logistic(
        table / size, np.array(right), np.array(weights), strength=_STRENGTH, n_steps=300
    )
    for term, weight in zip(UNTAUGHT_TERMS, fitted.weights / size, strict=True):
        print(f'    "{term}": {weight:.4f},')
    print(f"UNTAUGHT_BIAS = {fitted.bias:.4f}")


def rows_to_learn(name: str, options: argparse.Namespace) -> list[dict]:
    """Documents of a set; of freezes those for development, with the fields of all."""
    if name in SETS:
        return read_written(name)
    rows = [row for task in read_set(options.data, name, _N_FREEZES, "dev") for row in task.test]
    names = sorted({field for row in rows for field in row["fields"]})
    return [
        {"text": row["text"], "fields": {field: row["fields"].get(field, []) for field in names}}
        for row in rows
    ]


if __name__ == "__main__":
    main()
