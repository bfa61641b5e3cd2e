"""Elements of an HTML page that are not displayed: ``hidden``, or with ``display: none``.

No tree is built here either: where such an element ends is seen from the names of the tags that
open and close after it. An end tag that is left out, as that of ``<li>`` may be, and one that was
forgotten cost no more than a browser takes them to cost: the end of the parent ends the element.

Of the style sheets in a page, rules for one class or id are known, as ``.note {display:none}``,
unless another rule displays it (``.tab.open``). What other style sheets and programs hide is not
known, and read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.documents.formats.html_tables import attributes_of
from featpipe.documents.segment import words_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MARKS = re.compile(r"""\shidden[\s=/>]|display\s{0,9}+:\s{0,9}+none""", re.IGNORECASE)
#: Found faster than marks: most pages have none of them.
_WORDS = ("hidden", "HIDDEN", "display", "DISPLAY", "Display", "Hidden")
_NOT_DISPLAYED = re.compile(r"(?:^|[;\s])display\s*:\s*none", re.IGNORECASE)
_VOID = words_in("area base br col embed hr img input link meta param source track wbr")
#: A page that hides all of itself is shown by its program.
_SHOWN = words_in("html head body frameset title")
_ROW_GROUPS = words_in("tbody thead tfoot")
#: Elements that the start of another ends: those others, and what both stand in.
_ENDED_BY = {
    "li": (words_in("li"), ("ul", "ol", "menu", "dir")),
    "dt": (words_in("dt dd"), ("dl",)),
    "dd": (words_in("dt dd"), ("dl",)),
    "td": (words_in("td th tr") | _ROW_GROUPS, ("table",)),
    "th": (words_in("td th tr") | _ROW_GROUPS, ("table",)),
    "tr": (words_in("tr") | _ROW_GROUPS, ("table",)),
    "option": (words_in("option optgroup"), ()),
}
#: The start of a block ends a paragraph.
_BLOCKS = words_in(
    """
    address article aside blockquote center details dialog dir div dl fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre section table ul
    """
)
#: Their ends end what was opened in them, unless it is open no more.
_PARENTS = (
    (_BLOCKS - {"p", "hr"})
    | _ROW_GROUPS
    | words_in("td th tr li dt dd body html select caption button")
)


#: A style sheet in a page, with its attributes; a comment around it is matched first.
_SHEET = re.compile(
    r"<!--.*?(?:-->|\Z)|<style(?P<attributes>\s[^>]{0,300}+)?>(?P<rules>.*?)(?:</style\s*+>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_MEDIA = re.compile(r"\bmedia\b(?![^>]*\b(?:screen|all)\b)", re.IGNORECASE)
_DISPLAY = re.compile(r"(?:^|[;\s])display\s*+:\s*+([a-z-]+)", re.IGNORECASE)
_ONE_NAME = re.compile(r"([a-z][a-z\d]*)?([.#][\w-]+)", re.IGNORECASE)
_NAME = re.compile(r"[.#][\w-]+")
_NAMED = re.compile(r"\b(?:class|id)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """What a page's style sheets hide: ``.class`` or ``#id`` -> names of elements, "" for any."""

    hidden: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, source: str) -> StyleSheet:
        """From the source of a page."""
        hidden: dict[str, set[str]] = {}
        shown: set[str] = set()
        for selector, display, is_always in _display_rules(source):
            one = _ONE_NAME.fullmatch(selector)
            if display != "none":
                shown.update(_NAME.findall(selector))
            elif one and is_always:
                hidden.setdefault(one[2], set()).add((one[1] or "").lower())
        return cls({name: frozenset(of) for name, of in hidden.items() if name not in shown})

    def hides(self, name: str, attributes: str) -> bool:
        """Whether an element with these attributes is not displayed."""
        if not self.hidden or not _NAMED.search(attributes):
            return False
        found = attributes_of(attributes)
        names = [f".{one}" for one in found.get("class", ("", 0))[0].split()]
        names.append(f"#{found.get('id', ('', 0))[0].strip()}")
        return any(not {"", name}.isdisjoint(self.hidden.get(one, ())) for one in names)


def _display_rules(source: str) -> Iterator[tuple[str, str, bool]]:
    """Selector, display, and whether it holds on every screen, of rules in a page."""
    for sheet in _SHEET.finditer(source):
        if sheet["rules"] and not _MEDIA.search(sheet["attributes"] or ""):
            yield from _display_rules_of(_CSS_COMMENT.sub("", sheet["rules"]))


def _display_rules_of(sheet: str) -> Iterator[tuple[str, str, bool]]:
    at, selector = 0, ""
    open_at: list[str] = []
    for brace in re.finditer("[{}]", sheet):
        text, at = sheet[at : brace.start()], brace.end()
        if brace[0] == "{":
            selector = text.rpartition(";")[2].strip()
            open_at.append(selector)
        elif open_at:
            display = _DISPLAY.findall(text)
            is_always = len(open_at) == 1
            if display and selector == open_at[-1]:
                yield from (
                    (s.strip(), display[-1].lower(), is_always) for s in selector.split(",")
                )
            open_at.pop()


def may_hide(source: str) -> bool:
    """Whether a page may hold an element that is not displayed."""
    return any(word in source for word in _WORDS) and bool(_MARKS.search(source))


class HiddenElement:
    """The element that is not displayed at this point of a page, if there is one.

    Attributes:
        name: of the element; "" where the page is displayed.
    """

    def __init__(self, sheet: StyleSheet) -> None:
        self.name = ""
        self._sheet = sheet
        self._inner: Counter[str] = Counter()

    def covers(self, name: str | None, attributes: str | None, *, is_open: bool) -> bool:
        """Whether a token belongs to an element that is not displayed, its two tags included.

        Args:
            name: of a tag; None for a comment and the like.
            attributes: of a tag.
            is_open: whether it opens an element.
        """
        if name is None:
            return bool(self.name)
        if not self.name:
            return is_open and self._begins(name.lower(), attributes or "")
        return self._goes_on(name.lower(), attributes or "", is_open=is_open)

    def _begins(self, name: str, attributes: str) -> bool:
        if name in _SHOWN:
            return False
        if not is_hidden(attributes) and not self._sheet.hides(name, attributes):
            return False
        if name not in _VOID and not attributes.endswith("/"):
            self.name = name
            self._inner.clear()
        return True

    def _goes_on(self, name: str, attributes: str, *, is_open: bool) -> bool:
        if is_open:
            if self._is_next(name):
                self.name = ""
                return self._begins(name, attributes)
            if name not in _VOID and not attributes.endswith("/"):
                self._inner[name] += 1
        elif self._inner[name] > 0:
            self._inner[name] -= 1
        elif name == self.name:
            self.name = ""
        elif name in _PARENTS:
            self.name = ""
            return False
        return True

    def _is_next(self, name: str) -> bool:
        """Whether the start of an element ends the one that is not displayed."""
        if self.name == "p":
            return name in _BLOCKS
        others, within = _ENDED_BY.get(self.name, ((), ()))
        return name in others and not any(self._inner[one] > 0 for one in within)


def is_hidden(attributes: str) -> bool:
    """Whether the attributes of a tag keep its element from being displayed."""
    if not _MARKS.search(f" {attributes} "):
        return False
    found = attributes_of(attributes)
    return "hidden" in found or bool(_NOT_DISPLAYED.search(found.get("style", ("", 0))[0]))
