"""Amounts: money, numbers with a unit, and shares, found in running text and read by value.

All patterns run on text of unchanged length (``fold_width``), so a match is a span of the original.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from featpipe.extraction.values.begins import money_places
from featpipe.extraction.values.bounds import bound_at, split_bound
from featpipe.extraction.values.numbers import (
    ARABIC,
    CHINESE,
    CHINESE_DIGIT,
    DIGIT,
    FOREIGN,
    INDIAN,
    MIXED,
    SCALE,
    SCALES,
    SIMPLIFIED,
    SPACED,
    plain,
    read_number,
    read_scaled,
)
from featpipe.extraction.values.text import matches_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: ISO code -> folded spellings.
_SPELLINGS = {
    "CNY": ("人民币", "人民幣", "rmb", "cny", "yuan", "元", "圆", "圓", "块", "塊", "¥", "cn¥"),
    "USD": ("美元", "美圆", "美圓", "美金", "usd", "us$", "u.s.$",
            "us dollars", "u.s. dollars", "dollars", "dollar", "$"),
    "HKD": ("港元", "港圆", "港圓", "港币", "港幣", "hkd", "hk$"),
    "EUR": ("欧元", "歐元", "euros", "euro", "eur", "€"),
    "JPY": ("日元", "日圆", "日圓", "日币", "日幣", "jpy"),
    "GBP": ("英镑", "英鎊", "gbp", "pounds", "£"),
    "SGD": ("新加坡元", "新加坡币", "新加坡幣", "新元", "sgd", "s$"),
    "AUD": ("澳大利亚元", "澳元", "澳币", "澳幣", "aud", "a$", "au$"),
    "CAD": ("加拿大元", "加元", "加币", "加幣", "cad", "c$", "ca$"),
    "NZD": ("新西兰元", "纽元", "紐元", "nzd", "nz$"),
    "CHF": ("瑞士法郎", "chf"),
    "KRW": ("韩元", "韩圆", "韩币", "韓元", "韓圓", "韓幣", "krw", "₩"),
    "RUB": ("卢布", "俄罗斯卢布", "盧布", "₽"),
    "MYR": ("林吉特", "马来西亚林吉特", "马币", "myr", "rm"),
    "TWD": ("新台币", "新台幣", "新臺幣", "台币", "台幣", "臺幣", "twd", "nt$", "ntd"),
    "MOP": ("澳门元", "澳门币", "澳门幣", "澳門元", "澳門幣", "mop$"),
    "THB": ("泰铢", "泰币", "泰銖", "泰幣", "thb", "฿"),
    "INR": ("印度卢比", "inr", "rs.", "rs", "₹"),
    "VND": ("越南盾", "vnd", "₫"),
    "IDR": ("印尼盾", "印尼卢比", "印度尼西亚盾", "idr"),
    "PHP": ("菲律宾比索", "₱"),
    "PKR": ("巴基斯坦卢比", "pkr"),
    "BRL": ("巴西雷亚尔", "雷亚尔", "brl", "r$"),
    "ZAR": ("南非兰特", "兰特", "zar"),
    "AED": ("阿联酋迪拉姆", "迪拉姆", "aed"),
    "SAR": ("沙特里亚尔",),
    "SEK": ("瑞典克朗", "sek"),
    "NOK": ("挪威克朗", "nok"),
    "DKK": ("丹麦克朗", "dkk"),
    "PLN": ("波兰兹罗提", "兹罗提", "pln"),
    "CZK": ("捷克克朗", "czk"),
    "HUF": ("匈牙利福林", "huf"),
    "UAH": ("乌克兰格里夫纳", "uah"),
    "KZT": ("坚戈", "kzt"),
    "TRY": ("土耳其里拉",),
    "ILS": ("谢克尔", "ils"),
    "MXN": ("墨西哥比索", "mxn"),
    "QAR": ("卡塔尔里亚尔", "qar"),
    "KWD": ("科威特第纳尔", "kwd"),
    "OMR": ("阿曼里亚尔", "omr"),
    "EGP": ("埃及镑", "egp"),
    "KES": ("肯尼亚先令", "kes"),
    "NGN": ("奈拉", "ngn"),
    "GHS": ("塞地", "ghs"),
    "TZS": ("坦桑尼亚先令", "tzs"),
    "LKR": ("斯里兰卡卢比", "lkr"),
    "BDT": ("孟加拉塔卡", "bdt"),
}  # fmt: skip
#: A dollar or a yen sign behind a code: CAD $500 is no amount of US$.
_SIGNED = {
    f"{word}{blank}{sign}": code
    for sign, codes in (("$", "USD HKD SGD AUD CAD TWD"), ("¥", "CNY JPY"))
    for code in codes.split()
    for word in (code.lower(), *(("rmb", "人民币") if code == "CNY" else ()))
    for blank in ("", " ")
}
#: Folded spelling -> ISO code.
CURRENCIES = {word: code for code, words in _SPELLINGS.items() for word in words} | _SIGNED
#: Last character of a currency -> lengths of those that it ends.
_LENGTHS = {
    last: tuple(sorted({len(word) for word in CURRENCIES if word[-1] == last}))
    for last in {word[-1] for word in CURRENCIES}
}


def alternatives(words: Iterable[str]) -> str:
    """Pattern of any of the words, the longest first."""
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(word) for word in ordered)


#: A code ends where its letters do: 10 gbps are no pounds.
_FIRST = re.escape("".join(sorted({word[0] for word in CURRENCIES})))
_SIGN = rf"(?=[{_FIRST}])(?:{alternatives(CURRENCIES)})(?:(?<![a-z])|(?![a-z]))"
#: 万元: 100, as tables are headed; the end of 数万元 300 is none.
_SIGN_SCALE = rf"(?<![\d{CHINESE_DIGIT}余餘多数數几幾])(?P<sign_scale>[十百千]?[万萬亿億])"
NUMERAL = rf"(?:{FOREIGN}|{MIXED}|{ARABIC}|{CHINESE})"
#: 1 234 567, where a scale or a currency, or the other end of such a range, follows; not the day of
#: 2023-05-12 before 300元. A year, as any number of four digits, is no group: 2023 567元.
SPACED_BEFORE = (
    rf"(?<![\d.,])(?:(?<= \d\d\d[-~至到])|(?<!\d[-/:])){SPACED}(?![\d.])"
    rf"(?=\s?[余餘多]?\s?(?:{SCALE}|{_SIGN})|[-~至到][1-9]\d{{0,2}} \d{{3}}(?!\d))"
)
#: EUR 1 234 567, behind a code or a sign, and the other end of such a range; words such as 元 stand
#: behind their amounts: 元 500 600.
_CODE = "[a-z$€£¥₩₽฿₹₫₱]"
_SPACED_BEHIND = (
    rf"(?(sign)(?:(?<={_CODE})|(?<={_CODE}[ :])|(?<={_CODE}[ :] )|(?<={_CODE}-)|(?<={_CODE} -)"
    rf"|(?<= \d\d\d[-~至到])){SPACED}(?![\d.]|,\d)|(?!))"
)
#: €3,5 million and 1234,50欧元: amounts of euros may have a comma before their decimals.
_COMMA = (
    rf"(?:(?:(?<=€)|(?<=€ )|(?<=eur)|(?<=eur ))\d+,\d\d?"
    rf"|\d+,\d\d?(?=\s?(?:{SCALE})?\s?(?:欧元|eur|€)))(?![.,]?\d)"
)
#: ₹12,34,567, Rs. 5,29,820 and INR 1,00,000.
_LAKHS = (
    r"(?=\d\d?,\d\d,)(?:(?<=₹)|(?<=₹ )|(?<=inr)|(?<=inr )|(?<=rs)|(?<=rs )|(?<=rs\.)|(?<=rs\. ))"
    rf"{INDIAN}"
)
_DIGIT = rf"[\d{DIGIT}]"
#: 5分钟 and 3分期 are no hundredths.
_FEN = r"分(?![之钟鐘期])"
_CENTS = rf"(?:\s?零?{_DIGIT}\s?角)?(?:\s?零?{_DIGIT}\s?{_FEN})?"
_CENTS_IN = {"角": Decimal("0.1"), "分": Decimal("0.01")}
#: 人民币伍角伍分 has no whole yuan.
_COIN = rf"\s?(?:角(?:\s?零?{_DIGIT}\s?{_FEN})?|{_FEN})"
#: 2025元旦 is no amount of yuan.
_DAYS = frozenset(("元旦", "元宵"))
TO = r"\s?(?:-|~|至|到|to)\s?"

#: $3.5m, $2b and $40k, which only a sign before the number tells from metres.
_LETTERS = {"k": "thousand", "m": "million", "mm": "million", "b": "billion"}
#: A minus; behind any other word or sign it may be a dash: 总价—500元.
_MINUS = r"(?:(?<![^\s(\[:,;|为為是])[-负負])"

#: What a numeral, and what an amount of money begins with: most places are passed over by it.
BEGINS = rf"(?=[\d{CHINESE_DIGIT}+-])"
_BEGINS_MONEY = rf"(?=[\d{CHINESE_DIGIT}万萬亿億负負{_FIRST}-])"

_money = re.compile(
    rf"{_BEGINS_MONEY}(?P<minus>{_MINUS})?(?P<sign>(?:{_SIGN_SCALE})?(?:{_SIGN})\s?:?\s?)?(?P<behind_sign>(?(sign)-))?"
    rf"(?:(?P<low>{SPACED_BEFORE}|{NUMERAL})\s?(?P<low_scale>{SCALE})?\s?(?P<low_unit>{_SIGN})?{TO}(?:{_SIGN})?\s?)?"
    rf"(?P<high_minus>(?<=[~至到])-)?"
    rf"(?P<number>{_COMMA}|{_LAKHS}|{SPACED_BEFORE}|{_SPACED_BEHIND}|{NUMERAL})\s?[余餘多]?\s?"
    rf"(?P<scale>{SCALE}|(?(sign)(?<=\d)(?:k|mm?|b)(?![a-z\d])|(?!)))?\s?[余餘多]?\s?"
    rf"(?P<coin>(?(sign){_COIN}|(?!)))?(?P<unit>(?:{_SIGN})(?:人民[币幣])?)?"
    rf"(?P<cents>{_CENTS})(?:\s?[整正](?![体體常式个個])|/-(?: only(?![a-z]))?)?"
)
#: USD 1M LIBOR is the rate of a term of one month, and no amount.
_rate_of_term = re.compile(
    r"(?:1|2|3|6|9|12)\s?m\s?(?:term\s?)?(?:[a-z]{1,3}ibor|sofr|sonia|saron|tona|estr|bbsw)(?![a-z])"
)
_only_coins = re.compile(rf"{_DIGIT}{_COIN}")
#: A negative number, as accounts are written: with two decimals or groups of three digits.
bracketed = re.compile(r"\((?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d\d)\)")
_loss = re.compile(
    rf"(?<![a-z])(?P<sign>(?:us|hk|nt|nz|au?|ca?|s)?\$|[€£])\s?\((?P<number>{ARABIC})\)"
    rf"(?:\s?(?P<scale>{SCALE}))?"
)
_begins_loss = re.compile(r"[$€£]\s?\(")
#: Groups of three digits behind points, with two decimals or two such groups, and behind commas.
_points = re.compile(
    r"(?<![\d.,])\d{1,3}(?:\.\d{3})+,\d\d(?![\d.,])|(?:€|eur)\s?\d{1,3}(?:\.\d{3}){2,}(?![.,]?\d)"
    r"|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}\s?(?:€|eur|欧元|歐元)"
)
#: In all of those; its first sign is quicker to look for than theirs.
_two_groups = re.compile(r"\.\d{3}[.,]\d")
_commas = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+\.\d\d?(?![\d.,])")
_one_group = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_cut_digits = re.compile(r"0\d")
_cut_scale = re.compile(r"(?<=\d)[千百]\Z")


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount at a span of text; ``unit`` is "" where none is written.

    Amounts compare by ``key``, a plain decimal, or ``low..high`` of a range. ``bound`` is ``<=``,
    ``>=`` or "".
    """

    start: int
    end: int
    key: str
    unit: str = ""
    bound: str = ""


#: The number of a row, and that of the next one.
_row = re.compile(r"(?m)^ *(\d{1,3}) (?=\d)(?=[^\n]*\n *(\d{1,3}) )|^ *(\d{1,3}) (?=\d)")


#: The number of a lot: 包 1 547.00万元.
_LOTS = "包段标"
_lot = re.compile(rf"(?<=[{_LOTS}]) ?(\d{{1,2}}) (?=\d{{3}}(?!\d))")


def without_row_numbers(folded: str) -> str:
    """Of the same length, with dots for 1 and 2 of rows such as 1 500元 and 2 300元, and lots."""
    if any(lot in folded for lot in _LOTS):
        folded = _lot.sub(lambda lot: lot[0].replace(lot[1], "·" * len(lot[1])), folded)
    parts, done, expected = [], 0, 0
    for match in _row.finditer(folded):
        number = int(match[1] or match[3])
        is_row = number == expected or (match[2] is not None and int(match[2]) == number + 1)
        expected = number + 1 if is_row else 0
        if is_row:
            start, end = match.span(1) if match[1] else match.span(3)
            parts += [folded[done:start], "·" * (end - start)]
            done = end
    return "".join([*parts, folded[done:]]) if parts else folded


def find_money(folded: str) -> Iterator[Amount]:
    """Every amount with a currency before or behind it, in order; a range before its two ends."""
    losses = list(_find_losses(folded)) if any(sign in folded for sign in "$€£") else []
    amounts = _find_money(folded)
    yield from sorted([*losses, *amounts], key=lambda one: one.start) if losses else amounts


def _find_losses(folded: str) -> Iterator[Amount]:
    """Negative amounts of English accounts: $(1,234.00) and US$ (1.5) million."""
    for match in _loss.finditer(folded) if _begins_loss.search(folded) else ():
        number = read_scaled(match["number"], match["scale"])
        if number is not None:
            yield Amount(match.start(), match.end(), plain(-number), CURRENCIES[match["sign"]])


def _find_money(folded: str) -> Iterator[Amount]:
    folded = without_row_numbers(folded)
    has_points = _has_points(folded)
    for match in matches_at(_money, folded, money_places(folded, _LENGTHS)):
        is_day = folded[match.end() - 1 : match.end() + 1] in _DAYS
        if (match["sign"] or match["unit"]) and stands_alone(folded, match) and not is_day:
            amount = _read_money(folded, match, has_points=has_points)
            if amount is None:
                continue
            yield amount
            low, dots, high = amount.key.partition("..")
            if dots:
                yield Amount(_start_of(match, low, "low"), _end_of_low(match), low, amount.unit)
                start = _start_of(match, high, "number")
                yield Amount(start, end_of(match), high, amount.unit)


def read_money(folded: str) -> Amount | None:
    """A whole text as an amount; a bare number is one without currency."""
    bound, body = split_bound(folded)
    body = with_minus(with_zero(body.strip(" :").rstrip(".")))
    loss = _loss.fullmatch(body)
    if loss:
        return replace(next(_find_losses(body)), start=0, end=len(folded))
    match = _money.fullmatch(f"¥{body}" if _only_coins.match(body) else body)
    amount = _read_money(body, match) if match else None
    return None if amount is None else Amount(0, len(folded), amount.key, amount.unit, bound)


def with_zero(text: str) -> str:
    """$.50 and .5元 with the zero that they leave out."""
    return re.sub(r"\A([^\d.]*)\.(?=\d)", r"\g<1>0.", text)


def with_minus(text: str) -> str:
    """A whole text with a minus in place of an account's brackets."""
    return f"-{text[1:-1]}" if bracketed.fullmatch(text) else text


def _has_points(folded: str) -> bool:
    """Whether a document writes 1.234,50 or €1.234.567, so that its €1.234 is no decimal number."""
    if not any(word in folded for word in ("€", "eur", "欧元", "歐元")):
        return False
    has_groups = _two_groups.search(folded) and _points.search(folded)
    return bool(has_groups) and not _commas.search(folded)


def _read_money(folded: str, match: re.Match[str], *, has_points: bool = False) -> Amount | None:
    above = match["sign_scale"] or ""
    unit = _currency(match["unit"]) if match["unit"] else ""
    sign = _currency(match["sign"].removeprefix(above).strip(" :")) if match["sign"] else ""
    # 元 behind a foreign sign (US$ ... 元) adds nothing; 人民币 before 元 means the same.
    code = sign if sign and (not unit or unit == "CNY") else unit
    has_points &= code == "EUR" and not match["scale"]
    numerals = {
        part: numeral.replace(".", "") if has_points and _one_group.fullmatch(numeral) else numeral
        for part in ("low", "number")
        if (numeral := match[part])
    }
    number = read_scaled(numerals["number"], _LETTERS.get(match["scale"], match["scale"]))
    if number is None:
        return None
    times = SCALES[above] if above and not match["scale"] else Decimal(1)
    coin = (match["coin"] or "").strip()
    if coin:
        number *= _CENTS_IN[coin[0]]
    number = (number + _read_cents(coin[1:] or match["cents"] or "")) * times
    is_minus = bool(match["minus"] or match["behind_sign"])
    if match["high_minus"] or (is_minus and not match["low"]):
        number = -number
    key = plain(number)
    if match["low"]:
        low = read_scaled(numerals["low"], match["low_scale"])
        if low is None:
            return None
        low = (-low if is_minus else low) * times
        if not match["low_unit"] and not _has_great(match["low"] + (match["low_scale"] or "")):
            shared = low * _shared_scale(match)
            low = shared if shared <= number else low
        key = f"{plain(low)}..{key}"
    end = end_of(match)
    return Amount(match.start(), end, key, code, bound_at(folded, match.start(), end))


def _has_great(numeral: str) -> bool:
    return any(char in "万萬亿億" for char in numeral)


def _shared_scale(match: re.Match[str]) -> Decimal:
    """What the low end of a range leaves out: 3,000-5,000万元, 三至五万元, 3千至5千万元."""
    scale = match["scale"] or ""
    if match["low_scale"] or not scale:
        great = re.search(r"(?:[万萬]?[亿億]|[万萬])\Z", match["number"] + scale)
        return SCALES[great[0].translate(SIMPLIFIED)] if great else Decimal(1)
    return SCALES[_LETTERS.get(scale, scale)]


def _start_of(match: re.Match[str], key: str, part: str) -> int:
    """Where an end of a range begins, with its minus."""
    minus = ("minus", "behind_sign") if part == "low" else ("high_minus",)
    starts = [match.start(name) for name in minus if match[name]]
    return min(starts) if key.startswith("-") else match.start(part)


def end_of(match: re.Match[str]) -> int:
    """Without the blank that may stand before a scale or currency."""
    return match.start() + len(match[0].rstrip())


def _end_of_low(match: re.Match[str]) -> int:
    return max(match.end(part) for part in ("low", "low_scale", "low_unit"))


def _currency(word: str) -> str:
    word = word.strip()
    if word in CURRENCIES:
        return CURRENCIES[word]
    return CURRENCIES.get(word.removesuffix("人民币").removesuffix("人民幣").strip(), "CNY")


def _read_cents(text: str) -> Decimal:
    total = Decimal(0)
    for mark, part in _CENTS_IN.items():
        found = re.search(rf"(.)\s?{mark}", text)
        digit = read_number(found[1]) if found else None
        total += (digit or 0) * part
    return total


def stands_alone(folded: str, match: re.Match[str]) -> bool:
    """False for the end of a code or a numeral: a letter, digit or point stands directly before it.

    000元 is the end of 01 000元, 百万元 of 数百万元 and 5百元 of 3千5百元.
    """
    before = folded[match.start() - 1] if match.start() else " "
    is_end = before.isascii() and (before.isalnum() or before == ".")
    number = match["number"]
    is_cut = match.start("number") == match.start() and (
        bool(_cut_digits.match(number)) or (before in "数數几幾" and number[0] in "十百千拾佰仟")
    )
    is_rate = bool(_rate_of_term.match(folded, match.start("number")))
    is_rest = bool(_cut_scale.search(folded[max(0, match.start() - 2) : match.start()]))
    return not (is_end or is_cut or is_rest or is_rate)
