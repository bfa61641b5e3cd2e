"""The numbers that a browser puts before the items of ordered lists.

Source: HTML Standard, sections 4.4.5 and 4.4.8 (start, reversed, type, value); CSS Counter Styles
Level 3, section 6. Marks of other lists are no text, as in a Word file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from featpipe.documents.formats.docx_numbering import written
from featpipe.documents.formats.html_tables import attributes_of

#: As `attributes_of` gives them.
_Attributes = dict[str, tuple[str, int]]
_TYPES = {
    "1": "decimal",
    "a": "lower-alpha",
    "A": "upper-alpha",
    "i": "lower-roman",
    "I": "upper-roman",
}
#: Styles of CSS, each with Word's name of it; those with Chinese numbers are followed by 、.
_LATIN = {
    "decimal-leading-zero": "decimalZero",
    "lower-roman": "lowerRoman",
    "upper-roman": "upperRoman",
}
_CHINESE = {
    "cjk-ideographic": "chineseCounting",
    "simp-chinese-informal": "chineseCounting",
    "trad-chinese-informal": "chineseCounting",
    "simp-chinese-formal": "chineseLegalSimplified",
    "trad-chinese-formal": "ideographLegalTraditional",
    "cjk-decimal": "ideographDigital",
    "cjk-heavenly-stem": "ideographTraditional",
    "cjk-earthly-branch": "ideographZodiac",
}
_UNNUMBERED = frozenset({"none", "disc", "circle", "square"})
_NUMBER = re.compile(r"\s*([+-]?\d{1,9})")
_STYLE = re.compile(r"(?:^|[;\s])list-style(?:-type)?\s*:\s*([^;]*)", re.IGNORECASE)
#: Classes under which sites list what is no text of theirs, and without numbers.
_PLAIN_CLASS = re.compile(
    r"\b(?:breadcrumbs?|(?:list-)?unstyled|nav|menu|pagination)\b", re.IGNORECASE
)
#: A rule of a style sheet that takes the numbers from all lists.
_NO_NUMBERS = re.compile(
    r"(?:^|[\s,;}>])(?:ol|li)\s{0,99}+(?:,[^{}<]{0,100}+)?"
    r"\{[^{}<]{0,2000}?list-style(?:-type)?\s{0,9}+:[^;{}<]{0,99}?\bnone\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class OpenList:
    """A list, and the number of its next item; without numbers its style is none."""

    style: str = "none"
    number: int = 1
    step: int = 1

    def next_label(self, attributes: str) -> str:
        """Count one item, by the attributes of its tag: what stands before its text."""
        found = attributes_of(attributes) if attributes.strip() else {}
        self.number = _number_in(found, "value", self.number)
        label = _label(self.number, _style_in(found, self.style))
        self.number += self.step
        return label


def open_list(name: str, attributes: str) -> OpenList:
    """A list by its tag. One that counts down from the number of its items has no numbers here."""
    found = attributes_of(attributes) if name == "ol" else {}
    is_reversed = "reversed" in found
    is_plain = bool(_PLAIN_CLASS.search(found.get("class", ("", 0))[0]))
    if name != "ol" or is_plain or (is_reversed and "start" not in found):
        return OpenList()
    start = _number_in(found, "start", 1)
    return OpenList(_style_in(found, "decimal"), start, -1 if is_reversed else 1)


def lacks_numbers(source: str) -> bool:
    """Whether a style sheet of the page takes the numbers from its lists."""
    has_styles = "list-style" in source or "LIST-STYLE" in source  # a search takes longer
    return has_styles and bool(_NO_NUMBERS.search(source))


def _number_in(attributes: _Attributes, name: str, default: int) -> int:
    match = _NUMBER.match(attributes.get(name, ("", 0))[0])
    return int(match[1]) if match else default


def _style_in(attributes: _Attributes, default: str) -> str:
    """The style that CSS or the attribute ``type`` names."""
    match = _STYLE.search(attributes.get("style", ("", 0))[0])
    words = match[1].lower().split() if match else []
    known = {"decimal", "lower-alpha", "lower-latin", "upper-alpha", "upper-latin"}
    for word in words:
        if word in known or word in _LATIN or word in _CHINESE or word in _UNNUMBERED:
            return word
    return _TYPES.get(attributes.get("type", ("", 0))[0].strip(), default)


def _label(number: int, style: str) -> str:
    if style in _UNNUMBERED:
        return ""
    if style in _CHINESE:
        return f"{written(number, _CHINESE[style])}、"
    if style.endswith(("alpha", "latin")) and number > 0:
        letters = _letters(number)
        return f"{letters.upper() if style.startswith('upper') else letters}. "
    return f"{written(number, _LATIN.get(style, ''))}. "


def _letters(number: int) -> str:
    """1 to 26 as a to z, then aa, ab ... (Word, unlike CSS, repeats the letter)."""
    text = ""
    while number:
        number, index = divmod(number - 1, 26)
        text = chr(ord("a") + index) + text
    return text
