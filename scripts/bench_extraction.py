"""Seconds to fit a field and to extract a document, beside the version of another commit.

::

    python scripts/bench_extraction.py [--before COMMIT] [--data ../shared/data] [--quick]

The peer is featpipe itself as it was at a commit, unpacked by ``git archive``. Each version runs in
a process of its own on one thread; the two take turns, round by round. Measured are the fit of one
field (all six of an announcement by 20 samples, divided by six), the six fields of an announcement,
and those of English contracts, from pages whose segments and words are known, as in a cache, and
whose features are computed anew in every round: no text comes twice. The values of both are
compared and counted as equal or not: between versions they may differ.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from extraction_sets import read_set
from harness import finish, make_parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from featpipe.extraction.scoring.field_model import FieldModel
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.values.values import FieldType

HERE = Path(__file__).resolve()
#: The commit before extraction was made faster.
BEFORE = "8959a3c"
WHAT = ("fit", "announcement", "contract")
_SETS = {"announcement": "fddc_hetong", "contract": "cuad"}
_K = {"announcement": 20, "contract": 5}
_CONTRACT = (100_000, 200_000)
"""Characters of a contract of about 50 pages."""


# ---- in the child: one version


def serve(data: Path, n_documents: int) -> None:
    """Answer each line of standard input, the name of a measurement, with its result."""
    from featpipe.extraction.scoring.page import page_of_text

    pages, texts, rows, models = {}, {}, {}, {}
    for what, name in _SETS.items():
        [task] = read_set(data, name, 10**6, "dev")
        long_enough = [row for row in task.test if what != "contract" or _is_long(row)]
        samples = random.Random(0).sample(task.pool, _K[what])  # noqa: S311  # a draw, no secret
        rows[what] = samples
        texts[what] = [row["text"] for row in long_enough[:n_documents]]
        pages[f"samples {what}"] = [page_of_text(row["text"]) for row in samples]
    for number, line in enumerate(sys.stdin):
        what = line.strip()
        of = "announcement" if what == "fit" else what
        if what == "fit" or of not in models:
            started = perf_counter()
            models[of] = fit_all(rows[of], pages[f"samples {of}"])
            times = [(perf_counter() - started) / len(models[of])]
            answer: list = []
        if what != "fit":
            # Never the same text again: what is kept of the last ones is of no use.
            times, answer = extract_all(
                models[of], [page_of_text(text + "\n" * number) for text in texts[of]]
            )
        print(json.dumps({"seconds": times, "answer": answer}), flush=True)


def _is_long(row: dict) -> bool:
    return _CONTRACT[0] <= len(row["text"]) <= _CONTRACT[1]


def fit_all(samples: Sequence[dict], pages: Sequence[Page]) -> list[FieldModel]:
    """One model per field, from pages whose features are not computed yet."""
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.locate import infer_type

    fit_field, sample_of = fitting_functions()
    ready = [PageFeatures(page) for page in pages]
    models = []
    for name in sorted({name for row in samples for name in row["fields"]}):
        given = [row["fields"].get(name, []) for row in samples]
        pairs = [(one, v) for one, values in zip(ready, given, strict=True) for v in values]
        kind = infer_type(pairs)
        located = [sample_of(one, v, kind) for one, v in zip(ready, given, strict=True)]
        models.append(fit_field(located, kind, (name,), **pretrained_of(name, kind)))
    return models


def fitting_functions() -> tuple[Callable, Callable]:
    """How a field is fitted, wherever a version has it."""
    package = "featpipe.extraction.scoring"
    place = "field_fitting" if find_spec(f"{package}.field_fitting") else "field_model"
    module = import_module(f"{package}.{place}")
    return module.fit_field, module.sample_of


def pretrained_of(name: str, kind: FieldType) -> dict:
    """The argument that versions before pretrained fields did not take."""
    if find_spec("featpipe.extraction.scoring.pretrained") is None:
        return {}
    from featpipe.extraction.scoring.pretrained import shipped_fields

    return {"pretrained": shipped_fields().find((name,), kind)}


def extract_all(models: Sequence[FieldModel], pages: Sequence[Page]) -> tuple[list, list]:
    """Seconds of each document, and the values found in it."""
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.field_model import score_fields

    times, found = [], []
    for page in pages:
        started = perf_counter()
        scored = score_fields(models, PageFeatures(page))
        chosen = [model.choose(one) for model, one in zip(models, scored, strict=True)]
        times.append(perf_counter() - started)
        found.append(
            [
                [one.groups[number].value.key for number in numbers]
                for one, numbers in zip(scored, chosen, strict=True)
            ]
        )
    return times, found


# ---- in the parent: two versions take turns


class Version:
    """A child process with one version of the package.

    Args:
        root: folder that holds ``featpipe``.
        data: folder of the real data.
        n_documents: announcements of a round.

    """

    def __init__(self, root: Path, data: Path, n_documents: int) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._child = subprocess.Popen(
            [sys.executable, HERE, "--serve", str(n_documents), "--data", data.absolute()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | threads | {"PYTHONPATH": f"{root}{os.pathsep}{HERE.parent}"},
        )

    def measure(self, what: str) -> tuple[float, list]:
        """Median seconds, and the values found."""
        self._child.stdin.write(what + "\n")
        self._child.stdin.flush()
        answered = json.loads(self._child.stdout.readline())
        return float(np.median(answered["seconds"])), answered["answer"]

    def close(self) -> None:
        """End the child."""
        self._child.communicate()


def unpack(commit: str, folder: Path) -> Path:
    """The package as it was at a commit."""
    archive = subprocess.run(
        ["git", "archive", commit, "featpipe"],
        cwd=HERE.parent.parent, check=True, capture_output=True,
    )  # fmt: skip
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def take_turns(peer: Version, we: Version, n_rounds: int) -> Iterator[tuple[str, float]]:
    """The table, and figures by key."""
    units = {"fit": ("s", 1.0), "announcement": ("ms", 1e3), "contract": ("ms", 1e3)}
    for what in WHAT:
        rounds = [(peer.measure(what), we.measure(what)) for _ in range(n_rounds + 1)][1:]
        unit, scale = units[what]
        before, after = (np.array([one[side][0] * scale for one in rounds]) for side in (0, 1))
        ratio = float(np.median(before / after))
        answers = [answer for _, answer in rounds[-1]]
        n_equal = sum(one == other for one, other in zip(*answers, strict=True))
        same = f"  same values in {n_equal} of {len(answers[0])} documents" if answers[0] else ""
        print(
            f"{what:<14} before {np.median(before):8.2f}  now {np.median(after):8.2f} {unit}"
            f" ({after.min():.2f} to {after.max():.2f})  {ratio:.2f} times as fast{same}"
        )
        key = "fit_field_s" if what == "fit" else f"{what}_p50_ms"
        yield key, float(np.median(after))
        if what != "contract":
            yield ("fit_vs_before" if what == "fit" else "extract_vs_before"), ratio


def main() -> None:
    """Read the options, run, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--before", default=BEFORE, help="commit of the peer")
    parser.add_argument("--serve", type=int, metavar="DOCUMENTS", help="(of the children)")
    options = parser.parse_args()
    if options.serve:
        serve(options.data, options.serve)
        return
    n_documents, n_rounds = (20, 2) if options.quick else (60, 5)
    with tempfile.TemporaryDirectory() as folder:
        roots = (unpack(options.before, Path(folder)), HERE.parent.parent)
        peer, we = (Version(root, options.data, n_documents) for root in roots)
        figures = {key: round(value, 3) for key, value in take_turns(peer, we, n_rounds)}
        peer.close()
        we.close()
    finish("bench_extraction", options, figures)


if __name__ == "__main__":
    main()
