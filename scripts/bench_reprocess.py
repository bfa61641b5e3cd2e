"""A changed template over a cached corpus against encoding the corpus again.

::

    python scripts/bench_reprocess.py [--data ../shared/data] [--quick] [--json FILE] [--model M]

The peer is what one does without a cache: build it anew, then extract. We change one field's alias
and reprocess; run again unchanged; change one document. Both must give the same values. Then the
latency of a document that is cached and was asked for before, all fields of the template together.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from harness import finish, make_parser, read_lines

from featpipe import Extractor, Pipeline
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.template_file import check_template

if TYPE_CHECKING:
    import argparse

    from featpipe.extraction.template import Template

NAMES = ("甲方", "乙方", "项目名称", "合同金额上限")


def write_documents(data: Path, folder: Path, n: int) -> list[dict]:
    """The first announcements as text files; from our own documents where the data is absent."""
    source = data / "fields" / "fddc_hetong.jsonl.xz"
    folder.mkdir(parents=True)
    if not source.exists():
        own = Path(__file__).resolve().parents[1] / "data"
        rows = [json.loads(line) for line in (own / "templates/expected.jsonl").open("rb")]
        rows = [r for r in rows if r["document"].endswith((".txt", ".md"))][:n]
        for row in rows:
            row["text"] = (
                (own / "documents" / row["document"]).read_bytes().decode("utf-8", "replace")
            )
            row["doc_id"] = Path(row["document"]).stem
    else:
        rows = list(read_lines(source, n))
    for row in rows:
        (folder / f"{row['doc_id']}.txt").write_text(row["text"], "utf-8")
    return rows


def make_template(rows: list[dict], alias: str | None = None) -> Template:
    """Five samples; the alias is the change."""
    names = [n for n in NAMES if any(n in row["fields"] for row in rows[:5])] or ["甲方"]
    fields: list[dict[str, object]] = [{"name": name} for name in names]
    if alias:
        fields[0]["aliases"] = [alias]
    samples = [
        {
            "document": f"{row['doc_id']}.txt",
            "fields": {n: row["fields"][n] for n in names if n in row["fields"]},
        }
        for row in rows[:5]
    ]
    content = {"name": "公告", "fields": fields, "samples": samples}
    return check_template(content, "", Path("bench.toml"))


def build(cache: Path, model: str | None, documents: Path) -> tuple[float, int]:
    """Seconds, and texts encoded."""
    started = perf_counter()
    with Pipeline(cache, model, "none", devices=["cpu"]) as pipeline:
        report = pipeline.build(documents)
    return perf_counter() - started, report.n_encoded


def extract(cache: Path, template: Template) -> tuple[float, int, int]:
    """Seconds, texts encoded, fields extracted."""
    started = perf_counter()
    with Extractor([template], cache) as extractor:
        report = reprocess(extractor)
    return perf_counter() - started, report.n_encoded, report.n_extracted


def values(cache: Path, template: Template) -> dict[str, dict[str, list[str]]]:
    """All values by document and field."""
    with Extractor([template], cache) as extractor:
        return {
            e.document: {name: [v.value for v in r.values] for name, r in e.fields.items()}
            for e in read_results(extractor)
        }


def latencies(cache: Path, template: Template, rounds: int) -> list[float]:
    """Milliseconds of one call each, ascending: cached documents in turn, all seen before."""
    with Extractor([template], cache) as extractor:
        documents = list(extractor.cache.documents())[:20]
        for document in documents:
            extractor.extract(document)
        taken = []
        for number in range(rounds):
            started = perf_counter()
            extractor.extract(documents[number % len(documents)])
            taken.append((perf_counter() - started) * 1000)
    return sorted(taken)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """One round over one corpus."""
    documents, cache = folder / "documents", folder / "c.h5"
    rows = write_documents(options.data, documents, 40 if options.quick else options.documents)
    before, after = make_template(rows), make_template(rows, alias="招标人")
    encode_s, n_encoded = build(cache, options.model, documents)
    first_s, _, n_first = extract(cache, before)
    rerun_s, rerun_encodes, n_rerun = extract(cache, before)
    changed_s, changed_encodes, n_changed = extract(cache, after)
    peer = folder / "peer.h5"
    again_s, _ = build(peer, options.model, documents)
    full_s, _, _ = extract(peer, after)
    if values(cache, after) != values(peer, after):
        raise SystemExit("reprocessing and a full run differ")
    text = next(iter(sorted(documents.iterdir())))
    text.write_text(text.read_text("utf-8") + "\n补充公告：以上内容无误。", "utf-8")
    _, one_encodes = build(cache, options.model, documents)
    one_s, _, n_one = extract(cache, after)
    print(f"{'what':<34}{'seconds':>9}  {'encoded':>8}  {'fields':>7}")
    for what, seconds, encoded, n in (
        ("build, first extraction", encode_s + first_s, n_encoded, n_first),
        ("encode again, extract (peer)", again_s + full_s, n_encoded, n_first),
        ("changed field, reprocess", changed_s, changed_encodes, n_changed),
        ("unchanged, rerun", rerun_s, rerun_encodes, n_rerun),
        ("one document changed, reprocess", one_s, one_encodes, n_one),
    ):
        print(f"{what:<34}{seconds:>9.2f}  {encoded:>8}  {n:>7}")
    taken = latencies(cache, after, 400 if options.quick else 2000)
    p50, p99 = (taken[int(len(taken) * share)] for share in (0.5, 0.99))
    n_fields = len(after.fields)
    print(f"cached document, warm, {n_fields} fields: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    return {
        "cached_p50_ms": p50,
        "cached_p99_ms": p99,
        "reprocess_vs_encode": again_s / changed_s,
        "reprocess_encodes": changed_encodes,
        "rerun_vs_first": (encode_s + first_s) / rerun_s,
        "rerun_encodes": rerun_encodes,
        "one_changed_encodes": one_encodes,
    }


def main() -> None:
    """Read the options, run, print."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", help="encoder; by default the built-in one")
    parser.add_argument("--documents", type=int, default=300)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="featpipe-bench-"))
    try:
        figures = {key: round(value, 3) for key, value in measure(options, folder).items()}
    finally:
        shutil.rmtree(folder)
    finish("bench_reprocess", options, figures)


if __name__ == "__main__":
    main()
