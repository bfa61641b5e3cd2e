"""Entities of long documents against transformers' pipeline: same weights, same documents, one run.

The weights are random (a BERT-base shape, with ``--quick`` a small one): this says how fast it is,
not how good. Texts of one window must give the same entities on both sides before anything is
timed. The pipeline gets ``stride=128``, without which it drops everything after 512 tokens.

    python scripts/bench_ner.py [--data DIR] [--quick] [--json FILE] [--processor-time]

Keys: float32_vs_pipeline, default_vs_pipeline (mixed precision), decode_vs_pipeline (labels to
entities alone), decode_mtok_s, last_entity_share (where in the text the last entity ends),
last_entity_share_plain (without stride), changed_entities (0; short texts), one_forward_vs_two
(vectors and entities of the documents' paragraphs on one trunk, against each alone).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import bench_encode as encode
import numpy as np
import torch
from harness import Report

from featpipe.encoders.encode_and_tag import encode_and_tag
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.entities import Tags, decode
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger

if TYPE_CHECKING:
    from featpipe.encoders.tokens import Tokens

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


def compare_spans(
    report: Report,
    tagger: Tagger,
    pipeline: Any,  # noqa: ANN401 - untyped library
    short: list[str],
    long: list[str],
) -> None:
    """Entities of short texts that differ, and where the last one of long texts stands."""
    n_changed = sum(len(spans_of(tagger, t) ^ pipeline_spans(pipeline, t)) for t in short)
    report.note("changed_entities", n_changed)
    seen = [max((end for _, end, _ in spans_of(tagger, t)), default=0) for t in long]
    cut = [max((end for _, end, _ in pipeline_spans(pipeline, t)), default=0) for t in long]
    sizes = [len(text.rstrip()) for text in long]
    report.note("last_entity_share", min(a / n for a, n in zip(seen, sizes, strict=True)))
    report.note("last_entity_share_plain", min(a / n for a, n in zip(cut, sizes, strict=True)))


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


def bench_together(report: Report, folder: Path, texts: list[str], rounds: int) -> None:
    """Vectors and entities by one forward, against one after the other; the same bytes."""
    encoder = Encoder.load(folder, EncoderSettings(precision="mixed"), threads=encode.THREADS)
    tagger = Tagger.load(
        folder, TaggerSettings(precision="mixed"), threads=encode.THREADS, trunk=encoder.trunk
    )
    if not tagger.shares_trunk:
        raise SystemExit("the two do not share their trunk")
    vectors, entities = encode_and_tag(encoder, tagger, texts)
    apart = encoder.encode(texts), tagger.find_entities(texts)
    for ours, alone in ((vectors.vectors, apart[0].vectors), (entities.start, apart[1].start)):
        if not np.array_equal(ours, alone):
            raise SystemExit("one forward gives other bytes than two")
    seconds = encode.in_turn(
        rounds,
        peer=lambda: (encoder.encode(texts), tagger.find_entities(texts)),
        we=lambda: encode_and_tag(encoder, tagger, texts),
    )
    report.row("one forward for both", seconds["peer"], seconds["we"], "one_forward_vs_two")


def main() -> None:
    """Compare on short texts, time on long ones."""
    options = encode.read_options()
    if options.processor_time:
        encode.measure_processor_time()
    report = Report("bench_ner", options)
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
        compare_spans(report, taggers["exact"], plain, [t[:300].strip() for t in texts[:20]], long)
        seconds = encode.in_turn(
            options.rounds or (1 if options.quick else 3),
            peer=lambda: [strided(text) for text in long],
            exact=lambda: [taggers["exact"].find_entities([text]) for text in long],
            mixed=lambda: [taggers["mixed"].find_entities([text]) for text in long],
        )
        report.row("entities, float32", seconds["peer"], seconds["exact"], "float32_vs_pipeline")
        report.row("entities, mixed", seconds["peer"], seconds["mixed"], "default_vs_pipeline")
        parts = {part.strip() for text in long for part in text.split("\n") if len(part) < 250}
        bench_together(report, folder, sorted(parts)[:400], options.rounds or 3)
        tokens = taggers["exact"].tokenizer.encode(texts, with_offsets=True)
        ours, theirs = time_decode(tokens, 5), time_pipeline_decode(plain, long[0])
        report.note("decode_mtok_s", ours / 1e6)
        report.note("decode_vs_pipeline", ours / theirs)
    report.finish()


if __name__ == "__main__":
    main()
