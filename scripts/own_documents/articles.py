"""How a contract is laid out: head, parties, numbered articles, signatures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from own_documents import names
from own_documents.figures import small_number

if TYPE_CHECKING:
    from random import Random

    from own_documents.draft import Draft

Article = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Party:
    """One side: the role it is called by, and its full name."""

    role: str
    name: str

    @property
    def is_person(self) -> bool:
        """Invented people have two to four characters, companies never fewer than eight."""
        return len(self.name) <= 4


def draw_number(rng: Random, prefix: str, year: int) -> str:
    """A contract number in one of three house styles."""
    style = rng.randrange(3)
    serial = rng.randrange(1, 999)
    if style == 0:
        return f"{prefix}-{year}-{serial:04d}"
    if style == 1:
        return f"{prefix}〔{year}〕第{serial:03d}号"
    return f"{year}{prefix}{serial:05d}"


def write_parties(draft: Draft, parties: list[Party]) -> None:
    """Name, seat, representative ... of each; how much is said differs between contracts."""
    rng = draft.rng
    detail = rng.randrange(3)
    separator = rng.choice(("：", "：", ":"))
    for party in parties:
        draft.add("line", f"{party.role}{separator}{draft.mark(party.role, party.name)}")
        if detail == 0:
            continue
        if party.is_person:
            draft.add("line", f"住址{separator}{names.draw_address(rng)}")
            continue
        draft.add("line", f"住所{separator}{names.address_of(rng, party.name)}")
        draft.add("line", f"法定代表人{separator}{names.draw_person(rng)}")
        if detail == 2:
            draft.add("line", f"统一社会信用代码{separator}{names.draw_credit_code(rng)}")
            draft.add("line", f"联系电话{separator}{names.draw_phone(rng)}")


def write_articles(draft: Draft, articles: list[Article]) -> None:
    """Number the articles in one of the four ways that contracts are numbered."""
    style = draft.rng.randrange(4)
    for number, (title, clauses) in enumerate(articles, start=1):
        spoken = small_number(number)
        heading = {0: f"第{spoken}条　{title}", 1: f"{spoken}、{title}", 2: f"{number}. {title}",
                   3: f"第{spoken}条 {title}"}[style]  # fmt: skip
        draft.add("heading", heading)
        for sub, clause in enumerate(clauses, start=1):
            if len(clauses) == 1 and style != 2:
                draft.add("para", clause)
            elif style in {1, 3}:
                draft.add("para", f"（{small_number(sub)}）{clause}")
            else:
                draft.add("para", f"{number}.{sub} {clause}")


def write_signatures(draft: Draft, parties: list[Party], day: str) -> None:
    """Signature lines, or a table of them, and the date."""
    rng = draft.rng
    if rng.random() < 0.5:
        draft.table(
            [
                [f"{p.role}（签章）：{draft.mark(p.role, p.name)}" for p in parties],
                ["" if p.is_person else f"授权代表：{names.draw_person(rng)}" for p in parties],
                [f"日期：{draft.mark('签订日期', day)}" for _ in parties],
            ]
        )
        return
    for party in parties:
        seal = "签字" if party.is_person else "盖章"
        draft.add("sign", f"{party.role}（{seal}）：{draft.mark(party.role, party.name)}")
        if not party.is_person:
            draft.add("sign", f"法定代表人或授权代表：{names.draw_person(rng)}")
    draft.add("sign", f"签订日期：{draft.mark('签订日期', day)}")
