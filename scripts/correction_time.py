"""Seconds from a correction to changed values, in a service with reviews over announcements."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from bench_service import Client, start
from harness import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FIELDS = ("甲方", "乙方", "项目名称", "合同名称", "合同金额上限", "合同金额下限")
#: A field whose values do not depend on those of others.
CORRECTED = "合同名称"
_N_SAMPLES, _N_CORRECTIONS = 5, 5
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Corrected:
    """One correction: seconds until all changes were known, and texts encoded for them."""

    seconds: float
    n_encoded: int
    n_documents: int
    summary: str


def time_corrections(data: Path, work: Path, n: int, quick: bool) -> Iterator[Corrected]:
    """Correct one value after another, each seen from its POST to the whole of its changes.

    Args:
        data: folder of the sets.
        work: keeps the documents and their cache for the next run.
        n: announcements.
        quick: one correction only.

    """
    rows = list(read_lines(data / "fields" / "fddc_hetong.jsonl.xz", n))
    known = [row for row in rows if row["fields"].get(CORRECTED)]
    samples, others = known[:_N_SAMPLES], known[_N_SAMPLES:]
    cache = prepare(work, rows, samples)
    process, port = start(work, cache, "--review", "--ner", "none")
    try:
        client = Client(port)
        ask(client, "queue", lambda found: found["n_done"] == found["n_documents"])
        for row in others[: 1 if quick else _N_CORRECTIONS]:
            yield correct(client, row)
    finally:
        process.terminate()
        process.wait(60)


def prepare(work: Path, rows: Sequence[dict], samples: Sequence[dict]) -> Path:
    """Documents, cache and template; what a run before left of them is used again."""
    from featpipe import BuildSettings, Pipeline

    for name in ("documents", "templates"):
        (work / name).mkdir(parents=True, exist_ok=True)
    for row in rows:
        (work / "documents" / f"{row['doc_id']}.txt").write_text(row["text"], "utf-8")
    settings = BuildSettings(levels=("sentence",))  # extraction reads no other vectors
    with Pipeline(work / "c.h5", None, "none", devices=["cpu"], settings=settings) as pipeline:
        print(pipeline.build(work / "documents").summary())
    template = {
        "name": "announcement",
        "fields": [{"name": name} for name in FIELDS],
        "samples": [
            {"document": f"documents/{row['doc_id']}.txt", "fields": row["fields"],
             "complete": True}
            for row in samples
        ],
    }  # fmt: skip
    (work / "templates" / "announcement.json").write_text(json.dumps(template), "utf-8")
    (work / "templates" / "announcement.corrections.jsonl").unlink(missing_ok=True)
    return work / "c.h5"


def correct(client: Client, row: dict) -> Corrected:
    """Say what the value of a document is, and wait for what that changes."""
    queue = get(client, "queue", field=CORRECTED, limit=1000)
    name = f"documents/{row['doc_id']}.txt"
    item = next(item for item in queue["items"] if item["document"] == name)
    text = get(client, "document", key=item["key"])["text"]
    value = next(
        row["text"][a:b] for spans in row["spans"][CORRECTED].values() for a, b in spans[:1]
    )
    at = text.index(value)
    shown = [[found["start"], found["end"]] for found in item["values"]]
    body = {
        "verdict": "correct", "template": "announcement", "document": name, "key": item["key"],
        "field": CORRECTED, "spans": [[at, at + len(value)]], "shown": shown,
        "about": shown[0] if shown else None,
    }  # fmt: skip
    started = time.perf_counter()
    status, answer = client.post("/review/corrections", body)
    if status != 200:
        raise SystemExit(f"the correction was refused: {answer.decode()}")
    changes = ask(client, "changes", lambda found: found["is_complete"])
    seconds = time.perf_counter() - started
    counts = changes["summary"]
    summary = f"{counts['n_values']} values change in {counts['n_documents']} documents"
    return Corrected(seconds, changes["n_encoded"], changes["n_documents"], summary)


def ask(client: Client, path: str, is_whole: Any) -> dict[str, Any]:  # noqa: ANN401  # a predicate, JSON
    """Ask until the answer is whole; the service itself waits up to a second for it."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        found = get(client, path)
        if is_whole(found):
            return found
    raise SystemExit(f"/review/{path} was not whole within {_PATIENCE_S:.0f} s")


def get(client: Client, path: str, **more: object) -> dict[str, Any]:
    """One answer of the review."""
    status, body = client.get(f"/review/{path}?{urlencode({'template': 'announcement', **more})}")
    if status != 200:
        raise SystemExit(f"/review/{path}: {body.decode()}")
    found: dict[str, Any] = json.loads(body)
    return found
