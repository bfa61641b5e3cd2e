"""The part of bench_encode that is for a card: ``bench_encode.py --device cuda [--data DIR]``.

BERT-base's and Qwen3-0.6B's shape with random weights (speed alone) and MiniLM's real weights
(accuracy), in mixed precision, against sentence-transformers in float16 at its best batch size of
three: tokens a second of the forward alone, of a whole build from texts to rows on disk, the share
of it in which the card computed, and least cosines to float32 on the processor. Runs with
``--device cpu`` through `main`, too, to see that it runs.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench_encode as encode
import numpy as np
import torch
from harness import Report, make_parser

from featpipe import Pipeline
from featpipe.documents import of_texts
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

#: Batch sizes that the peer may choose from.
_BATCHES = (32, 128, 512)

#: Texts whose vectors are compared with the processor's.
_COMPARED = 64

#: Characters of a paragraph of the build, which are about its tokens, and paragraphs of a document.
_PARAGRAPH, _PARAGRAPHS = 126, 40

#: Tokens of the build: half a minute at the rate that is asked for.
_BUILD_TOKENS = 60_000_000

_MIXED = EncoderSettings(precision="mixed", dtype="float32")


def bench_card(report: Report, options: argparse.Namespace, device: str) -> None:
    """All models on `device`."""
    device = "cuda:0" if device == "cuda" else device
    blocks = options.blocks or (4 if options.quick else 400)
    rounds = options.rounds or (0 if options.quick else 5)
    fields = options.data / "fields"
    english = encode.read_texts(fields / "cuad.jsonl.xz", 10 if options.quick else 200)
    chinese = encode.read_texts(fields / "fddc_hetong.jsonl.xz", 60 if options.quick else 1000)
    cut = [part.strip() for text in english for part in text.split("\n")]
    texts = encode.large_corpus(cut, blocks, 700)
    cosines = [_bench_model(report, "minilm", encode.minilm_folder(), texts, device, rounds)]
    paragraphs = cut_evenly(chinese, blocks * encode.BLOCK)
    n_layers = 2 if options.quick else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = encode.make_bert_base(Path(scratch), chinese, n_layers=n_layers or 12)
        cosines.append(_bench_model(report, "bert_base", folder, paragraphs, device, rounds))
        encoder = Encoder.load(folder, _MIXED, device=device, threads=encode.THREADS)
        report.note("cuda_tokens_s_forward", forward_rate(encoder, paragraphs, max(1, rounds)))
        peak = measure_peak(device)
        share = report.figures["cuda_tokens_s_forward"] * encode.flops_per_token(encoder) / peak
        report.note("cuda_peak_share_forward", share)
        del encoder
        n_tokens = 20_000 if options.quick else _BUILD_TOKENS
        bench_build(report, folder, chinese, device=device, n_tokens=n_tokens)
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_qwen(Path(scratch), chinese, n_layers=n_layers or 28)
        few = paragraphs[: max(encode.BLOCK, len(paragraphs) // 4)]
        cosines.append(_bench_model(report, "qwen06", folder, few, device, rounds))
    report.note("cuda_cos_min", min(cosines))
    for key, model in (("cuda_vs_st", "bert_base"), ("cuda_qwen06_vs_st", "qwen06")):
        report.note(key, report.figures[f"cuda_{model}_vs_st"])


def cut_evenly(documents: list[str], count: int, *, size: int = _PARAGRAPH) -> list[str]:
    """Distinct pieces of about `size` characters from the documents' text."""
    whole = "".join("".join(text.split()) for text in documents)
    step = max(1, (len(whole) - 2 * size) // count)
    pieces = (whole[at : at + size - at % 8] for at in range(0, step * count, step))
    return list(dict.fromkeys(filter(None, pieces)))


def make_qwen(folder: Path, texts: list[str], *, n_layers: int) -> Path:
    """A random model of Qwen3-0.6B's shape, or of its first layers, with a small vocabulary."""
    from transformers import AutoTokenizer, Qwen3Config, Qwen3Model

    n_words = encode.write_vocabulary(folder, texts)
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=n_words, hidden_size=1024, num_hidden_layers=n_layers, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, intermediate_size=3072, max_position_embeddings=32768,
    )  # fmt: skip
    Qwen3Model(config).save_pretrained(folder)
    return folder


def forward_rate(encoder: Encoder, texts: list[str], rounds: int) -> float:
    """Tokens a second from tokens to vectors: best of the rounds."""
    tokens = encoder.tokenizer.encode(texts)
    n_tokens = int(encoder.count_tokens(texts).sum())
    seconds = []
    with torch.inference_mode():
        for _ in range(rounds + 1):
            begun = time.perf_counter()
            encoder.encode_windows(tokens)
            seconds.append(time.perf_counter() - begun)
    return n_tokens / min(seconds)


def bench_build(
    report: Report, folder: Path, documents: list[str], *, device: str, n_tokens: int
) -> None:
    """A build of paragraphs from texts to rows on disk, the start of its processes included."""
    pieces = cut_evenly(documents, 20_000)
    n_documents = max(1, n_tokens // (_PARAGRAPHS * _PARAGRAPH))
    texts = (
        "\n".join(f"{number} {at} {pieces[(number * _PARAGRAPHS + at) % len(pieces)]}"
                  for at in range(_PARAGRAPHS))
        for number in range(n_documents)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        with Pipeline(
            Path(scratch) / "c.h5",
            folder,
            "none",
            devices=[device],
            encoder=EncoderSettings(precision="mixed"),
            settings=BuildSettings(levels=("paragraph",)),
        ) as pipeline:
            done = pipeline.build(of_texts(texts))
        size = (Path(scratch) / "c.h5").stat().st_size
    sample = Encoder.load(folder, EncoderSettings(precision="exact"))
    a_unit = float(sample.count_tokens([f"123 12 {piece}" for piece in pieces[:500]]).mean())
    print(f"build: {done.n_encoded} paragraphs, {size / 1e6:.0f} MB, {done.seconds:.1f} s")
    print("\n".join(done.notes))
    report.note("cuda_tokens_s_build", done.n_encoded * a_unit / done.seconds)
    report.note("cuda_busy_share", done.card_share or 0.0)


def _bench_model(  # what is measured, and how
    report: Report, name: str, folder: Path, texts: list[str], device: str, rounds: int
) -> float:
    """Ratio and rate; returns the least cosine."""
    mixed = Encoder.load(folder, _MIXED, device=device, threads=2)
    exact = Encoder.load(folder, EncoderSettings(precision="exact", dtype="float32"), threads=2)
    sample = texts[:: max(1, len(texts) // _COMPARED)]
    found = encode.cosines(mixed.encode(sample).vectors, exact.encode(sample).vectors)
    report.note(f"cuda_{name}_cos_min", found.min())
    peer = _load_peer(folder, device)
    batch = _best_batch(peer, texts)
    seconds = encode.interleave(
        rounds,
        peer=lambda: peer.encode(texts, batch_size=batch),
        we=lambda: mixed.encode(texts),
    )
    n_tokens = int(mixed.encode(texts).n_tokens.sum())
    print(f"{name}: {len(texts)} texts, {n_tokens} tokens, peer's batch {batch}; {mixed.notes}")
    report.row(f"{name} on {device}", seconds["peer"], seconds["we"], f"cuda_{name}_vs_st")
    report.note(f"cuda_{name}_tokens_s", n_tokens / min(seconds["we"]))
    mixed.forwarder.take_card_s()
    begun = time.perf_counter()
    mixed.encode(texts)
    waited = 1 - mixed.forwarder.take_card_s() / (time.perf_counter() - begun)
    report.note(f"cuda_{name}_wait_share", waited)
    return float(found.min())


def _load_peer(folder: Path, device: str) -> Any:  # noqa: ANN401 - untyped library
    from sentence_transformers import SentenceTransformer

    dtype = torch.float32 if device == "cpu" else torch.float16
    return SentenceTransformer(str(folder), device=device, model_kwargs={"dtype": dtype})


def _best_batch(peer: Any, texts: list[str]) -> int:  # noqa: ANN401 - untyped library
    """The peer's fastest, by one run each over a part of the corpus."""
    part = texts[:: max(1, len(texts) // 2048)]

    def run(size: int) -> Callable[[], object]:
        return lambda: peer.encode(part, batch_size=size)

    seconds = encode.interleave(1, **{str(size): run(size) for size in _BATCHES})
    return int(min(seconds, key=lambda size: seconds[size][0]))


def measure_peak(device: str) -> float:
    """Best FLOP/s of a plain matrix product of the layers' kind, in the layers' dtype."""
    n_rows, width, inner = 16384, 768, 3072
    dtype = torch.bfloat16 if device == "cpu" else torch.float16
    a = torch.randn(n_rows, width, device=device).to(dtype)
    b = torch.randn(width, inner, device=device).to(dtype)
    times = []
    for _ in range(30 if device != "cpu" else 3):
        _wait(device)
        started = time.perf_counter()
        torch.matmul(a, b)
        _wait(device)
        times.append(time.perf_counter() - started)
    return 2 * n_rows * width * inner / float(np.min(times))


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize(device)


def main() -> None:
    """For trying it out without a card."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--blocks", type=int)
    options = parser.parse_args()
    report = Report("bench_encode", options)
    bench_card(report, options, options.device)
    report.finish()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
