"""F1 of a token-classification checkpoint on the shared sets, exact spans and types.

    python scripts/eval_ner.py [--model FOLDER] [--data DIR] [--quick] [--json FILE]

Keys: SET_f1, SET_precision, SET_recall for SET in msra, cluener, resume; SET_ece, the expected
calibration error of the entities' scores in ten bins; SET_p90_precision and SET_p90_share, how many
of those at .9 or more are right, and their share of all; SET_KIND_ece and SET_KIND_precision of one
kind alone: where a set marks a kind by rules of its own, no probability can be right on it.
Labels are mapped to person, organisation, place; a type that the model does not know at all is left
out of its score, and the types that count are printed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from harness import finish, make_parser, read_lines

from featpipe.encoders.tagger import Tagger
from featpipe.extraction.evaluation import calibration_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    Span = tuple[int, int, str]

ROOT = Path(__file__).resolve().parents[1]
SETS = {"msra": ("msra_test", "test"), "cluener": ("cluener", "dev"), "resume": ("resume", "test")}

#: Label of a set or model -> what it is scored as; others are scored under their own names.
ALIKE = {
    "name": "PER",
    "NAME": "PER",
    "PERSON": "PER",
    "company": "ORG",
    "government": "ORG",
    "organization": "ORG",
    "ORGANIZATION": "ORG",
    "address": "LOC",
    "scene": "LOC",
    "LOCATION": "LOC",
    "GPE": "LOC",
}


class Sample(NamedTuple):
    """A text and the spans that people marked in it."""

    text: str
    spans: list[Span]


def read_samples(file: Path, part: str) -> Iterator[Sample]:
    """The samples of one part of a set."""
    for record in read_lines(file):
        if record["part"] == part:
            spans = [(a, b, ALIKE.get(kind, kind)) for a, b, kind in record["entities"]]
            yield Sample(record["text"], spans)


def find_spans(tagger: Tagger, texts: list[str]) -> Iterator[list[Span]]:
    """The entities of each text, in order, under the names that they are scored as."""
    for scored in find_scored(tagger, texts):
        yield [span for span, _ in scored]


def find_scored(tagger: Tagger, texts: list[str]) -> Iterator[list[tuple[Span, float]]]:
    """As `find_spans`, each with its score."""
    for at in range(0, len(texts), 256):
        found = tagger.find_entities(texts[at : at + 256])
        labels = [tagger.labels[number] for number in found.label.tolist()]
        kinds = [ALIKE.get(label, label) for label in labels]
        places = zip(found.start.tolist(), found.end.tolist(), kinds, strict=True)
        spans = list(zip(places, found.score.tolist(), strict=True))
        for stop, n in zip(np.cumsum(found.lengths).tolist(), found.lengths.tolist(), strict=True):
            yield spans[stop - n : stop]


class Matches(NamedTuple):
    """Spans marked and found, each by type, and how often they are the same."""

    marked: Counter[str]
    found: Counter[str]
    both: Counter[str]

    def score(self, kinds: Collection[str]) -> tuple[float, float, float]:
        """Precision, recall and F1 over these types together."""
        marked, found, both = (sum(counts[kind] for kind in kinds) for counts in self)
        return both / max(1, found), both / max(1, marked), 2 * both / max(1, found + marked)


def count_matches(tagger: Tagger, samples: list[Sample]) -> Matches:
    """What of the spans is found, exact limits and types."""
    matches = Matches(Counter(), Counter(), Counter())
    found = find_spans(tagger, [sample.text for sample in samples])
    for sample, spans in zip(samples, found, strict=True):
        marked, ours = set(sample.spans), set(spans)
        for counts, chosen in zip(matches, (marked, ours, marked & ours), strict=True):
            counts.update(kind for *_, kind in chosen)
    return matches


def judge_scores(
    tagger: Tagger, samples: list[Sample], kinds: Collection[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each entity of these types that is found: its score, whether it is right, its type."""
    found = find_scored(tagger, [sample.text for sample in samples])
    judged = [
        (score, span in set(sample.spans), span[2])
        for sample, scored in zip(samples, found, strict=True)
        for span, score in scored
        if span[2] in kinds
    ]
    scores, is_right, kind = zip(*judged, strict=True) if judged else ((), (), ())
    return np.array(scores), np.array(is_right, np.bool_), np.array(kind, np.str_)


def measure_calibration(scores: np.ndarray, is_right: np.ndarray) -> tuple[float, float, float]:
    """Expected calibration error, as of extracted values, and two shares.

    The second figure is how many of those at .9 or more are right, the third their share of all.
    """
    error = calibration_error(list(zip(scores.tolist(), is_right.tolist(), strict=True)))
    sure = scores >= 0.9
    return error, float(is_right[sure].mean()) if sure.any() else 1.0, float(sure.mean())


def main() -> None:
    """Score every set and print the figures."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / "data" / "models" / "zh-small")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    tagger = Tagger.load(options.model, threads=options.threads)
    known = {ALIKE.get(label, label) for label in tagger.labels}
    figures: dict[str, float] = {}
    for name, (file, part) in SETS.items():
        samples = list(read_samples(options.data / "ner" / f"{file}.jsonl.xz", part))
        samples = samples[:300] if options.quick else samples
        kinds = known & {kind for sample in samples for _, _, kind in sample.spans}
        precision, recall, f1 = count_matches(tagger, samples).score(kinds)
        for key, value in (("f1", f1), ("precision", precision), ("recall", recall)):
            figures[f"{name}_{key}"] = round(value, 4)
        scores, is_right, kind = judge_scores(tagger, samples, kinds)
        error, sure, share = measure_calibration(scores, is_right)
        for key, value in (("ece", error), ("p90_precision", sure), ("p90_share", share)):
            figures[f"{name}_{key}"] = round(value, 4)
        shown = []
        for one in np.unique(kind).tolist():
            of_kind, right = scores[kind == one], is_right[kind == one]
            figures[f"{name}_{one.lower()}_ece"] = round(measure_calibration(of_kind, right)[0], 4)
            figures[f"{name}_{one.lower()}_precision"] = round(float(right.mean()), 4)
            shown.append(
                f"{one} {figures[f'{name}_{one.lower()}_ece']:.3f} ({right.mean():.3f} right)"
            )
        print(
            f"{name:8s} {len(samples):6d} texts  {', '.join(sorted(kinds)) or 'none in common':16s}"
            f"  precision {precision:.4f}  recall {recall:.4f}  F1 {f1:.4f}"
            f"  ECE {error:.4f}: {', '.join(shown)}; at .9 {sure:.4f} right, {share:.4f} of all"
        )
    finish("eval_ner", options, figures)


if __name__ == "__main__":
    main()
