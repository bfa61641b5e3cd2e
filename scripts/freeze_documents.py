"""Announcements of frozen and pledged shares, most of them with several records, as a labelled set.

::

    python scripts/freeze_documents.py --show 3         # documents to read
    python scripts/freeze_documents.py --out rows.jsonl # all rows of the set

The documents are written by a program, in the manner of the announcements of Chinese listed
companies; companies, holders, courts and banks are made up. They are for measuring extraction
record by record (``eval_extraction.py --sets freezes``), and nothing is learnt from them.

What is annotated, as a reader of announcements would do it:

- A record is a pledge or a freeze that the announcement is about. One that is only mentioned (an
  earlier one, a sum of all) is none; one that has just ended is, with the day on which it ended.
- Values are as the text first spells them; holders, courts and pledgees by their full names, also
  where the rest of the text shortens them.
- 持股总数 and 持股比例 are all that the holder has, and its part of the company's capital; the
  parts that pledged or frozen shares are of anything belong to no field.
- 解除日期 and 解冻日期 are the day of the end, past or agreed. An end without a date is no value.
- What the text does not say is not in the record.

Each company keeps to its own layouts, labels, spellings of dates and numbers, and sentences.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import date, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from freeze_facts import Company, holding_company, make_deals, other_party, person, seeded
from freeze_layouts import (
    SEVERAL,
    SINGLE,
    Draft,
    as_respective_lists,
    holders_of,
    write_holdings,
    write_holdings_table,
    write_respective_holdings,
)
from freeze_wordings import (
    AFTER,
    BEFORE,
    ENCLOSED,
    FIELDS,
    HAPPENED,
    INTROS,
    NOTICES,
    OTHERS,
    STATEMENTS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from freeze_facts import Deal, Holder
    from freeze_layouts import Layout

N_COMPANIES = 90
_N_DOCUMENTS = (2, 3, 3, 4, 4, 4)
_MOST = 2500
#: Of companies, to draw samples from; the others are for tests.
_POOL_SHARE = 0.45
_N_RECORDS = ((1, 40), (2, 18), (3, 13), (4, 10), (5, 7), (6, 5), (7, 4), (8, 3))
_NUMERALS = "一二三四五六七八九"
#: Last characters of names that are women's.
_WOMEN = "芳敏静丽燕梅兰霞玉"


def make_rows() -> list[dict]:
    """The whole set: the same rows in every run."""
    return [
        row_of(company, number)
        for company in companies()
        for number in range(company.pick("documents", _N_DOCUMENTS))
    ]


def companies() -> Iterator[Company]:
    """As many for each template; no two have a name or a code in common."""
    taken: set[str] = set()
    for template in FIELDS:
        chance, n = seeded("companies", template), 0
        while n < N_COMPANIES:
            code = (
                f"{chance.choice(('600', '603', '000', '002', '300'))}{chance.randrange(1000):03}"
            )
            company = Company(code, template)
            own = {code, *company.names}
            if not own & taken:
                taken |= own
                n += 1
                yield company


def row_of(company: Company, number: int) -> dict:
    """One document with its records, as the other labelled sets have them."""
    draft, text = write(company, number)
    records = [
        {name: polish(company, deal.record[name]) for name in names if name in deal.record}
        for names in [FIELDS[company.template].values()]
        for deal in draft.deals
    ]
    fields: dict[str, list[str]] = {}
    for record in records:
        for name, value in record.items():
            if value not in fields.setdefault(name, []):
                fields[name].append(value)
    return {
        "doc_id": f"{company.code}_{number}",
        "text": text,
        "template": company.template,
        "fields": fields,
        "records": records,
        "part": "ref" if is_in_pool(company) else "eval",
    }


def is_in_pool(company: Company) -> bool:
    """Whether samples are drawn from its documents."""
    digest = blake2b(company.code.encode(), digest_size=1, person=b"freeze-pool").digest()
    return digest[0] < 256 * _POOL_SHARE


def polish(company: Company, text: str) -> str:
    """Blanks around digits, as in text from many PDFs, and narrow brackets, where it has them."""
    if company.pick("blanks", (True, False, False, False)):
        text = re.sub(r"(?<=[\u4e00-\u9fff])(?=\d)|(?<=\d)(?=[\u4e00-\u9fff])", " ", text)
    if company.pick("narrow", (True, False, False, False)):
        text = text.replace("（", "(").replace("）", ")")
    return text


def write(company: Company, number: int) -> tuple[Draft, str]:
    """An announcement; paragraphs of no value are left out until it is short enough."""
    for n_others in range(company.pick("others", (1, 2, 3, 3, 4, 5)), -1, -1):
        chance = seeded(company.code, "document", number)
        day = date(2014, 2, 10) + timedelta(days=chance.randrange(2800))
        n = chance.choices(*zip(*_N_RECORDS, strict=True))[0]
        draft = Draft(company, chance, make_deals(company, chance, n, day), day)
        text = polish(company, "\n".join(_paragraphs(draft, n_others)))
        if len(text) <= _MOST:
            break
    return draft, text


def layout_of(draft: Draft) -> Layout:
    """The company's own for one record, or for several."""
    if len(draft.deals) == 1:
        return draft.company.pick("single", SINGLE)
    return draft.company.pick("several", SEVERAL)


def _paragraphs(draft: Draft, n_others: int) -> list[str]:
    company = draft.company
    layout, holders = layout_of(draft), holders_of(draft.deals)
    draft.beside = _beside(draft)
    released = [deal for deal in draft.deals if deal.is_released]
    new = [deal for deal in draft.deals if not deal.is_released]
    what = "both" if released and new else "new" if new else "ended"
    noun, happened = HAPPENED[company.template][what]
    named = _named(draft, holders)
    intro = company.pick("intro", INTROS[company.template])
    intro = intro.replace("{named}", named).replace("{what}", happened).replace("{noun}", noun)
    first = draft.say(intro, draft.deals[0])
    steps = [
        (f"股东股份{noun}的基本情况", lambda: _facts(draft, layout, released, new)),
        (f"股东股份累计{draft.did}情况", lambda: _holdings(draft, layout)),
    ]
    steps = steps[:: company.pick("order", (1, 1, 1, -1))]
    blocks = [(title, texts()) for title, texts in steps]
    title = company.pick("risk", ("其他情况说明", "对公司的影响", "风险提示"))
    blocks.append((title, _others(draft, n_others, has_new=bool(new))))
    return [*_head(draft, noun, holders), first, *_blocks(draft, blocks), *_foot(draft)]


def _facts(
    draft: Draft, layout: Layout, released: Sequence[Deal], new: Sequence[Deal]
) -> list[str]:
    """What has ended, then what is new, each under its own title where there is both."""
    found: list[str] = []
    for group, ended in ((released, "解除"), (new, "")):
        if released and new and layout is not as_respective_lists:
            found.append(f"本次股份{ended}{draft.did}的基本情况")
        found += layout(draft, group) if group else []
    return found


def _beside(draft: Draft) -> dict[str, str]:
    company, chance, day = draft.company, draft.chance, draft.day
    some = company.holders[:2]
    total = sum(holder.holding for holder in some)
    people = [one.name for one in company.holders if one.short == one.name]
    controller = people[0] if people else person(seeded(company.code, "controller"))
    old = day - timedelta(days=chance.randint(400, 1200))
    return {
        "issuer": company.names[0],
        "branch": company.branch,
        "did": draft.did,
        "day": draft.write_date(day),
        "notice": draft.write_date(day - timedelta(days=chance.choice((1, 2, 3)))),
        "next_day": draft.write_date(day + timedelta(days=chance.randint(15, 80))),
        "capital": draft.write_shares(company.capital),
        "sum": draft.write_shares(total),
        "sum_cap": draft.write_share(total, company.capital),
        "sum_own": draft.write_share(sum(map(draft.sum_of, some)), total),
        "money2": f"{chance.randrange(100, 9000):,}",
        "warn": str(chance.choice((150, 160, 170))),
        "close": str(chance.choice((130, 140))),
        "controller": controller,
        "person": person(chance),
        "plaintiff": chance.choice((person(chance), holding_company(chance)[0])),
        "subsidiary": holding_company(chance)[0],
        "old_start": draft.write_date(old),
        "old_day": draft.write_date(old + timedelta(days=4)),
        "old_end": draft.write_date(day - timedelta(days=chance.randint(60, 300))),
        "old_shares": draft.write_shares(chance.randint(11000, 290000) * 100),
        "old_party": other_party(company, chance),
        "old_number": f"{old.year}-{chance.randint(2, 140):03}",
    }


def _named(draft: Draft, holders: list[Holder]) -> str:
    if len(holders) > 3 or draft.company.pick("named", (True, True, True, False)) is False:
        return draft.company.pick("unnamed", ("股东", "相关股东", "公司部分股东"))
    title = draft.company.pick("title", (False, True, False))
    texts = []
    for holder in holders:
        word = ("女士" if holder.name[-1] in _WOMEN else "先生") if title else ""
        is_person = holder.short == holder.name
        texts.append(f"{holder.role}{draft.name(holder)}{word if is_person else ''}")
    return f"{draft.company.pick('our', ('公司', ''))}{'、'.join(texts)}"


def _head(draft: Draft, noun: str, holders: list[Holder]) -> list[str]:
    company, chance = draft.company, draft.chance
    who = holders[0].role if len(holders) == 1 else "部分股东"
    title = f"关于{who}{company.pick('part', ('部分股份', '所持公司股份', '股份'))}{noun}的公告"
    number = f"{draft.day.year}-{chance.randint(2, 150):03}"
    code = company.pick(
        "code",
        (
            f"证券代码：{company.code}  证券简称：{company.names[1]}  公告编号：{number}",
            f"证券代码：{company.code} 证券简称：{company.names[1]} 编号：临{number}",
            f"股票代码：{company.code}\n股票简称：{company.names[1]}\n公告编号：{number}",
            "",
        ),
    )
    named = company.pick("title line", ((company.names[0], title), (f"{company.names[0]}{title}",)))
    statement = company.pick("statement", (*STATEMENTS, ""))
    return [line for line in (*code.split("\n"), *named, statement) if line]


def _holdings(draft: Draft, layout: Layout) -> list[str]:
    company, deals = draft.company, draft.deals
    kind = company.pick("holdings kind", ("none", "text", "text", "text", "table"))
    if kind == "none":
        return []
    if kind == "table":
        return write_holdings_table(draft, deals)
    is_respective = layout is as_respective_lists or company.pick("respective", (1, 0, 0))
    return (write_respective_holdings if is_respective else write_holdings)(draft, deals)


def _others(draft: Draft, n: int, *, has_new: bool) -> list[str]:
    template, deal, company = draft.company.template, draft.deals[0], draft.company
    known = OTHERS[template] if has_new else AFTER[template]
    options = draft.chance.sample(known, len(known))
    if company.pick("before", (True, False)):
        options.insert(0, company.pick("before text", BEFORE[template]))
    texts = [draft.say(text, deal) for text in options[:n]]
    return [*texts, company.pick("notice", NOTICES)]


def _blocks(draft: Draft, blocks: list[tuple[str, list[str]]]) -> Iterator[str]:
    numerals = iter(_NUMERALS)
    is_numbered = draft.company.pick("numbered", (True, True, False))
    for title, texts in blocks:
        if texts:
            if is_numbered:
                yield f"{next(numerals)}、{title}"
            yield from texts
    if draft.company.pick("enclosed", (True, False)):
        yield f"{next(numerals)}、备查文件" if is_numbered else "备查文件："
        papers = ENCLOSED[draft.company.template]
        for number, paper in enumerate(draft.company.order("papers", papers)[:2], start=1):
            yield draft.say(f"{number}、{paper}。", draft.deals[0])


def _foot(draft: Draft) -> list[str]:
    day = draft.day
    digits = dict(zip("0123456789", "〇一二三四五六七八九", strict=True))
    written = f"{day.year}年{day.month}月{day.day}日"
    if draft.company.pick("foot", (True, False, False, False)):
        year = "".join(digits[digit] for digit in str(day.year))
        written = f"{year}年{_spoken(day.month)}月{_spoken(day.day)}日"
    return ["特此公告。", f"{draft.company.names[0]}董事会", written]


def _spoken(n: int) -> str:
    tens, ones = divmod(n, 10)
    first = "" if tens == 0 else "十" if tens == 1 else f"{_NUMERALS[tens - 1]}十"
    return first + (_NUMERALS[ones - 1] if ones else "")


def main() -> None:
    """Print some documents, or write all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", type=int, default=0, help="print some, with their records")
    parser.add_argument("--out", type=Path, help="write all rows there, one a line")
    options = parser.parse_args()
    rows = make_rows()
    for row in rows[:: max(len(rows) // max(options.show, 1), 1)][: options.show]:
        print(f"{row['doc_id']}\n{row['text']}")
        print(*(json.dumps(record, ensure_ascii=False) for record in row["records"]), "", sep="\n")
    if options.out:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        options.out.write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
