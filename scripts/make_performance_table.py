"""The README's performance table and the guide's of quality, made from what was measured.

    scripts/bench_store.py --json store.json
    scripts/make_performance_table.py store.json      # keep the result, renew the tables
    scripts/make_performance_table.py --check         # are they those of the kept results?

What evaluations measured is in the guide's (``quality_table.py``). A result is kept in
``data/benchmarks/<bench>.json`` together with the machine, so it has to be given on the machine
that measured it. Quick runs are refused: they are for looking only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from quality_table import CHINESE, ENGLISH, quality_tables

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "data" / "benchmarks"
GUIDE = ROOT / "featpipe" / "guide"


@dataclass(frozen=True)
class Line:
    """One figure of the table: what was measured, against what, and how it is written."""

    bench: str
    key: str
    what: str
    against: str
    form: str = "{:.1f}x"


ST = "sentence-transformers"
LINES = (
    Line("encode", "bert_base_default_vs_st", "encode, BERT-base, default", ST),
    Line("encode", "bert_base_float32_vs_st", "encode, BERT-base, float32", ST),
    Line("encode", "minilm_default_vs_st", "encode, MiniLM, default", ST),
    Line("encode", "minilm_float32_vs_st", "encode, MiniLM, float32", ST),
    Line("encode", "per_document_float32_vs_st", "one document, all levels", ST),
    Line("encode", "default_vs_openvino_bf16", "encode, MiniLM, default", "OpenVINO, bfloat16"),
    Line("encode", "two_workers_vs_st", "units of all levels, MiniLM, two workers", ST),
    Line("encode", "pool_vs_st_pool", "units of all levels, two workers", "its pool of processes"),
    Line("encode", "start_vs_st", "start a worker", ST),
    Line("encode", "tokenizer_vs_transformers", "token ids", "transformers' tokenizer"),
    Line("ner", "default_vs_pipeline", "entities of long documents", "transformers' pipeline"),
    Line("store", "write_vs_dataset_per_key", "write rows, durable", "h5py, a dataset per key"),
    Line("store", "write_vs_lmdb", "write rows, durable", "LMDB"),
    Line("store", "write_vs_h5py_fsync", "write rows, durable", "h5py, one matrix, fsync"),
    Line("store", "lookup10k_vs_lmdb", "10,000 texts to a matrix", "LMDB"),
    Line("store", "lookup10k_vs_h5py", "10,000 texts to a matrix", "h5py, one matrix"),
    Line("store", "gather_vs_memmap", "rows to a matrix", "raw memory map", "{:.2f}x"),
    Line("store", "index_open_ms", "open the index of 10 million keys", "", "{:.2f} ms"),
    Line("engine", "overhead_us", "a task through a worker", "", "{:.0f} us"),
    Line("engine", "overhead_vs_executor", "a task through a worker", "concurrent.futures"),
    Line("engine", "overhead_vs_loky", "a task through a worker", "loky"),
    Line("engine", "array_100mb_vs_queue", "a result of 100 MB", "multiprocessing.Queue"),
    Line("engine", "death_notice_ms", "notice a dead worker", "", "{:.1f} ms"),
    Line("words", "ids_vs_jieba", "words as ids", "jieba"),
    Line("bm25", "query_vs_rank_bm25_1m", "top 10 of a million sentences", "rank-bm25", "{:,.0f}x"),
    Line("bm25", "query_vs_bm25s_1m", "top 10 of a million sentences", "bm25s (numba)"),
    Line("bm25", "fields_vs_rank_bm25", "60 queries over one document", "rank-bm25", "{:.0f}x"),
    Line("documents", "html_vs_bs4", "read HTML", "BeautifulSoup"),
    Line("documents", "pdf_vs_pypdf", "read PDF", "pypdf"),
    Line("extraction", "fit_field_s", "fit a field, 20 samples", "", "{:.2f} s"),
    Line("extraction", "announcement_p50_ms", "six fields of an announcement", "", "{:.1f} ms"),
    Line("extraction", "contract_p50_ms", "ten of a long contract", "", "{:.0f} ms"),
    Line("reprocess", "reprocess_vs_encode", "changed template", "encode, BERT-base", "{:.0f}x"),
    Line("loop", "correction_to_change_s", "correction to changes, 300 files", "", "{:.1f} s"),
    Line("service", "p99_ms", "service, 99th percentile", "", "{:.0f} ms"),
    Line("scale", "document_ratio", "one document of 1 M", "of 10 k", "{:.1f} times as long"),
    Line("scale", "hybrid_warm_s", "hybrid search over 1 M documents", "", "{:.2f} s"),
    Line("scale", "search_cold_s", "the first search ever over 1 M documents", "", "{:.1f} s"),
    Line("scale", "nearest_vs_numpy", "exact nearest, 1 M rows", "numpy", "{:.2f} of its time"),
    Line("scale", "known_run_s", "a run over 1 M known documents", "", "{:.0f} s"),
    Line("scale", "known_run_mb", "its memory", "", "{:.0f} MB"),
    Line("distribution", "cpu_vs_one_machine", "build in shards", "one file", "{:.2f} of its CPU"),
    Line("distribution", "merge_rows_per_cpu_s", "merge shards", "", "{:,.0f} rows a CPU second"),
    Line("distribution", "frozen_node_s", "Ray, after a node froze", "", "{:.0f} s to the end"),
)  # fmt: skip


def machine() -> dict[str, object]:
    """What results depend on: processor, cores, Python."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text("utf-8") if cpuinfo.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": named[1].strip() if named else platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }


def keep(path: Path) -> None:
    """Take over a result file; its last line is the result."""
    result = json.loads(path.read_text("utf-8").strip().splitlines()[-1])
    if result["quick"]:
        sys.exit(f"{path} is from a --quick run; run {result['bench']} in full")
    KEPT.mkdir(parents=True, exist_ok=True)
    name = result["bench"].removeprefix("bench_")
    text = json.dumps({**result, "machine": machine()}, indent=1, ensure_ascii=False)
    (KEPT / f"{name}.json").write_text(text + "\n", "utf-8")


def performance_table(kept: dict[str, dict]) -> str:
    """From kept results by name: one row per figure, and the machine."""
    rows = ["| what | against | featpipe |", "|---|---|---|"]
    measured = set()
    for line in LINES:
        figure = kept.get(line.bench, {}).get("figures", {}).get(line.key)
        if figure is not None:
            rows.append(f"| {line.what} | {line.against} | {line.form.format(figure)} |")
            measured.add(_named(kept[line.bench]["machine"]))
    note = f"Measured on {'; '.join(sorted(measured))}. Times faster than the peer, in one run."
    return "\n".join([*rows, "", note])


def _named(found: dict[str, object]) -> str:
    return f"{found['cores']} cores of {found['processor']}, Python {found['python']}"


def renew(page: Path, begin: str, table: str, end: str, *, is_check: bool) -> bool:
    """Put a table between two texts of a page, or only look; whether the page differs.

    Raises:
        SystemExit: the page has no such place.
    """
    head, found, rest = page.read_text("utf-8").partition(begin)
    old, closed, tail = rest.partition(end)
    if not found or not closed:
        sys.exit(f"{page.name} has no place for a table behind {begin.strip()!r}")
    if old == table:
        return False
    if is_check:
        print(f"{page.name}: a table is not that of data/benchmarks: run this without --check")
    else:
        page.write_text(head + begin + table + end + tail, "utf-8")
    return True


def main() -> int:
    """Keep results, then renew or check the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULT.json")
    parser.add_argument("--check", action="store_true", help="only compare; 1 when one differs")
    options = parser.parse_args()
    for path in options.results:
        keep(path)
    kept = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(KEPT.glob("*.json"))}
    begin, end = "<!-- performance: begin -->\n", "\n<!-- performance: end -->"
    tables = [(ROOT / "README.md", begin, performance_table(kept), end)]
    for page, wording in (("quality.md", ENGLISH), ("quality.zh.md", CHINESE)):
        for table in quality_tables(kept, wording):
            heads, _, rows = table.partition("\n")
            tables.append((GUIDE / page, f"{heads}\n", rows, "\n\n"))
    differ = [renew(*table, is_check=options.check) for table in tables]
    return int(options.check and any(differ))


if __name__ == "__main__":
    sys.exit(main())
