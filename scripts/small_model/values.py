# ruff: noqa: E501, PLR0911 - word lists; one return for each form
"""Names, dates, amounts, shares and statutes drawn for entity samples, by their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from small_model import gazetteer
from small_model.amounts import draw_amount

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

LAWS = ("民法典", "公司法", "合同法", "刑法", "环境保护法", "劳动合同法", "消费者权益保护法", "行政处罚法", "证券法",
        "道路交通安全法", "税收征收管理法", "商标法", "教育法", "土地管理法")  # fmt: skip


def draw_date(rng: Random) -> str:
    """A date as news and notices write it."""
    year, month, day = rng.randrange(1949, 2030), rng.randrange(1, 13), rng.randrange(1, 29)
    form = rng.randrange(9)
    if form == 0:
        return f"{month}月{day}日"
    if form == 1:
        return f"{year}年"
    if form == 2:
        return f"{year}年{month}月"
    if form == 3:
        return f"{year}-{month:02}-{day:02}"
    if form == 4:
        return "".join("〇一二三四五六七八九"[int(d)] for d in str(year)) + "年"
    if form == 5:
        return f"{year}年{month}月{day}日".translate(
            str.maketrans("0123456789", "０１２３４５６７８９")
        )
    return f"{year}年{month}月{day}日"


def draw_money(rng: Random) -> str:
    """An amount in one of the usual ways."""
    amount = draw_amount(rng, 1, 90000)
    unit = rng.choice(("美元", "欧元", "港元", "日元"))
    return rng.choice((amount.wan, amount.yuan, amount.yi, amount.plain, amount.capitals,
                       f"人民币{amount.wan}", f"{rng.randrange(1, 900)}亿{unit}", f"{rng.randrange(2, 99)}万元"))  # fmt: skip


def draw_percent(rng: Random) -> str:
    """12.5%, ７％ or 百分之三十."""
    return rng.choice((f"{rng.uniform(0, 99):.2f}%", f"{rng.randrange(1, 100)}%", f"{rng.uniform(0, 30):.1f}％",
                       "百分之" + rng.choice(("三", "五", "十", "二十", "三十五", "八十"))))  # fmt: skip


def draw_law(rng: Random) -> str:
    """The quoted name of a statute or agreement."""
    head = rng.choice(("中华人民共和国", "", rng.choice(gazetteer.PROVINCES)))
    return f"《{head}{rng.choice(LAWS)}》"


NAMES: dict[str, Callable[[Random], str]] = {
    "PER": gazetteer.draw_person, "LOC": gazetteer.draw_place, "ORG": gazetteer.draw_organisation,
    "DATE": draw_date, "MONEY": draw_money, "PERCENT": draw_percent, "LAW": draw_law,
}  # fmt: skip
