"""The commands: they parse, call the library, print, and say by their exit code what happened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from featpipe.cli.main import featpipe
from featpipe.errors import MissingDocuments, TemplateError
from featpipe.extraction.template_file import load_template


def call(*arguments: object) -> Result:
    return CliRunner().invoke(featpipe, [str(argument) for argument in arguments])


def test_extract_prints_a_line_per_document_and_template(cache: Path, templates: Path) -> None:
    result = call("extract", "contracts/lease_shop.txt", "contracts/lease_office.md",
                  "--cache", cache, "--templates", templates / "lease.toml")  # fmt: skip
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["document"] for row in rows] == [
        "documents/contracts/lease_shop.txt",
        "documents/contracts/lease_office.md",
    ]
    assert all(row["fields"]["出租方"] for row in rows)


def test_a_document_that_is_nowhere_is_a_usage_error(cache: Path, templates: Path) -> None:
    result = call("extract", "gone.pdf", "--cache", cache, "--templates", templates / "lease.toml")
    assert isinstance(result.exception, MissingDocuments)


def test_a_broken_document_is_named_and_the_others_go_on(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    result = call("extract", tmp_path / "bad.pdf", "contracts/lease_shop.txt",
                  "--cache", cache, "--templates", templates / "lease.toml")  # fmt: skip
    assert result.exit_code == 1
    assert "quarantined" in result.stderr
    assert "bad.pdf" in result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_reprocess_explains_does_and_then_has_nothing_to_do(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    where = ("--cache", cache, "--templates", templates / "lease.toml")
    dry = call("reprocess", *where, "--dry-run")
    assert "出租方: new template" in dry.stdout
    assert dry.stdout.endswith("40 fields in 4 of 4 documents to extract, 0 texts to encode\n")
    out = tmp_path / "out.csv"
    report = json.loads(call("reprocess", *where, "--json", "-o", out).stdout)
    assert (report["extracted"], report["encoded"], report["changed"]) == (40, 0, [])
    assert len(out.read_text("utf-8-sig").splitlines()) > 20
    assert "fields extracted 0, unchanged 40" in call("reprocess", *where).stdout


def test_a_run_of_reprocess_is_shown_and_is_the_last(cache: Path, templates: Path) -> None:
    where = ("--cache", cache, "--templates", templates / "lease.toml")
    assert call("reprocess", *where).exit_code == 0
    run_id, kind, *_ = call("runs", "list", cache).stdout.splitlines()[-1].split()
    assert kind == "reprocess"
    shown = call("runs", "show", cache, run_id)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[0].split() == ["run", run_id]
    assert "templates" in shown.stdout
    assert call("runs", "show", cache).stdout == shown.stdout
    record = json.loads(call("runs", "show", cache, run_id, "--json").stdout)
    assert (record["kind"], record["run_id"]) == ("reprocess", run_id)
    assert call("runs", "list", cache, "--json").stdout.splitlines()[-1] == json.dumps(
        record, ensure_ascii=False
    )


def test_a_drafted_template_checks_well(cache: Path, documents: Path, tmp_path: Path) -> None:
    sample = documents / "announcements" / "bid_single_a.html"
    drafted = call("template", "new", sample, "--name", "中标")
    file = tmp_path / "t.toml"
    file.write_text(drafted.stdout, "utf-8")
    assert load_template(file).name == "中标"
    checked = call("template", "check", file, "--cache", cache)
    assert (checked.exit_code, "values located" in checked.stdout) == (0, True)


def test_a_draft_is_made_by_the_command_itself(
    cache: Path, documents: Path, tmp_path: Path
) -> None:
    sample = documents / "announcements" / "bid_single_a.html"
    file = tmp_path / "t" / "drafted.toml"
    file.parent.mkdir()
    with file.open("wb") as out:
        command = [sys.executable, "-m", "featpipe", "template", "new", sample.name]
        done = subprocess.run(
            command, cwd=sample.parent, stdout=out, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")
    template = load_template(file)
    assert template.name == "bid_single_a"
    assert template.samples[0].document == str(sample)
    assert template.samples[0].fields
    checked = call("template", "check", file.parent, "--cache", cache)
    assert "values located" in checked.stdout


def test_nothing_is_drafted_where_there_is_no_field(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("今天天气很好。", "utf-8")
    result = CliRunner().invoke(featpipe, ["template", "new", str(tmp_path / "a.txt")])
    assert isinstance(result.exception, TemplateError)
    assert "a.txt: no labels" in result.exception.message
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("77.5万元", "has no money of this value"),
        ("株洲禾宁学校", "only '株洲禾宁' of it"),
        ("xyz", "nothing like it"),
    ],
)
def test_a_sample_value_that_is_not_there_is_explained(
    cache: Path, tmp_path: Path, value: str, why: str
) -> None:
    kind = "money" if value.endswith("元") else "text"
    file = tmp_path / "t.toml"
    file.write_text(
        f'name = "t"\n[[fields]]\nname = "f"\ntype = "{kind}"\n[[samples]]\n'
        f'document = "contracts/lease_factory.txt"\n[samples.fields]\n"f" = "{value}"\n', "utf-8"
    )  # fmt: skip
    result = call("template", "check", file, "--cache", cache)
    assert result.exit_code == 1
    assert why in result.stdout


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ('type = "enum"\nchoices = ["生效", "终止"]', "生效中", "`choices` are '生效', '终止'"),
        ('type = "enum"\nchoices = ["生效", "终止"]', "生效", ""),
        ('type = "enum"\nchoices = ["Active", "Ended"]', "ACTIVE", ""),
        ('type = "pattern"\npattern = "HT-\\\\d+"', "HT-12号", "`pattern` does not match it"),
        ('type = "pattern"\npattern = "(?<=编号：)HT-\\\\d+"', "HT-12", ""),
    ],
)
def test_a_sample_value_that_the_field_can_never_have_is_explained(
    cache: Path, tmp_path: Path, field: str, value: str, why: str
) -> None:
    file = tmp_path / "t.toml"
    text = "编号：HT-12号。状态：生效中；另一份生效。Active."
    file.write_text(
        f'name = "t"\n[[fields]]\nname = "f"\n{field}\n[[samples]]\n'
        f'text = "{text}"\n[samples.fields]\n"f" = "{value}"\n', "utf-8"
    )  # fmt: skip
    result = call("template", "check", file, "--cache", cache)
    assert (result.exit_code, why in result.stdout) == (int(bool(why)), True)


def test_a_check_says_what_can_find_a_field_without_a_sample(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('name = "t"\nfields = [{name = "甲方"}, {name = "备注"}]\n', "utf-8")
    shown = call("template", "check", file, "--cache", cache).stdout
    assert "no sample has a value of 甲方; only what is pretrained can find it" in shown
    assert "no sample has a value of 备注; only its names can find it" in shown
    assert "甲方 organisation, 备注 text" in shown


def test_labelled_samples_are_imported_as_lines(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    file.write_text(json.dumps({"text": "甲方：某公司", "label": [[3, 6, "甲方"]]}), "utf-8")
    result = call("template", "import", file, "--from", "doccano")
    assert json.loads(result.stdout)["fields"] == {"甲方": ["某公司"]}
