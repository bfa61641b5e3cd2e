"""The offline site: pages in two languages, links that lead somewhere, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from waiting import HANG_S

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.documents.own_files import describe_own_file
from featpipe.errors import UsageError, WriteFailed
from featpipe.guide.pages import make_page, topics
from featpipe.guide.site import render_markdown, write_site


class Reader(HTMLParser):
    """Ids, and addresses of links and files."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids |= {str(values["id"])} if "id" in values else set()
        self.addresses += [str(values[n]) for n in ("href", "src") if n in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "guide"
    done = CliRunner().invoke(featpipe_command, ["guide", "--web", str(folder)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{folder}/index.html")
    return folder


def test_every_page_is_there_in_both_languages(site: Path) -> None:
    names = {"index.html"} | {f"{topic}.html" for topic in topics() if topic != "start"}
    assert {path.name for path in site.glob("*.html")} == names
    assert {path.name for path in (site / "zh").glob("*.html")} == names


def test_every_link_leads_to_a_page_and_a_heading_of_the_site(site: Path) -> None:
    read = {path: Reader(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in read.items():
        for address in page.addresses:
            assert "://" not in address, "nothing is loaded from elsewhere"
            name, _, anchor = address.partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.is_file(), f"{path.name}: {address}"
            assert not anchor or anchor in read[target].ids, f"{path.name}: {address}"


def test_the_index_leads_to_headings(site: Path) -> None:
    for folder in (site, site / "zh"):
        ids = {path.name: Reader(path.read_text("utf-8")).ids for path in folder.glob("*.html")}
        text = (folder / "index.js").read_text("utf-8")
        content = json.loads(text.removeprefix("const GUIDE = ").rstrip(";\n"))
        for href, _, _ in content["entries"]:
            name, _, anchor = href.partition("#")
            assert not anchor or anchor in ids[name]
        assert all(n < len(content["entries"]) for w in content["worths"].values() for n, _ in w)


def test_its_pages_are_no_documents(site: Path) -> None:
    assert describe_own_file(site / "index.html") is not None


def test_markup_in_a_page_is_text() -> None:
    page = make_page("t", "en", "# A\n\n<script>x</script> [b](models.zh.md#c)\n")
    html = render_markdown(page)
    assert "<script>" not in html
    assert '<h1 id="a">' in html
    assert 'href="models.html#c"' in html


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteFailed, match="cannot be written"):
        write_site(tmp_path / "file" / "x", featpipe_command)


@pytest.mark.parametrize("name", ["index.html", "zh/models.html", "search.js"])
def test_files_of_another_site_are_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "zh").mkdir()
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=f"{name} is of no guide, and would be lost"):
        write_site(tmp_path, featpipe_command)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert (tmp_path / name).read_text() == "mine"


def test_an_earlier_site_is_replaced(tmp_path: Path) -> None:
    write_site(tmp_path, featpipe_command)
    before = (tmp_path / "guide.css").read_bytes()
    (tmp_path / "guide.css").write_text("")
    assert write_site(tmp_path, featpipe_command) == tmp_path / "index.html"
    assert (tmp_path / "guide.css").read_bytes() == before


def test_it_is_found_in_a_browser_as_in_the_terminal(site: Path) -> None:
    """With the script of the site itself."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = next((p for p in map(Path, CHROMIUM) if p.exists()), None)
    if chromium is None:
        pytest.skip("no Chromium here")
    from featpipe.guide.reference import read_all_pages
    from featpipe.guide.search import GuideIndex

    questions = ["How do I delete a document?", "which models are refused", "queries running"]
    index = GuideIndex(read_all_pages("en", featpipe_command))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium),
            args=["--no-sandbox", "--disable-gpu"],
            timeout=HANG_S * 1000,
        )
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(HANG_S * 1000)
        page.goto((site / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for question in questions:
            page.fill("#words", question)
            found = page.eval_on_selector_all(
                "#hits a", "all => all.map(a => a.getAttribute('href'))"
            )
            expected = [re.sub(r"^(\w+)", r"\1.html", h.address) for h in index.search(question)]
            assert [f.replace("index.html", "start.html") for f in found] == expected
        page.keyboard.press("Enter")
        page.wait_for_url("**/*.html*")
        browser.close()


CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
