"""Announcements of frozen and pledged shares: labels, distractors, layouts and parts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pages import features_of

if TYPE_CHECKING:
    from extraction_sets import Part

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


@pytest.fixture
def rows(scripts_are_importable: None) -> list[dict]:  # noqa: ARG001  # the import needs it
    from freeze_documents import make_rows

    return make_rows()


def values_of(row: dict) -> set[str]:
    return {value for values in row["fields"].values() for value in values}


def test_rows_are_the_same_every_time(rows: list[dict]) -> None:
    from freeze_documents import companies, make_rows, row_of

    assert make_rows() == rows
    company = list(companies())[100]
    alone = row_of(company, 1)
    assert next(row for row in rows if row["doc_id"] == alone["doc_id"]) == alone
    assert len({row["doc_id"] for row in rows}) == len(rows)


def test_every_value_stands_in_the_text_and_is_found_there(rows: list[dict]) -> None:
    from featpipe.extraction.scoring.locate import infer_type, locate_value

    by_field = defaultdict(list)
    for row in rows:
        assert all(value in row["text"] for value in values_of(row)), row["doc_id"]
        assert 300 <= len(row["text"]) <= 2500
        features = features_of(row["text"])
        for name, values in row["fields"].items():
            by_field[row["template"], name] += [(features, value) for value in values]
    for (_, name), values in by_field.items():
        kind = infer_type(values)
        for features, value in values:
            assert locate_value(features, value, kind), (name, value)


def test_fields_are_the_values_of_records_each_once(rows: list[dict]) -> None:
    from freeze_wordings import FIELDS

    from featpipe.extraction.values.values import read_value

    kinds = {"股数": "number", "总数": "number", "比例": "percent", "日期": "date"}
    for row in rows:
        assert set(row["fields"]) <= set(FIELDS[row["template"]].values())
        for name, values in row["fields"].items():
            stated = [record[name] for record in row["records"] if name in record]
            assert values == list(dict.fromkeys(stated))
            keys = {read_value(value, kinds.get(name[-2:], "text")).key for value in values}
            assert len(keys) == len(values), (row["doc_id"], name, values)


def test_a_record_has_who_how_much_and_by_whom_and_not_always_the_rest(rows: list[dict]) -> None:
    from freeze_wordings import FIELDS

    for template, names in FIELDS.items():
        records = [r for row in rows if row["template"] == template for r in row["records"]]
        counts = Counter(name for record in records for name in record)
        for what, name in names.items():
            is_always = what in {"holder", "shares", "party"}
            assert (counts[name] == len(records)) == is_always, name
            assert counts[name] > 0.4 * len(records)


def test_what_only_stands_beside_is_no_value() -> None:
    from freeze_documents import companies, polish, write
    from freeze_layouts import holders_of

    places = Counter()
    for company in companies():
        draft, text = write(company, 0)
        values = {v for deal in draft.deals for v in deal.record.values()}
        deposit = f"中国证券登记结算有限责任公司{company.branch}分公司"
        besides = [
            company.names[0], deposit,
            *(draft.beside[n] for n in ("day", "old_shares", "old_start", "sum", "capital")),
            *(draft.write_share(d.shares, d.holder.holding) for d in draft.deals),
            *(draft.write_share(d.shares, company.capital) for d in draft.deals),
        ]  # fmt: skip
        # Who has all of its shares pledged has the same part of the capital twice.
        is_whole = any(d.shares == d.holder.holding for d in draft.deals)
        assert is_whole or not values & set(besides), company.code
        places.update(n for n, b in enumerate(besides[:7]) if polish(company, b) in text)
        assert len(holders_of(draft.deals)) <= len(draft.deals)
    assert all(places[number] >= 10 for number in range(7)), places


def test_most_documents_have_several_records_in_many_layouts(rows: list[dict]) -> None:
    from freeze_documents import companies, layout_of, write

    drafts = [write(company, number)[0] for company in companies() for number in range(2)]
    for template in ("股权冻结", "股权质押"):
        own = [row for row in rows if row["template"] == template]
        assert sum(len(row["records"]) > 1 for row in own) >= 0.5 * len(own)
        layouts = defaultdict(set)
        for draft in drafts:
            if draft.company.template == template:
                layouts[len(draft.deals) > 1].add(layout_of(draft).__name__)
        assert len(layouts[True]) >= 8
        assert len(layouts[False]) >= 5
    for pattern in ("\t", "合计", "轮候", "以下简称", "分别为", r"\d股", "万股", r"\d/\d", r"\d-\d",
                    "解除质押及再质押", "解除质押登记", "占公司总股本", "占其所持"):  # fmt: skip
        assert sum(bool(re.search(pattern, row["text"])) for row in rows) >= 15, pattern


@pytest.mark.parametrize("part", ["dev", "held-out", "dev-a", "dev-b"])
def test_samples_and_tests_are_of_other_companies(part: Part) -> None:
    from extraction_sets import groups_of, read_set

    tasks = read_set(Path("nowhere"), "freezes", 10**6, part)
    assert len(tasks) == 2
    for task in tasks:
        pool, test = (set(groups_of("freezes", rows)) for rows in (task.pool, task.test))
        assert not pool & test
        assert len(task.pool) >= 20
        assert len(task.test) >= 20


def test_parts_share_no_company_and_nothing_is_learnt_from_them() -> None:
    from extraction_sets import LEARNT_SETS, groups_of, read_set

    dev, held_out = (
        {
            group
            for task in read_set(Path("nowhere"), "freezes", 10**6, part)
            for group in groups_of("freezes", [*task.pool, *task.test])
        }
        for part in ("dev", "held-out")
    )
    assert not dev & held_out
    assert len(dev | held_out) == 180
    assert "freezes" not in LEARNT_SETS


def test_both_templates_have_records_that_share_a_value(rows: list[dict]) -> None:
    shared = Counter(
        row["template"]
        for row in rows
        if len(row["records"]) > 1 and len(row["fields"]["股东名称"]) < len(row["records"])
    )
    assert set(shared) == {"股权冻结", "股权质押"}
    assert min(shared.values()) > 50
