"""Amounts of money in the ways Chinese documents print them, counted in whole fen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

CAPITALS = "零壹贰叁肆伍陆柒捌玖"
PLACE_UNITS = ("", "拾", "佰", "仟")
MYRIAD_UNITS = ("", "万", "亿", "万亿")


def in_capitals(fen: int) -> str:
    """Write an amount in capital numerals: 1286500050 -> 壹仟贰佰捌拾陆万伍仟元伍角整.

    Follows the bank rule: 零 stands once for any run of zeros inside the number, 整 ends an amount
    without fen.
    """
    yuan, jiao, cents = fen // 100, fen // 10 % 10, fen % 10
    whole = _capital_integer(yuan) + "元" if yuan else ""
    if not jiao and not cents:
        return (whole or "零元") + "整"
    if not cents:
        return f"{whole}{CAPITALS[jiao]}角整"
    middle = CAPITALS[jiao] + "角" if jiao else ("零" if yuan else "")
    return f"{whole}{middle}{CAPITALS[cents]}分"


def _capital_integer(number: int) -> str:
    groups = []
    while number:
        number, group = divmod(number, 10_000)
        groups.append(group)
    out, has_gap = "", False
    for position in range(len(groups) - 1, -1, -1):
        group = groups[position]
        if group == 0:
            has_gap = bool(out)
            continue
        if out and (has_gap or group < 1000):
            out += "零"
        out += _capital_group(group) + MYRIAD_UNITS[position]
        has_gap = False
    return out


def _capital_group(group: int) -> str:
    out, has_gap = "", False
    for position in range(3, -1, -1):
        digit = group // 10**position % 10
        if digit == 0:
            has_gap = bool(out)
            continue
        out += ("零" if has_gap else "") + CAPITALS[digit] + PLACE_UNITS[position]
        has_gap = False
    return out


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of money; every property is one printed form of it."""

    fen: int

    @property
    def yuan(self) -> str:
        """12,865,000.00元."""
        return f"{self.fen / 100:,.2f}元"

    @property
    def plain(self) -> str:
        """12865000元, without fen."""
        return f"{self.fen // 100}元"

    @property
    def wan(self) -> str:
        """1,286.5万元, with as many decimals as needed."""
        text = f"{self.fen / 1_000_000:,.4f}".rstrip("0").rstrip(".")
        return f"{text}万元"

    @property
    def yi(self) -> str:
        """1.2865亿元, rounded to a myriad yuan."""
        text = f"{self.fen / 10_000_000_000:.4f}".rstrip("0").rstrip(".")
        return f"{text}亿元"

    @property
    def capitals(self) -> str:
        """人民币壹仟贰佰捌拾陆万伍仟元整."""
        return "人民币" + in_capitals(self.fen)


def draw_amount(rng: Random, low_wan: int, high_wan: int) -> Amount:
    """Between the two bounds in 万元; two in three are round, as in life."""
    wan = rng.randrange(low_wan, high_wan)
    kind = rng.randrange(3)
    if kind == 0:
        return Amount(wan * 1_000_000)
    if kind == 1:
        return Amount(wan * 1_000_000 + rng.randrange(100) * 10_000)
    return Amount(wan * 1_000_000 + rng.randrange(1_000_000))
