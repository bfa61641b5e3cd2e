"""The page of a running service: paste a text or choose a file, and its values light up."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

from service_watch import running

if TYPE_CHECKING:
    from playwright.sync_api import Page

TEMPLATE = """name = "lease"
[[fields]]
name = "租金"
type = "money"
[[samples]]
text = "租赁合同。甲方：北京天地有限公司。每月租金为人民币5,000元。"
fields = { "租金" = "人民币5,000元" }
[[samples]]
text = "房屋租赁合同。甲方：上海江河有限公司。每月租金为人民币7,200元。"
fields = { "租金" = "人民币7,200元" }
"""
SCRIPT = "<script>window.hacked = 1</script>"
TEXT = f"厂房租赁合同。甲方：重庆山城有限公司。\n{SCRIPT}每月租金为人民币9,600元。"


def give_the_key(page: Page) -> None:
    page.fill("input[type=password]", "s3cret")
    page.keyboard.press("Tab")
    page.wait_for_selector("select")
    assert page.is_disabled(".primary")


def paste(page: Page) -> None:
    page.fill("textarea", TEXT)
    page.click(".primary")
    page.wait_for_selector("mark.value")
    assert page.inner_text("mark.value") == "人民币9,600元"
    assert SCRIPT in page.inner_text(".text")
    page.hover("mark.value")
    assert "Probability" in page.inner_text("#card")
    assert "9600" in page.inner_text("#card")
    page.click(".back")


def choose(page: Page, folder: Path) -> None:
    page.set_input_files("#file", folder / "厂房.txt")
    page.wait_for_selector("mark.value")
    assert page.inner_text(".document-head h2") == "厂房.txt"
    page.click(".back")
    page.set_input_files("#file", folder / "program")
    page.wait_for_selector(".notice:not([hidden])")
    assert "is not read" in page.inner_text(".notice:not([hidden])")
    assert page.input_value("textarea") == TEXT


def test_a_person_pastes_a_text_or_chooses_a_file(
    browser: object, shown_cache: Path, report_models: tuple[Path, Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "templates").mkdir(parents=True)
    shutil.copy(shown_cache, home / "c.h5")
    (home / "templates" / "lease.toml").write_text(TEMPLATE, "utf-8")
    (tmp_path / "厂房.txt").write_text(TEXT, "utf-8")
    (tmp_path / "program").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    model, tagger = map(str, report_models)
    with running(home, model=model, ner=tagger, api_key="s3cret", document_deadline_s=60.0) as (
        service,
        _,
    ):
        page = browser.new_context(locale="en-GB").new_page()  # type: ignore[attr-defined]  # optional
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(service.url)
        give_the_key(page)
        paste(page)
        choose(page, tmp_path)
        assert page.evaluate("window.hacked") is None
        assert {url.removeprefix(service.url) for url in asked} == {"/", "/templates", "/extract"}
        page.close()
