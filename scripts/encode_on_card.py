"""The part of bench_encode that is for a card: ``bench_encode.py --device cuda [--data DIR]``.

In mixed precision, against sentence-transformers in float16 at its best batch size of three:
BERT-base's and Qwen3-0.6B's shape with random weights, MiniLM (random, too, where its package is
absent), and trained weights of bge-small and of the built-in model, which accuracy is judged by.
Tokens a second of the forward alone, of texts in memory and of a whole build from texts to rows on
disk; the share of it in which the card computed, by the build's report and by the card's driver;
and least cosines to float32 on the processor. By itself, with ``--only PART ...``, where a card is
lent for minutes; with ``--device cpu``, to see that it runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import bench_encode as encode
import numpy as np
import torch
from harness import BUILT_IN_MODEL, Report, make_parser

from featpipe import Pipeline
from featpipe.documents import of_texts
from featpipe.encoders.encode_and_tag import encode_and_tag
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.spec import EncoderSettings, TaggerSettings
from featpipe.encoders.tagger import Tagger
from featpipe.settings import BuildSettings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

#: Batch sizes that the peer may choose from.
_BATCHES = (32, 128, 512)

#: Texts whose vectors are compared with the processor's.
_COMPARED = 64

#: Characters of a paragraph of the build, which are about its tokens, and paragraphs of a document.
_PARAGRAPH, _PARAGRAPHS = 126, 40

#: Tokens of the build: a minute at the rate that is asked for, a tenth of which is its start.
_BUILD_TOKENS = 120_000_000

#: What `bench_card` measures, in this order.
PARTS = ("bert_base", "minilm", "bge_small", "zh_small", "qwen06", "build")

#: Trained weights, which accuracy is judged by, by the folder of ``--data``.
_REAL: dict[str, Callable[[Path], Path]] = {
    "bge_small": lambda data: data / "models" / "bge-small-zh-v1.5",
    "zh_small": lambda _data: BUILT_IN_MODEL,
}

_MIXED = EncoderSettings(precision="mixed", dtype="float32")


def bench_card(
    report: Report, options: argparse.Namespace, device: str, wanted: Sequence[str] = PARTS
) -> None:
    """The `wanted` parts."""
    device = "cuda:0" if device == "cuda" else device
    file = options.data / "fields" / "fddc_hetong.jsonl.xz"
    chinese = encode.read_texts(file, 60 if options.quick else 1000)
    cosines = []
    for part in wanted:
        with tempfile.TemporaryDirectory() as scratch:
            if part == "build":
                n_layers = 2 if options.quick else 12
                folder = encode.make_bert_base(Path(scratch), chinese, n_layers=n_layers)
                devices = [device] * getattr(options, "workers", 1)
                n_tokens = getattr(options, "tokens", _BUILD_TOKENS)
                bench_build(report, folder, chinese, devices, 20_000 if options.quick else n_tokens)
            else:
                cosines += _bench_part(report, options, device, part, chinese, Path(scratch))
    if cosines:
        report.note("cuda_cos_min", min(cosines))
    for key, model in (("cuda_vs_st", "bert_base"), ("cuda_qwen06_vs_st", "qwen06")):
        if model in wanted:
            report.note(key, report.figures[f"cuda_{model}_vs_st"])


def _bench_part(
    report: Report,
    options: argparse.Namespace,
    device: str,
    part: str,
    chinese: list[str],
    folder: Path,
) -> list[float]:
    """One model; its least cosine, or none where its weights are not at hand."""
    blocks = options.blocks or (4 if options.quick else 400)
    rounds = options.rounds or (0 if options.quick else 5)
    texts = cut_evenly(chinese, blocks * encode.BLOCK)
    if part == "minilm":
        folder, texts = _minilm(folder, options, blocks)
    elif part == "bert_base":
        encode.make_bert_base(folder, chinese, n_layers=2 if options.quick else 12)
    elif part == "qwen06":
        make_qwen(folder, chinese, n_layers=2 if options.quick else 28)
        texts = texts[: max(encode.BLOCK, len(texts) // 4)]
    else:
        folder = _REAL[part](options.data)
    if not (folder / "config.json").is_file():
        print(f"{part}: no weights in {folder}")
        return []
    least = _bench_model(report, part, folder, texts, device, rounds)
    if part == "bert_base":
        _bench_forward(report, folder, texts, device, rounds)
    if part == "zh_small":
        _bench_entities(report, folder, texts, device, rounds)
    return [least]


def _minilm(scratch: Path, options: argparse.Namespace, blocks: int) -> tuple[Path, list[str]]:
    """MiniLM's real weights, or random ones of its shape; and English texts."""
    english = encode.read_texts(options.data / "fields" / "cuad.jsonl.xz", 20)
    cut = [part.strip() for text in english for part in text.split("\n")]
    texts = encode.large_corpus(cut, blocks, 700)
    try:
        return encode.minilm_folder(), texts
    except ModuleNotFoundError:
        print("minilm: random weights, speed alone")
    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
    return encode.make_bert_base(scratch, english, **sizes), texts


def _bench_forward(
    report: Report, folder: Path, texts: list[str], device: str, rounds: int
) -> None:
    """The forward alone, and its share of the card's matrix product."""
    encoder = Encoder.load(folder, _MIXED, device=device, threads=encode.THREADS)
    rate = forward_rate(encoder, texts, max(1, rounds))
    report.note("cuda_tokens_s_forward", rate)
    share = rate * encode.flops_per_token(encoder) / measure_peak(device)
    report.note("cuda_peak_share_forward", share)


def _bench_entities(
    report: Report, folder: Path, texts: list[str], device: str, rounds: int
) -> None:
    """Vectors and entities by one forward, as a build computes paragraphs."""
    encoder = Encoder.load(folder, _MIXED, device=device, threads=2)
    settings = TaggerSettings(precision="mixed")
    tagger = Tagger.load(folder, settings, device=device, threads=2, trunk=encoder.trunk)
    [seconds] = encode.interleave(
        rounds, both=lambda: encode_and_tag(encoder, tagger, texts)
    ).values()
    n_tokens = int(encoder.count_tokens(texts).sum())
    report.note("cuda_zh_small_entities_tokens_s", n_tokens / min(seconds))


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
    report: Report, folder: Path, documents: list[str], devices: Sequence[str], n_tokens: int
) -> None:
    """A build of paragraphs from texts to rows on disk.

    Whole, with the start of its processes and the load of the model; and from the first fifth of
    the rows to the last twentieth, which tells how a longer build goes.
    """
    pieces = cut_evenly(documents, 20_000)
    n_documents = max(1, n_tokens // (_PARAGRAPHS * _PARAGRAPH))
    texts = (
        "\n".join(f"{number} {at} {pieces[(number * _PARAGRAPHS + at) % len(pieces)]}"
                  for at in range(_PARAGRAPHS))
        for number in range(n_documents)
    )  # fmt: skip
    seen: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as scratch, CardUse() as use:
        with Pipeline(
            Path(scratch) / "c.h5",
            folder,
            "none",
            devices=list(devices),
            encoder=EncoderSettings(precision="mixed"),
            settings=BuildSettings(levels=("paragraph",)),
        ) as pipeline:
            begun = time.monotonic()
            done = pipeline.build(
                of_texts(texts), listen=lambda now: seen.append((time.monotonic(), now.n_encoded))
            )
        size = (Path(scratch) / "c.h5").stat().st_size
    if done.n_encoded != n_documents * _PARAGRAPHS or not done.is_complete:
        raise SystemExit(f"{done}: {done.failed}")
    sample = Encoder.load(folder, EncoderSettings(precision="exact"))
    a_unit = float(sample.count_tokens([f"123 12 {piece}" for piece in pieces[:500]]).mean())
    print(f"build: {done.n_encoded} paragraphs, {size / 1e6:.0f} MB, {done.seconds:.1f} s")
    print("\n".join(done.notes))
    report.note("cuda_tokens_s_build", done.n_encoded * a_unit / done.seconds)
    report.note("cuda_busy_share", done.card_share or 0.0)
    first, last = (
        next(point for point in seen if point[1] >= share * done.n_encoded) for share in (0.2, 0.95)
    )
    report.note("cuda_build_start_s", next(at for at, n in seen if n) - begun)
    if last[0] > first[0]:
        rate = (last[1] - first[1]) * a_unit / (last[0] - first[0])
        report.note("cuda_tokens_s_build_steady", rate)
    report.note("cuda_driver_busy_share", use.share(begun, seen[-1][0]))
    report.note("cuda_driver_busy_share_steady", use.share(first[0], last[0]))


class CardUse:
    """The share of time in which the card computed anything, as its driver counts it."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if shutil.which("nvidia-smi"):
            words = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
            self._child = subprocess.Popen(
                [*words, "-lms", "250"], stdout=subprocess.PIPE, text=True
            )
            self._reader = threading.Thread(target=self._read, args=(self._child.stdout,))
            self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.terminate()
            self._reader.join()
            self._child.wait()

    def share(self, begun: float, ended: float) -> float:
        """Mean over the samples between two times; 0 without a driver's tool."""
        within = [percent for at, percent in self._samples if begun <= at <= ended]
        return sum(within) / len(within) / 100 if within else 0.0

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self._samples.append((time.monotonic(), float(line)))


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
    """Some parts, or a try without a card."""
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--tokens", type=int, default=_BUILD_TOKENS, help="of the build")
    parser.add_argument("--workers", type=int, default=1, help="of the build, all on the card")
    options = parser.parse_args()
    report = Report("bench_encode", options)
    bench_card(report, options, options.device, options.only)
    report.finish()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
