"""``featpipe guide``: the pages of the guide, in the terminal or as an offline site."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import featpipe
from featpipe.cli.terminal import echo
from featpipe.errors import UsageError
from featpipe.guide.pages import GROUPS, LANGUAGES, Language, joined, topics
from featpipe.guide.reference import read_all_pages, read_any_page, read_opening
from featpipe.guide.search import GuideIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

    from featpipe.guide.pages import Page
    from featpipe.guide.search import GuideHit

_WIDEST = 100
_LINK = re.compile(r"\[([^\]]*)\]\((\w+)(?:\.zh)?\.md(#[\w-]+)?\)")

_STOP = {"en": ". ", "zh": "。"}
_FOOT = {
    "en": "featpipe guide TOPIC shows a page, featpipe guide WORDS finds one.",
    "zh": "featpipe guide 主题 显示一页，featpipe guide 关键词 搜索。",
}


@click.command("guide")
@click.argument("topic", nargs=-1)
@click.option("--search", metavar="WORDS", help="Find sections by words.")
@click.option("--lang", type=click.Choice(LANGUAGES), help="By default that of the terminal.")
@click.option("--web", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Write the whole guide as an offline site.")  # fmt: skip
def guide(
    topic: tuple[str, ...], search: str | None, lang: Language | None, web: Path | None
) -> None:
    """Show the guide: its contents, or the page TOPIC.

    TOPIC#SECTION shows one section; anything else is searched for. In a terminal pages are
    rendered and paged, elsewhere they are printed as Markdown.
    """
    words = search or " ".join(topic)
    if web is not None:
        from featpipe.guide.site import write_site

        echo(f"{write_site(web, featpipe)}: open it in a browser")
        return
    language = lang or _language_of(words)
    name, _, anchor = words.partition("#")
    if not words:
        _show(_contents(language))
    elif name in topics() and search is None:
        page = read_any_page(name, language, featpipe)
        _show(page.part(anchor) if anchor else page.text)
    else:
        index = GuideIndex(read_all_pages(language, featpipe))
        _print_hits(words, index.search(words) or index.search(index.nearest_words(words)))


def _language_of(words: str) -> Language:
    """Of the words, where they are Chinese; else of the terminal."""
    if any("\u3400" <= character <= "\u9fff" for character in words):
        return "zh"
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    chosen = next((os.environ[name] for name in names if os.environ.get(name)), "")
    return "zh" if chosen.startswith("zh") else "en"


def _contents(language: Language) -> str:
    return "\n".join(["# featpipe", "", *_entries(language), _FOOT[language], ""])


def _entries(language: Language) -> Iterator[str]:
    for titles, group in GROUPS:
        yield f"## {titles[language]}\n"
        for topic in group:
            page = read_opening(topic, language)
            yield f"- `{topic}`: {page.title}{_STOP[language]}{page.summary}"
        yield ""


def _print_hits(words: str, hits: list[GuideHit]) -> None:
    if not hits:
        raise UsageError(
            f"the guide has nothing on {words!r}", hint="featpipe guide lists its pages"
        )
    for hit in hits:
        echo(f"featpipe guide {hit.address}")
        echo(f"    {_way_to(hit.page, hit)}")


def _way_to(page: Page, hit: GuideHit) -> str:
    return page.title if hit.section is page.sections[0] else f"{page.title} > {hit.section.title}"


def _show(markdown: str) -> None:
    if not sys.stdout.isatty():
        echo(markdown, nl=not markdown.endswith("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # A link to a page becomes the command that shows it.
    shown = _LINK.sub(r"\1 (`featpipe guide \2\3`)", joined(markdown))
    theme = Theme({"markdown.code": "cyan"})  # by default on black, which few terminals are
    console = Console(width=min(Console().width, _WIDEST), theme=theme)
    with console.pager(styles=os.environ.get("TERM", "dumb") != "dumb"):
        console.print(Markdown(shown, code_theme="ansi_dark", hyperlinks=False))
