"""What a spreadsheet cell shows: numbers are stored bare, their format says that they are dates.

Dates become ISO dates, percentages carry their sign, other numbers are written as shortly as they
can be without losing a digit that Excel keeps (15). Source: ECMA-376 part 1, section 18.8.30.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from featpipe.documents.loaders.container import attribute, child, children

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DATES = {14: "d", 15: "d", 16: "d", 17: "d", 18: "t", 19: "t", 20: "t", 21: "t", 22: "dt"}
_DATES.update({45: "t", 46: "t", 47: "t"})
_DATES.update(dict.fromkeys((*range(27, 32), 36, *range(50, 55), 57, 58), "d"))
_DATES.update(dict.fromkeys((32, 33, 34, 35, 55, 56), "t"))
_PERCENT = {9: 0, 10: 2}
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)
_LAST_DAY = 2_958_466  # 10000-01-01


class Formats:
    """Cell style number -> how its value is written."""

    def __init__(self, styles: Element | None, *, is_1904: bool) -> None:
        self._base = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)
        self._kinds: list[str | int | None] = []
        if styles is None:
            return
        own: dict[int, str] = {}
        listed = child(styles, "numFmts")
        for entry in children(listed, "numFmt") if listed is not None else ():
            own[int(entry.get("numFmtId", "0"))] = entry.get("formatCode", "")
        formats = child(styles, "cellXfs")
        for entry in children(formats, "xf") if formats is not None else ():
            number = int(attribute(entry, "numFmtId") or 0)
            self._kinds.append(_kind(number, own.get(number)))

    def written(self, raw: str, style: int) -> str:
        """The text of a numeric cell; the raw one when it is no number."""
        try:
            value = float(raw)
        except ValueError:
            return raw
        kind = self._kinds[style] if 0 <= style < len(self._kinds) else None
        if isinstance(kind, str) and 0 <= value < _LAST_DAY:
            return self._date(value, kind)
        if isinstance(kind, int):
            return f"{value * 100:.{kind}f}%"
        return plain(value)

    def _date(self, value: float, kind: str) -> str:
        moment = self._base + timedelta(days=int(value), seconds=round(value % 1 * 86_400))
        if self._base.year == 1899 and value < 61:
            moment += timedelta(days=1 if value >= 1 else 0)  # Excel's 29 February 1900
        if kind == "t" and value < 1:
            return moment.strftime("%H:%M:%S")
        has_time = value % 1 > 0 and kind != "d"
        return moment.strftime("%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d")


def plain(value: float) -> str:
    """A number without exponent and without noise beyond its 15th digit."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.15g}"
    if "e" not in text:
        return text
    if abs(value) >= 1:
        return f"{value:.0f}"
    return f"{value:.20f}".rstrip("0") if abs(value) > 1e-15 else text


def _kind(number: int, code: str | None) -> str | int | None:
    """Say "d", "t" or "dt" for dates and times, the digits of a percentage, or None."""
    if code is None:
        return _DATES.get(number, _PERCENT.get(number))
    bare = _LITERAL.sub("", code.split(";")[0])
    if "%" in bare:
        return len(re.sub(r"^.*?\.|[^0#]", "", bare)) if "." in bare else 0
    letters = set(bare.lower())
    has_date = bool(letters & set("yd")) or ("m" in letters and not letters & set("hs"))
    has_time = bool(letters & set("hs"))
    if "general" in bare.lower() or not (has_date or has_time):
        return None
    return ("d" if has_date else "") + ("t" if has_time else "")
