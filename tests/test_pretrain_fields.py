"""Pretraining of fields, on documents whose values are known."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("scripts_are_importable")
PLACES, TRADES = ("海南", "包头", "株洲", "洛阳", "大连"), ("电缆", "化工", "物流", "能源")


def rows(n: int) -> list[dict]:
    """Of each, the company that does not hold the shares is the value."""
    made = []
    for number in range(n):
        a, b = (
            f"{PLACES[(number + step) % 5]}{TRADES[(number // 5 + step) % 4]}有限公司"
            for step in (0, 1)
        )
        text = f"{a}持有股份。\n由{b}承建工程。\n" if number % 2 else f"由{b}承建。{a}持有股份。\n"
        made.append({"doc_id": f"d{number}", "text": text, "fields": {"承建": [b]}})
    return made


def test_words_beside_values_are_learnt_and_columns_of_samples_are_not() -> None:
    from eval_extraction import Pages
    from pretrain_fields import collect, pretrain

    from featpipe.extraction.scoring.columns import MEASURED
    from featpipe.extraction.scoring.field_fitting import fit_field, sample_of
    from featpipe.extraction.scoring.similarity import INSIDE, SIMILARITIES

    documents, pages = rows(60), Pages(None, None)
    pages.prepare(documents)
    field = pretrain(
        "承建", "organisation", list(collect(documents[:40], "承建", "organisation", [pages]))
    )
    assert not field.measured[[MEASURED.index(name) for name in (*SIMILARITIES, *INSIDE)]].any()

    def n_right(pretrained: object) -> int:
        sample = sample_of(pages["d40"], documents[40]["fields"]["承建"], "organisation")
        model = fit_field([sample], "organisation", ("无名",), pretrained=pretrained)
        scored = {row["doc_id"]: model.score(pages[row["doc_id"]]) for row in documents[41:]}
        best = {name: one.groups[0].spans[0] for name, one in scored.items()}
        return sum(
            row["text"][slice(*best[row["doc_id"]])] == row["fields"]["承建"][0]
            for row in documents[41:]
        )

    assert n_right(field) == len(documents[41:])
    assert n_right(None) <= n_right(field)


def test_equal_documents_give_equal_weights() -> None:
    from eval_extraction import Pages
    from pretrain_fields import collect, pretrain

    pages, documents = Pages(None, None), rows(30)
    pages.prepare(documents)
    first, second = (
        pretrain("承建", "organisation", list(collect(documents, "承建", "organisation", [pages])))
        for _ in range(2)
    )
    assert first.weights.tobytes() == second.weights.tobytes()
    assert np.array_equal(first.columns, second.columns)
    assert first.bias == second.bias


def test_the_halves_for_development_share_no_group_and_make_up_the_whole() -> None:
    from extraction_sets import is_in

    groups = [f"group {number}" for number in range(300)]
    dev, held_out, a, b = (
        {group for group in groups if is_in(group, part)}
        for part in ("dev", "held-out", "dev-a", "dev-b")
    )
    assert a | b == dev
    assert not a & b
    assert a
    assert b
    assert dev | held_out == set(groups)
    assert not dev & held_out
    assert all(is_in(group, "all") for group in groups)
