# ruff: noqa: E501 - one line for each call
"""Score a model's vectors and entities on the shared evaluation sets.

    scripts/eval_model.py --data ../shared/data [--model PATH]

Keys (higher is better): masked_accuracy (held-back laws, whole words hidden), simclue_spearman,
SET_recall10 and SET_mrr10 by vectors alone, with _jieba and _chars by BM25 over words and over
characters and pairs of them, with _hybrid_jieba and _hybrid_chars by both (halves of the questions
with the weight that suits the others) for SET in stard, cmrc and csl, SET_f1 for SET in msra and
cluener (exact spans; with _per, _org and _loc of persons, organisations and locations alone),
announcements_recall (parties of held-back announcements that are found as organisations), and
SET_k5_f1_words and SET_k5_f1_vectors for SET in fddc and fewfc (`eval_extraction.py`: values found
after five samples, without and with this model's vectors).
The same figures for any other model: what it has no head for is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))

from eval_ner import SETS as NER_SETS  # noqa: E402 - the path comes first
from eval_ner import count_matches, find_spans, read_samples  # noqa: E402 - the same
from eval_retrieval import (  # noqa: E402 - the same
    KEYS,
    SETS,
    Task,
    best_rows,
    count_terms,
    measure_weights,
    score_tuned,
)
from harness import finish, make_parser  # noqa: E402 - the same
from small_model.corpus import load_corpus, read_records  # noqa: E402 - the same

from featpipe.encoders.checkpoint import describe_checkpoint  # noqa: E402 - the same
from featpipe.encoders.spec import TaggerSettings  # noqa: E402 - the same
from featpipe.encoders.tagger import Tagger  # noqa: E402 - the same
from featpipe.lexical.terms import Analyser  # noqa: E402 - the same

if TYPE_CHECKING:
    from collections.abc import Callable

    Evaluation = Callable[..., dict[str, float]]  # of (Model, Path, *, quick: bool)

KINDS = ("PER", "ORG", "LOC")
QUICK = 2000  # the first pairs, questions and passages, texts
CAPACITY = 16_384  # tokens in one batch


class Model:
    """A folder in Hugging Face layout: mean-pooled unit vectors, and entities if it has the head.

    Both in float32; entities are those that featpipe finds, by the best path if there is a CRF.
    """

    def __init__(self, path: Path) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        self.torch = torch
        self.path = path
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.trunk = AutoModel.from_pretrained(path, dtype=torch.float32).eval()
        self.tagger: Tagger | None = None
        checkpoint = describe_checkpoint(path)
        self.max_length = min(checkpoint.max_length, 512)
        if checkpoint.kind == "tagger":
            settings = TaggerSettings(precision="exact")
            self.tagger = Tagger.load(path, settings, threads=torch.get_num_threads())

    def _batches(self, texts: list[str]) -> list[list[int]]:
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        batches: list[list[int]] = []
        for place in order:
            longest = min(len(texts[place]) + 2, self.max_length)
            if not batches or (len(batches[-1]) + 1) * longest > CAPACITY:
                batches.append([])
            batches[-1].append(place)
        return batches

    def encode(self, texts: list[str]) -> np.ndarray:
        """-> (texts, width) float32 of length one; texts over `max_length` tokens lose their end."""
        out: np.ndarray | None = None
        for places in self._batches(texts):
            batch = self.tokenizer([texts[p] for p in places], truncation=True, max_length=self.max_length, padding=True,
                                   return_tensors="pt")  # fmt: skip
            with self.torch.inference_mode():
                states = self.trunk(**batch).last_hidden_state
                kept = batch["attention_mask"].unsqueeze(-1)
                mean = self.torch.nn.functional.normalize(
                    (states * kept).sum(1) / kept.sum(1), dim=-1
                )
            out = np.zeros((len(texts), mean.shape[1]), np.float32) if out is None else out
            out[places] = mean.numpy()
        if out is None:
            raise ValueError("no texts to encode")
        return out


def score_similarity(model: Model, data: Path, *, quick: bool) -> dict[str, float]:
    """Spearman of cosine and label."""
    from scipy.stats import spearmanr

    pairs = list(read_records(data / "similarity/simclue_test.jsonl.xz"))
    pairs = pairs[: QUICK if quick else None]
    first, second = (model.encode([pair[side] for pair in pairs]) for side in "ab")
    rank = spearmanr((first * second).sum(1), [pair["label"] for pair in pairs]).statistic
    return {"simclue_spearman": float(rank)}


def score_retrieval(model: Model, data: Path, *, name: str, quick: bool) -> dict[str, float]:
    """Recall and mean reciprocal rank at ten, by vectors, by BM25, and by both."""
    prefix = {short: name for name, short in SETS.items()}[name]
    task = Task.load(data / "retrieval", prefix, None)
    if quick:
        task = task.head(QUICK)
    similar = (model.encode(task.questions) @ model.encode(task.passages).T).astype(np.float64)
    measured = {"": task.measure(best_rows(similar)).mean(axis=1)}
    for analyser in ("words", "chars"):
        index, queries = count_terms(task, Analyser(analyser))
        by_weight = measure_weights(task, index.scores(queries), similar)
        measured[f"_{KEYS[analyser]}"] = by_weight[-1].mean(axis=1)
        measured[f"_hybrid_{KEYS[analyser]}"] = score_tuned(by_weight)
    figures: dict[str, float] = {}
    for suffix, (recall, reciprocal) in measured.items():
        figures[f"{name}_recall10{suffix}"] = float(recall)
        figures[f"{name}_mrr10{suffix}"] = float(reciprocal)
    return figures


def score_entities(model: Model, data: Path, *, name: str, quick: bool) -> dict[str, float]:
    """Exact-span F1 over persons, organisations and locations, together and by kind."""
    if model.tagger is None:
        return {}
    file, part = NER_SETS[name]
    samples = list(read_samples(data / "ner" / f"{file}.jsonl.xz", part))
    matches = count_matches(model.tagger, samples[: QUICK if quick else None])
    by_kind = {f"{name}_f1_{kind.lower()}": matches.score([kind])[-1] for kind in KINDS}
    return by_kind | {f"{name}_f1": matches.score(KINDS)[-1]}


def score_announcements(model: Model, data: Path, *, quick: bool) -> dict[str, float]:  # noqa: ARG001 - few as they are
    """Share of the parties of held-back announcements that are found as organisations."""
    if model.tagger is None:
        return {}
    held = load_corpus(ROOT / "data", data).held_announcements
    texts, owner = [], []
    for number, record in enumerate(held):
        for line in record["text"].split("\n"):
            if line.strip():
                texts.append(line)
                owner.append(number)
    found: list[set[str]] = [set() for _ in held]
    for number, line, spans in zip(owner, texts, find_spans(model.tagger, texts), strict=True):
        found[number].update(tidy(line[s:e]) for s, e, kind in spans if kind == "ORG")
    wanted = [
        {tidy(v) for name in ("甲方", "乙方") for v in r["fields"].get(name, ())} for r in held
    ]
    hits = sum(len(w & f) for w, f in zip(wanted, found, strict=True))
    return {"announcements_recall": hits / max(sum(map(len, wanted)), 1)}


def tidy(value: str) -> str:
    """As the annotators normalised: half width, lower case, no blanks."""
    import unicodedata

    return re.sub(r"[\s,]", "", unicodedata.normalize("NFKC", value).lower())


def score_extraction(model: Model, data: Path, *, quick: bool) -> dict[str, float]:
    """F1 of values after five samples, by words and layout alone and with the model's vectors."""
    figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        cache, result = Path(scratch, "c.h5"), Path(scratch, "result.json")
        for suffix, options in (
            ("words", []),
            ("vectors", ["--vectors", cache, "--model", model.path]),
        ):
            command = [
                sys.executable, Path(__file__).with_name("eval_extraction.py"), "--data", data,
                "--sets", "fddc_hetong", "fewfc_base", "--samples", "5", "--documents", "100",
                "--json", result, *options, *(["--quick"] if quick else []),
            ]  # fmt: skip
            subprocess.run(command, check=True, capture_output=True)
            found = json.loads(result.read_text("utf-8"))["figures"]
            figures |= {f"{k}_{suffix}": v for k, v in found.items() if k.endswith("_f1")}
    return figures


def score_masked(model: Model, data: Path, *, quick: bool) -> dict[str, float]:
    """Accuracy on hidden words of laws that were held back from training."""
    from safetensors.torch import load_file
    from small_model.masking import Stretches, draw_masked
    from tokenizers import Tokenizer
    from transformers import AutoModelForMaskedLM

    torch = model.torch
    masked, report = AutoModelForMaskedLM.from_pretrained(
        model.path, dtype=torch.float32, output_loading_info=True
    )
    beside = model.path / "masked_words" / "head.safetensors"
    if beside.exists():
        masked.load_state_dict(load_file(beside), strict=False)
    elif report["missing_keys"]:
        return {}
    if model.tokenizer.mask_token_id != 4:
        return {}
    tokenizer = Tokenizer.from_file(str(model.path / "tokenizer.json"))
    n_samples = 64 if quick else 512
    stretches = Stretches({"laws": load_corpus(ROOT / "data", data).held_laws})
    ids, targets = draw_masked(stretches, tokenizer, np.random.default_rng(0), (n_samples, 128))
    right = []
    for at in range(0, n_samples, 32):
        block = torch.from_numpy(ids[at : at + 32])
        with torch.inference_mode():
            best = (
                masked.eval()(block, attention_mask=(block != 0).long()).logits.argmax(-1).numpy()
            )
        asked = targets[at : at + 32] >= 0
        right.append(best[asked] == targets[at : at + 32][asked])
    return {"masked_accuracy": float(np.concatenate(right).mean())}


#: By name, in order of their cost: each gives nothing for a model that has no head for it.
EVALUATIONS: dict[str, Evaluation] = {
    "similarity": score_similarity,
    "csl": partial(score_retrieval, name="csl"),
    "msra": partial(score_entities, name="msra"),
    "cluener": partial(score_entities, name="cluener"),
    "announcements": score_announcements,
    "masked": score_masked,
    "cmrc": partial(score_retrieval, name="cmrc"),
    "extraction": score_extraction,
    "stard": partial(score_retrieval, name="stard"),
}


def main() -> int:
    """Run the evaluations, print a table and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / "data" / "models" / "zh-small")
    parser.add_argument("--only", nargs="+", choices=list(EVALUATIONS), help="of the evaluations")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f"{arguments.data} is no folder with data")
    import torch

    torch.set_num_threads(arguments.threads)
    model = Model(arguments.model)
    figures: dict[str, float] = {}
    for name, score in EVALUATIONS.items():
        if arguments.only and name not in arguments.only:
            continue
        started = time.perf_counter()
        scores = score(model, arguments.data, quick=arguments.quick)
        figures |= {key: round(value, 4) for key, value in scores.items()}
        shown = "  ".join(f"{key} {value:.3f}" for key, value in scores.items()) or "no head for it"
        print(f"{name:14} {time.perf_counter() - started:6.1f} s  {shown}", flush=True)
    finish("eval_model", arguments, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
