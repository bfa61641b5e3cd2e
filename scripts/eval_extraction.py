"""How well extraction learns from few samples, on labelled sets that nobody here made.

::

    python scripts/eval_extraction.py --data ../shared/data [--quick] [--json FILE]

Per set and number of samples K: candidate recall, sentence hit@1/3/5, precision, recall and F1 of
values (compared by meaning), and calibration. Types, boundaries and cues come from the samples; the
only thing told about a field is its name. Without a cache there are no vectors: words, shapes and
layout alone.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.field_model import FieldModel, Scored, fit_field, sample_of
from featpipe.templates.inference import infer_type
from featpipe.templates.locate import locate_value
from featpipe.templates.values import read_value
from featpipe.templates.view import View, view_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SETS = ("fddc_hetong", "fewfc_base", "cuad", "sroie")
SHORT = {"fddc_hetong": "fddc", "fewfc_base": "fewfc"}
SAMPLE_COUNTS = (1, 5, 20, 100)


@dataclass(frozen=True)
class Task:
    """One template of one set: documents to draw samples from, and others to test on."""

    name: str
    pool: list[dict]
    test: list[dict]


@dataclass
class Tally:
    """Counts of one field or of many."""

    n_gold: int = 0
    n_given: int = 0
    n_right: int = 0
    n_candidates: int = 0
    """Gold values that are among the candidates."""
    n_located: int = 0
    """Documents in which a gold value stands; hit@k is counted over these."""
    hits: dict[int, int] = field(default_factory=lambda: {1: 0, 3: 0, 5: 0})
    judged: list[tuple[float, bool]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take another's counts in."""
        self.n_gold += other.n_gold
        self.n_given += other.n_given
        self.n_right += other.n_right
        self.n_candidates += other.n_candidates
        self.n_located += other.n_located
        self.judged += other.judged
        for k, n in other.hits.items():
            self.hits[k] += n

    @property
    def f1(self) -> float:
        """Of values, compared by meaning."""
        return 2 * self.n_right / max(self.n_gold + self.n_given, 1)

    @property
    def recall(self) -> float:
        """Share of the gold values that are candidates at all."""
        return self.n_candidates / max(self.n_gold, 1)

    def hit(self, k: int) -> float:
        """Share of the documents whose first k sentences hold a gold value."""
        return self.hits[k] / max(self.n_located, 1)

    def line(self) -> str:
        """For the table."""
        precision = self.n_right / max(self.n_given, 1)
        recall = self.n_right / max(self.n_gold, 1)
        return (
            f"candidates {self.recall:.3f}  hit@1 {self.hit(1):.3f} @3 {self.hit(3):.3f} "
            f"@5 {self.hit(5):.3f}  P {precision:.3f} R {recall:.3f} F1 {self.f1:.3f}"
        )


def read_set(folder: Path, name: str, n_test: int) -> list[Task]:
    """The templates of a set with their parts; the same test documents in every run."""
    with lzma.open(folder / "fields" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    by_template: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        by_template[row["template"]].append(row)
    tasks = []
    for template, own in by_template.items():
        chance = random.Random(7)  # noqa: S311  # a draw, no secret
        parts = [
            [r for r in own if r.get("part") in named]
            for named in ({"ref", "train_base"}, {"eval", "test_base"})
        ]
        if not parts[0]:
            chance.shuffle(own)
            parts = [own[:100], own[100:]]
        tasks.append(Task(template, parts[0], chance.sample(parts[1], min(n_test, len(parts[1])))))
    return tasks


def evaluate(task: Task, k: int, draw: int, views: dict[str, View]) -> dict[str, Tally]:
    """Tally per field of one draw of k samples."""
    chance = random.Random(draw)  # noqa: S311  # likewise
    samples = chance.sample(task.pool, min(k, len(task.pool)))
    for row in (*samples, *task.test):
        if row["doc_id"] not in views:
            views[row["doc_id"]] = view_text(row["text"], name=row["doc_id"])
    names = sorted({name for row in task.test for name in row["fields"]})
    return {name: evaluate_field(name, samples, task.test, views) for name in names}


def evaluate_field(
    name: str, samples: Sequence[dict], test: Sequence[dict], views: dict[str, View]
) -> Tally:
    """Fit one field and count over the test documents."""
    values = [
        (views[row["doc_id"]], value) for row in samples for value in row["fields"].get(name, [])
    ]
    tally = Tally(n_gold=sum(len(row["fields"].get(name, [])) for row in test))
    if not values:
        return tally
    kind = infer_type(values)
    model = fit_field(
        [sample_of(views[r["doc_id"]], r["fields"].get(name, []), kind) for r in samples],
        kind,
        (name,),
    )
    for row in test:
        judge(model, views[row["doc_id"]], row["fields"].get(name, []), tally)
    return tally


def judge(model: FieldModel, view: View, given: Sequence[str], tally: Tally) -> None:
    """Add one document to a tally."""
    scored = model.score(view)
    gold = [read_value(value, model.kind) for value in given]
    chosen = model.choose(scored)
    found = [scored.groups[number].value for number in chosen]
    tally.n_given += len(found)
    tally.n_right += sum(any(value.means(one) for one in found) for value in gold)
    for number, value in zip(chosen, found, strict=True):
        p = float(scored.probabilities[number])
        tally.judged.append((p, any(one.means(value) for one in gold)))
    places = [locate_value(view, value, model.kind) for value in given]
    spans = candidate_spans(view, scored)
    tally.n_candidates += sum(any(span in spans for span in located) for located in places)
    sentences = {view.sentence_of(start) for located in places for start, _ in located}
    if sentences:
        tally.n_located += 1
        order = rank_sentences(view, scored)
        for k in tally.hits:
            tally.hits[k] += bool(sentences & set(order[:k]))


def candidate_spans(view: View, scored: Scored) -> set[tuple[int, int]]:
    """Character spans of all candidates."""
    if not len(scored.found):
        return set()
    tokens = view.tokens
    first, last = scored.found.first, scored.found.last
    return set(zip(tokens.start[first].tolist(), tokens.end[last - 1].tolist(), strict=True))


def rank_sentences(view: View, scored: Scored) -> list[int]:
    """Sentences by their best candidate."""
    best = np.full(max(len(view.sentences), 1), -np.inf)
    if len(scored.found):
        np.maximum.at(best, view.tokens.sentence[scored.found.first], scored.logits)
    return np.argsort(-best, kind="stable").tolist()


def calibration_error(judged: Sequence[tuple[float, bool]]) -> float:
    """Expected gap between probability and share of right values, in ten bins."""
    total = 0.0
    for low in np.arange(0, 1, 0.1):
        inside = [(p, ok) for p, ok in judged if low <= p < low + 0.1 or (low > 0.85 and p >= 1)]
        if inside:
            p, ok = np.mean([pair[0] for pair in inside]), np.mean([pair[1] for pair in inside])
            total += abs(p - ok) * len(inside) / len(judged)
    return float(total)


def run(
    data: Path, sets: Sequence[str], counts: Sequence[int], draws: int, n_test: int
) -> Iterator[tuple[str, float]]:
    """Every set and number of samples; figures by key."""
    judged: list[tuple[float, bool]] = []
    for name in sets:
        short = SHORT.get(name, name)
        # Contracts of 58,000 characters take a hundred times the time of announcements.
        tasks = read_set(data, name, n_test if name != "cuad" else max(n_test // 10, 5))
        views: dict[str, View] = {}
        for k in counts:
            if name == "cuad" and k > 20:
                continue
            started = monotonic()
            n_draws = draws if name != "cuad" else 1
            by_draw = [
                [evaluate(task, k, draw, views) for task in tasks] for draw in range(n_draws)
            ]
            whole, scores = add_up(by_draw)
            judged += whole.judged
            seconds = monotonic() - started
            print(
                f"\n{short} K={k}: {whole.line()}  mean F1 {np.mean(scores):.3f}  {seconds:.0f} s"
            )
            print_fields(tasks, by_draw)
            sys.stdout.flush()
            yield f"{short}_k{k}_hit1", whole.hit(1)
            yield f"{short}_k{k}_hit3", whole.hit(3)
            yield f"{short}_k{k}_hit5", whole.hit(5)
            yield f"{short}_k{k}_recall", whole.recall
            yield f"{short}_k{k}_f1", float(np.mean(scores))
    yield "calibration_error", calibration_error(judged)


def add_up(by_draw: Sequence[Sequence[dict[str, Tally]]]) -> tuple[Tally, list[float]]:
    """All counts together, and the micro F1 of each template in each draw."""
    whole, scores = Tally(), []
    for results in by_draw:
        for fields in results:
            one = Tally()
            for tally in fields.values():
                one.add(tally)
            scores.append(one.f1)
            whole.add(one)
    return whole, scores


def print_fields(tasks: Sequence[Task], by_draw: Sequence[Sequence[dict[str, Tally]]]) -> None:
    """One line per field, over all draws."""
    for number, task in enumerate(tasks):
        for name in by_draw[0][number]:
            tally = Tally()
            for results in by_draw:
                tally.add(results[number][name])
            label = f"{task.name} {name}"
            print(f"  {label:<34} {tally.line()}")


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="one draw, few documents, K 5 and 20")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLE_COUNTS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--documents", type=int, default=400, help="test documents per template")
    options = parser.parse_args()
    if options.quick:
        sets = [name for name in options.sets if name != "cuad"]
        figures = dict(run(options.data, sets, (5,), 1, 25))
    else:
        figures = dict(
            run(options.data, options.sets, options.samples, options.draws, options.documents)
        )
    figures = {key: round(value, 4) for key, value in figures.items()}
    result = {"bench": "eval_extraction", "quick": options.quick, "figures": figures}
    if options.json:
        options.json.write_text(json.dumps(result) + "\n", "utf-8")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
