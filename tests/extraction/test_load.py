"""Template files: what is wrong is said with file, line and field; what is drafted can be read."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pages import features_of

from featpipe.errors import TemplateError
from featpipe.extraction.samples import (
    draft_template,
    import_table,
)
from featpipe.extraction.template_file import load_template, load_templates

GOOD = """\
name = "合同"

[[fields]]
name = "甲方"
type = "organisation"

[[fields]]
name = "金额"
type = "money"
aliases = ["合同金额"]

[[samples]]
text = "甲方：海南毓坤有限公司。合同金额：3万元。"

[samples.fields]
"甲方" = "海南毓坤有限公司"
"金额" = ["3万元"]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('type = "money"', 'type = "monney"', 9, "field 金额, type"),
        ('type = "money"', 'typ = "money"', 9, "is no key of a template"),
        ('name = "甲方"', "", 3, "name: is missing"),
        ('name = "金额"', 'name = "甲方"', 8, "'甲方' is defined twice"),
        ('"金额" = ["3万元"]', '"数量" = "3"', 17, "sample 1 has a value for '数量'"),
        ("[samples.fields]", '[samples.spans]\n"数量" = [[0, 1]]\n[samples.fields]', 16, "'数量'"),
        ("[samples.fields]", 'records = [{ "数量" = "3" }]\n[samples.fields]', 15, "'数量'"),
        ('aliases = ["合同金额"]', "aliases = 5", 10, "aliases"),
        ("[[samples]]", "[[samples]", 12, "is not TOML"),
        ('text = "', 'document = "a.txt"\ntext = "', 12, "one of the two"),
        ('type = "money"', 'type = "pattern"\npattern = "("', 10, "is no regular expression"),
        ('type = "money"', 'type = "enum"', 7, "has type enum and no choices"),
    ],
)
def test_an_error_names_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int | None, what: str
) -> None:
    file = tmp_path / "t.toml"
    file.write_text(GOOD.replace(old, new, 1), "utf-8")
    with pytest.raises(TemplateError) as caught:
        load_template(file)
    where = f"{file}:{line}: " if line else f"{file}: "
    assert caught.value.message.startswith(where)
    assert what in caught.value.message


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD, "utf-8")
    template = load_template(tmp_path / "a.toml")
    dumped = json.dumps(template.model_dump(mode="json", exclude_defaults=True), indent=1)
    (tmp_path / "b.json").write_text(dumped, "utf-8")
    assert load_template(tmp_path / "b.json") == template
    with pytest.raises(TemplateError, match="was read before"):
        load_templates(tmp_path)


def test_a_line_of_json_is_found_too(tmp_path: Path) -> None:
    content = {"name": "a", "fields": [{"name": "x"}, {"name": "y", "type": "monney"}]}
    file = tmp_path / "a.json"
    file.write_text(json.dumps(content, indent=1), "utf-8")
    with pytest.raises(TemplateError, match=r"a\.json:9: field y, type"):
        load_template(file)


def test_an_empty_folder_holds_no_template(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no template here"):
        load_templates(tmp_path)


def test_samples_may_lie_beside_their_template(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD, "utf-8")
    (tmp_path / "t.samples.jsonl").write_text(
        '{"text": "甲方：乙", "fields": {"甲方": "乙"}}\n', "utf-8"
    )
    assert [s.values_of("甲方") for s in load_template(tmp_path / "t.toml").samples] == [
        ("海南毓坤有限公司",), ("乙",)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"text": "甲方：乙", "fields": {"甲方": 5}}', "fields, 甲方"),
        ('{"text": "甲方：乙", "field": {}}', "field: is no key of a template"),
        ('{"fields": {}}', "one of the two"),
        ('{"text": "甲方：乙", "fields": {"数量": "乙"}}', "a value for '数量', which is no field"),
        ('{"text": "甲方：乙", "spans": {"甲方": [3, 4]}}', "spans, 甲方"),
        ('{"text": "甲方：乙", "spans": {"甲方": 3}}', "spans, 甲方"),
        ('{"text": ', "is not JSON"),
        ("[]", "an object with keys is needed"),
    ],
)
def test_a_sample_that_cannot_be_used_is_named_by_its_line(
    tmp_path: Path, line: str, what: str
) -> None:
    (tmp_path / "t.toml").write_text(GOOD, "utf-8")
    # A line separator inside a text ends no line.
    good = json.dumps({"text": "甲方：乙\u2028丙\x85丁", "fields": {}}, ensure_ascii=False)
    beside = tmp_path / "t.samples.jsonl"
    beside.write_text(f"{good}\n\n{line}\n", "utf-8")
    with pytest.raises(TemplateError) as caught:
        load_template(tmp_path / "t.toml")
    assert caught.value.message.startswith(f"{beside}:3: ")
    assert what in caught.value.message
    beside.write_text(f"{good}\n", "utf-8")
    assert load_template(tmp_path / "t.toml").samples[1].text == "甲方：乙\u2028丙\x85丁"


@pytest.mark.parametrize(
    ("given", "line", "what", "hint"),
    [
        (
            '"金额" = 5',
            17,
            "金额: is a number, where a text or a list of texts is needed: 5",
            '"5"',
        ),
        ('"金额" = true', 17, "金额: is true or false, where a text or", '"true"'),
        ('"金额" = 2023-05-01', 17, "金额: is a date or time, where a text", '"2023-05-01"'),
        ('"金额" = ["3", 5]', 17, "金额 2: is a number, where a text is needed: 5", '"5"'),
        ('"金额" = {a = "3"}', 17, "金额: is an object, where a text or a list", "`records`"),
    ],
)
def test_a_value_that_is_no_text_is_named_with_the_next_step(
    tmp_path: Path, given: str, line: int, what: str, hint: str
) -> None:
    file = tmp_path / "t.toml"
    file.write_text(GOOD.replace('"金额" = ["3万元"]', given), "utf-8")
    with pytest.raises(TemplateError) as caught:
        load_template(file)
    assert caught.value.message.startswith(f"{file}:{line}: sample 1, fields, {what}")
    assert hint in str(caught.value.hint)
    (tmp_path / "u.toml").write_text(GOOD, "utf-8")
    lines = '{"text": "3", "records": [{"金额": 5}]}', '{"text": "3", "fields": {"金额": 5.5}}'
    for sample, quoted in zip(lines, ('"5"', '"5.5"'), strict=True):
        (tmp_path / "u.samples.jsonl").write_text(sample, "utf-8")
        with pytest.raises(TemplateError, match="金额: is a number, where a text") as caught:
            load_template(tmp_path / "u.toml")
        assert quoted in str(caught.value.hint)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD, "utf-8")
    template = load_template(tmp_path / "t.toml")
    (tmp_path / "t.toml").write_text(GOOD, "utf-8-sig")
    assert load_template(tmp_path / "t.toml") == template
    dumped = json.dumps(template.model_dump(mode="json", exclude_defaults=True))
    (tmp_path / "u.json").write_text(dumped, "utf-8-sig")
    (tmp_path / "u.samples.jsonl").write_text('{"text": "甲方：乙", "fields": {}}\n', "utf-8-sig")
    assert len(load_template(tmp_path / "u.json").samples) == 2


def test_samples_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(GOOD, "utf-8")
    (tmp_path / "t.samples.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateError, match=r"t\.samples\.jsonl: cannot be read"):
        load_template(tmp_path / "t.toml")


def test_a_draft_is_a_template_whose_values_are_in_its_sample(tmp_path: Path) -> None:
    text = (
        "项目名称：赣州发电项目\n招标人：赣州市水务集团有限公司 联系人：唐振\n"
        "中标价：2.5418亿元；工期：90天。"
    )
    (tmp_path / "s.txt").write_text(text, "utf-8")
    (tmp_path / "d.toml").write_text(draft_template(features_of(text), "中标", "s.txt"), "utf-8")
    template = load_template(tmp_path / "d.toml")
    assert {f.name: f.type for f in template.fields} == {
        "项目名称": "text", "招标人": "organisation", "中标价": "money", "工期": "period"
    }  # fmt: skip
    assert all(v in text for f in template.fields for v in template.samples[0].values_of(f.name))


def test_samples_come_from_a_database_table(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE samples (document, field, value)")
        db.executemany(
            "INSERT INTO samples VALUES (?, ?, ?)",
            [
                ("a", "甲方", "x"),
                ("a", "甲方", "y"),
                ("b", "乙方", "z"),
                ("b", "甲方", None),
                ("c", "甲方", ""),
                ("c", "甲方", " "),
                ("c", "甲方", None),
            ],
        )
    samples = import_table(str(file), "samples")
    assert [(s.document, dict(s.fields)) for s in samples] == [
        ("a", {"甲方": ("x", "y")}), ("b", {"乙方": ("z",), "甲方": ()}), ("c", {"甲方": ()})
    ]  # fmt: skip
    with pytest.raises(TemplateError, match="no such table"):
        import_table(str(file), "others")
    with pytest.raises(TemplateError, match="is no name of a table"):
        import_table(str(file), "a; DROP TABLE samples")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((None, "甲方", "x"), "has no document"),
        (("a", None, "x"), "has no field"),
        (("", "甲方", "x"), "has no document"),
        (("a", "甲方", b"x"), "the value of 甲方 in a is bytes"),
    ],
)
def test_a_row_of_a_table_that_is_no_value_of_a_document_is_named(
    tmp_path: Path, row: tuple[object, ...], what: str
) -> None:
    file = tmp_path / "samples.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE samples (document TEXT, field TEXT, value BLOB)")
        db.execute("INSERT INTO samples VALUES (?, ?, ?)", row)
        db.commit()
    with pytest.raises(TemplateError, match=what) as caught:
        import_table(str(file), "samples")
    assert caught.value.message.startswith(f"{file}: table samples: ")


@pytest.mark.parametrize("rows", [["x", None], ["", "x"]])
def test_a_field_with_a_value_and_without_one_is_named(
    tmp_path: Path, rows: list[str | None]
) -> None:
    file = tmp_path / "samples.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE samples (document, field, value)")
        db.executemany("INSERT INTO samples VALUES ('a', '甲方', ?)", [(value,) for value in rows])
    with pytest.raises(TemplateError, match="甲方 in a has a value, and an empty one"):
        import_table(str(file), "samples")


def test_our_own_templates_load_and_name_documents_that_are_there() -> None:
    folder = Path(__file__).parents[2] / "data" / "templates"
    templates = load_templates(folder)
    assert len(templates) == 12
    for template in templates:
        assert template.samples
        assert all((folder / str(sample.document)).is_file() for sample in template.samples)
