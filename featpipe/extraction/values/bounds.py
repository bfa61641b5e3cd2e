"""Bounds: what stands before an amount, or behind it, as 不超过300万元 and 300万元以上.

All functions expect text folded by :func:`featpipe.extraction.values.text.fold_width`.
"""

from __future__ import annotations

import re

_NOT = "[不未][得应應能会會可宜]?"
_ABOVE = "超[过過]?|超出|[高多大][于於]"
_BELOW = "[低少小][于於]"
_MOST = (
    rf"{_NOT}(?:{_ABOVE})|不足|至多|最多|最高|上限[为為]?|{_BELOW}|≤|<=?|up to|at most|less than"
    r"|not? (?:exceeding|to exceed|more than|greater than|in excess of)"
)
_LEAST = (
    rf"{_NOT}(?:{_BELOW})|至少|最低|最少|下限[为為]?|起码|逾|{_ABOVE}|≥|>=?|at least|more than"
    r"|not? less than|exceeding|in excess of"
)
_ABOUT = "[约約][为為]?|大[约約]|[接将將]?近|approximately|about"
_BEFORE = rf"(?:(?P<most>{_MOST})|(?P<least>{_LEAST})|{_ABOUT})\s?"
_HELD = r"(?:\s?\(不?含[^()]{0,6}\))?"
_BEHIND = rf"{_HELD}\s?(?:(?P<most>及?以下|[以之][内內]|or less)|(?P<least>及?以上|or more)){_HELD}"
_begins = re.compile(_BEFORE)
_stands_before = re.compile(rf"{_BEFORE}\Z")
_stands_behind = re.compile(_BEHIND)
_ends = re.compile(rf"{_BEHIND}\Z")
#: Signs of a bound before an amount at most.
_LONGEST = 24


def bound_at(folded: str, start: int, end: int) -> str:
    """What a span of a text is bound by, ``<=``, ``>=`` or "": before it, or else behind it."""
    before = _stands_before.search(folded[max(0, start - _LONGEST) : start])
    return _kind(before) or _kind(_stands_behind.match(folded, end))


def split_bound(folded: str) -> tuple[str, str]:
    """The bound (``<=``, ``>=`` or "") that a text begins or ends with, and the rest."""
    text = folded.strip()
    before = _begins.match(text)
    text = text[before.end() :] if before else text
    behind = _ends.search(text)
    text = text[: behind.start()] if behind else text
    return _kind(before) or _kind(behind), text


def _kind(match: re.Match[str] | None) -> str:
    if match is None:
        return ""
    return "<=" if match["most"] else ">=" if match["least"] else ""
