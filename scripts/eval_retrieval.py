"""How well BM25 finds the right passage, by analyser, alone and together with vectors.

R@10 and MRR@10 on STARD (statutes), CMRC2018 (encyclopaedia) and CSL (titles to abstracts), BM25
Okapi with its usual parameters. With ``--model`` (or the repository's own small model, when it is
there) also vectors alone, their convex combination with BM25, and reciprocal rank fusion. The
weight of a combination is tuned on one half of the questions and scored on the other, over many
random halves. Equal scores go by position.

Questions have the prompt that the model expects before them. SET_query_prompt_gain is what it adds
to the MRR@10 of vectors alone, and SET_query_prompt_gain_hybrid to that of the tuned combination.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import BUILT_IN_MODEL, finish, make_parser, read_lines

from featpipe.lexical.fusion import combine, fuse_ranks
from featpipe.lexical.index import Index
from featpipe.lexical.terms import ANALYSERS, Analyser

if TYPE_CHECKING:
    import argparse

    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.prompts import QueryPrompt

Array = np.ndarray[Any, Any]

SETS = {"stard": "stard", "cmrc2018": "cmrc", "csl_title_abstract": "csl"}
KEYS = {"words": "jieba", "search": "search", "chars": "chars", "words+chars": "both"}
CANDIDATES = 100
#: Weights of BM25 in a combination, from vectors alone to BM25 alone.
WEIGHTS = tuple(step / 20 for step in range(21))
SPLITS = 500
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

    def head(self, n: int) -> Task:
        """The first n questions, the first n passages, and the passages that they need."""
        needed = set().union(*self.positives[:n])
        kept = [row for row in range(len(self.passages)) if row < n or row in needed]
        rows = {row: number for number, row in enumerate(kept)}
        positives = [{rows[row] for row in right} for right in self.positives[:n]]
        return Task([self.passages[row] for row in kept], self.questions[:n], positives)

    def measure(self, rows: Array) -> Array:
        """Recall and reciprocal rank at 10 of each question's ten best rows: (2, questions)."""
        ranked = list(zip(rows.tolist(), self.positives, strict=True))
        hits = [[row in right for row in best] for best, right in ranked]
        recall = [sum(hit) / len(right) for hit, (_, right) in zip(hits, ranked, strict=True)]
        reciprocal = [1 / (hit.index(True) + 1) if any(hit) else 0.0 for hit in hits]
        return np.array([recall, reciprocal])


def main() -> None:
    """Score every set with every analyser; the last line is the JSON of the figures."""
    arguments = parse_arguments()
    opened = open_encoder(arguments.model)
    figures: dict[str, float] = {}
    for name, short in SETS.items():
        if short not in arguments.sets:
            continue
        limit = 300 if arguments.quick else None
        task = Task.load(arguments.data / "retrieval", name, limit)
        if arguments.head is not None:
            task = task.head(arguments.head)
        print(f"{short}: {len(task.passages):,} passages, {len(task.questions):,} questions")
        for analyser in ANALYSERS:
            begin = time.perf_counter()
            index, queries = count_terms(task, Analyser(analyser))
            measured = task.measure(index.top_k(queries, 10).rows).mean(axis=1)
            note(figures, f"{short}_{{}}_{KEYS[analyser]}", measured, time.perf_counter() - begin)
            if analyser == arguments.analyser and opened is not None:
                hybrid_figures(figures, short, task, index, queries, opened)
    finish("eval_retrieval", arguments, figures)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, default=BUILT_IN_MODEL)
    parser.add_argument("--analyser", default="chars", help="the one that hybrid rankings use")
    parser.add_argument("--head", type=int, help="the first N questions and passages of each set,"
                        " and the passages that these questions need")  # fmt: skip
    parser.add_argument("--sets", nargs="*", default=list(SETS.values()), help="only some of them")
    return parser.parse_args()


def read_records(path: Path) -> list[dict[str, Any]]:
    """All records of a packed file."""
    return list(read_lines(path))


def count_terms(task: Task, analyser: Analyser) -> tuple[Index, list[Array]]:
    """An index over the passages, and the questions' terms in its numbers."""
    batch = analyser.count(task.passages)
    index = Index()
    index.add("passages", batch.ids, batch.lengths)
    numbers = {term: number for number, term in enumerate(batch.vocabulary)}
    asked = [analyser.terms(question) for question in task.questions]
    return index, [np.array([numbers.get(t, -1) for t in terms], np.int32) for terms in asked]


def note(
    figures: dict[str, float], key: str, measured: Array, seconds: float | None = None
) -> None:
    """Recall and mean reciprocal rank at 10, printed and kept."""
    recall, reciprocal = map(float, measured)
    figures[key.format("recall10")] = round(recall, 4)
    figures[key.format("mrr10")] = round(reciprocal, 4)
    spent = "" if seconds is None else f"   {seconds:.1f} s"
    print(f"  {key.format('*'):24} R@10 {recall:.4f}   MRR@10 {reciprocal:.4f}{spent}")


def open_encoder(path: Path) -> tuple[Encoder, QueryPrompt] | None:
    """The encoder and its query prompt, or None when there is no model in that folder."""
    if not any(path.glob("*.safetensors")):
        print(f"no model in {path}: BM25 alone")
        return None
    from featpipe.encoders.checkpoint import describe_checkpoint
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.prompts import find_query_prompt
    from featpipe.encoders.spec import EncoderSettings

    settings = EncoderSettings(dtype="float32", normalise=True)
    encoder = Encoder.load(path, settings, device="cpu", threads=1)
    return encoder, find_query_prompt(describe_checkpoint(path), str(encoder.spec["prompt"]))


def hybrid_figures(  # all of it is one ranking's
    figures: dict[str, float],
    short: str,
    task: Task,
    index: Index,
    queries: list[Array],
    opened: tuple[Encoder, QueryPrompt],
) -> None:
    """Vectors alone, the ranks of both fused, and all scores of both combined."""
    encoder, prompt = opened
    print(f"  before questions: {prompt}")
    passages = np.asarray(encoder.encode(task.passages).vectors, np.float32)
    similar = compare(encoder, task.questions, passages, prompt.text)
    by_vectors = best_rows(similar, CANDIDATES)
    note(figures, f"{short}_{{}}_vectors", task.measure(by_vectors[:, :10]).mean(axis=1))
    by_words = index.top_k(queries, CANDIDATES).rows
    fused = [
        [row for row, _ in fuse_ranks([words, vectors])[:10]]
        for words, vectors in zip(by_words, by_vectors, strict=True)
    ]
    note(figures, f"{short}_{{}}_rrf", task.measure(np.array(fused)).mean(axis=1))
    words = index.scores(queries)
    by_weight = measure_weights(task, words, similar)
    tuned = score_tuned(by_weight)
    note(figures, f"{short}_{{}}_hybrid", tuned)
    for fixed in FIXED_WEIGHTS:
        measured = by_weight[WEIGHTS.index(fixed)]
        note(figures, f"{short}_{{}}_hybrid_at_{fixed * 100:.0f}", measured.mean(axis=1))
    gain = (by_weight[:, 1] - by_weight[-1, 1])[by_weight[:, 1].mean(axis=1).argmax()]
    error = gain.std() / len(gain) ** 0.5
    print(f"  standard error of what the vectors add to the MRR of BM25: {error:.4f}")
    if prompt.text != encoder.spec["prompt"]:
        bare = compare(encoder, task.questions, passages, None)
        gains = (task.measure(by_vectors[:, :10]) - task.measure(best_rows(bare)))[1]
        note_gain(figures, short, gains, tuned - score_tuned(measure_weights(task, words, bare)))


def compare(encoder: Encoder, questions: list[str], passages: Array, prompt: str | None) -> Array:
    """Cosines (questions, passages), with the prompt before each question."""
    vectors = np.asarray(encoder.encode(questions, prompt=prompt).vectors, np.float32)
    return (vectors @ passages.T).astype(np.float64)


def note_gain(figures: dict[str, float], short: str, gains: Array, of_hybrid: Array) -> None:
    """What the query prompt adds to each question's reciprocal rank, and to the combination's."""
    figures[f"{short}_query_prompt_gain"] = round(float(gains.mean()), 4)
    figures[f"{short}_query_prompt_gain_hybrid"] = round(float(of_hybrid[1]), 4)
    error = float(gains.std() / len(gains) ** 0.5)
    print(
        f"  the query prompt adds {gains.mean():+.4f} (standard error {error:.4f}) to the MRR of"
        f" vectors alone, {of_hybrid[1]:+.4f} to that of the combination"
    )


def measure_weights(task: Task, scores: Array, similar: Array) -> Array:
    """Combinations of BM25 and cosine, both (questions, passages), by each of WEIGHTS.

    Returns:
        (weights, 2, questions), see `Task.measure`.

    """
    ranked = (best_rows(combine(scores, similar, weight)) for weight in WEIGHTS)
    return np.stack([task.measure(rows) for rows in ranked])


def score_tuned(by_weight: Array) -> Array:
    """(2,) with the weight that suits half of the questions best, of the other half.

    The mean over random halves: two fixed ones differ by more than many models do.
    """
    chance = np.random.default_rng(0)
    scored = []
    for _ in range(SPLITS):
        halves = np.array_split(chance.permutation(by_weight.shape[2]), 2)
        for tuned, held in (halves, halves[::-1]):
            weight = by_weight[:, 1, tuned].mean(axis=1).argmax()
            scored.append(by_weight[weight][:, held].mean(axis=1))
    mean: Array = np.mean(scored, axis=0)
    return mean


def best_rows(scores: Array, n: int = 10) -> Array:
    """(questions, passages) -> (questions, n) rows, best first, equal ones by position."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :n]


if __name__ == "__main__":
    main()
