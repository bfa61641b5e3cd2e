"""Choosing a template: documents of its kind are taken, other texts refused with their score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from featpipe import Extractor
from featpipe.cli.main import featpipe
from featpipe.report import Quarantined

NOVEL = (
    "话说天下大势，分久必合，合久必分。周末七国分争，并入于秦。及秦灭之后，楚、汉分争，又并入于汉。"
    "汉朝自高祖斩白蛇而起义，一统天下，后来光武中兴，传至献帝，遂分为三国。推其致乱之由，殆始于桓、"
    "灵二帝。桓帝禁锢善类，崇信宦官。及桓帝崩，灵帝即位，大将军窦武、太傅陈蕃共相辅佐。\n"
) * 5
OTHERS = {
    "novel": NOVEL,
    "poem": "床前明月光，\n疑是地上霜。\n举头望明月，\n低头思故乡。\n",
    "email": "Subject: Lunch on Friday\n\nHi Tom,\n\nThanks for your note. I will be in the office "
    "on Friday and would be happy to have lunch with you.\n\nBest regards,\nPeter\n",
    "letter": "王经理：您好！附件是上周会议的纪要，请查收。关于下周的培训，烦请您在周三之前回复。",
    "recipe": "红烧肉的做法：五花肉500克，切块焯水；锅中放油，加冰糖炒糖色；放入肉块翻炒。",
    "word": "合同",
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("templates_used", ["all", "one", "one sample"])
def test_a_text_that_is_like_no_sample_is_refused_with_its_score(
    cache: Path, templates: Path, name: str, templates_used: str
) -> None:
    with Extractor(templates, cache) as all_of_them:
        used = list(all_of_them.templates.values())
    if templates_used != "all":
        used = used[:1]
    if templates_used == "one sample":
        used = [used[0].model_copy(update={"samples": used[0].samples[:1]})]
    with Extractor(used, cache, folder=templates, checkpoints="none") as extractor:
        (refused,) = extractor.extract_many([OTHERS[name]], "auto")
    assert isinstance(refused, Quarantined)
    assert refused.error == "UnlikeTemplates"
    assert "has a likeness of 0." in refused.reason
    assert "is needed" in refused.reason


def test_documents_of_the_kind_that_are_no_samples_are_taken(cache: Path, templates: Path) -> None:
    """Also without the patterns that name them."""
    with Extractor(templates, cache) as all_of_them:
        used = [one.model_copy(update={"documents": ()}) for one in all_of_them.templates.values()]
    sampled = {str(sample.document) for one in used for sample in one.samples}
    with Extractor(used, cache, folder=templates, checkpoints="none") as extractor:
        kinds = {"lease": "租赁合同", "reduction": "减持公告"}
        held_out = [
            document
            for document in extractor.cache.documents()
            if document.id not in sampled and Path(document.id).name.split("_")[0] in kinds
        ]
        assert len(held_out) >= 2
        for document in held_out:
            (found,) = extractor.extract_many([document], "auto")
            assert not isinstance(found, Quarantined), found
            assert found.provenance.template == kinds[Path(document.id).name.split("_")[0]]


def test_what_a_template_names_is_its_own(cache: Path, templates: Path, tmp_path: Path) -> None:
    """A pattern is the user's word: no likeness is asked for."""
    file = tmp_path / "lease_of_a_poet.txt"
    file.write_text(OTHERS["poem"], "utf-8")
    with Extractor(templates, cache, checkpoints="none") as extractor:
        (found,) = extractor.extract_many([file], "auto")
    assert not isinstance(found, Quarantined)
    assert found.provenance.template == "租赁合同"


def test_the_command_names_what_it_refuses(cache: Path, templates: Path, tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text(NOVEL, "utf-8")
    (tmp_path / "empty.txt").write_text("", "utf-8")
    out = tmp_path / "out.jsonl"
    files = [str(tmp_path / "novel.txt"), str(tmp_path / "empty.txt")]
    result = CliRunner().invoke(
        featpipe,
        ["extract", *files, "contracts/lease_warehouse.docx", "--cache", str(cache),
         "--templates", str(templates), "--template", "auto", "-o", str(out)],
    )  # fmt: skip
    assert result.exit_code == 1
    assert "novel.txt: no template fits: the likeliest, " in result.output
    assert "empty.txt" in result.output
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    (row,) = rows
    assert row["document"].endswith("contracts/lease_warehouse.docx")
