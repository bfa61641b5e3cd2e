"""Characters of symbol fonts: Wingdings and its like keep signs under the codes of letters.

Only signs that carry meaning in a document are listed: boxes, ticks, bullets, numbers, arrows,
Greek and mathematics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

_WINGDINGS = {
    0x28: "☎", 0x2A: "✉", 0x46: "☞", 0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x72: "❒",
    0x74: "◆", 0x75: "◆", 0x76: "❖", 0x78: "☒", 0x80: "⓪", 0x9E: "·", 0x9F: "•", 0xA1: "○",
    0xA4: "◉", 0xA5: "◎", 0xA7: "▪", 0xA8: "□", 0xAB: "★", 0xD8: "➢", 0xDC: "➲",
    0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE7: "←", 0xE8: "→", 0xE9: "↑", 0xEA: "↓",
    0xEF: "⇦", 0xF0: "⇨", 0xF1: "⇧", 0xF2: "⇩",
    0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
    **{0x81 + i: chr(0x2460 + i) for i in range(10)},
    **{0x8C + i: chr(0x2776 + i) for i in range(10)},
}  # fmt: skip
_WINGDINGS_2 = {
    0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x69: "⓪",
    0x97: "●", 0xA2: "■", 0xA3: "□",
    **{0x6A + i: chr(0x2460 + i) for i in range(10)},
    **{0x75 + i: chr(0x2776 + i) for i in range(10)},
}  # fmt: skip
_WINGDINGS_3 = {0x70 + i: sign for i, sign in enumerate("▲▼△▽◀▶◁▷")}
_WEBDINGS = {0x61: "✓", 0x63: "□", 0x67: "■", 0x6E: "●", 0x72: "✗"}
_SYMBOL = dict(
    enumerate(
        " !∀#∃%&∋()*+,-./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"
        "‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}~",
        start=0x20,
    )
) | dict(
    enumerate(
        "ϒ′≤/∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…│─↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√·¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",
        start=0xA1,
    )
)
_FONTS = {
    "wingdings": _WINGDINGS,
    "wingdings 2": _WINGDINGS_2,
    "wingdings 3": _WINGDINGS_3,
    "webdings": _WEBDINGS,
    "symbol": _SYMBOL,
}
#: The block of private characters under which Office keeps the codes of such a font.
_PRIVATE = 0xF000


def sign_of(font: str, code: int) -> str:
    """The character that a font shows for a code; "" where it is not known."""
    signs = _FONTS.get(font.lower())
    if signs is not None:
        return signs.get(code - _PRIVATE if code >= _PRIVATE else code, "")
    is_unknown = 0xD800 <= code < 0xF900 or not 0x20 <= code < 0xF0000
    return "" if is_unknown else chr(code)


def is_symbol_font(font: str) -> bool:
    """Whether a font shows signs in the place of letters."""
    return font.lower() in _FONTS


def read_in(font: str, text: str) -> str:
    """A text as a font shows it; signs that are not known stay as they are."""
    if not is_symbol_font(font):
        return text
    return "".join(sign_of(font, ord(c)) or c if _has_sign(ord(c)) else c for c in text)


def _has_sign(code: int) -> bool:
    return code < 0x100 or _PRIVATE <= code < _PRIVATE + 0x100


def describe(lost: Counter[str]) -> list[str]:
    """A note per font with signs that are not known."""
    return [
        f"signs of the font {font} without a known character are left out: {n:,}"
        for font, n in sorted(lost.items())
    ]
