"""The part of bench_encode that is for a card: ``bench_encode.py --device cuda [--data DIR]``.

A corpus of nearly equal and of mixed lengths on BERT-base's shape (random weights: speed alone) and
MiniLM's real weights (accuracy): tokens per second, share of the matrix product's measured peak,
least cosine to float32 on the processor, ratio to sentence-transformers in float16 at its best
batch size of three. Runs with ``--device cpu`` through `main`, too, to see that it runs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench_encode as encode
import numpy as np
import torch
from harness import Report, make_parser

from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

#: Batch sizes that the peer may choose from.
_BATCHES = (32, 128, 512)

#: Texts whose vectors are compared with the processor's.
_COMPARED = 64


def bench_card(report: Report, options: argparse.Namespace, device: str) -> None:
    """Both models on `device`."""
    blocks = options.blocks or (8 if options.quick else 400)
    rounds = options.rounds or (1 if options.quick else 5)
    fields = options.data / "fields"
    english = encode.read_texts(fields / "cuad.jsonl.xz", 10 if options.quick else 200)
    chinese = encode.read_texts(fields / "fddc_hetong.jsonl.xz", 60 if options.quick else 1000)
    for name, documents, longest in (("minilm", english, 700), ("bert_base", chinese, 250)):
        paragraphs = [part.strip() for text in documents for part in text.split("\n")]
        texts = encode.large_corpus(paragraphs, blocks, longest)
        with tempfile.TemporaryDirectory() as scratch:
            folder = (
                encode.minilm_folder()
                if name == "minilm"
                else encode.make_bert_base(Path(scratch), documents)
            )
            _bench_model(report, name, folder, texts, device=device, rounds=rounds)


def _bench_model(
    report: Report, name: str, folder: Path, texts: list[str], *, device: str, rounds: int
) -> None:
    mixed = Encoder.load(
        folder, EncoderSettings(precision="mixed", dtype="float32"), device=device, threads=2
    )
    exact = Encoder.load(folder, EncoderSettings(precision="exact", dtype="float32"), threads=2)
    sample = texts[:: max(1, len(texts) // _COMPARED)]
    found = encode.cosines(mixed.encode(sample).vectors, exact.encode(sample).vectors)
    report.note(f"card_{name}_cos_min", found.min())
    peer = _load_peer(folder, device)
    batch = _best_batch(peer, texts)
    seconds = encode.interleave(
        rounds,
        peer=lambda: peer.encode(texts, batch_size=batch),
        we=lambda: mixed.encode(texts),
    )
    n_tokens = int(mixed.encode(texts).n_tokens.sum())
    rate = n_tokens / min(seconds["we"])
    print(f"{name}: {len(texts)} texts, {n_tokens} tokens, peer's batch {batch}; {mixed.notes}")
    report.row(f"{name} on {device}", seconds["peer"], seconds["we"], f"card_{name}_vs_st")
    report.note(f"card_{name}_tokens_s", rate)
    peak = measure_peak(device)
    report.note(f"card_{name}_peak_share", rate * encode.flops_per_token(mixed) / peak)


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
    main()
