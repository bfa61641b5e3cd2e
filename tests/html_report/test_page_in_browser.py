"""The evidence page in a real browser: what people see, click, and reach by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import wait_for

from featpipe import Cache
from featpipe.extraction.corrections_fold import fold
from featpipe.extraction.corrections_log import read_corrections
from featpipe.extraction.evaluation import (
    Disagreement,
    Judgement,
    Stated,
    TemplateEvaluation,
    score,
)
from featpipe.extraction.results import ExtractedValue
from featpipe.html_report import ReportSettings, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., Any]
Make = Callable[..., dict[str, Any]]


@pytest.fixture
def page_file(shown_cache: Path, results: Path, tmp_path: Path) -> Path:
    evaluation = tmp_path / "evaluation.jsonl"
    with Cache.open(shown_cache) as cache:
        evaluation.write_text(json.dumps(judged(cache).as_dict()) + "\n", "utf-8")
        settings = ReportSettings(results=results, evaluation=evaluation)
        write_report(cache, tmp_path / "page.html", settings)
    return tmp_path / "page.html"


def judged(cache: Cache) -> TemplateEvaluation:
    """Of one field: a right value, and one that is stated otherwise in the document ``a.txt``."""
    document = cache.find_document("docs/a.txt")
    assert document is not None
    field = "合同名称"
    wrong = ExtractedValue("甲方", "甲方", "", "", start=5, end=7, page=None, probability=0.95)
    where = Disagreement(
        document.id, document.key.hex(), field, (Stated("买卖合同", ((0, 4),)),), (wrong,)
    )
    return score(
        "合同", "samples", (field, "备注"),
        [
            Judgement(document.id, field, 1, ((0.95, False),), where),
            Judgement("docs/astral.txt", field, 1, ((0.9, True),)),
        ],
    )  # fmt: skip


def number_of(page: Page, name: str) -> int:
    return int(page.evaluate(
        "name => JSON.parse(document.getElementById('contents').textContent)"
        ".docs.findIndex(d => d.id === name)", name))  # fmt: skip


def open_document(page: Page, name: str) -> None:
    page.click(f'.item[data-document="{number_of(page, name)}"]')
    page.wait_for_function(
        "name => document.querySelector('.document-head')?.innerText.includes(name)", arg=name
    )
    wait_for_text(page)


def wait_for_text(page: Page) -> None:
    """New chunks of text have no `innerText` until the frame that finds them on the screen."""
    page.wait_for_function("""
        () => [...document.querySelectorAll('.text > .chunk')].every(chunk => {
            const { top, bottom } = chunk.getBoundingClientRect();
            return bottom < 0 || top > innerHeight
                || chunk.firstElementChild.checkVisibility({ contentVisibilityAuto: true });
        })
    """)


def hide_entities(page: Page) -> None:
    """The tiny tagger marks every character; the switches put an end to it."""
    for chip in page.query_selector_all(".legend .chip"):
        chip.click()
    assert page.query_selector_all(".piece.entity") == []
    wait_for_text(page)


def test_values_light_up_where_they_stand(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    open_document(page, "docs/a.txt")
    assert len(page.query_selector_all(".piece.entity")) > 3
    hide_entities(page)
    marked = [node.inner_text() for node in page.query_selector_all("mark.value")]
    # The two values overlap: three pieces, of which the middle one belongs to both.
    assert marked == ["买卖合同", "合同金额为", "三万元", "整"]
    both = page.query_selector_all("mark.value")[2]
    both.hover()
    card = page.inner_text("#card")
    assert card.count("Probability") == 2
    assert "90" in card
    assert "40" in card
    assert "a.txt" in card
    assert page.get_attribute("mark.value:nth-of-type(1)", "role") == "note"
    # A click on a value in the list goes to its place and shows the same card.
    page.click(".found >> nth=0")
    assert page.evaluate("document.activeElement.innerText") == "买卖合同"
    assert "97" in page.inner_text("#card")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.innerText") in page.inner_text(".text")
    page.keyboard.press("Escape")
    assert not page.is_visible("#card")
    assert page.inner_text(".text").replace("\n\n", "\n").split("\n")[0] == "买卖合同"
    assert page.faults == []


def test_offsets_hold_behind_characters_of_two_code_units(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    open_document(page, "docs/astral.txt")
    hide_entities(page)
    assert [n.inner_text() for n in page.query_selector_all("mark.value")] == ["三万元", "𠮷"]
    assert page.faults == []


def test_tables_and_headings_look_like_what_they_are(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    open_document(page, "docs/table.html")
    hide_entities(page)
    assert page.inner_text(".text [role=heading]") == "中标公告"
    assert [n.inner_text() for n in page.query_selector_all(".text td")] == [
        "中标人",
        "金额",
        "甲公司",
        "五万元",
    ]
    assert page.inner_text(".text td mark.value") == "五万元"
    open_document(page, "elsewhere.txt")
    assert "does not hold the text" in page.inner_text("#document")
    assert page.inner_text(".found-text") == "别处"
    assert page.faults == []


def test_nothing_in_a_document_is_obeyed(
    page_file: Path, open_page: Open, texts: dict[str, str]
) -> None:
    page = open_page(page_file)
    open_document(page, "docs/hostile.txt")
    shown = page.evaluate("document.querySelector('.text').textContent")
    assert shown == texts["docs/hostile.txt"].replace("\n", "")
    hide_entities(page)
    assert page.query_selector("mark.value").inner_text() == "</script><script>"
    page.hover("mark.value >> nth=0")
    assert "<img src=x onerror=window.hacked=7>" in page.inner_text("#card")
    for tab in ("fields", "review", "quality", "changes", "runs", "map", "documents"):
        page.click(f"#tab-{tab}")
    assert page.evaluate("window.hacked") is None
    assert page.query_selector_all("img, iframe, object, embed, base") == []
    # The policy stands even where the script would slip: an injected script does not run.
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 8';"
        " document.body.append(s); }"
    )
    assert page.evaluate("window.hacked") is None
    assert [fault for fault in page.faults if "Content Security Policy" not in fault] == []


def test_the_table_of_fields_sorts_filters_and_moves_by_keyboard(
    page_file: Path, open_page: Open
) -> None:
    page = open_page(page_file, "#fields")
    rows = lambda: [r.inner_text() for r in page.query_selector_all(".grid-body .cell.first")]  # noqa: E731
    assert len(rows()) == 5
    assert page.get_attribute(".grid", "aria-rowcount") == "6"
    page.click(".sort >> nth=1")
    assert page.get_attribute("[role=columnheader] >> nth=1", "aria-sort") == "ascending"
    page.fill(".fields input[type=search]", "三万元")
    assert page.inner_text(".fields .count") == "2 rows"
    page.focus('.grid-body .cell[tabindex="0"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    focused = page.evaluate(
        "[document.activeElement.dataset.row, document.activeElement.dataset.column]"
    )
    assert focused == ["0", "2"]
    with page.expect_download() as saved:
        page.click(".save")
    content = Path(saved.value.path()).read_text("utf-8-sig")
    assert content.splitlines()[0].count('","') == 3
    assert "三万元; 合同金额为三万元整" in content
    page.keyboard.press("Enter")
    assert page.faults == []


def test_doubts_contradictions_and_records_are_said_in_words(
    shown_cache: Path, texts: dict[str, str], tmp_path: Path, open_page: Open, value: Make
) -> None:
    a = texts["docs/a.txt"]
    twice = [value("甲方", a, p=0.97) | {"remark": "the same as 乙方"}]
    fields = {
        "甲方": twice,
        "乙方": [twice[0] | {"remark": "the same as 甲方"}],
        "金额": [value("三万元", a, p=0.4) | {"value": "30000"}, value("合同", a) | {"value": "2"}],
        "合计金额": [value("三万元整", a, p=0.7) | {"value": "30000"}],
    }
    sure = {"甲方": [value("五万元", texts["docs/table.html"], p=0.99)]}
    lines = [
        {"document": "docs/a.txt", "template": "t", "fields": fields,
         "records": [{"乙方": "甲方", "金额": "三万元"}, {"乙方": "甲方", "金额": "合同"}]},
        {"document": "docs/table.html", "template": "t", "fields": sure, "records": []},
    ]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    with Cache.open(shown_cache) as cache:
        write_report(cache, tmp_path / "p.html", ReportSettings(results=tmp_path / "r.jsonl"))
    page = open_page(tmp_path / "p.html", locale="zh-CN")
    page.check("text=只看存疑")
    assert page.inner_text(".list .count") == "1 份文档"
    open_document(page, "docs/a.txt")
    assert page.inner_text(".document-head .contradiction >> nth=0") == "⚠︎甲方与乙方相同"
    assert page.inner_text(".document-head .contradiction >> nth=1") == (
        "⚠︎合计金额与金额之和 30,002 不符"
    )
    assert [c.inner_text() for c in page.query_selector_all(".record-value")] == [
        "甲方", "合同", "甲方", "三万元",
    ]  # fmt: skip
    page.click(".record-value >> nth=3")
    card = page.inner_text("#card")
    assert "存疑\n40" in card.replace(" ", "")
    assert "紧跟“合同金额”" in card
    assert page.inner_text(".found:has-text('甲方') .found-value") == "与乙方相同"
    page.click("#tab-fields")
    page.check("text=只看存疑")
    assert page.inner_text(".fields .count") == "2 行"
    page.uncheck("text=每条记录一行")
    assert page.inner_text(".fields .count") == "1 行"
    assert page.faults == []
    page.context.close()


def test_each_of_several_values_of_a_field_is_decided(
    shown_cache: Path, texts: dict[str, str], tmp_path: Path, open_page: Open, value: Make
) -> None:
    a = texts["docs/a.txt"]
    found = {"金额": [value("三万元", a, p=0.6), value("合同", a, p=0.5)]}
    line = json.dumps({"document": "docs/a.txt", "template": "t", "fields": found})
    (tmp_path / "r.jsonl").write_text(line, "utf-8")
    with Cache.open(shown_cache) as cache:
        write_report(cache, tmp_path / "p.html", ReportSettings(results=tmp_path / "r.jsonl"))
    page = open_page(tmp_path / "p.html", "#review")
    page.wait_for_selector(".verdict-head:has-text('value 1 of 2')")
    page.focus("#verdict")
    page.keyboard.press("y")
    page.wait_for_selector(".verdict-head:has-text('value 2 of 2')")
    # A further value, beside those that were found.
    page.evaluate("""() => {
        const line = [...document.querySelectorAll('#reviewed .line')]
            .find(one => one.textContent.includes('签订'));
        const node = [...line.childNodes].find(one => one.textContent.includes('签订'));
        const at = node.textContent.indexOf('签订');
        getSelection().setBaseAndExtent(node, at, node, at + 2);
    }""")
    page.wait_for_selector('.pick-text strong:text-is("签订")')
    page.keyboard.press("+")
    page.wait_for_selector(".verdict-note:has-text('签订')")
    page.wait_for_selector(".verdict-head:has-text('value 2 of 2')")
    page.keyboard.press("x")
    page.wait_for_selector("#queue .count:has-text('0 to look at')")
    with page.expect_download() as saved:
        page.click("#save-corrections")
    given = read_corrections(Path(saved.value.path()))
    assert given.bad == ()
    (said,) = fold(given.records).values()
    assert set(said.right.values()) == {"三万元", "签订"}
    assert said.wrong == {(a.index("合同"), a.index("合同") + 2)}
    assert said.is_known
    page.context.close()


def test_how_good_a_template_is_stands_in_the_page(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    page.click("#tab-quality")
    cells = [node.inner_text() for node in page.query_selector_all(".scores tbody > tr > *")]
    assert cells == [
        "合同名称", "2", "2", "2", "1", "0.500", "0.500", "0.500", "2", "1", "0.425",
    ]  # fmt: skip
    head = page.inner_text(".quality .section-head")
    assert "F1 0.500" in head
    assert "over 2 samples" in head
    assert "Of 2 sure values, 1 is right." in head
    assert "备注" in page.inner_text(".quality .notice")
    sides = [node.inner_text().split() for node in page.query_selector_all(".quality .side")]
    assert sides == [["Stated", "买卖合同"], ["Found", "甲方", "95", "%"]]
    page.click(".quality .change .link")
    page.wait_for_selector(".document-head:has-text('docs/a.txt')")
    assert page.faults == []


def test_every_word_is_said_in_both_languages(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file, locale="zh-CN")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert [t.inner_text() for t in page.query_selector_all(".tab")] == [
        "文档",
        "字段",
        "审阅",
        "质量",
        "变化",
        "运行",
        "地图",
    ]
    for tab in ("fields", "review", "quality", "changes", "runs", "map", "documents"):
        page.click(f"#tab-{tab}")
        assert "undefined" not in page.inner_text("#app")
    page.focus("#language")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("document.activeElement.id") == "language"
    for tab in ("fields", "review", "quality", "changes", "runs", "map", "documents"):
        page.click(f"#tab-{tab}")
        shown = re.sub(r"\s", "", page.inner_text("#app"))
        assert "undefined" not in shown
    assert page.faults == []

    def is_kept() -> bool:
        page.reload()
        return bool(page.inner_text("#tab-fields") == "Fields")

    # What a page stores is kept by another process, which may be behind when it is first read.
    assert wait_for(is_kept)


def test_the_page_is_reached_by_keyboard_alone(page_file: Path, open_page: Open) -> None:
    page = open_page(page_file)
    page.wait_for_selector(".text")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#tab-documents")
    for name in ("fields", "review", "quality", "changes", "runs", "map"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == f"tab-{name}"
    page.focus('.point[tabindex="0"]')
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    moved = set()
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        moved.add(page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert moved - {first}
    page.keyboard.press("Enter")
    page.wait_for_selector(".document-head")
    assert page.evaluate("location.hash").startswith("#documents/")
    page.go_back()
    assert page.get_attribute("#tab-map", "aria-selected") == "true"
    assert page.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_only_the_tile_of_what_went_wrong_is_in_the_colour_of_warning(
    page_file: Path, open_page: Open, scheme: str
) -> None:
    page = open_page(page_file, color_scheme=scheme)
    page.click("#tab-runs")
    colours = page.evaluate(
        """() => [...document.querySelectorAll('.tile')].map((tile) => [
            tile.querySelector('.quiet').textContent,
            getComputedStyle(tile.querySelector('.tile-number')).color])"""
    )
    ink = page.evaluate("getComputedStyle(document.body).color")
    poor = page.evaluate(
        """() => { const made = document.body.appendChild(document.createElement('del'));
            const { color } = getComputedStyle(made); made.remove(); return color; }"""
    )
    assert poor != ink
    assert dict(colours) == {
        "Documents": ink, "Values": ink, "Filled fields": ink, "Mean probability": ink,
        "quarantined": poor,
    }  # fmt: skip
    assert page.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_text_is_legible_and_nothing_runs_over_the_edge(
    page_file: Path, open_page: Open, scheme: str, width: int
) -> None:
    page = open_page(page_file, color_scheme=scheme, viewport={"width": width, "height": 800})
    for tab in ("fields", "review", "quality", "changes", "runs", "map", "documents"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRAST) == []
    assert page.faults == []


#: Texts whose contrast with what is painted behind them is below 4.5 : 1 (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0.9) return colour;
    }
    return [255, 255, 255, 1];
  };
  const faults = [];
  for (const node of document.querySelectorAll('#app *')) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const isSeen = node.checkVisibility() && !node.disabled && !(node instanceof SVGElement);
    if (!own || !isSeen) continue;
    const two = [light(rgba(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
    if (ratio < 4.5) faults.push(`${node.className} ${node.textContent.slice(0, 30)} ${ratio}`);
  }
  return faults;
}"""
