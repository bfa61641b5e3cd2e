"""The pages of the guide, and the sections that their headings make of them.

A page is a Markdown file of this folder: ``models.md``, and ``models.zh.md`` in Chinese. A Chinese
page has the headings of the English one in its order, and each has the anchor of the English one,
so that a link is the same in both. Pages without a file are made of the code when they are shown
(:mod:`featpipe.guide.reference`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from featpipe.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

#: Groups of topics, in reading order; each with its title in English and in Chinese.
GROUPS: tuple[tuple[dict[Language, str], tuple[str, ...]], ...] = (
    ({"en": "Begin", "zh": "入门"}, ("start", "concepts", "documents")),
    ({"en": "Extract", "zh": "抽取"}, ("templates", "samples", "review")),
    ({"en": "Use", "zh": "使用"}, ("search", "models", "performance", "quality", "http")),
    (
        {"en": "Run", "zh": "运行"},
        ("operations", "many_machines", "security", "troubleshooting", "migrate"),
    ),
    ({"en": "Look up", "zh": "参考"}, ("commands", "library", "file")),
    ({"en": "Take part", "zh": "参与"}, ("architecture", "contributing", "changelog")),
)

#: Topics whose pages are made of the code: the commands' help texts and the library's docstrings.
GENERATED = ("commands", "library")

FOLDER = Path(__file__).parent

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
#: Han characters and full-width punctuation.
_HAN = r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef“”‘’]"
_BREAK = re.compile(rf"(?<={_HAN})\n {{0,3}}(?={_HAN})")


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what stands below it up to the next one.

    Attributes:
        level: 1 for the page's title.
        title: the heading, without marks.
        anchor: unique in its page; that of the English page's heading.
        text: Markdown below the heading.
    """

    level: int
    title: str
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page in one language; the first section has its title and its opening."""

    topic: str
    language: Language
    text: str
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        """The first heading."""
        return self.sections[0].title

    @property
    def summary(self) -> str:
        """The first sentence below the title, without marks."""
        opening = joined(self.sections[0].text).strip().split("\n\n")[0]
        sentence = re.match(r".*?(?:[。！]|[.!](?=\s|$)|$)", plain(opening), re.DOTALL)
        return " ".join(sentence[0].split()) if sentence else ""

    def part(self, anchor: str) -> str:
        """Markdown of the section with this anchor, and of those below it.

        Raises:
            UsageError: the page has no such section.
        """
        places = [n for n, section in enumerate(self.sections) if section.anchor == anchor]
        if not places:
            known = ", ".join(section.anchor for section in self.sections[1:])
            raise UsageError(
                f"page {self.topic} has no section {anchor!r}", hint=f"it has {known or 'none'}"
            )
        first = self.sections[places[0]]
        parts = [first]
        for section in self.sections[places[0] + 1 :]:
            if section.level <= first.level:
                break
            parts.append(section)
        return "".join(f"{'#' * one.level} {one.title}\n{one.text}" for one in parts)


def topics() -> list[str]:
    """Every topic, in reading order."""
    return [topic for _, group in GROUPS for topic in group]


def read_page(topic: str, language: Language) -> Page:
    """A page that is a file.

    Raises:
        UsageError: there is no such page.
    """
    if topic not in topics() or topic in GENERATED:
        raise UsageError(f"the guide has no page {topic!r}", hint="featpipe guide lists its pages")
    english = _read(topic, "en")
    return make_page(topic, language, english if language == "en" else _read(topic, language),
                     english)  # fmt: skip


def make_page(topic: str, language: Language, text: str, english: str | None = None) -> Page:
    """A page of a text; ``english`` is the English one, whose anchors it has."""
    sections = list(split_sections(text))
    if english is not None and english != text:
        anchors = [section.anchor for section in split_sections(english)]
        if len(anchors) == len(sections):
            sections = [
                Section(one.level, one.title, anchor, one.text)
                for one, anchor in zip(sections, anchors, strict=True)
            ]
    return Page(topic, language, text, tuple(sections))


def split_sections(text: str) -> Iterator[Section]:
    """The sections of a Markdown text; lines of code blocks are no headings."""
    seen: dict[str, int] = {}
    for level, title, body in _split(text):
        anchor = anchor_of(title)
        number = seen.get(anchor, 0)
        seen[anchor] = number + 1
        yield Section(level, title, f"{anchor}-{number}" if number else anchor, body)


def _split(text: str) -> Iterator[tuple[int, str, str]]:
    level, title, body, fence = 0, "", [], ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        heading = None if fence or mark else _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        if level:
            yield level, title, "".join(body)
        level, title, body = len(heading[1]), plain(heading[2]), []
    if level:
        yield level, title, "".join(body)


def joined(text: str) -> str:
    """A Markdown text in which a line break between Chinese characters makes no space."""
    parts = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_BREAK.sub("", part) for part in parts[::2]]
    return "".join(parts)


def plain(text: str) -> str:
    """A line of Markdown without marks and targets of links."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[`*]", "", text)


def anchor_of(title: str) -> str:
    """As GitHub makes it: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _read(topic: str, language: Language) -> str:
    suffix = "" if language == "en" else f".{language}"
    return (FOLDER / f"{topic}{suffix}.md").read_text("utf-8")
