"""How well BM25 finds the right passage, by analyser, alone and together with vectors.

R@10 and MRR@10 on STARD (statutes), CMRC2018 (encyclopaedia) and CSL (titles to abstracts), BM25
Okapi with its usual parameters. With ``--model`` (or the repository's own small model, when it is
there) also vectors alone, their convex combination with BM25, and reciprocal rank fusion. The
weight of a combination is tuned on one half of the questions, every second one, and scored on the
other, and the other way round. Equal scores go by position.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featpipe.features.bm25 import Index, Vocabulary, combine, fuse_ranks, tune_weight
from featpipe.features.terms import ANALYSERS, Analyser

if TYPE_CHECKING:
    from featpipe.features.encoder import Encoder

SETS = {"stard": "stard", "cmrc2018": "cmrc", "csl_title_abstract": "csl"}
KEYS = {
    "words": "jieba",
    "search": "search",
    "chars": "chars",
    "words+chars": "both",
    "pieces": "pieces",
}
CANDIDATES = 100
#: Weights of BM25 that are scored untuned, the default of hybrid search among them.
FIXED_WEIGHTS = (0.5, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Task:
    """Passages, questions, and which passages answer each (as row numbers)."""

    passages: list[str]
    questions: list[str]
    positives: list[set[int]]

    @classmethod
    def load(cls, folder: Path, name: str, n_questions: int | None) -> Task:
        """One retrieval set."""
        corpus = read_records(folder / f"{name}_corpus.jsonl.xz")
        queries = read_records(folder / f"{name}_queries.jsonl.xz")[:n_questions]
        rows = {record["id"]: row for row, record in enumerate(corpus)}
        passages = [f"{record['title']}\n{record['text']}".strip() for record in corpus]
        positives = [{rows[each] for each in query["positives"]} for query in queries]
        return cls(passages, [query["text"] for query in queries], positives)


def main() -> None:
    """Score every set with every analyser; the last line is the JSON of the figures."""
    arguments = parse_arguments()
    encoder = open_encoder(arguments.model)
    figures: dict[str, float] = {}
    for name, short in SETS.items():
        if short not in arguments.sets:
            continue
        limit = 300 if arguments.quick else None
        task = Task.load(arguments.data / "retrieval", name, limit)
        print(f"{short}: {len(task.passages):,} passages, {len(task.questions):,} questions")
        for analyser in ANALYSERS:
            if analyser == "pieces" and encoder is None:
                continue
            begin = time.perf_counter()
            pieces_of = arguments.model if analyser == "pieces" else None
            index, queries = count_terms(task, Analyser(analyser, encoder=pieces_of))
            rows = index.top_k(queries, 10).rows
            note(figures, f"{short}_{{}}_{KEYS[analyser]}", rows, task, time.perf_counter() - begin)
            if analyser == arguments.analyser and encoder is not None:
                hybrid_figures(figures, short, task, index, queries, encoder)
    last = json.dumps({"bench": "eval_retrieval", "quick": arguments.quick, "figures": figures})
    if arguments.json:
        arguments.json.write_text(last + "\n", "utf-8")
    print(last)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--model", type=Path, default=Path("data/models/zh-small"))
    parser.add_argument("--analyser", default="chars", help="the one that hybrid rankings use")
    parser.add_argument("--sets", nargs="*", default=list(SETS.values()), help="only some of them")
    parser.add_argument("--quick", action="store_true", help="300 questions a set")
    parser.add_argument("--json", type=Path, help="write the last line here too")
    return parser.parse_args()


def read_records(path: Path) -> list[dict[str, Any]]:
    """All records of a packed file."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def count_terms(task: Task, analyser: Analyser) -> tuple[Index, list[np.ndarray[Any, Any]]]:
    """An index over the passages, and the questions' terms in its numbers."""
    vocabulary, index = Vocabulary(), Index()
    batch = analyser.count(task.passages)
    ids = vocabulary.add_batch(batch)
    index.add("passages", ids, batch.lengths)
    return index, [vocabulary.find(analyser.terms(question)) for question in task.questions]


def note(
    figures: dict[str, float],
    key: str,
    rows: np.ndarray[Any, Any],
    task: Task,
    seconds: float | None = None,
    chosen: slice = slice(None),
) -> None:
    """Recall and mean reciprocal rank at 10, printed and kept."""
    positives = task.positives[chosen]
    hits = [
        [row in right for row in best] for best, right in zip(rows.tolist(), positives, strict=True)
    ]
    recall = np.mean([sum(hit) / len(right) for hit, right in zip(hits, positives, strict=True)])
    reciprocal = np.mean([1 / (hit.index(True) + 1) if any(hit) else 0.0 for hit in hits])
    figures[key.format("recall10")] = round(float(recall), 4)
    figures[key.format("mrr10")] = round(float(reciprocal), 4)
    spent = "" if seconds is None else f"   {seconds:.1f} s"
    print(f"  {key.format('*'):24} R@10 {recall:.4f}   MRR@10 {reciprocal:.4f}{spent}")


def open_encoder(path: Path) -> Encoder | None:
    """The encoder, or None when there is no model in that folder."""
    if not any(path.glob("*.safetensors")):
        print(f"no model in {path}: BM25 alone")
        return None
    from featpipe.features.encoder import Encoder
    from featpipe.features.feature import EncoderSettings

    return Encoder.load(
        path, EncoderSettings(dtype="float32", normalise=True), device="cpu", threads=1
    )


def hybrid_figures(  # all of it is one ranking's
    figures: dict[str, float],
    short: str,
    task: Task,
    index: Index,
    queries: list[np.ndarray[Any, Any]],
    encoder: Encoder,
) -> None:
    """Vectors alone, and both ways of fusion over the union of the two best hundreds."""
    passages = np.asarray(encoder.encode(task.passages).vectors, np.float32)
    questions = np.asarray(encoder.encode(task.questions).vectors, np.float32)
    similar = questions @ passages.T
    by_vectors = np.argsort(-similar, axis=1, kind="stable")[:, :CANDIDATES]
    note(figures, f"{short}_{{}}_vectors", by_vectors[:, :10], task)
    scores = np.stack([index.scores([query])[0] for query in queries])
    by_words = index.top_k(queries, CANDIDATES).rows
    fused = [
        [row for row, _ in fuse_ranks([words, vectors])[:10]]
        for words, vectors in zip(by_words, by_vectors, strict=True)
    ]
    note(figures, f"{short}_{{}}_rrf", np.array(fused), task)
    relevant = np.zeros(scores.shape, np.bool_)
    for row, right in enumerate(task.positives):
        relevant[row, list(right)] = True
    halves = slice(0, None, 2), slice(1, None, 2)
    best = np.empty((len(queries), 10), np.int64)

    def rank(half: slice, weight: float) -> None:
        both = combine(scores[half], similar[half].astype(np.float64), weight)
        best[half] = np.argsort(-both, axis=1, kind="stable")[:, :10]

    for tuned, held in (halves, halves[::-1]):
        weight = tune_weight(scores[tuned], similar[tuned].astype(np.float64), relevant[tuned])
        print(f"  weight of BM25 tuned on one half of the questions: {weight}")
        rank(held, weight)
    note(figures, f"{short}_{{}}_hybrid", best, task)
    for number, half in enumerate(halves):
        note(figures, f"{short}_{{}}_hybrid_half_{number}", best[half], task, chosen=half)
        note(figures, f"{short}_{{}}_words_half_{number}", by_words[half, :10], task, chosen=half)
    for fixed in FIXED_WEIGHTS:
        rank(slice(None), fixed)
        note(figures, f"{short}_{{}}_hybrid_at_{fixed * 100:.0f}", best, task)


if __name__ == "__main__":
    main()
