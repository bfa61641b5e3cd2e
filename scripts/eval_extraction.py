"""How well extraction learns from few samples: four labelled sets that nobody here made, and ours.

::

    python scripts/eval_extraction.py --data ../shared/data [--quick] [--json FILE]
    python scripts/eval_extraction.py --sets cuad --samples 20 --draw 0 2 --keep pieces.jsonl
    python scripts/eval_extraction.py --sets freezes --samples 5 20 --part dev
    python scripts/eval_extraction.py --merge pieces.jsonl
    python scripts/eval_extraction.py --entities
    python scripts/eval_extraction.py --vectors c.h5 [--model FOLDER]

Per set and number of samples K: candidate recall, sentence hit@1/3/5, precision, recall and F1 of
values (compared by meaning), and calibration. Types, boundaries and cues come from the samples; the
only thing told about a field is its name. A draw is a seed: the same samples in every run, so that
pieces measured apart (``--keep`` adds a line for each set, K and draw) can be merged into one.

What the package ships of earlier templates (``learn_confidence.py``) was learnt on the part ``dev``
of these sets; a table of anything but ``--part held-out`` says that its set is seen. Eleven sets
are ours and measured where they are asked for; nothing is learnt from them. ``freezes``
(``freeze_documents.py``) has documents with several records, ``parties`` (``party_documents.py``)
contracts and judgments that list the same details of several parties, ``thefts`` case facts, and
``trades`` announcements of shares that holders bought or sold, several records in many of them;
``repurchases`` those of shares that companies bought back, ``pledges`` of those that holders
pledged or released; ``news`` is short news of companies, ``dividends`` are announcements of them,
``loans`` judgments and settlements about loans, ``guarantees`` announcements of those that
companies give, several in many of them, ``labour`` awards and judgments about employment.

By default words, shapes and layout are all there is. With ``--entities`` the built-in model names
persons, organisations and the like, as it does when a cache is built. With ``--vectors`` the
sentences' vectors are computed through a pipeline into that cache, which later runs find again.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from extraction_records import Grouping, judge_records, value_of_group
from extraction_sets import LEARNT_SETS, PARTS, SETS, SHORT, Task, read_set
from harness import add_piece_options, finish, make_parser, measure_or_merge

from featpipe.extraction.evaluation import calibration_error
from featpipe.extraction.joint_choice import Relations, choose_values
from featpipe.extraction.results import FieldResult
from featpipe.extraction.scoring.features import PageFeatures
from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
from featpipe.extraction.scoring.field_model import FieldModel, Scored, score_fields
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.scoring.page import Page, page_of_text, with_vectors
from featpipe.extraction.scoring.pretrained import (
    PretrainedFields,
    kind_of_values,
    shipped_fields,
)
from featpipe.extraction.tables.labelled_span import LabelledSpan
from featpipe.extraction.template import FieldSpec, SampleSpec, Template
from featpipe.extraction.twins import twins_of
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from extraction_sets import Part

    from featpipe.encoders.tagger import Tagger
    from featpipe.extraction.scoring.ranking import Group
    from featpipe.extraction.values.values import Value

SAMPLE_COUNTS = (1, 5, 20, 100)
_BOOTSTRAPS = 400


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
    counted: list[int] = field(default_factory=lambda: [0, 0])
    """Given and right values if as many as there are were given: an oracle of counts."""
    n_touching: int = 0
    """Given values that overlap a place of a gold value: an oracle of boundaries."""
    documents: list[tuple[int, int, int]] = field(default_factory=list)
    """Gold, given and right values of each document, for the bootstrap."""

    def as_dict(self) -> dict:
        """Plain JSON types; :meth:`of` is the way back."""
        return asdict(self)

    @classmethod
    def of(cls, kept: dict) -> Tally:
        """From :meth:`as_dict`, read back from JSON."""
        hits = {int(k): n for k, n in kept["hits"].items()}
        lists = {name: [tuple(one) for one in kept[name]] for name in ("judged", "documents")}
        return cls(**kept | {"hits": hits} | lists)

    def add(self, other: Tally) -> None:
        """Take another's counts in."""
        self.n_gold += other.n_gold
        self.n_given += other.n_given
        self.n_right += other.n_right
        self.n_candidates += other.n_candidates
        self.n_located += other.n_located
        self.judged += other.judged
        self.n_touching += other.n_touching
        self.counted = [a + b for a, b in zip(self.counted, other.counted, strict=True)]
        rows = other.documents
        known = self.documents or [(0, 0, 0)] * len(rows)
        self.documents = [
            tuple(a + b for a, b in zip(one, two, strict=True))
            for one, two in zip(known, rows, strict=True)
        ]
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

    def oracles(self) -> dict[str, float]:
        """F1 if one thing were perfect: ranking (of these candidates), counts, boundaries."""
        (given, right), touching = self.counted, min(self.n_touching, self.n_gold)
        return {
            "ranking": 2 * self.n_candidates / max(self.n_candidates + self.n_gold, 1),
            "counts": 2 * right / max(given + self.n_gold, 1),
            "boundaries": 2 * touching / max(self.n_given + self.n_gold, 1),
        }

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


def evaluate(
    task: Task, k: int, draw: int, pages: Pages, pretrained: PretrainedFields
) -> tuple[dict[str, Tally], Grouping]:
    """Tally per field of one draw of k samples, and of the records that the values make."""
    chance = random.Random(draw)  # noqa: S311  # likewise
    samples = chance.sample(task.pool, min(k, len(task.pool)))
    pages.prepare([*samples, *task.test])
    names = sorted({name for row in task.test for name in row["fields"]})
    template = template_of(task, names, samples)
    fitted = fit_all(template, samples, pages, pretrained)
    tallies = {name: Tally() for name in names}
    grouping = Grouping()
    kinds = {name: model.kind for name, model in fitted.items()}
    relations = Relations.of(template)
    for row in task.test:
        features = pages[row["doc_id"]]
        scored = score_fields(list(fitted.values()), features)
        found = dict(zip(fitted, zip(fitted.values(), scored, strict=True), strict=True))
        chosen = choose_values(found, relations)
        reported = {name: chosen[name].probabilities(*found[name]) for name in found}
        for name, tally in tallies.items():
            given = row["fields"].get(name, [])
            if name in found:
                judge(features, given, *found[name], reported[name], tally)
            else:
                tally.n_gold += len(given)
                tally.documents.append((len(given), 0, 0))
        results = {
            name: result_of(features, scored, reported[name]) for name, (_, scored) in found.items()
        }
        grouping.add(judge_records(features, row, results, kinds))
    return tallies, grouping


def template_of(task: Task, names: Sequence[str], samples: Sequence[dict]) -> Template:
    """As a user would write it: names of fields, and samples that were read for all of them."""
    return Template(
        name=task.name,
        fields=tuple(FieldSpec(name=name) for name in names),
        samples=tuple(
            SampleSpec(
                text=row["text"],
                complete=True,
                fields={n: tuple(v) for n, v in row["fields"].items() if n in names},
            )
            for row in samples
        ),
    )


def fit(
    field: FieldSpec,
    template: Template,
    samples: Sequence[dict],
    pages: Pages,
    pretrained: PretrainedFields,
) -> FieldModel | None:
    """One field; None if no sample has a value of it, and it is not pretrained."""
    documents = [
        (pages[row["doc_id"]], row["fields"].get(field.name, []), twins_of(template, one, field))
        for row, one in zip(samples, template.samples, strict=True)
    ]
    values = [(features, value) for features, given, _ in documents for value in given]
    names = (field.name,)
    kind = kind_of_values(values, names, pretrained)
    known = pretrained.find(names, kind)
    if not values and known is None:
        return None
    located = [
        sample_of(features, given, kind, names=names, twins=twins)
        for features, given, twins in documents
    ]
    return fit_field(located, kind, names, pretrained=known)


def fit_all(
    template: Template, samples: Sequence[dict], pages: Pages, pretrained: PretrainedFields
) -> dict[str, FieldModel]:
    """The fields that can be found at all: see :func:`fit`."""
    models = (
        (field.name, fit(field, template, samples, pages, pretrained)) for field in template.fields
    )
    return {name: model for name, model in models if model is not None}


def read_pretrained(path: str | None) -> PretrainedFields:
    """Those that the package ships (also where nothing is said), none, or those of a file."""
    if path is None or path == "shipped":
        return shipped_fields()
    return PretrainedFields() if path == "none" else PretrainedFields.load(Path(path))


class Pages:
    """Documents with their features, each computed once.

    Args:
        cache: where vectors are kept, None for none.
        model: encoder; None for the built-in one.
        with_entities: whether the built-in tagger names entities.

    """

    def __init__(
        self, cache: Path | None, model: str | None, *, with_entities: bool = False
    ) -> None:
        self._cache, self._model = cache, model
        self._tagger = load_tagger() if with_entities else None
        self._made: dict[str, PageFeatures] = {}

    def __getitem__(self, name: str) -> PageFeatures:
        return self._made[name]

    def prepare(self, rows: Sequence[dict]) -> None:
        """Make what is not yet made; sentences that the cache does not hold are encoded."""
        new = {row["doc_id"]: row["text"] for row in rows if row["doc_id"] not in self._made}
        pages = {name: page_of_text(text, name=name) for name, text in new.items()}
        if self._cache is not None and pages:
            pages = self._with_vectors(pages)
        if self._tagger is not None:
            pages = {name: with_entities(page, self._tagger) for name, page in pages.items()}
        self._made |= {name: PageFeatures(page) for name, page in pages.items()}

    def _with_vectors(self, pages: dict[str, Page]) -> dict[str, Page]:
        from featpipe import Pipeline
        from featpipe.cache.cache import Cache

        texts = {
            name: [page.text[a:b] for a, b in page.sentences.tolist()]
            for name, page in pages.items()
        }
        with tempfile.TemporaryDirectory() as folder:
            for number, name in enumerate(sorted(pages)):
                Path(folder, f"{number}.txt").write_text(pages[name].text, "utf-8", "surrogatepass")
            with Pipeline(self._cache, self._model, "none", devices=["cpu"]) as pipeline:
                pipeline.build(folder)
        with Cache.open(self._cache) as cache:
            dictionary = cache.dictionary()
            return {
                name: with_vectors(page, np.asarray(dictionary.lookup(texts[name])[0], np.float32))
                if texts[name]
                else page
                for name, page in pages.items()
            }


def load_tagger() -> Tagger:
    """The built-in one."""
    from featpipe.encoders.builtin import find_builtin_model
    from featpipe.encoders.tagger import Tagger

    return Tagger.load(find_builtin_model(), device="cpu", threads=1)


def with_entities(page: Page, tagger: Tagger) -> Page:
    """The page with the entities of its paragraphs, as a cache holds them."""
    paragraphs = page.paragraphs.tolist()
    found = tagger.find_entities([page.text[a:b] for a, b in paragraphs])
    first = np.repeat([a for a, _ in paragraphs], found.lengths)
    spans = [
        LabelledSpan(start, end, tagger.labels[label], score)
        for start, end, label, score in zip(
            (first + found.start).tolist(), (first + found.end).tolist(),
            found.label.tolist(), found.score.tolist(), strict=True,
        )
    ]  # fmt: skip
    return replace(page, entities=tuple(spans))


def judge(  # one document and one field, as extraction has them
    features: PageFeatures,
    given: Sequence[str],
    model: FieldModel,
    scored: Scored,
    reported: Mapping[int, float],
    tally: Tally,
) -> None:
    """Add one document to a tally, by the values and probabilities that a user is given."""
    gold = [read_value(value, model.kind) for value in given]
    groups = [scored.groups[number] for number in reported]
    n_right = count_right(gold, groups)
    tally.n_gold += len(gold)
    tally.n_given += len(groups)
    tally.n_right += n_right
    tally.documents.append((len(gold), len(groups), n_right))
    for group, p in zip(groups, reported.values(), strict=True):
        tally.judged.append((p, any(one.means(group.value) for one in gold)))
    first = scored.groups[: len(gold)]
    tally.counted = [tally.counted[0] + len(first), tally.counted[1] + count_right(gold, first)]
    places = [locate_value(features, value, model.kind) for value in given]
    judge_places(features, places, scored, groups, tally)


def result_of(features: PageFeatures, scored: Scored, given: Mapping[int, float]) -> FieldResult:
    """The reported values of one field, by number with their probabilities."""
    values = ((value_of_group(features, scored.groups[number]), p) for number, p in given.items())
    return FieldResult(tuple(replace(value, probability=p) for value, p in values))


def count_right(gold: Sequence[Value], groups: Sequence[Group]) -> int:
    """Gold values that are among some values."""
    return sum(any(value.means(group.value) for group in groups) for value in gold)


def judge_places(
    features: PageFeatures,
    places: Sequence[Sequence[tuple[int, int]]],
    scored: Scored,
    groups: Sequence[Group],
    tally: Tally,
) -> None:
    """Add where the annotated and the reported values of one document stand."""
    flat = [place for located in places for place in located]
    chosen = [group.spans[0] for group in groups]
    tally.n_touching += sum(any(a < end and start < b for a, b in flat) for start, end in chosen)
    spans = candidate_spans(features, scored)
    tally.n_candidates += sum(any(span in spans for span in located) for located in places)
    sentences = {features.page.sentence_of(start) for start, _ in flat}
    if sentences:
        tally.n_located += 1
        order = rank_sentences(features, scored)
        for k in tally.hits:
            tally.hits[k] += bool(sentences & set(order[:k]))


def candidate_spans(features: PageFeatures, scored: Scored) -> set[tuple[int, int]]:
    """Character spans of all candidates."""
    if not len(scored.found):
        return set()
    tokens = features.tokens
    first, last = scored.found.first, scored.found.last
    return set(zip(tokens.start[first].tolist(), tokens.end[last - 1].tolist(), strict=True))


def rank_sentences(features: PageFeatures, scored: Scored) -> list[int]:
    """Sentences by their best candidate."""
    best = np.full(max(len(features.page.sentences), 1), -np.inf)
    if len(scored.found):
        np.maximum.at(best, features.tokens.sentence[scored.found.first], scored.logits)
    return np.argsort(-best, kind="stable").tolist()


def precision_above(judged: Sequence[tuple[float, bool]], least: float) -> float | None:
    """Share of right ones among the values with such a probability; None without any."""
    sure = [ok for p, ok in judged if p >= least]
    return sum(sure) / len(sure) if sure else None


def interval(documents: Sequence[tuple[int, int, int]]) -> tuple[float, float]:
    """95 % of F1 over draws of documents with replacement (bootstrap)."""
    counts = np.array(documents)
    chance = np.random.default_rng(0)
    drawn = counts[chance.integers(len(counts), size=(_BOOTSTRAPS, len(counts)))].sum(axis=1)
    scores = 2 * drawn[:, 2] / np.maximum(drawn[:, 0] + drawn[:, 1], 1)
    low, high = np.quantile(scores, (0.025, 0.975)).tolist()
    return low, high


@dataclass(frozen=True)
class Piece:
    """One draw of one set: tallies per template and field."""

    name: str
    k: int
    draw: int
    fields: dict[str, dict[str, Tally]]
    seconds: float = 0.0
    records: Grouping = field(default_factory=Grouping)
    part: Part = "all"

    def line(self) -> str:
        """One line of JSON; :meth:`of` is the way back."""
        fields = {t: {n: one.as_dict() for n, one in f.items()} for t, f in self.fields.items()}
        return json.dumps(asdict(self) | {"fields": fields}, ensure_ascii=False)

    @classmethod
    def of(cls, line: str) -> Piece:
        """From :meth:`line`."""
        kept = json.loads(line)
        fields = {t: {n: Tally.of(one) for n, one in f.items()} for t, f in kept["fields"].items()}
        return cls(**kept | {"fields": fields, "records": Grouping(**kept["records"])})


def measure(options: argparse.Namespace) -> Iterator[Piece]:
    """Every set, number of samples and draw that is asked for."""
    for name in options.sets:
        # Contracts of 58,000 characters take a hundred times the time of announcements.
        n_test = options.documents if name != "cuad" else max(options.documents // 4, 5)
        tasks = read_set(options.data, name, n_test, options.part)
        pages = Pages(options.vectors, options.model, with_entities=options.entities)
        pretrained = read_pretrained(options.pretrained)
        for k in options.samples:
            if name == "cuad" and k > 20:
                continue
            for draw in options.draw:
                started = monotonic()
                found = {task.name: evaluate(task, k, draw, pages, pretrained) for task in tasks}
                records = Grouping()
                for _, grouping in found.values():
                    records.add(grouping)
                fields = {name: tallies for name, (tallies, _) in found.items()}
                seconds = round(monotonic() - started, 1)
                yield Piece(name, k, draw, fields, seconds, records, options.part)


def summarise(pieces: Sequence[Piece]) -> Iterator[tuple[str, float]]:
    """The table, and figures by key: draws of one set and K together."""
    by_row: dict[tuple[str, int], dict[int, Piece]] = defaultdict(dict)
    for piece in pieces:
        by_row[piece.name, piece.k][piece.draw] = piece  # measured again: the last counts
    judged: list[tuple[float, bool]] = []
    for (name, k), draws in sorted(by_row.items()):
        whole, scores = add_up(list(draws.values()))
        judged += whole.judged
        key = f"{SHORT.get(name, name)}_k{k}"
        seconds = sum(piece.seconds for piece in draws.values())
        seen = " (seen in part)" if any(is_seen(piece) for piece in draws.values()) else ""
        oracles = "  ".join(f"{what} {f1:.3f}" for what, f1 in whole.oracles().items())
        print(
            f"\n{key}{seen}, {len(draws)} draws: {whole.line()}  mean F1 {np.mean(scores):.3f}"
            f" ({min(scores):.3f} to {max(scores):.3f})  {seconds:.0f} s\n  perfect {oracles}"
        )
        print_fields(list(draws.values()))
        for n in whole.hits:
            yield f"{key}_hit{n}", whole.hit(n)
        yield f"{key}_recall", whole.recall
        yield f"{key}_f1", float(np.mean(scores))
        yield from figures_of(key, whole, [piece.records for piece in draws.values()])
    if judged:
        yield "calibration_error", calibration_error(judged)


def is_seen(piece: Piece) -> bool:
    """Whether weights were learnt, or settings chosen, on documents that it was measured on."""
    return piece.name in SETS and piece.part != "held-out"


def figures_of(
    key: str, whole: Tally, groupings: Sequence[Grouping]
) -> Iterator[tuple[str, float]]:
    """Intervals, calibration, oracles and records of one set and K."""
    yield f"{key}_low", interval(whole.documents)[0]
    yield f"{key}_high", interval(whole.documents)[1]
    yield from ((f"{key}_perfect_{what}", f1) for what, f1 in whole.oracles().items())
    for what, figure in sureness_of(whole.judged):
        yield f"{key}_{what}", figure
        if what == "ece":
            yield f"{key}_calibration_error", figure
    records = Grouping()
    for grouping in groupings:
        records.add(grouping)
    if records.n_gold:
        yield f"{key}_records_f1", records.f1
        yield f"{key}_grouping_f1", records.grouping_f1


def sureness_of(judged: Sequence[tuple[float, bool]]) -> Iterator[tuple[str, float]]:
    """Calibration error of judged values, and of those at .9 and more the precision and share."""
    if judged:
        yield "ece", calibration_error(judged)
    sure = precision_above(judged, 0.9)
    if sure is not None:
        yield "p90_precision", sure
        yield "p90_share", sum(p >= 0.9 for p, _ in judged) / len(judged)


def add_up(draws: Sequence[Piece]) -> tuple[Tally, list[float]]:
    """All counts together, and the micro F1 of each template in each draw."""
    whole, scores, documents = Tally(), [], []
    for fields in (fields for piece in draws for fields in piece.fields.values()):
        one = Tally()
        for tally in fields.values():
            one.add(tally)
        scores.append(one.f1)
        documents += one.documents
        whole.add(replace(one, documents=[]))
    whole.documents = documents
    return whole, scores


def print_fields(draws: Sequence[Piece]) -> None:
    """One line per field, over all draws."""
    for template, fields in draws[0].fields.items():
        for name in fields:
            tally = Tally()
            for piece in draws:
                tally.add(replace(piece.fields[template][name], documents=[]))
            label = f"{template} {name}"
            print(f"  {label:<34} {tally.line()}")


def read_options() -> argparse.Namespace:
    """Of the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=LEARNT_SETS)
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLE_COUNTS)
    parser.add_argument("--draw", nargs="+", type=int, default=(0, 1, 2), help="seeds")
    parser.add_argument(
        "--documents", type=int, default=400, help="test documents per template; of cuad a quarter"
    )
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--pretrained", help="none, or a file of other pretrained fields")
    parser.add_argument("--entities", action="store_true", help="named by the built-in model")
    parser.add_argument("--vectors", type=Path, help="cache for the sentences' vectors")
    parser.add_argument("--model", help="encoder for --vectors; the built-in one by default")
    add_piece_options(parser)
    options = parser.parse_args()
    if options.quick:
        options.sets = [name for name in options.sets if name != "cuad"]
        options.samples, options.draw, options.documents = (5,), (0,), 25
    return options


def main() -> None:
    """Read the options, run or merge, print."""
    options = read_options()
    pieces = measure_or_merge(options, lambda: measure(options), Piece.of, Piece.line)
    figures = {key: round(value, 4) for key, value in summarise(pieces)}
    seen = sorted({piece.name for piece in pieces if is_seen(piece)})
    finish("eval_extraction", options, figures, vectors=options.vectors is not None, seen=seen)


if __name__ == "__main__":
    main()
