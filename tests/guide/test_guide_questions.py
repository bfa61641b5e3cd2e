"""Perennial questions lead to their page in two steps: search the words, open one of three hits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from featpipe.cli.main import featpipe as featpipe_command
from featpipe.guide.reference import read_all_pages, read_any_page
from featpipe.guide.search import GuideIndex, terms_of

if TYPE_CHECKING:
    from featpipe.guide.pages import Language

QUESTIONS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "questions.tsv").read_text("utf-8").splitlines()
]


def language_of(question: str) -> Language:
    return "en" if question.endswith("?") else "zh"


@cache
def index(language: Language) -> GuideIndex:
    return GuideIndex(read_all_pages(language, featpipe_command))


def test_there_are_forty_questions_in_english() -> None:
    assert sum(language_of(question) == "en" for question, _, _ in QUESTIONS) >= 40


@pytest.mark.parametrize(("question", "topic", "anchor"), QUESTIONS)
def test_its_words_find_its_page_among_the_first_three(
    question: str, topic: str, anchor: str
) -> None:
    language = language_of(question)
    page = read_any_page(topic, language, featpipe_command)
    assert anchor in {section.anchor for section in page.sections}
    hits = index(language).search(question, 3)
    assert topic in {hit.page.topic for hit in hits}, [hit.address for hit in hits]


def test_most_find_the_very_section() -> None:
    found = [
        f"{topic}#{anchor}" in {hit.address for hit in index(language_of(q)).search(q, 3)}
        for q, topic, anchor in QUESTIONS
    ]
    assert sum(found) >= 0.85 * len(found), [
        q for q, ok in zip(QUESTIONS, found, strict=True) if not ok
    ]


def test_a_question_is_answered_by_the_command() -> None:
    found = CliRunner().invoke(featpipe_command, ["guide", "how", "do", "I", "delete", "documents"])
    address = found.stdout.split()[2]
    assert address == "documents#delete-a-document"
    shown = CliRunner().invoke(featpipe_command, ["guide", address])
    assert shown.stdout.startswith("## Delete a document\n")
    assert "--sync" in shown.stdout


def test_words_without_their_endings() -> None:
    assert list(terms_of("Deleting deleted deletes queries, running vectors!")) == [
        "delet", "delet", "delet", "query", "run", "vector",
    ]  # fmt: skip
    assert list(terms_of("向量在")) == ["向量", "量在"]


def test_a_search_without_words_finds_nothing() -> None:
    assert index("en").search("the of a ？") == []
