"""The pages: two languages that say the same, links that lead somewhere, code that runs."""

from __future__ import annotations

import re
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from guide_blocks import Block, blocks_of, run, serving

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.errors import UsageError
from featpipe.guide.pages import (
    FOLDER,
    GENERATED,
    LANGUAGES,
    Language,
    joined,
    make_page,
    read_page,
    split_sections,
    topics,
)
from featpipe.guide.reference import read_all_pages, read_any_page, to_markdown

WRITTEN = [topic for topic in topics() if topic not in GENERATED]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: Kinds of blocks that are run, parsed, or only shown.
KINDS = {"sh", "python", "toml", "json", "text", "yaml"}


def text_of(topic: str, language: Language) -> str:
    return read_page(topic, language).text


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def test_every_file_is_a_page() -> None:
    names = {path.name for path in FOLDER.glob("*.md")}
    assert names == {f"{topic}{end}.md" for topic in WRITTEN for end in ("", ".zh")}


@pytest.mark.parametrize("topic", WRITTEN)
def test_the_chinese_page_has_the_headings_and_the_code_of_the_english_one(topic: str) -> None:
    english, chinese = (text_of(topic, language) for language in LANGUAGES)
    assert [s.level for s in split_sections(chinese)] == [s.level for s in split_sections(english)]
    assert [s.anchor for s in read_page(topic, "zh").sections] == [
        s.anchor for s in read_page(topic, "en").sections
    ]
    ours, theirs = blocks_of(english), blocks_of(chinese)
    assert [(b.language, b.info, b.bare) for b in theirs] == [
        (b.language, b.info, b.bare) for b in ours
    ]
    assert english.count("\n|") == chinese.count("\n|"), "tables of other lengths"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("topic", WRITTEN)
def test_links_lead_to_a_heading(topic: str, language: Language) -> None:
    end = "" if language == "en" else ".zh"
    for target in _LINK.findall(without_code(text_of(topic, language))):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        found = re.fullmatch(rf"(\w+){re.escape(end)}\.md", name) if name else None
        assert found or not name, f"{target}: no page in this language"
        other = found[1] if found else topic
        page = read_any_page(other, language, featpipe_command)
        assert not anchor or anchor in {s.anchor for s in page.sections}, target


@pytest.mark.parametrize("topic", WRITTEN)
def test_pages_have_one_title_and_no_skipped_level(topic: str) -> None:
    levels = [section.level for section in read_page(topic, "en").sections]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert read_page(topic, "en").summary
    assert read_page(topic, "zh").summary


@pytest.mark.parametrize("topic", WRITTEN)
def test_blocks_are_of_a_kind_that_is_checked(topic: str) -> None:
    for block in blocks_of(text_of(topic, "en")):
        assert block.language in KINDS
        assert block.reason or block.info in {"", "exit-1", "exit-2"}, block.info


@pytest.mark.parametrize("topic", WRITTEN)
def test_every_block_runs(
    topic: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, in the workspace; those of the page on HTTP ask a service."""
    chosen = [b for b in blocks_of(text_of(topic, "en")) if is_run(b)]
    if not chosen:
        return
    home: Path = request.getfixturevalue("workspace")
    monkeypatch.chdir(home)
    with serving(home) if topic == "http" else nullcontext("localhost:8080") as address:
        for block in chosen:
            run(block, home, address)


def is_run(block: Block) -> bool:
    return not block.reason and block.language in {"sh", "python", "toml", "json"}


# ---- the parts that make pages


def test_headings_in_code_are_none() -> None:
    text = "# A\n\n```sh\n# no heading\n```\n\n## B `c`\n\ntext\n\n## B c\n"
    assert [(s.level, s.title, s.anchor) for s in split_sections(text)] == [
        (1, "A", "a"), (2, "B c", "b-c"), (2, "B c", "b-c-1"),
    ]  # fmt: skip


def test_a_section_ends_where_one_of_its_level_begins() -> None:
    page = make_page("t", "en", "# A\n\n## B\n\nb\n\n### C\n\nc\n\n## D\n\nd\n")
    assert page.part("b") == "## B\n\nb\n\n### C\n\nc\n\n"
    with pytest.raises(UsageError, match="no section 'x'"):
        page.part("x")


def test_a_line_break_between_chinese_characters_makes_no_space() -> None:
    text = "甲，\n乙\nb\n\n丙\n\n- 丁\n  戊\n\n```text\n己\n庚\n```\n"
    assert joined(text) == "甲，乙\nb\n\n丙\n\n- 丁戊\n\n```text\n己\n庚\n```\n"


def test_docstrings_become_markdown() -> None:
    doc = "First ``x``.\n\nArgs:\n    a, b: two\n        of them.\n\nRaises:\n    Bad: never.\n"
    assert to_markdown(doc).split("\n\n")[:3] == [
        "First `x`.", "**Args**", "- `a, b`: two\n  of them.",
    ]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_that_are_made_have_a_section_for_everything(language: Language) -> None:
    import featpipe

    pages = {page.topic: page for page in read_all_pages(language, featpipe_command)}
    assert list(pages) == topics()
    names = {section.title for section in pages["library"].sections}
    assert set(featpipe.__all__) <= {name.strip("`") for name in names}
    assert "featpipe template learn" in {s.title for s in pages["commands"].sections}
