"""Numerals as numbers: Arabic with separators, Chinese in everyday and in bank spelling.

All functions expect text folded by :func:`featpipe.extraction.values.text.fold_width`.
"""

from __future__ import annotations

import re
from decimal import Decimal

_DIGITS = {
    char: value
    for value, chars in enumerate(
        (
            "零〇",
            "一壹弌",
            "二贰两兩貳弍",
            "三叁參叄",
            "四肆",
            "五伍",
            "六陆陸",
            "七柒",
            "八捌",
            "九玖",
        )
    )
    for char in chars
}
#: Characters of one digit.
DIGIT = "".join(_DIGITS)
_TENS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "廿": 20, "卅": 30}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12}

_TRADITIONAL = "萬億點個臺輛噸畝頃戶張層間頁條隻時鐘週曆業會計"
_SIMPLIFIED = "万亿点个台辆吨亩顷户张层间页条只时钟周历业会计"
#: Characters of numerals, units and lengths of time, for `str.translate`.
SIMPLIFIED = str.maketrans(_TRADITIONAL, _SIMPLIFIED)
TRADITIONAL = str.maketrans(_SIMPLIFIED, _TRADITIONAL)

#: Words that multiply a numeral.
SCALES = {
    spelling: Decimal(10**exponent)
    for exponent, words in (
        (12, ("万亿", "trillion")),
        (11, ("千亿",)),
        (10, ("百亿",)),
        (9, ("十亿", "billion", "bn")),
        (8, ("亿",)),
        (7, ("千万", "仟万", "crore", "crores")),
        (6, ("百万", "佰万", "million", "mn")),
        (5, ("十万", "lakh", "lakhs", "lacs")),
        (4, ("万",)),
        (3, ("千", "仟", "thousand")),
        (2, ("百",)),
    )
    for word in words
    for spelling in (word, word.translate(TRADITIONAL))
}

#: A blank may be around the point, but none where the next item of a list begins: $75.\n5. Next.
ARABIC = (
    r"(?:\d{1,3}(?:\s?,\s?\d{3}){1,9}|\d+)"
    r"(?:\.\d+|(?:[^\S\n]\.[^\S\n]?|\.[^\S\n])\d+(?!\d|[.)]\s))?"
)
#: 1 234 567.89; blanks between groups are as often those between two numbers: see ``amounts``.
SPACED = r"[1-9]\d{0,2}(?: \d{3}){1,5}(?:\.\d+)?"
#: 1.234.567,89 as in Europe, and 1'234'567.50 as in Switzerland; 1.234 may be a decimal number.
FOREIGN = (
    r"(?:\d{1,3}(?:\.\d{3})+,\d\d?|\d{1,3}(?:\.\d{3}){2,}|\d{1,3}(?:'\d{3})+(?:\.\d+)?)"
    r"(?![.,']?\d)"
)
#: 12,34,567.50 as in India, which elsewhere are several numbers.
INDIAN = r"\d{1,2}(?:,\d\d){1,5},\d{3}(?:\.\d+)?(?![.,']?\d)"
CHINESE_DIGIT = DIGIT + "".join(_TENS)
CHINESE = rf"[{CHINESE_DIGIT}][{CHINESE_DIGIT}万萬亿億]*(?:[点點][{DIGIT}]+)?"
SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_GREAT = r"\s?(?:[万萬][亿億]|[十百千佰仟]?[万萬]|[十百千]?[亿億])"
#: Between two parts; behind a blank is a part with a scale: 3 亿 5000 万.
_NEXT = rf"(?:零|[^\S\n\t](?=[\d,.]+(?:{_GREAT}|\s?[千百])))?"
#: 1亿2000, 12亿3456万7890.12 and 2万5: parts, each with a scale of its own but the last.
MIXED = rf"(?:{ARABIC}{_GREAT}{_NEXT})+{ARABIC}"

_is_chinese = re.compile(rf"[{CHINESE_DIGIT}万萬亿億兆点點]+\Z")
#: Characters of a Chinese numeral at most; a line of ○ is none.
_LONGEST = 100
_part = re.compile(rf"({ARABIC})\s?({SCALE})?[零\s]?")
_is_foreign = re.compile(rf"[+-]?(?:{FOREIGN}|\d+,\d\d?)\Z")
_is_arabic = re.compile(rf"[+-]?\s?(?:{ARABIC}|{SPACED}|{INDIAN}|\.\d+)\Z")


def read_number(text: str) -> Decimal | None:
    """The number written as ``text``, None for any other text.

    ``1,234.50`` and ``一千二百三十四点五`` are equal; ``二〇一七`` is read digit by digit;
    ``三百五`` is 350, as it is spoken.
    """
    text = text.strip()
    if _is_arabic.match(text):
        return Decimal(re.sub(r"[\s,]", "", text))
    if _is_foreign.match(text):
        european = text.replace(".", "").replace(",", ".")
        return Decimal(text.replace("'", "") if "'" in text else european)
    if text and len(text) <= _LONGEST and _is_chinese.match(text):
        return _read_chinese(text)
    return None


def read_scaled(text: str, scale: str | None) -> Decimal | None:
    """The number written as ``text`` times the scale behind it.

    ``1亿2000`` with the scale 万 is 120,000,000; 2万5 without one is no number: 20,005 or 25,000.
    """
    if is_vague(text):
        return None
    number = read_number(text)
    if number is not None:
        return number * SCALES.get(scale or "", Decimal(1))
    parts = [(Decimal(re.sub(r"[\s,]", "", n)), s) for n, s in _part.findall(text + (scale or ""))]
    if len(parts) < 2 or _part.sub("", text + (scale or "")):
        return None
    if not parts[-1][1] and parts[-1][0] < 10 and "零" not in text:
        return None
    total = Decimal(0)
    above: Decimal | None = None
    for count, word in parts:
        size = SCALES.get(word, Decimal(1))
        if above is not None and count * size >= above:
            return None
        total, above = total + count * size, size
    return total


def is_vague(text: str) -> bool:
    """三五 and 两三 are spoken numbers, three to five and two or three, where they count things."""
    return len(text) == 2 and all(char in _DIGITS and _DIGITS[char] for char in text)


def _read_chinese(text: str) -> Decimal | None:
    whole, point, rest = text.translate(SIMPLIFIED).partition("点")
    if point:
        if not whole or not rest or any(char not in _DIGITS for char in rest):
            return None
        fraction = "".join(str(_DIGITS[char]) for char in rest)
    else:
        fraction = "0"
    number = _read_whole(whole)
    return None if number is None else Decimal(f"{number}.{fraction}")


def _read_whole(text: str) -> int | None:
    if len(text) > 1 and all(char in _DIGITS for char in text):
        return int("".join(str(_DIGITS[char]) for char in text))
    total = section = 0
    digits = ""
    last_unit = 0
    for char in text:
        if char in _DIGITS:
            digits += str(_DIGITS[char])
            if digits == "0":
                last_unit = 0
            continue
        digit = _read_digits(digits)
        if digits and digit is None:
            return None
        if char in _TENS:
            unit = _TENS[char]
            section += (1 if not digit or unit in {20, 30} else digit) * unit
        else:
            unit = _MYRIADS[char]
            section += digit or 0
            total = (total + section) * unit if unit > total > 0 else total + section * unit
            section = 0
        digits, last_unit = "", unit
    digit = _read_digits(digits)
    if digits and digit is None:
        return None
    # 三百五 and 两万三 omit the last unit: it is a tenth of the one before.
    section += (digit or 0) * (last_unit // 10 if last_unit >= 100 else 1)
    return total + section


def _read_digits(digits: str) -> int | None:
    """Digits before a unit: 一〇五 is 105; 两三 is two or three, and no number."""
    several = digits.lstrip("0")
    if len(several) == 2 and "0" not in several:
        return None
    return int(digits) if digits else None


def plain(number: Decimal) -> str:
    """Canonical spelling: no exponent, no trailing zeros, no minus before zero."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text
