"""How far the figure of `featpipe template evaluate` is from the truth.

A draw is a seed: 20 samples of a set's pool make a template; its estimate is F1 over the samples,
each judged without itself, the truth is F1 of the whole template on documents held out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from eval_extraction import Pages, Task
from label_order import tasks_of

from featpipe.extraction.evaluate import GoldDocument, evaluate_gold, evaluate_samples
from featpipe.extraction.fitted import FittedTemplate, SampleDocument
from featpipe.extraction.model_cache import ModelCache
from featpipe.extraction.template import FieldSpec, SampleSpec, Template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

N_SAMPLES = 20
#: Documents held out, whose F1 is the truth: the shorter they are, the more it takes for a figure
#: that chance moves little (40 sentences have about 110 values).
N_HELD_OUT = {"fddc_hetong": 60, "fewfc_base": 200, "sroie": 100}


@dataclass(frozen=True)
class Estimate:
    """One draw: F1 as estimated, its interval, and F1 as it is."""

    name: str
    seed: int
    estimate: float
    low: float
    high: float
    truth: float

    @property
    def error(self) -> float:
        """Distance of the two."""
        return abs(self.estimate - self.truth)


def measure(
    data: Path, name: str, seeds: Sequence[int], n_held_out: int, parts: int
) -> Iterator[Estimate]:
    """Every draw of a set."""
    for task in tasks_of(data, name, n_held_out):
        pages = Pages(None, None)
        pages.prepare([*task.pool, *task.test])
        for seed in seeds:
            rows = random.Random(seed).sample(task.pool, N_SAMPLES)  # noqa: S311  # no secret
            fitted = template_of(task, rows, pages)
            found = evaluate_samples(fitted, parts).whole
            gold = [gold_of(row, pages) for row in task.test]
            truth = evaluate_gold(fitted, gold).whole.f1
            yield Estimate(name, seed, found.f1, found.f1_low, found.f1_high, truth)


def template_of(task: Task, rows: Sequence[dict], pages: Pages) -> FittedTemplate:
    """A template with rows of a set as its samples; only the names of fields are told."""
    names = sorted({name for row in task.test for name in row["fields"]})
    fields = tuple(FieldSpec(name=name) for name in names)
    samples = tuple(sample_of(row, names) for row in rows)
    documents = [
        SampleDocument(row["doc_id"], partial(pages.__getitem__, row["doc_id"])) for row in rows
    ]
    template = Template(name=task.name, fields=fields, samples=samples)
    return FittedTemplate(template, documents, "", ModelCache(None, {}))


def sample_of(row: dict, names: Sequence[str]) -> SampleSpec:
    """A row as a sample that was read for every field."""
    fields = {name: tuple(row["fields"].get(name, ())) for name in names}
    return SampleSpec(document=row["doc_id"], fields=fields, complete=True)


def gold_of(row: dict, pages: Pages) -> GoldDocument:
    """A row as a document whose values are known."""
    name = row["doc_id"]
    return GoldDocument(name, "", sample_of(row, tuple(row["fields"])), pages[name])
