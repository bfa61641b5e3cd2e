"""From the lines of PDF pages to paragraphs: pure decisions over text and boxes.

A PDF holds glyphs and places, not paragraphs. Rules, each with its test:
- in a ruled cell of a table, lines go on up to its edge, and end with it;
- a line continues in the next one when the next line's first word would not have fitted, both are
  of one size, one step apart, and the next does not begin a clause or an item;
- pieces at one height are one row of text;
- a word split by a hyphen at the line's end is joined, unless the document shows that the hyphen
  belongs to it;
- lines in the outer zone that are repeated on most pages are running heads: the first is kept, the
  others are left out, as are bare page numbers; both are reported;
- a paragraph may run over the page's edge.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.documents.formats.pdf_margins import Line, right_limits
from featpipe.documents.formats.text import begins_item, first_word, is_ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.documents.formats.pdf_rules import Cell, Rules

#: Share of the page's height, at either end, in which running heads stand.
_OUTER_ZONE = 0.12
_OUTER_LINES = 4
_DIGITS = re.compile(r"[0-9]{1,9}|(?<![a-z])[ivxlc]{1,5}(?![a-z])")
_ARABIC = re.compile(r"[0-9]{1,9}")
_SHORT_HEAD = 12
_PAGE_NUMBER = re.compile(
    r"[\s\-–—~·.|/\[\]()（）]*(?:(?:page|第|p\.?)\s*)?#(?:\s*页)?"
    r"(?:\s*(?:of|/|共|，共|,共|-|–)\s*(?:第\s*)?#?\s*页?)?[\s\-–—~·.|/\[\]()（）页]*"
)
#: Share of a line that may be blank when the next one continues its sentence in lower case.
_RAGGED = 0.3
#: Lines of a page that decide its direction.
_VOTERS = 30
#: Characters between head and foot of a page that make it one of text: more than a stamp has.
_PROSE = 40
#: Width of a line, in font sizes, below which it does not show a margin.
_SHORT = 14
#: The name of a field, such as 甲方（盖章）： or Tel.:, and no time or address.
_LABEL = re.compile(r"[^：:，,。；;？！]{1,16}(?:：|:(?![\d/]))")
#: Share of a page's width below which the cell of a table sets the margin of its lines, and what
#: stays free at its right edge, in font sizes.
_NARROW, _PADDING = 0.75, 0.5
#: Edges of cells of two pages that are so near are one column's, in points.
_SAME = 2.0
#: A first character so much lower than the last one of its line does not show the line's height.
_FLAT_GLYPHS, _FLAT = "一二三", 0.7
#: Marks that never begin a line: one after the first word of a line wraps with it.
_NEVER_FIRST = "，。、；：？！）》”’」】％,.;:?!)%"
_HYPHENS = ("\ufffe", "-\n", "\u2010\n", "\xad\n")
_PARTED = re.compile(r"(?:\ufffe|[-\u2010\xad]\n)\s*(?=[^\W\d_]{2})")
_WORD = re.compile(r"[^\W\d_]{2,}")
_WORD_BEFORE = re.compile(r"[^\W\d_]{2,}$")


@dataclass(slots=True)
class PageLines:
    """The lines of one page, in reading order.

    ``is_unmapped``: its fonts do not say what their letters mean. ``rules``: drawn on it.
    ``n_outside``: lines beyond its edges, which are left out.
    """

    number: int
    height: float
    lines: list[Line]
    is_unmapped: bool = False
    rules: Rules | None = None
    n_outside: int = 0


@dataclass(slots=True)
class Block:
    """A paragraph: its raw text, and where in it further pages begin: (position, page number)."""

    page: int
    text: str
    breaks: list[tuple[int, int]] = field(default_factory=list)


def upright(
    texts: Sequence[str],
    boxes: NDArray[np.float64],
    width: float,
    height: float,
    *,
    n_typed: int = 0,
    rules: Rules | None = None,
) -> PageLines:
    """Lines from the boxes of their first and last characters, turned so that most text is upright.

    The direction of the text decides, not the page's declared rotation: pages are rotated to show
    turned text, and rotated with upright text. Right-to-left text is not turned. The last
    ``n_typed`` lines were typed into the page, and have no say. The rules of a page that is turned
    are left out.

    Shapes: boxes (2, lines, 4), as left, top, right, bottom in points, y upwards.
    """
    if not texts:
        return PageLines(0, height, [])
    n_voters = min(_VOTERS, len(texts) - n_typed)
    turned = _turned(boxes, width, n_voters)
    if turned is not None:
        boxes, height, rules = turned, width, None
    first, last = boxes
    left, bottom = np.minimum(first[:, 0], last[:, 0]), first[:, 3]
    right, size = np.maximum(first[:, 2], last[:, 2]), first[:, 1] - bottom
    # Where boxes fit the drawn glyphs, that of 一 is flat, and the other end of its line is not.
    flat = np.array([text[0] in _FLAT_GLYPHS for text in texts])
    flat &= size < _FLAT * (last[:, 1] - last[:, 3])
    bottom = np.where(flat, last[:, 3], bottom)
    size = np.where(flat, last[:, 1] - last[:, 3], size)
    rows = zip(texts, left.tolist(), right.tolist(), bottom.tolist(), size.tolist(), strict=True)
    return PageLines(0, height, list(map(_as_line, rows)), rules=rules)


def _turned(boxes: NDArray[np.float64], width: float, n_voters: int) -> NDArray[np.float64] | None:
    """The boxes turned upright; None where most lines do not read upwards, nor downwards."""
    step = boxes[1, :n_voters] - boxes[0, :n_voters]
    rise = step[np.abs(step[:, 3]) > np.abs(step[:, 0]), 3]
    n_up, n_down = np.count_nonzero(rise > 0), np.count_nonzero(rise < 0)
    if 2 * max(n_up, n_down) <= len(step):
        return None
    left, top, right, bottom = np.moveaxis(boxes, 2, 0)
    if n_up >= n_down:  # reads upwards: its lines follow one another to the right
        return np.stack((bottom, width - left, top, width - right), axis=2)
    return np.stack((-top, right, -bottom, left), axis=2)


#: ``Line._make`` at a third of its cost.
_as_line = partial(tuple.__new__, Line)


def find_running(pages: Sequence[PageLines]) -> tuple[set[tuple[int, int]], list[str]]:
    """Which lines are repeated heads, feet and page numbers.

    Returns:
        (page index, line index) of every line to leave out, and the texts that are repeated, as
        they first stand.
    """
    n_needed = max(3, 0.4 * sum(bool(page.lines) for page in pages))
    left_out: set[tuple[int, int]] = set()
    heads: list[str] = []
    for pattern, lines in _group_outer(pages).items():
        kept, repeated = _split_running(pattern, lines, n_needed)
        if kept:
            heads.append(" ".join(pages[kept.page].lines[kept.line].text.split()))
        left_out.update((line.page, line.line) for line in repeated)
    return left_out, heads


def _group_outer(pages: Sequence[PageLines]) -> dict[str, list[_Outer]]:
    """By pattern, the outer lines of all pages."""
    alike: dict[str, list[_Outer]] = {}
    for i, page in enumerate(pages):
        for k in _outer_lines(page):
            pattern, numbers = _pattern(page.lines[k].text)
            alike.setdefault(pattern, []).append(_Outer(i, k, page.number, numbers))
    return alike


def _split_running(
    pattern: str, lines: list[_Outer], n_needed: float
) -> tuple[_Outer | None, list[_Outer]]:
    """Of lines of one pattern, the head that is kept once, and the lines to leave out."""
    is_number = "#" in pattern and bool(_PAGE_NUMBER.fullmatch(pattern))
    if not is_number and len({line.page for line in lines}) < n_needed:
        return None, []
    running = _running_of(lines)
    is_counting = len({tuple(line.numbers) for line in running}) > 1
    is_number = is_number and (is_counting or len(lines) == 1)
    if len({line.page for line in running}) < n_needed:
        return None, [line for line in lines if is_number and line.numbers[:1] == [line.number]]
    return (None, running) if is_number else (running[0], running[1:])


class _Outer(NamedTuple):
    """A line in an outer zone: indices of page and line, the page's number, the numbers in it."""

    page: int
    line: int
    number: int
    numbers: list[int]


def _running_of(lines: list[_Outer]) -> list[_Outer]:
    """Of lines that differ only in their numbers, those that are one running head.

    Each number must stay the same, or increase with the pages: two invoices with different numbers
    are not a running head.
    """
    for slot in range(len(lines[0].numbers)):
        values = Counter(line.numbers[slot] for line in lines)
        distances = Counter(line.numbers[slot] - line.number for line in lines)
        (value, n_same), (distance, n_along) = values.most_common(1)[0], distances.most_common(1)[0]
        if n_same >= n_along:
            lines = [line for line in lines if line.numbers[slot] == value]
        else:
            lines = [line for line in lines if line.numbers[slot] - line.number == distance]
    return lines


def _pattern(text: str) -> tuple[str, list[int]]:
    """The text with # for its numbers, and the numbers; roman ones count in short lines only."""
    text = " ".join(text.lower().split())
    digits = _DIGITS if len(text) <= _SHORT_HEAD else _ARABIC
    numbers = [_number(found) for found in digits.findall(text)]
    return digits.sub("#", text) if numbers else text, numbers


def _number(digits: str) -> int:
    if digits.isdecimal():
        return int(digits)
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[c] for c in digits]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def _outer_lines(page: PageLines) -> list[int]:
    """Indices of the few lines nearest to either end, in the top and bottom zones of the page."""
    low, high = _OUTER_ZONE * page.height, (1 - _OUTER_ZONE) * page.height
    outer = [(line.bottom, k) for k, line in enumerate(page.lines) if not low < line.bottom < high]
    outer.sort()
    feet = [k for bottom, k in outer[:_OUTER_LINES] if bottom <= low]
    tops = [k for bottom, k in outer[-_OUTER_LINES:] if bottom >= high]
    return sorted(feet + tops)


def has_prose(page: PageLines) -> bool:
    """Whether there is more text between its head and its foot than in a stamp or a watermark."""
    low, high = _OUTER_ZONE * page.height, (1 - _OUTER_ZONE) * page.height
    n_characters = 0
    for line in page.lines:
        n_characters += len(line.text) if low < line.bottom < high else 0
        if n_characters > _PROSE:
            return True
    return False


def to_blocks(pages: Sequence[PageLines], left_out: set[tuple[int, int]]) -> list[Block]:
    """Paragraphs of a whole document, in reading order."""
    numbers: list[int] = []
    parts: list[list[str]] = []
    breaks: list[list[tuple[int, int]]] = []
    previous: Line | None = None
    previous_end = End(0.0)
    length = 0  # of the last block
    for i, page in enumerate(pages):
        ends = _ends(page)
        is_first = True
        for k, line in enumerate(page.lines):
            if (i, k) in left_out:
                continue
            separator = None
            if previous and _may_meet(previous_end.cell, ends[k].cell, is_new_page=is_first):
                separator = _separator(previous, line, previous_end, is_new_page=is_first)
            if separator is None:
                length = len(line.text)
                numbers.append(page.number)
                parts.append([line.text])
                breaks.append([])
            else:
                if is_first:
                    breaks[-1].append((length + 1, page.number))
                parts[-1] += separator, line.text
                length += len(separator) + len(line.text)
            previous, previous_end, is_first = line, ends[k], False
    texts = ("".join(pieces) for pieces in parts)
    return [Block(*block) for block in zip(numbers, texts, breaks, strict=True)]


def _may_meet(before: Cell | None, after: Cell | None, *, is_new_page: bool) -> bool:
    """Whether two lines may be of one paragraph, by the cells in which they end."""
    if before is None or after is None:
        return after is None and (before is None or not is_new_page)
    if not is_new_page:
        return True
    return abs(before.left - after.left) < _SAME and abs(before.right - after.right) < _SAME


def _separator(line: Line, following: Line, end: End, *, is_new_page: bool) -> str | None:
    """The separator of two lines of one paragraph; None where a paragraph ends.

    A line break between lines (cleaning removes it between wide characters); within one row a
    blank, or a line break between close neighbours.
    """
    text, _, right, bottom, size = line
    if text[-1:] != "\ufffe" and not _goes_on(line, following, end, is_new_page=is_new_page):
        return None
    is_level = abs(bottom - following.bottom) < 0.3 * max(size, 1.0)
    is_far = is_level and following.left - right >= 0.7 * size
    return " " if is_far and not is_new_page else "\n"


def _goes_on(line: Line, following: Line, end: End, *, is_new_page: bool) -> bool:
    """Whether two lines, of which the first ends without a hyphen, are of one paragraph."""
    text, _, right, bottom, size = line
    is_narrow = end.cell and end.cell.right - end.cell.left < end.page_width * _NARROW
    limit = end.cell.right - _PADDING * size if end.cell and is_narrow else end.right
    step = bottom - following.bottom
    larger = max(size, following.size, 1.0)
    if abs(size - following.size) > 0.25 * larger:
        return False
    if is_new_page:
        is_start = following.text[:1].isupper() or begins_item(following.text, "。")
        if is_start or is_ended(text):
            return False
    elif abs(step) < 0.3 * larger:  # in one row
        return following.left >= right - larger
    elif (
        right < line.left or following.right < following.left or not 0 < step < 2.2 * larger
    ):  # typed
        return False
    elif end.cell and not _stands_in(end.cell, following):
        return False
    return _is_wrapped(line, following, limit - right, larger)


def _stands_in(cell: Cell, line: Line) -> bool:
    """Whether a line begins in a cell, above the rule that ends it."""
    is_above = line.bottom + line.size / 2 > cell.floor
    return is_above and cell.left - 1 <= line.left < cell.right


class End(NamedTuple):
    """How far a line may reach.

    Attributes:
        right: where the longest line ends that begins at about the same place.
        cell: of a table, in which the line ends.
        page_width: from the first to the last character of a page.
    """

    right: float
    cell: Cell | None = None
    page_width: float = 0.0


def _ends(page: PageLines) -> list[End]:
    """By line, how far it may reach."""
    lines, rules = page.lines, page.rules
    limits = right_limits(lines)
    if rules is None:
        return list(map(End, limits))
    width = max(line.right for line in lines) - min(line.left for line in lines) if lines else 0.0
    return [
        End(limit, rules.cell_at(line.right - line.size / 2, line.bottom + line.size / 2), width)
        for line, limit in zip(lines, limits, strict=True)
    ]


def _is_wrapped(line: Line, following: Line, room: float, size: float) -> bool:
    """Whether a line ended only because the next word did not fit."""
    if following.text[:1].islower() and not is_ended(line.text):
        return room < _RAGGED * (room + line.right - line.left)
    spare = room - 0.3 * size
    if spare >= 0 and (room > 40 * size or spare >= _width_of_first_word(following)):
        return False  # the next word would have fitted
    is_field = _LABEL.match(line.text) and line.text[-1] not in "，、,"
    if is_field and _LABEL.match(following.text):
        return False  # fields of about one length, one below the other
    if line.right - line.left < _SHORT * size and following.text[:1].isupper():
        return False  # a list of short lines; their longest does not show a margin
    if following.left - line.left > 1.2 * size and is_ended(line.text):
        return False  # indented: the first line of a paragraph
    return not begins_item(following.text, line.text)


def _width_of_first_word(line: Line) -> float:
    word = first_word(line.text)
    n_characters = len(word) + (line.text[len(word) : len(word) + 1] in _NEVER_FIRST)
    return n_characters * (line.right - line.left) / max(1, len(line.text))


def join_words(blocks: Sequence[Block]) -> None:
    """Join words split by a hyphen at a line's end, unless the document spells them with it."""
    parted = [block for block in blocks if any(mark in block.text for mark in _HYPHENS)]
    if not parted:
        return
    everything = " ".join(block.text for block in blocks)
    known = _Known(everything, sum(len(_PARTED.findall(block.text)) for block in parted))

    for block in parted:
        block.text = _PARTED.sub(partial(_join, known), block.text)


def _join(known: _Known, match: re.Match[str]) -> str:
    """What stands for the break within a word: a hyphen or nothing, as the document spells it."""
    text, (start, end) = match.string, match.span()
    left, right = _WORD_BEFORE.search(text, max(0, start - 40), start), _WORD.match(text, end)
    if not left or not right:
        return match[0]
    is_own = known.count(f"{left[0]}-{right[0]}") > known.count(left[0] + right[0])
    kept = "-" if is_own or right[0][0].isupper() else ""
    # Padded to the old length with marks that cleaning drops: page breaks keep their place.
    return kept + "\u200b" * (len(match[0]) - len(kept))


class _Known:
    """Counts words in a document; all at once where more than 20 are asked for."""

    def __init__(self, everything: str, n_questions: int) -> None:
        self.everything = everything
        self.counts: Counter[str] | None = None
        if n_questions > 20:
            self.counts = Counter(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", everything))

    def count(self, word: str) -> int:
        return self.everything.count(word) if self.counts is None else self.counts[word]
