"""Which documents to label next: layouts without a sample first, in the order of the queue."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from tiny_checkpoints import save_encoder

from featpipe import Pipeline
from featpipe.cli.main import featpipe
from featpipe.extraction.corrections import Correction
from featpipe.extraction.corrections_fold import fold
from featpipe.extraction.extractor import Extractor
from featpipe.extraction.reprocess_plan import document_states
from featpipe.extraction.review_queue import list_items, order_queue
from featpipe.extraction.suggest import (
    Layouts,
    choose_documents,
    compare,
    count_alike,
    layout_of,
    rank_documents,
    suggest_documents,
)
from featpipe.extraction.survey import KnownValues, Survey

TEMPLATE = """name = "lease"
[[fields]]
name = "租金"
type = "money"
[[samples]]
document = "lease_0.txt"
fields = { "租金" = "1,000元" }
"""


def call(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


def lease(number: int) -> str:
    return f"租赁合同\n每月租金为{number + 1},000元，按月支付。甲方第{number}公司。\n"


def invoice(number: int) -> str:
    amount, day = f"{number + 2},300元", f"2024年5月{number + 1}日"
    return f"发票第{number}号\n合计：{amount}\n开票日期{day}，税率百分之六。\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five leases, one of which is a sample, six invoices, and a page of neither kind."""
    home = tmp_path_factory.mktemp("home")
    documents = home / "documents"
    documents.mkdir()
    for number in range(5):
        (documents / f"lease_{number}.txt").write_text(lease(number), "utf-8")
    for number in range(6):
        (documents / f"invoice_{number}.txt").write_text(invoice(number), "utf-8")
    (documents / "odd.txt").write_text("Minutes of the meeting. Nobody came.\n", "utf-8")
    (home / "lease.toml").write_text(TEMPLATE, "utf-8")
    with Pipeline(home / "c.h5", save_encoder(home / "tiny"), "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete
    return home


def names(home: Path, n: int = 12) -> list[str]:
    with Extractor(home / "lease.toml", home / "c.h5", checkpoints="none") as extractor:
        [fitted] = extractor.engine.templates.values()
        found = suggest_documents(extractor.engine, fitted, n)
    return [Path(one.document.id).stem for one in found.documents]


def test_a_common_layout_without_samples_comes_first_and_samples_never(home: Path) -> None:
    found = names(home)
    assert found[0].startswith("invoice_")
    assert sorted(found) == sorted(
        [f"lease_{n}" for n in range(1, 5)] + [f"invoice_{n}" for n in range(6)] + ["odd"]
    )
    assert names(home) == found  # the same each time
    assert names(home, 3) == found[:3]


def test_a_template_without_samples_is_suggested_the_commonest_layout(
    home: Path, tmp_path: Path
) -> None:
    shutil.copy(home / "c.h5", tmp_path / "c.h5")
    unsampled = TEMPLATE.partition("[[samples]]")[0]
    # A name that no document has: where one has it, that one comes first.
    (tmp_path / "lease.toml").write_text(unsampled.replace("租金", "定金"), "utf-8")
    assert [name[:5] for name in names(tmp_path, 2)] == ["invoi", "lease"]
    (tmp_path / "lease.toml").write_text(unsampled, "utf-8")
    assert [name[:5] for name in names(tmp_path, 2)] == ["lease", "invoi"]


def test_the_command_prints_what_a_document_stands_for(home: Path) -> None:
    where = (home / "lease.toml", "--cache", home / "c.h5", "-n", 2)
    lines = call("template", "suggest", *where).stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(", 6 documents like it")
    rows = [json.loads(line) for line in call("template", "suggest", *where, "--json")
            .stdout.splitlines()]  # fmt: skip
    assert rows[0]["n_alike"] == 6
    assert [line.partition(":")[0] for line in lines] == [row["document"] for row in rows]


def test_where_all_documents_are_samples_there_is_nothing_to_suggest(
    home: Path, tmp_path: Path
) -> None:
    text = TEMPLATE.replace('name = "lease"', 'name = "lease"\ndocuments = ["*lease_0.txt"]')
    (tmp_path / "lease.toml").write_text(text, "utf-8")
    result = call("template", "suggest", tmp_path / "lease.toml", "--cache", home / "c.h5")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "every document has a sample" in result.stderr


def test_the_queue_has_the_same_order_and_what_is_settled_leaves_it(home: Path) -> None:
    with Extractor(home / "lease.toml", home / "c.h5", checkpoints="none") as extractor:
        [fitted] = extractor.engine.templates.values()
        survey = Survey(fitted, document_states(extractor.engine), KnownValues(extractor.engine))
        assert rank_documents(survey, {}, Layouts(), 9) == []  # no values are found yet
        survey.find_here(extractor.engine)
        ranked = rank_documents(survey, {}, Layouts(), 12)
        suggested = suggest_documents(extractor.engine, fitted, 12).documents
        assert [one.as_dict() for one in ranked] == [one.as_dict() for one in suggested]
        first = [one.document.path for one in ranked]
        items = order_queue(list_items(survey, {}), first)
        assert [item.document.path for item in items] == first  # there is one field
        top = ranked[0].document
        said = Correction(verdict="none", template="lease", document=top.id, key=top.key.hex(),
                          field="租金", spans=(), shown=())  # fmt: skip
        after = rank_documents(survey, fold([said]), Layouts(), 12)
        assert top.path not in [one.document.path for one in after]
        assert len(after) == len(ranked) - 1


# ---- the rule


def layouts(seed: int, n: int) -> list[np.ndarray]:
    chance = np.random.default_rng(seed)
    texts = ["".join(chance.choice(list("甲乙丙丁戊"), 30)) for _ in range(n)]
    return [layout_of(text) for text in texts]


@given(st.integers(0, 50), st.integers(1, 12), st.integers(0, 3))
def test_each_choice_is_the_one_that_adds_most(seed: int, n: int, n_known: int) -> None:
    own = layouts(seed, n + n_known)
    likeness, covered = compare(own[:n], own[n:])
    weights = np.random.default_rng(seed).random(n)

    def worth(chosen: list[int]) -> float:
        best = [max([covered[p], *(likeness[p, c] for c in chosen)]) for p in range(n)]
        return float(weights @ np.array(best))

    chosen = choose_documents(likeness, covered, weights, n)
    assert sorted(chosen) == list(range(n))
    for place, number in enumerate(chosen):
        before, rest = chosen[:place], chosen[place:]
        assert worth([*before, number]) >= max(worth([*before, c]) for c in rest) - 1e-6
    assert sum(count_alike(likeness, covered, chosen)) <= n


def test_digits_make_no_layout_and_empty_texts_have_one() -> None:
    assert np.array_equal(layout_of("合同第12号"), layout_of("合同第97号"))
    assert not layout_of("").any()
    assert not layout_of("一").any()
    likeness, covered = compare([layout_of(""), layout_of("合同")], [])
    assert np.isfinite(likeness).all()
    assert choose_documents(likeness, covered, np.ones(2), 5) == [1, 0]
