"""What a line of a contract begins with and ends in: signs of where paragraphs part.

Shared by the loaders that get lines instead of paragraphs (PDF, wrapped plain text).
"""

from __future__ import annotations

import re

_ITEM = re.compile(
    r"\s*(?:第[一二三四五六七八九十百零〇\d]{1,5}[章节条款编部分]"
    r"|[（(][一二三四五六七八九十百\d]{1,4}[）)]|[一二三四五六七八九十]{1,3}[、.．]"
    r"|\d{1,3}(?:\.\d{1,3}){0,5}[、.．)）](?!\d)|\d{1,2}(?:\.\d{1,3}){1,5}\s"
    r"|[①-⑳•●○◆■□▪▶➢✓·※\uf0b7\uf06c\uf0d8]|[-–—*]\s"
    r"|\(?[a-zA-Z]\)\s|\([ivxIVX]{1,5}\)|(?:Article|Section|ARTICLE|SECTION|Chapter|Exhibit)\s+[\dIVX])"
)
_LOUD = re.compile(r"\([a-z]\)|\d{1,2}(?:\.\d{1,3}){1,5}\s+[^\W\d]")
_ENDS = "。！？；：.!?;:"
_CLOSERS = "”’」』）)】\"' "
_FIRST_WORD = re.compile(r"\s*([^\s\u2e80-\u9fff\uff00-\uffef]+|.)")


def begins_item(text: str, before: str) -> bool:
    """Whether a line begins a clause or an item, and does not merely go on with a number.

    Args:
        text: the line.
        before: the line before it.
    """
    return bool(_ITEM.match(text)) and (is_ended(before) or _is_loud(text))


def is_ended(text: str) -> bool:
    """Whether a line ends in a mark that ends a sentence or announces a list."""
    return text.rstrip(_CLOSERS)[-1:] in _ENDS


def first_word(text: str) -> str:
    """What would have had to fit on the line before: a Latin word, or one wide character."""
    match = _FIRST_WORD.match(text)
    return match[1] if match else ""


def _is_loud(text: str) -> bool:
    """Items that no sentence would begin a line with by chance."""
    return text.lstrip()[:1] in "第（①•●○◆■□▪▶➢✓※" or bool(_LOUD.match(text.lstrip()))
