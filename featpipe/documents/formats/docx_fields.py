r"""Fields of a Word file: what they show that is not written out as their result.

Boxes and lists of old forms, and EQ: a number in a circle, a character with its reading, and a
fraction are a code alone. Source: ECMA-376 part 1, section 17.16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from featpipe.documents.formats.docx_numbering import written
from featpipe.documents.formats.zip_xml import attribute, child, children, is_on, value_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_EQUATION = re.compile(r"\s*EQ\s(.*)", re.IGNORECASE | re.DOTALL)
#: An innermost part, such as ``\s\up 9(x)``: its letter, its options, what it holds.
_PART = re.compile(r"\\([a-z])((?:\s*\\[a-z]+\s*-?\d*)*+)\s*\(([^()\\]*)\)", re.IGNORECASE)
_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)')
_CIRCLES = frozenset("○〇◯Oo")
#: Marks of what stands above or below the line.
_ABOVE, _BELOW = "\x01", "\x02"
_MOST_NESTED = 16
#: Characters of a code that shows something by itself.
_LONGEST = 500


@dataclass(slots=True)
class OpenField:
    """A field that is not ended: where its text starts, and the code so far.

    ``is_code``: its result has not begun.
    """

    start: int
    code: str = ""
    is_code: bool = True

    def add(self, code: str) -> None:
        """Take a part of the code; of a long one no more than shows that it is long."""
        if len(self.code) <= _LONGEST:
            self.code += code

    def shown(self) -> str:
        """What the code shows; "" for all fields that have a result."""
        equation = _EQUATION.match(self.code) if len(self.code) <= _LONGEST else None
        return _equation(equation[1]) if equation else ""


def form_field(data: Element | None) -> str:
    """What an old form field shows that is no text of its own: a box, a choice of a list."""
    box, choices = child(data, "checkBox"), child(data, "ddList")
    if box is not None:
        is_checked = is_on(box, "default" if child(box, "checked") is None else "checked")
        return "☒" if is_checked else "☐"
    entries = [attribute(entry, "val") or "" for entry in children(choices, "listEntry")]
    chosen = value_of(choices, "result") or value_of(choices, "default") or "0"
    index = int(chosen) if chosen.isdecimal() else 0
    return entries[index] if index < len(entries) else ""


def _equation(code: str) -> str:
    """The text of an EQ field, part by part from within."""
    code = _SWITCH.sub("", code)
    for _ in range(_MOST_NESTED):
        code = _PART.sub(_part, code)
    return code.replace(_ABOVE, "").replace(_BELOW, "").strip()


def _part(match: re.Match[str]) -> str:
    letter, options, held = match[1].lower(), match[2].lower(), match[3]
    parts = [part.strip() for part in re.split("[,;]", held)]
    if letter == "s":
        mark = _ABOVE if "\\up" in options else _BELOW if "\\do" in options else ""
        return mark + held
    if letter == "f":
        return "/".join(parts)
    if letter != "o" or any(part.startswith(_BELOW) for part in parts):
        return "".join(parts)
    is_circled = parts[0] in _CIRCLES and parts[-1].isdecimal()
    return written(int(parts[-1]), "decimalEnclosedCircle") if is_circled else parts[-1]
