"""How long a browser takes to open the evidence page of a cache, and to open its documents.

``CACHE`` is any cache; its documents are repeated until there are ``--documents`` of them, each
with ten values per template field. Prints one JSON line: seconds until the page can be used (the
list is drawn and the first document's text is there), until everything is read, for the table of
fields, for the map, and the median over some documents that are opened by a click; and the same
for an empty page of the same browser as the floor. Needs Playwright and a Chromium.
"""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from harness import finish, make_parser

from featpipe import Cache
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.html_report.contents import Contents
from featpipe.html_report.page import report_pieces
from featpipe.html_report.report import ReportSettings, render_contents
from featpipe.html_report.results import Results

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIELDS = 12


def main() -> None:
    """Write the page, open it some times, print the line."""
    parser = make_parser(__doc__)
    parser.add_argument("cache", type=Path)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        empty = Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>", "utf-8")
        started = perf_counter()
        facts = write_page(options.cache, options.documents, page)
        facts["write_s"] = round(perf_counter() - started, 2)
        facts |= open_pages(options.chromium, page, empty, options.rounds)
    finish("bench_report", options, facts)


def write_page(cache: Path, n: int, path: Path) -> dict[str, float]:
    """The page of ``n`` documents, with values at places chosen by chance."""
    chance = random.Random(9)  # noqa: S311 - places, not secrets
    with Cache.open(cache) as opened:
        documents = list(opened.documents())
        documents = (documents * (n // len(documents) + 1))[:n]
        fields = {}
        for document in documents:
            found = {
                f"字段{i}": FieldResult((_value(document.text, chance),)) for i in range(FIELDS)
            }
            fields["模板", document.path] = found
        tagger = next(iter(opened.stored_documents.taggers()), None)
        contents = Contents(Results("bench", fields), tagger)
        for document in documents:
            contents.add(document)
        main_part = render_contents(opened, ReportSettings(), contents, documents, documents)
    main_part |= {"results": "bench", "tagger": ""}
    with path.open("w", encoding="utf-8") as file:
        file.writelines(report_pieces(main_part, contents.blocks))
    return {
        "documents": n,
        "characters": sum(entry["chars"] for entry in contents.entries),
        "values": sum(len(entry["values"]) for entry in contents.entries),
        "page_mb": round(path.stat().st_size / 1e6, 1),
    }


def _value(text: str, chance: random.Random) -> ExtractedValue:
    start = chance.randrange(max(1, len(text) - 12))
    shown = text[start : start + 12]
    parts = {"words": 5.0, "value": 2.0, "position": 0.3, "bias": -8.0}
    end = start + len(shown)
    return ExtractedValue(
        shown, shown, "", "", start, end, None, chance.random(), parts, "samples/one.html"
    )


def open_pages(chromium: str, page: Path, empty: Path, rounds: int) -> dict[str, float]:
    """Medians, each round in a browser of its own that has loaded nothing before."""
    from playwright.sync_api import sync_playwright

    taken: dict[str, list[float]] = {}
    with sync_playwright() as driver:
        for _ in range(rounds):
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, seconds in one_round(browser, page, empty).items():
                taken.setdefault(name, []).append(seconds)
            browser.close()
    return {name: round(median(seconds), 3) for name, seconds in taken.items()}


def one_round(browser: Browser, page: Path, empty: Path) -> dict[str, float]:
    """Seconds of each step."""
    tab = browser.new_page()
    taken = {}

    def time(name: str, act: str, wait: str) -> None:
        started = perf_counter()
        if act.startswith("file:"):
            tab.goto(act, wait_until="commit")
        else:
            tab.evaluate(act)
        tab.wait_for_function(f"() => {wait}", polling=10)
        taken[name] = perf_counter() - started

    time("empty_s", empty.as_uri(), "document.readyState === 'complete'")
    time("usable_s", page.as_uri(), "document.querySelector('.text .line')")
    started = perf_counter()
    tab.wait_for_function("() => document.readyState === 'complete'", polling=10)
    taken["complete_s"] = taken["usable_s"] + perf_counter() - started
    one = []
    for number in range(2, 22, 2):
        time(
            "one",
            f"document.querySelector('.item[data-document=\"{number}\"]').click()",
            f"document.querySelector('.item[data-document=\"{number}\"][aria-current]')"
            " && document.querySelector('.text .line')",
        )
        one.append(taken.pop("one"))
    taken["open_document_s"] = median(one)
    time("fields_s", "document.getElementById('tab-fields').click()",
         "document.querySelector('.grid-body .cell')")  # fmt: skip
    time("map_s", "document.getElementById('tab-map').click()", "document.querySelector('.point')")
    return taken


if __name__ == "__main__":
    main()
