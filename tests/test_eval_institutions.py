"""The evaluation on other institutions' documents. Oracle: what a task has to be."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("scripts_are_importable")


def test_every_value_stands_in_its_document() -> None:
    from eval_institutions import LOOKED_AT, kinds, read_kind

    assert len(kinds()) == 30
    assert set(LOOKED_AT) < set(kinds())
    for name in kinds():
        rows = read_kind(name)
        assert len(rows) == 14
        assert len({row["institution"] for row in rows}) == 4
        for row in rows:
            values = [value for values in row["fields"].values() for value in values]
            assert values
            assert all(value in row["text"] for value in values)


@pytest.mark.parametrize("draw", [0, 1, 2])
def test_samples_are_of_other_institutions_or_other_documents(draw: int) -> None:
    from eval_institutions import read_kind, tasks_of

    rows = read_kind("invoices")
    tasks = dict(tasks_of("invoices", rows, 5, draw))
    of_samples, of_others = (
        {row["institution"] for row in part} for part in (tasks["other"].pool, tasks["other"].test)
    )
    assert len(of_samples) == len(of_others) == 2
    assert of_samples.isdisjoint(of_others)
    assert len(tasks["other"].pool) + len(tasks["other"].test) == 14
    assert len(tasks["same"].pool) == 5
    ids = [row["doc_id"] for part in (tasks["same"].pool, tasks["same"].test) for row in part]
    assert sorted(ids) == sorted(row["doc_id"] for row in rows)
