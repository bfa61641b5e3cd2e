"""How good a template is: figures against counts by hand, and nothing judged by what knew it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featpipe.cli.main import featpipe
from featpipe.errors import TemplateError, UsageError
from featpipe.extraction.evaluate import (
    evaluate_gold,
    evaluate_samples,
    find_gold,
    prepare_texts,
)
from featpipe.extraction.evaluation import (
    Judgement,
    TemplateEvaluation,
    calibration_error,
    score,
)
from featpipe.extraction.extractor import Extractor
from featpipe.extraction.template import FieldSpec, SampleSpec, Template

HERE = Path()
NEW = "contracts/lease_warehouse.docx"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


def contract(number: int, amount: str, **more: object) -> SampleSpec:
    text = f"合同编号：HT-2024-{number:03}\n合同金额：{amount}元\n签订地点：第{number}会议室。\n"
    fields = {"金额": (f"{amount}元",), "编号": (f"HT-2024-{number:03}",)}
    return SampleSpec.model_validate({"text": text, "fields": fields} | more)


CONTRACTS = [contract(number, f"{number},500") for number in range(1, 7)]
FIELDS = (
    FieldSpec(name="金额", aliases=("合同金额",), type="money"),
    FieldSpec(name="编号", aliases=("合同编号",), type="id"),
)


def template(*samples: SampleSpec) -> Template:
    return Template(name="合同", fields=FIELDS, samples=samples)


def test_a_template_that_finds_everything_scores_one() -> None:
    found = evaluate_samples(prepare_texts(template(*CONTRACTS), HERE))
    assert found.source == "samples"
    assert (found.whole.precision, found.whole.recall, found.whole.f1) == (1, 1, 1)
    assert [one.field for one in found.fields] == ["金额", "编号"]
    assert all((one.n_documents, one.n_stated) == (6, 6) for one in found.fields)
    assert found.disagreements == found.unjudged == found.left_out == ()


def test_a_wrong_sample_is_named_with_both_places() -> None:
    wrong = contract(7, "7,500", fields={"金额": ("第7会议室",), "编号": ("HT-2024-007",)})
    found = evaluate_samples(prepare_texts(template(*CONTRACTS, wrong), HERE))
    own = [d for d in found.disagreements if d.document == "text 7"]
    [disagreement] = own
    text = str(wrong.text)
    assert disagreement.field == "金额"
    [missed] = disagreement.missed
    assert [text[a:b] for a, b in missed.places] == ["第7会议室"]
    assert [text[v.start : v.end] for v in disagreement.wrong] == ["7,500元"]
    assert found.fields[0].n_right < found.fields[0].n_stated == 7


def test_samples_of_one_text_are_left_out_together() -> None:
    """Else the second would tell what the first hides: a value that nothing else leads to."""
    odd = "本页无正文。附注甲乙丙丁戊。\n"
    twice = [SampleSpec(text=odd, fields={"金额": ("甲乙丙丁戊",)})] * 2
    spec = (FieldSpec(name="金额", type="text"),)
    plain = [SampleSpec(text=str(one.text), fields={"金额": ()}) for one in CONTRACTS[:3]]
    made = Template(name="t", fields=spec, samples=(*twice, *plain))
    found = evaluate_samples(prepare_texts(made, HERE))
    assert (found.whole.n_stated, found.whole.n_right) == (2, 0)


def test_a_field_counts_only_where_a_sample_was_read_for_it() -> None:
    partial = contract(7, "7,500", fields={"编号": ("HT-2024-007",)})
    found = evaluate_samples(prepare_texts(template(CONTRACTS[0], CONTRACTS[1], partial), HERE))
    assert {one.field: one.n_documents for one in found.fields} == {"金额": 2, "编号": 3}
    assert not any(one.field == "金额" and one.document == "text 3" for one in found.disagreements)
    alone = evaluate_samples(prepare_texts(template(CONTRACTS[0], partial), HERE))
    assert alone.unjudged == ("金额",)


@pytest.mark.parametrize("samples", [(), (CONTRACTS[0],), (CONTRACTS[0], CONTRACTS[0])])
def test_nothing_can_be_left_out_of_one_text(samples: tuple[SampleSpec, ...]) -> None:
    with pytest.raises(UsageError, match="nothing can be left out") as error:
        evaluate_samples(prepare_texts(template(*samples), HERE))
    assert "--gold" in str(error.value.hint)


def test_counts_and_calibration_are_those_by_hand() -> None:
    judged = [
        Judgement("a", "f", 2, ((0.95, True), (0.92, False))),
        Judgement("b", "f", 1, ((0.25, True),)),
        Judgement("c", "f", 0, ()),
    ]
    found = score("t", "gold", ["f", "g"], judged)
    [one] = found.fields
    assert (one.n_documents, one.n_stated, one.n_found, one.n_right) == (3, 3, 3, 2)
    assert (one.n_sure, one.n_sure_right) == (2, 1)
    assert (one.precision, one.recall, one.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert one.ece == pytest.approx((abs(0.95 + 0.92 - 1) + abs(0.25 - 1)) / 3, abs=1e-4)
    assert 0 <= one.f1_low <= one.f1 <= one.f1_high <= 1
    assert found.unjudged == ("g",)
    assert calibration_error([]) == 0
    assert calibration_error([(1.0, True)]) == 0


def test_the_json_form_gives_the_value_back() -> None:
    wrong = contract(7, "7,500", fields={"金额": ("9,999元",)})
    fitted = prepare_texts(template(*CONTRACTS[:2]), HERE)
    gold, left_out = find_gold(lambda one: prepare_texts(one, HERE), fitted, [wrong, CONTRACTS[0]])
    found = evaluate_gold(fitted, gold, left_out)
    assert found.disagreements
    assert [one.reason for one in found.left_out] == ["the template has a sample of it"]
    assert found.unjudged == ("编号",)
    assert TemplateEvaluation.of(json.loads(json.dumps(found.as_dict()))) == found


def test_a_sample_that_is_no_file_needs_a_cache(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"gone\.txt is no file") as error:
        prepare_texts(template(SampleSpec(document="gone.txt", fields={})), tmp_path)
    assert "--cache" in str(error.value.hint)
    (tmp_path / "a.txt").write_text(str(CONTRACTS[0].text), "utf-8")
    made = template(SampleSpec(document="a.txt", fields={"金额": ("1,500元",)}))
    assert prepare_texts(made, tmp_path).sample_pages[0].page.text.startswith("合同编号")


# ---- the command


def test_the_command_prints_a_table_and_every_disagreement(cache: Path, templates: Path) -> None:
    lease = templates / "lease.toml"
    result = call("template", "evaluate", lease, "--cache", cache, "--parts", 2)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("field "))
    assert lines[head].split()[1:5] == ["documents", "stated", "found", "right"]
    assert lines[-2].startswith("all fields ")
    assert "each left out in turn; of " in lines[-1]
    content = json.loads(
        call("template", "evaluate", lease, "--cache", cache, "--parts", 2, "--json").stdout
    )
    found = TemplateEvaluation.of(content)
    assert [str(one) for one in found.disagreements] == lines[: len(found.disagreements)]
    with Extractor(lease, cache) as extractor:
        [fitted] = extractor.engine.templates.values()
        assert found == evaluate_samples(fitted, 2)
        for one in found.disagreements:
            text = next(d.text for d in extractor.cache.documents() if d.key.hex() == one.key)
            assert all(text[v.start : v.end] == v.text for v in one.wrong)


def test_gold_is_judged_or_named(cache: Path, templates: Path, tmp_path: Path) -> None:
    lease = templates / "lease.toml"
    where = ("template", "evaluate", lease, "--cache", cache, "--gold", tmp_path / "gold.jsonl")
    with Extractor(lease, cache) as extractor:
        found = extractor.extract(NEW).fields
    name = next(name for name, result in found.items() if len(result.values) == 1)
    rows = [
        {"document": "gone.txt", "fields": {name: ["x"]}},
        {"document": "contracts/lease_shop.txt", "fields": {name: ["x"]}},
        {"document": NEW, "fields": {name: [found[name].value]}},
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    where[-1].write_text("".join(lines), "utf-8")
    result = call(*where)
    assert result.exit_code == 1
    assert "the sample document gone.txt is neither in the cache" in result.stdout
    assert "lease_shop.txt: left out: the template has a sample of it" in result.stdout
    assert "F1 1.000" in result.stdout
    assert "over 1 gold documents" in result.stdout
    where[-1].write_text("".join(lines[:2]), "utf-8")
    nothing = call(*where)
    assert "none of the gold documents could be judged" in nothing.stdout
    assert f"{name}: not judged: no gold document that could be used was read" in nothing.stdout
    assert json.loads(call(*where, "--json").stdout)["whole"]["f1"] == 0
    where[-1].write_text('{"document": "a", "fields": {"no field": ["x"]}}\n', "utf-8")
    broken = call(*where)
    assert isinstance(broken.exception, TemplateError)
    assert "gold.jsonl:1: a value for 'no field'" in broken.exception.message
