"""The guide as a folder of HTML pages that needs no network and no server.

Each page has its text, the contents and a search field; the script of the search reads the index
of its language, a file beside the pages. Texts become HTML without any markup of their own.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from featpipe.atomic_write import write_atomically
from featpipe.documents.own_files import GENERATOR, describe_own_file
from featpipe.errors import UsageError, WriteFailed
from featpipe.guide.pages import GROUPS, LANGUAGES, Language, joined, topics
from featpipe.guide.reference import read_all_pages
from featpipe.guide.search import STOP_WORDS, GuideIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import click
    from markdown_it.token import Token

    from featpipe.guide.pages import Page

_ASSETS = Path(__file__).parent / "assets"
#: Files of all pages.
_SHARED = ("guide.css", "search.js")
_LINK = re.compile(r"(\w+?)(?:\.zh)?\.md(#.*)?")

_WORDS: dict[Language, dict[str, str]] = {
    "en": {"search": "Search the guide", "contents": "Contents", "other": "中文",
           "here": "On this page", "nothing": "Nothing found", "before": "Before",
           "after": "Next"},
    "zh": {"search": "搜索指南", "contents": "目录", "other": "English",
           "here": "本页内容", "nothing": "没有找到", "before": "上一页", "after": "下一页"},
}  # fmt: skip


def write_site(folder: Path, group: click.Group) -> Path:
    """Write the site; the path of its first page. Files of an earlier one are replaced.

    Args:
        folder: made when missing.
        group: the program, whose commands are a page.

    Raises:
        UsageError: a file of another site would be lost.
        WriteFailed: the folder or a file cannot be written.
    """
    files: dict[Path, str] = {}
    for language in LANGUAGES:
        below = folder if language == "en" else folder / language
        pages = read_all_pages(language, group)
        files |= {below / name: text for name, text in _files_of(pages, language).items()}
    files |= {folder / name: (_ASSETS / name).read_text("utf-8") for name in _SHARED}
    try:
        _check_are_free(folder, files)
        # The first page comes first: by it the next run knows a site that was interrupted.
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, text)
    except OSError as error:
        raise WriteFailed(f"{folder}: cannot be written: {error}") from error
    return folder / "index.html"


def _check_are_free(folder: Path, files: Iterable[Path]) -> None:
    """Files of an earlier site are replaced, and those of any other are kept."""
    has_site = describe_own_file(folder / "index.html") is not None
    for path in files:
        # Scripts and styles do not tell whose they are: beside a page of ours they are ours.
        is_ours = describe_own_file(path) is not None if path.suffix == ".html" else has_site
        if path.is_file() and not is_ours:
            raise UsageError(
                f"{path} is of no guide, and would be lost", hint="name another folder"
            )


def _write(path: Path, text: str) -> None:
    write_atomically(path, text.encode("utf-8"))


def _files_of(pages: Sequence[Page], language: Language) -> Mapping[str, str]:
    frame = (_ASSETS / "page.html").read_text("utf-8")
    files = {_name_of(page.topic): _render(frame, page, pages) for page in pages}
    return {**files, "index.js": _render_index(pages, language)}


def _name_of(topic: str) -> str:
    return "index.html" if topic == "start" else f"{topic}.html"


def _render(frame: str, page: Page, pages: Sequence[Page]) -> str:
    words = _WORDS[page.language]
    is_english = page.language == "en"
    name = _name_of(page.topic)
    values = {
        "generator": GENERATOR,
        "language": "en" if is_english else "zh-CN",
        "title": html.escape(page.title),
        "root": "" if is_english else "../",
        "other": f"zh/{name}" if is_english else f"../{name}",
        "other_language": "zh-CN" if is_english else "en",
        "contents": _render_contents(page, pages),
        "text": render_markdown(page),
        "around": _render_neighbours(page, pages),
        **{f"word_{key}": word for key, word in words.items()},
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], frame)


def _render_contents(page: Page, pages: Sequence[Page]) -> str:
    by_topic = {one.topic: one for one in pages}
    parts = []
    for titles, group in GROUPS:
        parts.append(f"<h2>{titles[page.language]}</h2><ul>")
        for topic in group:
            here = ' aria-current="page"' if topic == page.topic else ""
            title = html.escape(by_topic[topic].title)
            parts.append(f'<li><a href="{_name_of(topic)}"{here}>{title}</a>')
            if here:
                parts.append(_render_sections(page))
            parts.append("</li>")
        parts.append("</ul>")
    return "".join(parts)


def _render_sections(page: Page) -> str:
    items = [
        f'<li><a href="#{one.anchor}">{html.escape(one.title)}</a></li>'
        for one in page.sections
        if one.level == 2
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _render_neighbours(page: Page, pages: Sequence[Page]) -> str:
    order = topics()
    place = order.index(page.topic)
    titles = {one.topic: html.escape(one.title) for one in pages}
    words = _WORDS[page.language]
    found = []
    for word, number in (("before", place - 1), ("after", place + 1)):
        if 0 <= number < len(order):
            topic = order[number]
            found.append(
                f'<a class="{word}" href="{_name_of(topic)}"><small>{words[word]}</small>'
                f"{titles[topic]}</a>"
            )
    return "".join(found)


def render_markdown(page: Page) -> str:
    """The page's text as HTML: headings have their anchors, links lead to pages of the site."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(joined(page.text))
    anchors = iter(section.anchor for section in page.sections)
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(anchors))
        _point_links(token)
    text = str(parser.renderer.render(tokens, parser.options, {}))
    # A wide table scrolls by itself, not with the page.
    text = text.replace("<table>", '<div class="wide"><table>')
    return text.replace("</table>", "</table></div>")


def _point_links(token: Token) -> None:
    for child in token.children or ():
        found = _LINK.fullmatch(str(child.attrGet("href") or ""))
        if child.type == "link_open" and found:
            child.attrSet("href", _name_of(found[1]) + (found[2] or ""))


def _render_index(pages: Sequence[Page], language: Language) -> str:
    index = GuideIndex(pages)
    entries = [
        [
            _name_of(page.topic) + ("" if one is page.sections[0] else f"#{one.anchor}"),
            page.title,
            "" if one is page.sections[0] else one.title,
        ]
        for page, one in index.entries
    ]
    content = {
        "entries": entries,
        "worths": index.worths,
        "stop": sorted(STOP_WORDS),
        "nothing": _WORDS[language]["nothing"],
    }
    return f"const GUIDE = {json.dumps(content, ensure_ascii=False, separators=(',', ':'))};\n"
