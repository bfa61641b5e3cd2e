"""Locating: where the values of a sample stand in its text, by meaning and not by spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.values.values import FieldType

#: A value named more often than this has no place of its own.
_MOST_PLACES = 40


def locate_value(page: Page, value: str, kind: FieldType) -> list[tuple[int, int]]:
    """Character spans of every occurrence of a value, in order.

    Shaped values are found by what they mean (``68587100`` is at ``6,858.71万元``); others, and
    shaped ones in a spelling no pattern knows, by their folded text, however they are spaced.
    """
    wanted = read_value(value, kind)
    spans = [(f.start, f.end) for f in page.find(kind) if f.value.means(wanted)]
    if not spans:
        folded = fold(value)
        spans = [span for span in page.compact.find_all(folded) if _is_whole(page, span, folded)]
    return spans[:_MOST_PLACES]


def _is_whole(page: Page, span: tuple[int, int], folded: str) -> bool:
    """Not the middle of a longer number or Latin word."""
    start, end = span
    before = page.folded[start - 1] if start else " "
    behind = page.folded[end] if end < len(page.folded) else " "
    return not (_joins(before, folded[0]) or _joins(folded[-1], behind))


def _joins(left: str, right: str) -> bool:
    both_digits = left.isdigit() and right.isdigit()
    return both_digits or (
        left.isascii() and right.isascii() and left.isalpha() and right.isalpha()
    )
