"""Labelled values: what stands behind a field's own name in a form, a heading block or a table.

``甲　方（贷款人）：中国工商银行``, with the value behind a colon of either width or on the next
line; a name that fills its line or table cell needs no colon.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from featpipe.extraction.values.text import fold_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LONGEST = 200
_MOST_ENDS = 6
#: Blanks of one line.
_GAP = r"[^\S\n\t]*"
_QUALIFIER = rf"(?:{_GAP}\([^()\n]{{1,30}}\))?"
_value = re.compile(rf"[^\n\t;。]{{1,{_LONGEST}}}")
_next_label = re.compile(r"\s+[a-z\u4e00-\u9fff][^\s:,。;]{0,12}(?:\([^()\n]{1,30}\))?\s*:")
_end = re.compile(r"[,(、。;\n\t]|\s{2,}|\Z")
#: Words in the place of a value that say there is none.
NOTHING = ("无", "暂无", "没有", "不适用", "不涉及", "n/a", "none", "nil")
_nothing = re.compile(rf"[:\t]{_GAP}(?P<word>{'|'.join(NOTHING)}){_GAP}(?=[\n\t,;。]|\Z)")


def find_nothing(folded: str) -> list[int]:
    """Characters at which a word for "none" fills the place behind a colon, or a table cell."""
    return [match.start("word") for match in _nothing.finditer(folded)]


@lru_cache(maxsize=4096)
def _pattern(alias: str) -> re.Pattern[str]:
    """A name, however it is spaced, as a label; the match ends where its value begins."""
    name = _GAP.join(map(re.escape, re.sub(r"\s+", "", alias)))
    colon = rf"(?<!\w)(?:{name}{_QUALIFIER}|(?<=\(){name}[^()\n]{{0,20}}\)){_GAP}:"
    cell = rf"(?:(?<=\n)|(?<=\t)|\A){_GAP}{name}{_QUALIFIER}{_GAP}"
    return re.compile(
        rf"{colon}{_GAP}(?:\n\s*(?=[^\n:]*(?:\n|\Z)))?(?=[^\s:])"
        rf"|{cell}(?:\t|(?P<line>\n+)){_GAP}(?=[^\s:])(?=[^\n\t:]*(?:[\n\t]|\Z))"
    )


def labelled_starts(folded: str, aliases: Sequence[str]) -> dict[int, bool]:
    """Characters at which a value behind one of the names begins, ascending.

    Each with whether a colon or a cell's edge stands between them: a name on a line of its own may
    as well be the head of a column.
    """
    found: dict[int, bool] = {}
    for alias in filter(str.strip, aliases):
        for match in _pattern(fold_width(alias)).finditer(folded):
            found[match.end()] = found.get(match.end(), False) or match["line"] is None
    return dict(sorted(found.items()))


def labelled_values(folded: str, aliases: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of the values behind a field's names: up to the line's end, and to earlier marks."""
    return [
        (start, end)
        for start in labelled_starts(folded, aliases)
        for end in sorted(set(_ends(folded, start)))[:_MOST_ENDS]
    ]


def _ends(folded: str, start: int) -> Iterator[int]:
    line = _value.match(folded, start)
    if line is None:
        return
    label = _next_label.search(line[0])
    value = line[0][: label.start()] if label else line[0]
    for mark in _end.finditer(value):
        end = start + len(value[: mark.start()].rstrip())
        if end > start:
            yield end
