"""How well cosines of a checkpoint's vectors agree with people: SimCLUE pairs.

    python scripts/eval_similarity.py [--model FOLDER] [--data DIR] [--quick] [--json FILE]

Keys: simclue_spearman (rank correlation of cosine and label), simclue_auc, simclue_accuracy (at the
threshold that suits half of the pairs best, on the other half); simclue_tfidf_spearman, the same of
TF-IDF of characters whose frequencies are counted in these very pairs, and
simclue_tfidf_elsewhere_spearman, counted in passages of other texts, as a model must have learnt.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from harness import finish, make_parser, read_lines
from scipy.stats import rankdata, spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings

ROOT = Path(__file__).resolve().parents[1]


def read_pairs(file: Path, count: int | None) -> tuple[list[str], list[str], np.ndarray]:
    """First texts, second texts, labels (pairs,)."""
    records = list(read_lines(file, count))
    labels = np.array([float(record["label"]) for record in records])
    return [r["a"] for r in records], [r["b"] for r in records], labels


def measure_auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Chance that an alike pair scores above an unlike one."""
    ranks, alike = rankdata(scores), labels > 0
    n_alike, n_unlike = int(alike.sum()), int((~alike).sum())
    return float((ranks[alike].sum() - n_alike * (n_alike + 1) / 2) / max(1, n_alike * n_unlike))


def measure_accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Share of the odd pairs judged rightly by the even pairs' best threshold."""
    seen, alike = scores[::2], labels[::2] > 0
    limits = np.quantile(seen, np.linspace(0, 1, 201))
    right = [((seen >= limit) == alike).mean() for limit in limits]
    best = limits[int(np.argmax(right))]
    return float(((scores[1::2] >= best) == (labels[1::2] > 0)).mean())


def compare_characters(first: list[str], second: list[str], counted: list[str]) -> np.ndarray:
    """Cosine (pairs,) of TF-IDF vectors of single characters, their frequencies from `counted`."""
    weigher = TfidfVectorizer(analyzer="char").fit(counted)
    return np.asarray(weigher.transform(first).multiply(weigher.transform(second)).sum(axis=1))[
        :, 0
    ]


def main() -> None:
    """Encode both sides once and print the figures."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / "data" / "models" / "zh-small")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    file = options.data / "similarity" / "simclue_test.jsonl.xz"
    first, second, labels = read_pairs(file, 2000 if options.quick else None)
    settings = EncoderSettings(normalise=True, dtype="float32")
    encoder = Encoder.load(options.model, settings, threads=options.threads)
    vectors = encoder.encode([*first, *second]).vectors.astype(np.float64)
    scores = (vectors[: len(first)] * vectors[len(first) :]).sum(axis=1)
    figures = {
        "simclue_spearman": round(float(spearmanr(scores, labels).statistic), 4),
        "simclue_auc": round(measure_auc(scores, labels), 4),
        "simclue_accuracy": round(measure_accuracy(scores, labels), 4),
    }
    passages = read_lines(options.data / "retrieval" / "cmrc2018_corpus.jsonl.xz")
    elsewhere = [line for record in passages for line in record["text"].split("。") if line]
    for key, counted in (("tfidf", [*first, *second]), ("tfidf_elsewhere", elsewhere)):
        compared = spearmanr(compare_characters(first, second, counted), labels).statistic
        figures[f"simclue_{key}_spearman"] = round(float(compared), 4)
    for key, value in figures.items():
        print(f"{key:32s} {value:.4f}   ({len(first)} pairs)")
    finish("eval_similarity", options, figures)


if __name__ == "__main__":
    main()
