"""Companies, holders and events that `freeze_documents.py` writes announcements about.

Everything is drawn by seeds that are names, so that a company is the same in every run, and in any
order. Numbers agree with one another as they do in announcements: pledges of a holder add up to no
more than what it holds, and each share follows from its numbers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from freeze_wordings import (
    COMPANY_ROLES,
    DISTRICTS,
    FIRST,
    GIVEN,
    HOLDING_TRADES,
    LARGE,
    PERSON_ROLES,
    PLACES,
    SECOND,
    SURNAMES,
    TRADES,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freeze_wordings import Template

T = TypeVar("T")


def seeded(*names: object) -> random.Random:
    """Draws that are the same for the same names."""
    return random.Random(" ".join(map(str, names)))  # noqa: S311  # documents, no secret


@dataclass(frozen=True)
class Holder:
    """A shareholder: a company with a short name, or a person (the two names are one)."""

    name: str
    short: str
    role: str
    holding: int


@dataclass
class Deal:
    """One pledge or freeze, and its record: the values that the text states, as it spells them.

    Attributes:
        party: pledgee, or court.
        start, end: None where the announcement does not say.
        is_waiting: a freeze behind others, which begins when they end.
        is_released: it has ended; ``end`` is the day.

    """

    holder: Holder
    shares: int
    party: str
    start: date | None
    end: date | None
    is_waiting: bool = False
    is_released: bool = False
    record: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Company:
    """A listed company with its holders, and the ways in which it writes announcements."""

    code: str
    template: Template

    def pick(self, what: str, options: Sequence[T]) -> T:
        """Its own choice, the same in all of its documents."""
        return seeded(self.code, what).choice(options)

    def order(self, what: str, options: Sequence[T]) -> list[T]:
        """Options, those that it prefers first."""
        return seeded(self.code, what).sample(options, len(options))

    @cached_property
    def names(self) -> tuple[str, str]:
        """Of the company itself: in full, and as its shares are called."""
        chance = seeded(self.code, "name")
        place, _ = chance.choice(PLACES)
        core, trade = _core(chance), chance.choice(TRADES)
        return f"{chance.choice((place, ''))}{core}{trade}股份有限公司", f"{core}{trade}"

    @cached_property
    def branch(self) -> str:
        """Of the depository that has its shares."""
        return "上海" if self.code.startswith("6") else "深圳"

    @cached_property
    def unit(self) -> int:
        """All numbers of shares are multiples of it."""
        return 100 if self.pick("amounts", AMOUNTS) == "万" else 1

    @cached_property
    def capital(self) -> int:
        """Number of all its shares."""
        return seeded(self.code, "capital").randint(18 * 10**7, 28 * 10**8) // 100 * 100

    @cached_property
    def holders(self) -> tuple[Holder, ...]:
        """Its large shareholders, the largest first; two bear the same surname."""
        chance = seeded(self.code, "holders")
        n, left = chance.randint(5, 8), 0.7
        family = chance.choice(SURNAMES)
        found: list[Holder] = []
        for number in range(n):
            share = chance.uniform(0.15, 0.6) * left
            left -= share
            holding = max(int(self.capital * share) // self.unit, 1) * self.unit
            if chance.random() < 0.45:
                name = short = person(chance, family if number < 3 else "")
            else:
                name, short = holding_company(chance)
            if name not in [one.name for one in found]:
                is_large = 20 * holding >= self.capital
                options = _roles(number, is_person=name == short, is_large=is_large)
                free = [role for role in options if role not in [one.role for one in found]]
                role = chance.choice(free) if free else LARGE if is_large else "股东"
                found.append(Holder(name, short, role, holding))
        return tuple(found)


def _roles(number: int, *, is_person: bool, is_large: bool) -> tuple[str, ...]:
    if number == 0:
        return ("实际控制人", "控股股东、实际控制人") if is_person else ("控股股东",)
    if number == 1:
        return ("第二大股东", LARGE if is_large else "股东")
    return (*(PERSON_ROLES if is_person else COMPANY_ROLES), LARGE if is_large else "股东")


#: Amounts as 12,345,678股, 12345678股 or 1,234.56万股.
AMOUNTS = (",", ",", ",", "", "万", "万")


def _core(chance: random.Random) -> str:
    return chance.choice(FIRST) + chance.choice(SECOND)


def person(chance: random.Random, surname: str = "") -> str:
    """A name of two or three characters."""
    given = "".join(chance.sample(GIVEN, chance.choice((1, 2, 2))))
    return (surname or chance.choice(SURNAMES)) + given


def holding_company(chance: random.Random) -> tuple[str, str]:
    """Its name in full, and shortened."""
    place, province = chance.choice(PLACES)
    core, trade = _core(chance), chance.choice(HOLDING_TRADES)
    kind = chance.choice(("集团有限公司", "有限公司", "有限责任公司", "（有限合伙）", "有限公司"))
    if kind == "（有限合伙）":
        return f"{place}{core}{trade}合伙企业（有限合伙）", f"{core}{trade[:2]}"
    before = chance.choice((place, f"{place}市", province, ""))
    is_group = "集团" in kind and chance.random() < 0.5
    return f"{before}{core}{trade}{kind}", core + ("集团" if is_group else trade[:2])


def pledgee(chance: random.Random) -> str:
    """A bank with its branch, a securities house, a trust, a lender, or a person."""
    (place, _), (other, _), core = *chance.sample(PLACES, 2), _core(chance)
    return chance.choice(
        (
            f"{place}银行股份有限公司{chance.choice((f'{other}分行', f'{place}{other}路支行'))}",
            f"{place}农村商业银行股份有限公司",
            f"{core}银行股份有限公司{other}{chance.choice(DISTRICTS)}支行",
            f"{core}证券股份有限公司",
            f"{core}证券股份有限公司",
            f"{core}证券有限责任公司",
            f"{core}国际信托有限公司",
            f"{place}{core}融资租赁有限公司",
            f"{core}证券（上海）资产管理有限公司",
            f"{place}{core}小额贷款有限公司",
            person(chance),
        )
    )


def court(chance: random.Random) -> str:
    """Courts of three levels, and rarely the police."""
    place, province = chance.choice(PLACES)
    district = chance.choice(DISTRICTS)
    is_city = province == f"{place}市"
    middle = f"{place}市第{chance.choice('一二三')}中级人民法院"
    return chance.choice(
        (
            middle if is_city else f"{province}{place}市中级人民法院",
            middle if is_city else f"{place}市中级人民法院",
            f"{province}高级人民法院",
            f"{place}市{district}区人民法院",
            f"{'' if is_city else province}{place}市{district}区人民法院",
            f"{place}市公安局{chance.choice(('', f'{district}分局'))}",
        )
    )


def make_deals(company: Company, chance: random.Random, n: int, day: date) -> list[Deal]:
    """What one announcement of a day is about: one holder or several, new events or ended ones."""
    kind = chance.choice(("one", "one", "several", "several", "both") if n > 1 else ("one",))
    n_holders = min(chance.randint(2, 5), n, len(company.holders)) if kind == "several" else 1
    holders = sorted(chance.sample(company.holders, n_holders), key=lambda one: -one.holding)
    if n_holders == 1 and chance.random() < 0.6:
        holders = [company.holders[0]]
    own = sorted([*range(n_holders), *(chance.randrange(n_holders) for _ in range(n - n_holders))])
    n_released = {"one": n if chance.random() < 0.2 else 0, "several": 0, "both": max(n // 2, 1)}
    tied = [other_party(company, chance) for _ in range(max(n - chance.randint(0, n - 1), 1))]
    deals = []
    for number, place in enumerate(own):
        party = tied[number] if number < len(tied) else chance.choice(tied)
        deal = _deal(company, chance, holders[place], party, day)
        if number < n_released[kind]:
            _release(deal, chance, day)
        deals.append(deal)
    _spread(company, deals, chance)
    if chance.random() < 0.7:
        places = {holder.name: place for place, holder in enumerate(holders)}
        deals.sort(key=lambda one: (places[one.holder.name], one.is_waiting, one.start))
    _leave_out_dates(deals, chance)
    return deals


def _leave_out_dates(deals: Sequence[Deal], chance: random.Random) -> None:
    """No announcement tells everything: no end, where it is open, or no date at all."""
    drawn = chance.random()
    for deal in deals:
        if drawn < 0.35 and not deal.is_released:
            deal.end = None
        if drawn < 0.12:
            deal.start = None


def other_party(company: Company, chance: random.Random) -> str:
    """A pledgee or a court."""
    return pledgee(chance) if company.template == "股权质押" else court(chance)


def _deal(company: Company, chance: random.Random, holder: Holder, party: str, day: date) -> Deal:
    start = day - timedelta(days=chance.choice((4, 5, 6, 7, 9, 12, 20, 35)))
    if company.template == "股权质押":
        days = chance.choice((180, 364, 365, 366, 545, 730, 1095))
        return Deal(holder, 0, party, start, start + timedelta(days=days))
    end = date(start.year + chance.choice((2, 3, 3)), start.month, min(start.day, 28))
    is_waiting = chance.random() < 0.3
    return Deal(holder, 0, party, start, None if is_waiting else end, is_waiting)


def _release(deal: Deal, chance: random.Random, day: date) -> None:
    deal.start = day - timedelta(days=chance.randint(150, 900))
    deal.end = day - timedelta(days=chance.choice((3, 4, 5, 6, 8)))
    deal.is_released, deal.is_waiting = True, False


def _spread(company: Company, deals: Sequence[Deal], chance: random.Random) -> None:
    """Shares of each deal: of a holder no more than it has, but for freezes behind others."""
    for holder in {deal.holder.name: deal.holder for deal in deals}.values():
        own = [deal for deal in deals if deal.holder is holder]
        is_all = chance.random() < (0.45 if company.template == "股权冻结" else 0.1)
        step = company.unit * chance.choice((1, 10**4, 10**4, 10**5, 10**5) if not is_all else (1,))
        for deal in own:
            part = 1.0 if is_all and (deal.is_waiting or len(own) == 1) else 0.0
            part = part or chance.uniform(0.2, 0.9) / len(own)
            step_here = min(step, 10 ** (len(str(holder.holding)) - 3))
            shares = int(holder.holding * part) // step_here * step_here
            deal.shares = max(shares // company.unit, 1) * company.unit
