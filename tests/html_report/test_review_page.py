"""The review in a real browser: open, correct, learn, see the change, accept, take it back."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

from review_home import SCRIPT, make_home, text_of
from service_watch import Service, running, wait_for

from featpipe.extraction.corrections import Correction
from featpipe.extraction.corrections_log import CorrectionsLog

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


def open_review(browser: object, service: Service, name: str, **options: object) -> Page:
    page = browser.new_context(**options).new_page()  # type: ignore[attr-defined]  # optional
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text))
    page.on(
        "request",
        lambda asked: asked.url.startswith(service.url) or page.faults.append(asked.url),
    )
    page.goto(service.url)
    page.fill(".who", name)
    page.select_option(".filters select", "租金")
    page.wait_for_selector("#reviewed mark")
    page.focus("#verdict")
    return page  # type: ignore[no-any-return]  # the driver is optional


def rent_of(page: Page) -> str:
    """The true rent of the document in question."""
    name = str(page.get_attribute(".verdict-document", "title"))
    return f"{int(name[-5]) + 3},500元"


def wait_for_note(page: Page, words: str) -> None:
    page.wait_for_selector(f'.verdict-note:has-text("{words}")')


def type_while_candidates_come(page: Page) -> None:
    """What is drawn when they have come takes neither the focus nor what was typed."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/review/candidates*", hold)
    page.keyboard.press("s")
    page.wait_for_selector("#reviewed mark")
    page.keyboard.press("/")
    page.keyboard.type("人民")
    while not held:
        page.wait_for_timeout(10)
    page.evaluate("document.querySelector('.verdict-head').id = 'before'")
    held[0].continue_()
    page.unroute("**/review/candidates*")
    page.wait_for_selector(".verdict-head:not(#before)")  # it is drawn anew
    page.keyboard.type("币")
    assert page.evaluate("document.activeElement.value") == "人民币"
    page.keyboard.press("Escape")
    assert page.input_value("#find-text") == ""


def correct_by_typing(page: Page) -> None:
    rent = rent_of(page)
    page.keyboard.press("/")
    page.keyboard.type(rent)
    page.wait_for_selector(f'.pick-text:has-text("{rent}")')
    page.keyboard.press("Enter")
    wait_for_note(page, f"Kept: 租金: {rent}")


def correct_by_selecting(page: Page) -> None:
    """With the mouse, over a line behind a character of two UTF-16 units."""
    rent = rent_of(page)
    page.wait_for_selector("#reviewed mark")
    box = page.evaluate(
        """async rent => {
            for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
            const line = [...document.querySelectorAll('#reviewed .line')]
                .find(one => one.textContent.includes(rent));
            line.scrollIntoView();
            const node = [...line.childNodes].find(one => one.textContent.includes(rent));
            const at = node.textContent.indexOf(rent), range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + rent.length);
            const { left, right, top, bottom } = range.getBoundingClientRect();
            return { left, right, middle: (top + bottom) / 2 };
        }""",
        rent,
    )
    page.mouse.move(box["left"] + 1, box["middle"])
    page.mouse.down()
    page.mouse.move(box["right"] - 1, box["middle"], steps=4)
    page.mouse.up()
    page.wait_for_selector(f'.pick-text strong:text-is("{rent}")')
    page.keyboard.press("Enter")
    wait_for_note(page, f"Kept: 租金: {rent}")


def correct_by_an_alternative(page: Page) -> None:
    rent = rent_of(page)
    page.keyboard.press("a")
    page.wait_for_selector(f'.candidates .found-text:text-is("{rent}")')
    texts = [node.inner_text() for node in page.query_selector_all(".candidates .found-text")]
    page.keyboard.press(str(texts.index(rent) + 1))
    wait_for_note(page, f"Kept: 租金: {rent}")


def say_and_take_back(page: Page) -> None:
    name = page.get_attribute(".verdict-document", "title")
    page.keyboard.press("n")
    wait_for_note(page, "Kept: 租金: not in this document")
    page.keyboard.press("u")
    wait_for_note(page, "Taken back")
    page.wait_for_selector(f'#queue .item-id[title="{name}"]')


def learn(page: Page, service: Service) -> None:
    page.click("text=See what this changes")
    page.wait_for_selector("#accept")
    line = page.inner_text("#change-line")
    assert re.fullmatch(r"\d+ values change in \d+ documents: \d+ [a-z]+(, \d+ [a-z]+)*", line)
    assert len(page.query_selector_all(".change")) == int(line.split()[0])
    assert service.client.get("/templates/lease").json()["version"] == ""
    page.click("#accept")
    page.wait_for_selector("#accept-note:has-text('Version 1 is in use')")
    assert service.client.get("/templates/lease").json()["version"] == "1"


def unlearn(page: Page, service: Service) -> None:
    page.click("#tab-review")
    page.click(".said summary")
    assert "Anna" in page.inner_text(".said")
    assert "Bert" in page.inner_text(".said")
    page.click(".said li:has-text('accepted') button")
    wait_for(lambda: service.client.get("/templates/lease").json()["version"] == "", "the undo")


def test_two_people_correct_learn_see_the_change_and_take_it_back(
    browser: object, encoder_folder: Path, tmp_path: Path
) -> None:
    home = make_home(tmp_path / "home", encoder_folder)
    settings = {"model": str(encoder_folder), "ner": "none", "is_review": True}
    with running(home, document_deadline_s=60.0, **settings) as (service, _):
        anna = open_review(browser, service, "Anna", locale="en-GB")
        shown = anna.evaluate("document.querySelector('#reviewed .text').textContent")
        assert SCRIPT in shown
        type_while_candidates_come(anna)
        correct_by_typing(anna)
        correct_by_selecting(anna)
        phone = {"viewport": {"width": 390, "height": 844}}
        bert = open_review_on_a_phone(browser, service, phone)
        correct_by_an_alternative(anna)
        bert.click(".acts .good")
        wait_for_note(bert, "已保存")
        say_and_take_back(anna)
        said = [
            record
            for record in CorrectionsLog(home / "templates" / "lease.toml").read().records
            if isinstance(record, Correction)
        ]
        assert sorted(record.who for record in said) == ["Anna"] * 4 + ["Bert"]
        for record in said:
            assert record.values == tuple(
                text_of(int(record.document[-5]))[start:end] for start, end in record.spans
            )
        learn(anna, service)
        unlearn(anna, service)
        for page in (anna, bert):
            assert page.evaluate("window.hacked") is None
            assert page.faults == []  # type: ignore[attr-defined]  # ours
            page.context.close()


def open_review_on_a_phone(browser: object, service: Service, phone: dict[str, object]) -> Page:
    """In Chinese, where the list and the document are two screens."""
    page = browser.new_context(locale="zh-CN", **phone).new_page()  # type: ignore[attr-defined]  # optional
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.goto(service.url)
    page.fill(".who", "Bert")
    page.click("#queue .item:has-text('租金') >> nth=-1")
    page.wait_for_selector("#reviewed mark")
    assert page.is_hidden("#queue")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select')].filter(one => !"
        "(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length"
    )
    assert unnamed == 0
    return page  # type: ignore[no-any-return]  # the driver is optional
