"""The review in a report, in a real browser: correct, reload, save, learn, see the change."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import HANG_S

from featpipe import Cache, Extractor
from featpipe.errors import UsageError
from featpipe.extraction.corrections import Acceptance, Correction
from featpipe.extraction.corrections_fold import fold
from featpipe.extraction.corrections_log import CorrectionsLog, read_corrections
from featpipe.extraction.reprocess import reprocess
from featpipe.extraction.reprocess_plan import document_states, plan_reprocess
from featpipe.extraction.review_queue import MOST_CANDIDATES, list_items, order_queue
from featpipe.extraction.suggest import MOST_RANKED, Layouts, rank_documents
from featpipe.extraction.survey import KnownValues, Survey
from featpipe.html_report import ReportSettings, contents, write_report

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

from review_home import make_home, text_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., Any]
RENT = "8,500元"


@pytest.fixture
def home(encoder_folder: Path, tmp_path: Path) -> Path:
    """Leases with their values in the cache, and the report of it."""
    made = make_home(tmp_path / "home", encoder_folder)
    with Extractor(made / "templates", made / "c.h5", checkpoints="none") as extractor:
        reprocess(extractor, plan_reprocess(extractor))
    with Cache.open(made / "c.h5") as cache:
        write_report(cache, made / "report.html")
    return made


def open_subject(page: Page, document: str, field: str) -> None:
    page.wait_for_selector("#queue .item")
    page.click(f'#queue .item:has-text("{field}"):has-text("{document}")')
    page.wait_for_selector(f'.verdict-document:has-text("{document}")')
    page.wait_for_selector("#reviewed mark")
    page.focus("#verdict")


def wait_for_note(page: Page, words: str) -> None:
    page.wait_for_selector(f'.verdict-note:has-text("{words}")')


def select_text(page: Page, text: str) -> None:
    page.evaluate(
        """text => {
            const line = [...document.querySelectorAll('#reviewed .line')]
                .find(one => one.textContent.includes(text));
            const node = [...line.childNodes].find(one => one.textContent.includes(text));
            const at = node.textContent.indexOf(text);
            getSelection().setBaseAndExtent(node, at, node, at + text.length);
        }""",
        text,
    )
    page.wait_for_selector(f'.pick-text strong:text-is("{text}")')


def say_all(page: Page) -> None:
    """One of each: selected, confirmed, rejected, none, and one that is taken back."""
    open_subject(page, "lease_5.txt", "租金")
    select_text(page, RENT)
    page.keyboard.press("Enter")
    wait_for_note(page, f"Kept: 租金: {RENT}")
    open_subject(page, "lease_4.txt", "乙方")
    page.keyboard.press("y")
    wait_for_note(page, "Kept: 乙方: 王4")
    open_subject(page, "lease_3.txt", "乙方")
    page.keyboard.press("x")
    wait_for_note(page, "Kept: 乙方: wrong")
    open_subject(page, "lease_2.txt", "乙方")
    page.keyboard.press("n")
    wait_for_note(page, "Kept: 乙方: not in this document")
    open_subject(page, "lease_1.txt", "乙方")
    page.keyboard.press("n")
    wait_for_note(page, "not in this document")
    page.keyboard.press("u")
    wait_for_note(page, "Taken back")


def check_what_is_kept(page: Page) -> None:
    """After a reload, and in the document, all of it is there."""
    page.reload()
    # The browser's process that keeps them may be behind; the page hears of what comes later.
    page.wait_for_selector('.queue-act [role=status]:has-text("6 corrections kept")')
    page.wait_for_selector('.said summary:text-is("Said so far (4)")')
    page.wait_for_selector('#queue .count:text-is("8 to look at")')
    page.goto(page.url.partition("#")[0] + "#documents/5")
    page.wait_for_selector(f'.said-mark:has-text("{RENT}")')
    # The way back: from a value in its document to what can be said of it.
    page.click('.review-link[aria-label="Review: 乙方"]')
    page.wait_for_selector('#verdict h2:has-text("乙方")')


def save(page: Page, target: Path) -> None:
    with page.expect_download() as download:
        page.click("#save-corrections")
    assert download.value.suggested_filename == "corrections.jsonl"
    download.value.save_as(target)
    page.wait_for_selector(
        ".queue-act code:has-text('featpipe template learn TEMPLATE corrections.jsonl')"
    )


def test_a_value_is_corrected_in_the_report_and_learnt_from_its_file(
    home: Path, open_page: Open
) -> None:
    page = open_page(home / "report.html", "#review")
    say_all(page)
    check_what_is_kept(page)
    save(page, home / "corrections.jsonl")
    assert {f for f in page.faults if not f.startswith(("file:", "blob:"))} == set()
    page.context.close()

    given = read_corrections(home / "corrections.jsonl")
    assert given.bad == ()
    said = {(one.last.document[-5], field): one for (_, field), one in fold(given.records).items()}
    assert set(said) == {("5", "租金"), ("4", "乙方"), ("3", "乙方"), ("2", "乙方")}
    for record in given.records:
        if isinstance(record, Correction):
            text = text_of(int(record.document[-5]))
            assert record.values == tuple(text[start:end] for start, end in record.spans)

    learnt = subprocess.run(
        [sys.executable, "-m", "featpipe", "template", "learn", "templates/lease.toml",
         "corrections.jsonl", "--cache", "c.h5"],
        cwd=home, capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert learnt.returncode == 0, learnt.stderr
    assert "corrections 6 taken, 0 known before, 0 left out" in learnt.stdout
    with Extractor(home / "templates", home / "c.h5", checkpoints="none") as extractor:
        report = reprocess(extractor, plan_reprocess(extractor))
    changed = {(change.document[-5], change.field): change for change in report.changed}
    assert changed["5", "租金"].old.value != RENT
    assert changed["5", "租金"].new.value == RENT


def check_reasons(page: str, contents: dict[str, Any]) -> None:
    """Types, cues, the nearest sample and the link to the file, of one lease and one sample."""
    assert contents["templates"][0]["kinds"][0] == "money"
    number = next(n for n, entry in enumerate(contents["docs"]) if "lease_4" in entry["id"])
    lease, sample = contents["docs"][number], contents["docs"][-1]
    assert lease["file"] == "home/documents/lease_4.txt"
    details = json.loads(page.partition(f'id="d{number}">')[2].partition("<")[0])["details"]
    rows = [row for row in lease["values"] if len(row) > 2]
    # Of the three samples two name the lessee so; the third has another rent, and no lessee.
    assert {row[1]: tuple(detail[2:]) for row, detail in zip(rows, details, strict=True)}[1] == (
        "behind", "乙方", 2,
    )  # fmt: skip
    assert sample["id"].endswith("sample_1.txt")
    nearest = [row[10] for row in sample["values"] if len(row) > 2]
    assert nearest
    assert not any(name.endswith("sample_1.txt") for name in nearest)


def queue_of(extractor: Extractor) -> list[tuple[str, str]]:
    """Document and field of every item of the service's queue, in order."""
    [fitted] = extractor.engine.templates.values()
    survey = Survey(fitted, document_states(extractor.engine), KnownValues(extractor.engine))
    survey.find_here(extractor.engine)
    first = [one.document.path for one in rank_documents(survey, {}, Layouts(), MOST_RANKED)]
    items = order_queue(list_items(survey, {}), first)
    return [(item.document.id, item.field) for item in items]


def test_other_candidates_are_one_key_away_and_those_of_the_service(
    home: Path, open_page: Open
) -> None:
    settings = ReportSettings(templates=home / "templates", has_alternatives=True)
    with Cache.open(home / "c.h5") as cache:
        write_report(cache, home / "report.html", settings)
        [document] = (one for one in cache.documents() if one.id.endswith("lease_5.txt"))
        with Extractor(home / "templates", cache, checkpoints="none") as extractor:
            [fitted] = extractor.engine.templates.values()
            features, _ = extractor.engine.page_of(document)
            listed, _ = fitted.candidates("租金", features, MOST_CANDIDATES)
    found = [value.text for value in listed]
    assert RENT in found[1:]
    page = open_page(home / "report.html", "#review")
    open_subject(page, "lease_5.txt", "租金")
    page.keyboard.press("a")
    page.wait_for_selector("ol.candidates")
    assert page.locator("ol.candidates .found-text").all_inner_texts() == found[1:]
    page.keyboard.press(str(found.index(RENT)))
    wait_for_note(page, f"Kept: 租金: {RENT}")
    assert {f for f in page.faults if not f.startswith(("file:", "blob:"))} == set()


def test_alternatives_need_the_templates_of_the_results(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    content = (home / "templates" / "lease.toml").read_text("utf-8").partition("[[samples]]")[0]
    other.write_text(content.replace('"lease"', '"sale"'), "utf-8")
    with Cache.open(home / "c.h5") as cache:
        with pytest.raises(UsageError, match="none are named") as raised:
            write_report(cache, tmp_path / "r.html", ReportSettings(has_alternatives=True))
        assert "--templates" in str(raised.value.hint)
        with pytest.raises(UsageError, match=r"results are of lease, which .*other\.toml"):
            write_report(
                cache, tmp_path / "r.html", ReportSettings(templates=other, has_alternatives=True)
            )
    assert not (tmp_path / "r.html").exists()


def test_a_report_made_after_learning_knows_what_was_learnt(home: Path, tmp_path: Path) -> None:
    with Cache.open(home / "c.h5") as cache:
        document = next(one for one in cache.documents() if one.id.endswith("lease_5.txt"))
        start = document.text.index(RENT)
    record = Correction(
        template="lease", verdict="correct", document=document.id, key=document.key.hex(),
        field="租金", spans=((start, start + len(RENT)),), values=(RENT,),
    )  # fmt: skip
    accepted = Acceptance(template="lease", through=record.id)
    CorrectionsLog(home / "templates" / "lease.toml").append([record, accepted])
    with Extractor(home / "templates", home / "c.h5", checkpoints="none") as extractor:
        reprocess(extractor, plan_reprocess(extractor))
        in_service = queue_of(extractor)
    with Cache.open(home / "c.h5") as cache:
        write_report(cache, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    contents = json.loads(page.partition('id="contents">')[2].partition("<")[0])
    names = [(entry["id"].rpartition("/")[2], contents["templates"][0]["fields"][at])
             for entry in contents["docs"] for _, at in entry["samples"]]  # fmt: skip
    assert names == [
        ("lease_5.txt", "租金"),
        ("sample_0.txt", "租金"), ("sample_0.txt", "乙方"),
        ("sample_1.txt", "租金"), ("sample_1.txt", "乙方"),
    ]  # fmt: skip
    queue = contents["queue"][0]
    fields = contents["templates"][0]["fields"]
    listed = [(contents["docs"][number]["id"], fields[at])
              for number, at in zip(queue[::2], queue[1::2], strict=True)]  # fmt: skip
    assert listed == in_service
    asked = {(name.rpartition("/")[2], fields.index(field)) for name, field in listed}
    check_reasons(page, contents)
    assert len(asked) == len(queue) // 2 == 11
    assert asked.isdisjoint({("lease_5.txt", 0), ("sample_0.txt", 0), ("sample_1.txt", 1)})


@pytest.mark.parametrize("has_templates", [True, False])
def test_samples_named_from_the_templates_folder_are_samples(
    home: Path, tmp_path: Path, has_templates: bool
) -> None:
    file = home / "templates" / "lease.toml"
    text = file.read_text("utf-8").replace('"sample_', '"../documents/sample_')
    file.write_text(text, "utf-8")
    with Extractor(home / "templates", home / "c.h5", checkpoints="none") as extractor:
        reprocess(extractor, plan_reprocess(extractor))
        in_service = queue_of(extractor)
    settings = ReportSettings(templates=home / "templates" if has_templates else None)
    with Cache.open(home / "c.h5") as cache:
        write_report(cache, tmp_path / "page.html", settings)
    page = (tmp_path / "page.html").read_text("utf-8")
    contents = json.loads(page.partition('id="contents">')[2].partition("<")[0])
    names = [entry["id"].rpartition("/")[2] for entry in contents["docs"] if entry["samples"]]
    assert names == ["sample_0.txt", "sample_1.txt"]
    queue, fields = contents["queue"][0], contents["templates"][0]["fields"]
    listed = [(contents["docs"][number]["id"], fields[at])
              for number, at in zip(queue[::2], queue[1::2], strict=True)]  # fmt: skip
    assert listed == in_service


def test_what_is_saved_of_one_template_is_not_yet_of_another(
    shown_cache: Path, results: Path, tmp_path: Path, open_page: Open
) -> None:
    lines = [json.loads(line) for line in results.read_text("utf-8").split("\n")[:-1]]
    lines += [line | {"template": "协/议"} for line in lines]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with Cache.open(shown_cache) as cache:
        write_report(cache, tmp_path / "page.html", ReportSettings(results=results))
    page = open_page(tmp_path / "page.html", "#review")
    for template in ("合同", "协/议"):
        page.select_option("#view nav select >> nth=0", template)
        open_subject(page, "a.txt", "合同名称")
        page.keyboard.press("y")
        wait_for_note(page, "Kept: 合同名称")
    with page.expect_download() as download:
        page.click("#save-corrections")
    assert download.value.suggested_filename == "corrections-协_议.jsonl"
    page.wait_for_selector(".queue-act code:has-text('corrections-协_议.jsonl')")
    page.select_option("#view nav select >> nth=0", "合同")
    page.wait_for_selector('.queue-act [role=status]:has-text("1 correction kept")')


def test_a_value_behind_what_the_page_holds_of_a_text_is_confirmed_with_its_words(
    shown_cache: Path, results: Path, tmp_path: Path, open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(contents, "MOST_CHARACTERS", 10)
    with Cache.open(shown_cache) as cache:
        write_report(cache, tmp_path / "page.html", ReportSettings(results=results))
    page = open_page(tmp_path / "page.html", "#review")
    page.click('#queue .item:has-text("三万元"):has-text("astral.txt")')
    page.wait_for_selector("#reviewed .text")
    page.focus("#verdict")
    page.keyboard.press("y")
    wait_for_note(page, "Kept:")
    save(page, tmp_path / "corrections.jsonl")
    (record,) = read_corrections(tmp_path / "corrections.jsonl").records
    assert isinstance(record, Correction)
    assert record.spans[0][1] > 10
    assert record.values == ("三万元",)
