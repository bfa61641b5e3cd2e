"""Entities of long documents against transformers' pipeline: same weights, same documents, one run.

The weights are random (a BERT-base shape, with ``--quick`` a small one): this says how fast it is,
not how good. Texts of one window must give the same entities on both sides before anything is
timed. The pipeline gets ``stride=128``, without which it drops everything after 512 tokens.

    python scripts/bench_ner.py [--data DIR] [--quick] [--json FILE] [--processor-time]

Keys: float32_vs_pipeline, default_vs_pipeline (mixed precision), decode_vs_pipeline (labels to
entities alone), decode_mtok_s, last_entity_share (where in the text the last
entity ends), last_entity_share_plain (without
stride), changed_entities (0; short texts).
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import bench_encode as encode
import numpy as np
import torch

from featpipe.features.entities import decode
from featpipe.features.feature import TaggerSettings
from featpipe.features.labels import Tags
from featpipe.features.tagger import Tagger

if TYPE_CHECKING:
    from featpipe.features.tokens import Tokens

LABELS = ("O", *(f"{p}-{kind}" for kind in ("PER", "ORG", "LOC", "DATE", "MONEY") for p in "BI"))
Spans = set[tuple[int, int, str]]


def make_tagger(folder: Path, texts: list[str], *, is_small: bool) -> Path:
    """Random weights with a head that is sure of itself."""
    from transformers import BertConfig, BertForTokenClassification

    n_words = encode.write_vocabulary(folder, texts)
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 8}
    config = BertConfig(
        vocab_size=n_words,
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
        **(sizes | {"intermediate_size": 1024} if is_small else {}),
    )
    torch.manual_seed(0)
    model = BertForTokenClassification(config)
    with torch.no_grad():
        model.classifier.weight.mul_(30)
    model.save_pretrained(folder)
    return folder


def load_pipeline(folder: Path, **options: object) -> Any:  # noqa: ANN401 - untyped library
    """The peer, with simple aggregation."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    model = AutoModelForTokenClassification.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return pipeline(
        "token-classification",
        model=model,
        tokenizer=tokenizer,
        aggregation_strategy="simple",
        **options,
    )


def spans_of(tagger: Tagger, text: str) -> Spans:
    """Our entities of one text."""
    found = tagger.find_entities([text])
    names = (tagger.labels[number] for number in found.label)
    return set(zip(found.start.tolist(), found.end.tolist(), names, strict=True))


def pipeline_spans(pipeline: Any, text: str) -> Spans:  # noqa: ANN401 - untyped library
    """The peer's entities of one text."""
    return {(e["start"], e["end"], e["entity_group"]) for e in pipeline(text)}


def time_decode(tokens: Tokens, rounds: int) -> float:
    """Tokens per second from labels to entities, all documents at once."""
    chance = np.random.default_rng(0)
    labels = chance.integers(0, len(LABELS), len(tokens.ids))
    scores = np.ones(len(labels), np.float32)
    tags = Tags.of(LABELS)
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        decode(labels, scores, tokens, tags)
        seconds.append(time.process_time() - started)
    return len(labels) / median(seconds)


def time_pipeline_decode(pipeline: Any, text: str) -> float:  # noqa: ANN401 - untyped library
    """The peer's tokens per second for the same step, over one window."""
    [inputs] = list(pipeline.preprocess(text[:400], **pipeline._preprocess_params))
    with torch.inference_mode():
        output = pipeline._forward(dict(inputs))
    started = time.process_time()
    for _ in range(20):
        pipeline.postprocess(
            [output], aggregation_strategy=pipeline._postprocess_params["aggregation_strategy"]
        )
    return 20 * int(output["logits"].shape[1]) / (time.process_time() - started)


def main() -> None:
    """Compare on short texts, time on long ones."""
    options = encode.read_options()
    if options.processor_time:
        encode.measure_processor_time()
    report = encode.Report()
    texts = encode.read_texts(
        options.data / "fields" / "fddc_hetong.jsonl.xz", 20 if options.quick else 200
    )
    long = sorted(texts, key=len)[-1:] if options.quick else sorted(texts, key=len)[-60::20]
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_tagger(Path(scratch), texts, is_small=options.quick)
        taggers = {
            p: Tagger.load(folder, TaggerSettings(precision=p), threads=encode.THREADS)
            for p in ("exact", "mixed")
        }
        plain, strided = load_pipeline(folder), load_pipeline(folder, stride=128)
        short = [text[:300].strip() for text in texts[:20]]
        n_changed = sum(
            len(spans_of(taggers["exact"], text) ^ pipeline_spans(plain, text)) for text in short
        )
        report.note("changed_entities", n_changed)
        seen = [max((end for _, end, _ in spans_of(taggers["exact"], t)), default=0) for t in long]
        cut = [max((end for _, end, _ in pipeline_spans(plain, t)), default=0) for t in long]
        sizes = [len(text.rstrip()) for text in long]
        report.note("last_entity_share", min(a / n for a, n in zip(seen, sizes, strict=True)))
        report.note("last_entity_share_plain", min(a / n for a, n in zip(cut, sizes, strict=True)))
        seconds = encode.interleave(
            options.rounds or (1 if options.quick else 3),
            peer=lambda: [strided(text) for text in long],
            exact=lambda: [taggers["exact"].find_entities([text]) for text in long],
            mixed=lambda: [taggers["mixed"].find_entities([text]) for text in long],
        )
        report.row("entities, float32", seconds["peer"], seconds["exact"], "float32_vs_pipeline")
        report.row("entities, mixed", seconds["peer"], seconds["mixed"], "default_vs_pipeline")
        tokens = taggers["exact"].tokenizer.encode(texts, with_offsets=True)
        ours, theirs = time_decode(tokens, 5), time_pipeline_decode(plain, long[0])
        report.note("decode_mtok_s", ours / 1e6)
        report.note("decode_vs_pipeline", ours / theirs)
    line = json.dumps({"bench": "bench_ner", "quick": options.quick, "figures": report.figures})
    if options.json:
        options.json.write_text(line + "\n", "utf-8")
    print(line)


if __name__ == "__main__":
    main()
