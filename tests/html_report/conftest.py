"""A cache of friendly and hostile documents, results over them, and a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_checkpoints import save_encoder, save_tagger
from waiting import HANG_S

from featpipe import Cache, Pipeline

CHROMIUM = "/usr/bin/chromium"

#: What a document may hold that a page must show and never obey.
HOSTILE = (
    "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\n"
    "<svg/onload=window.hacked=3> <!-- --> ]]> &lt;b&gt; &amp; \\u003cscript\\u003e\n"
    "\u2028 window.hacked = 4 \u2029 {{contents}} ${window.hacked = 5} `javascript:alert(1)`"
)
EVIL_NAME = "<img src=x onerror=window.hacked=7>\u2028\u2029</script>"
ASTRAL = "𠮷野家与👩‍👩‍👧签订合同，合同金额为三万元。𠮷"


def value(
    text: str, document: str, *, p: float = 0.9, nearest: str = "a.txt", nth: int = 0
) -> dict:
    """One value as `extract` writes it, at the n-th place where it stands in the document."""
    start = -1
    for _ in range(nth + 1):
        start = document.index(text, start + 1)
    return {
        "text": text, "value": text, "unit": "", "bound": "", "start": start,
        "end": start + len(text), "page": None, "probability": p,
        "parts": {"words": 1.5, "position": -0.5, "bias": -3.0}, "nearest": nearest, "places": [],
    }  # fmt: skip


@pytest.fixture(name="value")
def make_value() -> Callable[..., dict]:
    return value


@pytest.fixture(scope="session")
def report_models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("report-models")
    return save_encoder(folder / "tiny"), save_tagger(folder / "tiny-ner")


@pytest.fixture(scope="session")
def shown_cache(tmp_path_factory: pytest.TempPathFactory, report_models: tuple[Path, Path]) -> Path:
    folder = tmp_path_factory.mktemp("report")
    docs = folder / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("买卖合同\n甲方与乙方签订合同。\n合同金额为三万元整。", "utf-8")
    (docs / "astral.txt").write_text(ASTRAL, "utf-8")
    (docs / "hostile.txt").write_text(HOSTILE, "utf-8")
    (docs / "table.html").write_text(
        "<html><head><title>中标公告</title></head><body><h1>中标公告</h1><table>"
        "<tr><td>中标人</td><td>金额</td></tr><tr><td>甲公司</td><td>五万元</td></tr>"
        "</table></body></html>",
        "utf-8",
    )
    (docs / "bad.bin").write_bytes(bytes(range(256)) * 40)
    with Pipeline(folder / "c.h5", *report_models, devices=["cpu"]) as pipeline:
        assert len(pipeline.build(docs).quarantined) == 1
    return folder / "c.h5"


@pytest.fixture(scope="session")
def texts(shown_cache: Path) -> dict[str, str]:
    """Document id -> text, as the cache has it."""
    with Cache.open(shown_cache) as cache:
        return {document.id: document.text for document in cache.documents()}


@pytest.fixture
def results(tmp_path: Path, texts: dict[str, str]) -> Path:
    """A file of results with overlapping values, hostile ones, and a document without a text."""
    names = ("docs/a.txt", "docs/astral.txt", "docs/hostile.txt", "docs/table.html")
    a, astral, hostile, table = (texts[name] for name in names)
    evil = "<b onclick=window.hacked=6>金额"
    fields = {
        "docs/a.txt": {
            "合同名称": [value("买卖合同", a, p=0.97)],
            evil: [value("三万元", a), value("合同金额为三万元整", a, p=0.4)],
            "备注": [],
        },
        "docs/astral.txt": {
            "合同名称": [],
            evil: [value("三万元", astral, p=0.7)],
            "备注": [value("𠮷", astral, nth=1)],
        },
        "docs/hostile.txt": {
            "合同名称": [value("</script><script>", hostile, nearest=EVIL_NAME)],
            evil: [], "备注": [],
        },
        "docs/table.html": {"合同名称": [], evil: [value("五万元", table)], "备注": []},
        "elsewhere.txt": {"合同名称": [value("别处", "别处")], evil: [], "备注": []},
    }  # fmt: skip
    lines = [{"document": d, "template": "合同", "fields": f} for d, f in fields.items()]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


class Patient:
    """A browser whose pages wait for what must come as all tests do, by Playwright 30 s."""

    def __init__(self, browser: Any) -> None:  # noqa: ANN401  # optional
        self._browser = browser

    def __getattr__(self, name: str) -> object:
        return getattr(self._browser, name)

    def new_context(self, **options: object) -> object:
        context = self._browser.new_context(**options)
        context.set_default_timeout(HANG_S * 1000)
        return context

    def new_page(self, **options: object) -> object:
        return self.new_context(**options).new_page()


@pytest.fixture
def browser() -> Iterator[object]:
    """Debian's Chromium, driven by Playwright; gone with every process after the test."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=HANG_S * 1000
        )
        yield Patient(started)
        started.close()


@pytest.fixture
def open_page(browser: object) -> Callable[..., object]:
    """Open a file; what the page logs, fails on or asks the network for is an error of the test."""

    def open_file(path: Path, fragment: str = "", **options: object) -> object:
        usual = {"viewport": {"width": 1400, "height": 900}, "locale": "en-GB"}
        page = browser.new_context(**usual | options).new_page()  # type: ignore[attr-defined]  # optional
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda message: page.faults.append(message.text))
        page.on("request", lambda request: page.faults.append(request.url))
        page.goto(path.as_uri() + fragment)
        # The file itself, and nothing else.
        assert [page.faults.pop(0).partition("#")[0]] == [path.as_uri()]
        return page

    return open_file


@pytest.fixture
def a_copy(shown_cache: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(shown_cache, tmp_path / "c.h5"))
