"""Fit the built-in model's probabilities of entities on sentences labelled by hand: its last step.

    scripts/calibrate_small_model.py [--model FOLDER] [--data DIR] [--write]

The sentences (`small_model/labelled.jsonl`: encyclopaedia and events, never learnt from) and, for
typed values, lines of held-back announcements, whose values are what the typed patterns find. A
logistic function of what `featpipe.encoders.calibration` measures, with weights that all types of
names share but for a constant. Printed: calibration error by ten folds. No set of `ner/` is read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))

from eval_ner import measure_calibration  # noqa: E402 - the path comes first

from featpipe.encoders.calibration import FEATURES  # noqa: E402 - the same
from featpipe.encoders.entities import Tags, decode  # noqa: E402 - the same
from featpipe.encoders.spec import TaggerSettings  # noqa: E402 - the same
from featpipe.encoders.tagger import Tagger  # noqa: E402 - the same

if TYPE_CHECKING:
    from small_model.labels import Span

    Sample = tuple[str, list[Span]]

NAMES = ("PER", "ORG", "LOC")
PENALTY = 1.0  # of the squared weights, those of the constants left out
FOLDS = 10
FILE = "entity_calibration.json"


class Judged(NamedTuple):
    """Entities found. Shapes: features (m, features); label, is_right, text (m,)."""

    features: np.ndarray
    label: np.ndarray
    is_right: np.ndarray
    text: np.ndarray


class _Recorder:
    """Keeps the features that a calibration would be asked about."""

    features = np.empty((0, len(FEATURES)))

    def score(self, features: np.ndarray, label: np.ndarray) -> np.ndarray:
        self.features = features
        return np.zeros(len(label))


def judge(tagger: Tagger, samples: list[Sample]) -> Judged:
    """What the tagger finds in samples, and whether it is among their spans."""
    import torch

    texts = [text for text, _ in samples]
    tokens = tagger.tokenizer.encode(texts, with_offsets=True)
    with torch.inference_mode():
        scores = tagger.score_tokens(texts, tokens)
    labels, probabilities = tagger.head.choose(scores, tokens.lengths)
    recorder = _Recorder()
    tags = Tags.of(tagger.spec["labels"])
    found = decode(labels, probabilities, tokens, tags, recorder)  # type: ignore[arg-type]
    text = np.repeat(np.arange(len(texts)), found.lengths)
    wanted = [set(map(tuple, spans)) for _, spans in samples]
    ours = zip(found.start.tolist(), found.end.tolist(), found.label.tolist(), strict=True)
    right = [(s, e, tags.types[k]) in wanted[t] for t, (s, e, k) in zip(text, ours, strict=True)]
    return Judged(recorder.features, found.label.astype(int), np.array(right), text)


def fit(judged: Judged, n_types: int) -> np.ndarray:
    """Weights (types, features): shared slopes, and a constant of each type near the shared one."""
    from scipy.optimize import minimize

    own = np.eye(n_types)[judged.label]
    x = np.hstack([judged.features, own])
    penalty = np.full(x.shape[1], PENALTY)
    penalty[0] = 1e-3

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        odds = x @ weights
        value = np.logaddexp(0, odds).sum() - odds[judged.is_right].sum()
        gradient = x.T @ (1 / (1 + np.exp(-odds)) - judged.is_right) + penalty * weights
        return float(value + 0.5 * (penalty * weights**2).sum()), gradient

    best = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    weights = np.tile(best[: len(FEATURES)], (n_types, 1))
    weights[:, 0] += best[len(FEATURES) :]
    return weights


def predict(weights: np.ndarray, judged: Judged) -> np.ndarray:
    """Probabilities (m,)."""
    return np.asarray(1 / (1 + np.exp(-(judged.features * weights[judged.label]).sum(axis=1))))


def take(judged: Judged, is_chosen: np.ndarray) -> Judged:
    """Some of the entities."""
    return Judged(*(values[is_chosen] for values in judged))


def cross_validate(judged: Judged, n_types: int) -> np.ndarray:
    """Probabilities of each entity by what is fitted on the other texts."""
    fold = np.random.default_rng(0).permutation(int(judged.text.max()) + 1)[judged.text] % FOLDS
    out = np.zeros(len(fold))
    for number in range(FOLDS):
        weights = fit(take(judged, fold != number), n_types)
        out[fold == number] = predict(weights, take(judged, fold == number))
    return out


def read_labelled() -> list[Sample]:
    """The sentences labelled by hand, with the typed values that patterns find in them."""
    from small_model.held import FILE as LABELLED
    from small_model.labels import find_patterns

    samples: list[Sample] = []
    with LABELLED.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            names = [(start, end, kind) for start, end, kind in record["entities"]]
            typed = [span for span in find_patterns(record["text"]) if _is_typed(span)]
            samples.append((record["text"], names + typed))
    return samples


def read_announcements(data: Path) -> list[Sample]:
    """Lines of held-back announcements with typed values; nothing without the data."""
    from small_model.corpus import load_corpus
    from small_model.labels import find_patterns

    held = load_corpus(ROOT / "data", data if data.is_dir() else None).held_announcements
    lines = [line for record in held for line in record["text"].split("\n")]
    kept = [line for line in lines if 15 <= len(line) <= 200][:1000]
    return [(line, [span for span in find_patterns(line) if _is_typed(span)]) for line in kept]


def _is_typed(span: Span) -> bool:
    return span[2] not in {*NAMES, "?"}


def main() -> int:
    """Fit, print the calibration error, and write the weights if asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, default=ROOT / "data" / "models" / "zh-small")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", action="store_true", help=f"{FILE} into the model's folder")
    options = parser.parse_args()
    tagger = Tagger.load(options.model, TaggerSettings(precision="exact"))
    types = Tags.of(tagger.spec["labels"]).types
    is_name = np.array([kind in NAMES for kind in types])
    names = judge(tagger, read_labelled())
    typed = judge(tagger, read_announcements(options.data))
    names, typed = take(names, is_name[names.label]), take(typed, ~is_name[typed.label])
    weights = np.where(is_name[:, None], fit(names, len(types)), fit(typed, len(types)))
    for title, judged in (("names", names), ("typed", typed)):
        error, sure, share = measure_calibration(
            cross_validate(judged, len(types)), judged.is_right
        )
        print(f"{title}: {len(judged.label)} found, {judged.is_right.mean():.3f} right; by folds:"
              f" ECE {error:.3f}, at .9 or more {sure:.3f} right, {share:.3f} of all")  # fmt: skip
    if options.write:
        rows = {kind: np.round(row, 4).tolist() for kind, row in zip(types, weights, strict=True)}
        content = {"features": list(FEATURES), "weights": rows}
        (options.model / FILE).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
