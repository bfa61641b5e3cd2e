"""Reprocessing: exactly what a change touches is found again, and the whole equals a full run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_checkpoints import save_encoder

from featpipe import Cache, Extractor, Pipeline
from featpipe.cli.main import featpipe
from featpipe.errors import DictionaryLocked
from featpipe.extraction.extract_run import Asked, ExtractRun, select_documents
from featpipe.extraction.reprocess import read_results, reprocess
from featpipe.extraction.reprocess_plan import plan_reprocess
from featpipe.extraction.results import ExtractedValue, FieldResult, change_of
from featpipe.extraction.template import SampleSpec
from featpipe.extraction.template_file import check_template
from featpipe.html_report.results import read_stored

if TYPE_CHECKING:
    from featpipe.extraction.template import Template

SAMPLES = {
    "contracts/lease_factory.txt": {
        "出租方": "株洲禾宁产业园运营有限公司",
        "月租金": "300,000.00元",
        "签订日期": "2025年12月2日",
    },
    "contracts/lease_office.md": {},
    "contracts/lease_shop.txt": {},
}
DATA = Path(__file__).parents[2] / "data"
for row in map(json.loads, (DATA / "templates" / "expected.jsonl").read_text("utf-8").splitlines()):
    if row["document"] in SAMPLES:
        SAMPLES[row["document"]] = {n: v[0] for n, v in row["fields"].items()}
NAMES = ("出租方", "月租金", "签订日期")


def make(
    names: tuple[str, ...] = NAMES,
    documents: tuple[str, ...] = tuple(SAMPLES)[:2],
    aliases: dict[str, list[str]] | None = None,
) -> Template:
    content = {
        "name": "租赁合同",
        "documents": ["*lease_*"],
        "fields": [{"name": n, "aliases": (aliases or {}).get(n, [])} for n in names],
        "samples": [
            {"document": d, "fields": {n: SAMPLES[d][n] for n in names if n in SAMPLES[d]}}
            for d in documents
        ],
    }
    return check_template(content, "", Path("t.toml"))


def outcome(cache: Path, template: Template) -> dict[str, dict[str, FieldResult]]:
    with Extractor([template], cache) as extractor:
        return {
            e.document.removeprefix("documents/"): dict(e.fields) for e in read_results(extractor)
        }


def run(cache: Path, template: Template) -> tuple[int, int, list[str]]:
    with Extractor([template], cache) as extractor:
        report = reprocess(extractor)
        return report.n_extracted, report.n_encoded, [change.field for change in report.changed]


def test_a_first_run_finds_everything_and_a_second_nothing(cache: Path) -> None:
    assert run(cache, make())[:2] == (4 * 3, 0)
    assert run(cache, make())[:2] == (0, 0)


def test_two_templates_have_the_documents_of_one_in_the_order_of_extract(
    cache: Path,
) -> None:
    other = make(names=NAMES[:1]).model_copy(update={"name": "出租方", "documents": ()})
    with Extractor([make(), other], cache) as extractor:
        plan = plan_reprocess(extractor)
        n = len(list(extractor.cache.documents()))
        assert f"in {n} of {n} documents to extract" in "".join(plan.lines())
        assert reprocess(extractor, plan).n_documents == n
        asked = [Asked(document) for document in extractor.cache.documents()]
        selection = select_documents(extractor.engine, asked)
        run = ExtractRun(extractor, selection)
        extracted = list(run.extractions(lambda _: None))
        assert len(extracted) == n + 4
        assert [one.as_json() for one in read_results(extractor)] == [
            one.as_json() for one in extracted
        ]


def test_documents_that_a_template_is_meant_for_no_longer_have_no_results(cache: Path) -> None:
    assert run(cache, make())[0] == 4 * 3
    narrower = make().model_copy(update={"documents": ("*lease_shop*",)})
    with Extractor([narrower], cache) as extractor:
        plan = plan_reprocess(extractor)
        assert "3 documents no longer matched by the `documents` patterns" in "".join(plan.lines())
        assert len(list(read_results(extractor))) == plan.n_meant == 1
        report = reprocess(extractor, plan)
    assert report.changed
    assert not any(change.new.values for change in report.changed)
    with Cache.open(cache) as opened:
        places = read_stored(opened).fields
    assert [Path(path).stem for _, path in places] == ["lease_shop"]
    assert run(cache, narrower) == (0, 0, [])
    extracted, _, changed = run(cache, make())
    assert extracted == 0
    assert len(changed) == len(report.changed)


@pytest.mark.parametrize(
    ("changed", "touched", "reason"),
    [
        (make(aliases={"月租金": ["每月租金"]}), {"月租金"}, "aliases"),
        # The deposit of a sample is one month's rent, so that the two tell each other's places.
        (make((*NAMES, "保证金")), {"保证金", "月租金"}, "field added"),
        (make(documents=tuple(SAMPLES)), set(NAMES), "sample added: contracts/lease_shop.txt"),
        (
            make(documents=tuple(SAMPLES)[:1]),
            set(NAMES),
            "sample removed: contracts/lease_office.md",
        ),
        (make(NAMES[:2]), set(), "field removed"),
    ],
)
def test_a_change_touches_its_fields_and_says_why(
    cache: Path, changed: Template, touched: set[str], reason: str
) -> None:
    run(cache, make())
    with Extractor([changed], cache) as extractor:
        plan = plan_reprocess(extractor)
        assert {name for work in plan.works for name in work.missing} == touched
        assert reason in "\n".join(plan.lines())
        before = cache.read_bytes()
        list(plan.lines())
        assert cache.read_bytes() == before
        assert reprocess(extractor, plan).n_extracted == 4 * len(touched)


def test_a_template_that_goes_back_finds_its_old_values(cache: Path) -> None:
    run(cache, make())
    run(cache, make(aliases={"月租金": ["租金标准"]}))
    assert run(cache, make())[:2] == (0, 0)


def test_a_changed_document_is_found_again_alone(documents: Path, tmp_path: Path) -> None:
    own = tmp_path / "own" / "documents"
    shutil.copytree(documents, own)
    model = tmp_path / "tiny"
    save_encoder(model)
    file = own / "contracts" / "lease_warehouse.docx"
    file.unlink()
    text = (own / "contracts" / "lease_shop.txt").read_text("utf-8")
    target = own / "contracts" / "lease_shop.txt"
    fresh = tmp_path / "fresh.h5"
    template = make(documents=tuple(SAMPLES)[:2])
    build(fresh, model, own)
    run(fresh, template)
    target.write_text(text.replace("2", "3"), "utf-8")
    build(fresh, model, own)
    n_extracted, n_encoded, changed = run(fresh, template)
    assert (n_extracted, n_encoded) == (3, 0)
    assert set(changed) <= set(NAMES)
    assert changed


def build(cache: Path, model: Path, documents: Path) -> None:
    with Pipeline(cache, model, "none", devices=["cpu"]) as pipeline:
        assert pipeline.build(documents).is_complete


def test_a_cache_that_is_being_written_is_named(cache: Path, tmp_path: Path) -> None:
    with Pipeline(cache, save_encoder(tmp_path / "tiny"), "none", devices=["cpu"]) as pipeline:
        (tmp_path / "new.txt").write_text("本合同自签订之日起生效。", "utf-8")
        pipeline.build(tmp_path / "new.txt")
        with pytest.raises(DictionaryLocked, match="is being written"):
            run(cache, make())


def test_each_change_names_its_document_and_both_values(cache: Path) -> None:
    run(cache, make(documents=tuple(SAMPLES)[:1]))
    with Extractor([make(documents=tuple(SAMPLES))], cache) as extractor:
        report = reprocess(extractor)
    json.dumps(report.as_dict())
    for change in report.changed:
        assert str(change).startswith(change.document)
        assert change.what == change_of(change.old, change.new) != ""


def test_the_command_shows_old_and_new_values_with_their_places(
    cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "t.json"
    where = ["reprocess", "--cache", str(cache), "--templates", str(file)]
    told = []
    # A field of a pattern, so that what changes is known: first the month, then the day.
    for pattern in ("2025年12月", "2025年12月2日"):
        field = {"name": "日期", "type": "pattern", "pattern": pattern}
        content = {"name": "租赁合同", "documents": ["*lease_factory*"], "fields": [field]}
        file.write_text(json.dumps(content), "utf-8")
        result = CliRunner().invoke(featpipe, [*where, "--diff", "--workers", "0"])
        assert result.exit_code == 0
        with Extractor(file, cache) as extractor:
            (extraction,) = read_results(extractor)
        values = extraction.fields["日期"].values
        told.append(
            ", ".join(f"{v.text!r} [{v.start}:{v.end}] p={v.probability:.2f}" for v in values)
            or "nothing"
        )
    assert told[0] != told[1]
    assert result.stdout.splitlines()[0] == (
        f"租赁合同: documents/contracts/lease_factory.txt 日期: {told[0]} -> {told[1]}"
    )


VERSIONS = st.lists(
    st.builds(
        lambda names, documents, alias: make(
            tuple(n for n in NAMES if n in names) or NAMES,
            tuple(d for d in SAMPLES if d in documents),
            {"月租金": ["租金"]} if alias else None,
        ),
        st.sets(st.sampled_from(NAMES)),
        st.sets(st.sampled_from(list(SAMPLES))),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


@given(versions=VERSIONS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_history_of_changes_ends_where_a_full_run_ends(
    built: Path, tmp_path_factory: pytest.TempPathFactory, versions: list[Template]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    worn, fresh = (Path(shutil.copy(built, folder / name)) for name in ("worn.h5", "fresh.h5"))
    for template in versions:
        run(worn, template)
    run(fresh, versions[-1])
    assert outcome(worn, versions[-1]) == outcome(fresh, versions[-1])
    assert outcome(fresh, versions[-1])


def test_a_correction_of_one_field_leaves_the_others_of_its_document_alone(cache: Path) -> None:
    """A sample with some fields was not read for the others: they are unknown, not absent."""
    document = "contracts/lease_shop.txt"
    template = make(documents=tuple(SAMPLES)[:2])
    correction = SampleSpec(document=document, fields={"月租金": (SAMPLES[document]["月租金"],)})
    corrected = template.model_copy(update={"samples": (*template.samples, correction)})
    run(cache, template)
    before = outcome(cache, template)[document]
    with Extractor([corrected], cache) as extractor:
        plan = plan_reprocess(extractor)
        assert {name for work in plan.works for name in work.missing} == {"月租金"}
        reprocess(extractor, plan)
    after = outcome(cache, corrected)[document]
    assert after["月租金"].value == SAMPLES[document]["月租金"]
    assert {n: r for n, r in after.items() if n != "月租金"} == {
        n: r for n, r in before.items() if n != "月租金"
    }


@pytest.mark.parametrize(
    "stated", [{"complete": True}, {"fields": {"月租金": ["1元"], "出租方": []}}]
)
def test_a_field_stated_to_be_absent_counts_as_absent(stated: dict[str, object]) -> None:
    content = {"document": "a.txt", "fields": {"月租金": ["1元"]}} | stated
    sample = SampleSpec.model_validate(content)
    assert sample.is_read_for("出租方")
    assert sample.values_of("出租方") == ()
    assert not SampleSpec(document="a.txt", fields={"月租金": ("1元",)}).is_read_for("出租方")
    assert SampleSpec.model_validate_json('{"text": "x", "fields": {"出租方": null}}').is_read_for(
        "出租方"
    )


def test_two_samples_of_one_document_are_both_in_the_fingerprint(cache: Path) -> None:
    document = "contracts/lease_shop.txt"
    base = make(documents=tuple(SAMPLES)[:2])

    def prints(*values: str) -> str:
        more = [SampleSpec(document=document, fields={"月租金": (value,)}) for value in values]
        template = base.model_copy(update={"samples": (*base.samples, *more)})
        with Extractor([template], cache) as extractor:
            return extractor.engine.templates["租赁合同"].facts["月租金"].fingerprint

    assert prints("1元", "2元") != prints("3元", "2元")


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [(0.70, 0.21, "probability"), (0.21, 0.70, "probability"), (0.70, 0.68, "")],
)
def test_a_fall_or_rise_of_probability_is_a_change(before: float, after: float, what: str) -> None:
    old, new = (
        FieldResult((ExtractedValue("甲", "甲", "", "", 0, 1, None, p),)) for p in (before, after)
    )
    assert change_of(old, new) == what
    assert change_of(old, FieldResult()) == "values"


@pytest.mark.parametrize(
    ("text", "unit", "bound"), [("3万美元", "USD", ""), ("不超过3万元", "CNY", "<=")]
)
def test_another_currency_or_bound_is_another_value(text: str, unit: str, bound: str) -> None:
    old, new = (
        FieldResult((ExtractedValue(t, "30000", u, b, 0, len(t), None, 0.9),))
        for t, u, b in (("3万元", "CNY", ""), (text, unit, bound))
    )
    assert change_of(old, new) == "values"
    assert change_of(new, new) == ""


def test_the_difference_of_two_runs_names_falls_of_probability(cache: Path, tmp_path: Path) -> None:
    """A sample that lies about a field: its values stay, and people see how sure they still are."""
    document = "contracts/lease_shop.txt"
    template = make(documents=tuple(SAMPLES)[:2])
    file = tmp_path / "t.json"
    told = []
    for more in ((), (SampleSpec(document=document, fields={"出租方": ()}),)):
        content = template.model_copy(update={"samples": (*template.samples, *more)})
        file.write_text(content.model_dump_json(exclude_none=True, exclude_defaults=True), "utf-8")
        where = ["reprocess", "--cache", str(cache), "--templates", str(file), "--workers", "0"]
        result = CliRunner().invoke(featpipe, [*where, "--diff"])
        assert result.exit_code == 0, result.output
        told.append(result.output)
    with Extractor(file, cache) as extractor:
        found = {e.document: e.fields["出租方"] for e in read_results(extractor)}
    kept = [name for name in found if f"{name} 出租方" in told[1] and found[name].values]
    assert kept
    assert "probabilities changed" in told[1]
