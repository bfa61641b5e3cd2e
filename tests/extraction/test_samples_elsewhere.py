"""Samples that lie in databases and other tools' exports, and results for other tools to read."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from waiting import HANG_S

from featpipe import Extractor
from featpipe.cli.main import featpipe
from featpipe.errors import MissingExtra, TemplateError
from featpipe.extraction.results_file import write_extractions
from featpipe.extraction.samples import import_table
from featpipe.extraction.template_file import load_template

ROWS = [("a.txt", "甲方", "某甲公司"), ("a.txt", "甲方", "某乙公司"), ("b.txt", "金额", "3万元")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "s.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE samples (document, field, value)")
        db.executemany("INSERT INTO samples VALUES (?, ?, ?)", ROWS)
    return file


def test_any_sqlalchemy_url_gives_the_same_samples_as_the_file(database: Path) -> None:
    pytest.importorskip("sqlalchemy")
    by_url = import_table(f"sqlite:///{database}", "samples")
    assert by_url == import_table(str(database), "samples")
    assert [(s.document, dict(s.fields)) for s in by_url] == [
        ("a.txt", {"甲方": ("某甲公司", "某乙公司")}), ("b.txt", {"金额": ("3万元",)})
    ]  # fmt: skip


@pytest.mark.parametrize("table", ["others", "main.others"])
def test_a_table_that_is_not_there_is_named_by_url_too(database: Path, table: str) -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(TemplateError, match="no such table") as caught:
        import_table(f"sqlite:///{database}", table)
    assert str(database) in caught.value.message


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite+pysqlite"])
def test_a_misspelled_file_of_a_url_is_named_and_not_made(tmp_path: Path, scheme: str) -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(TemplateError, match="no such database"):
        import_table(f"{scheme}:///{tmp_path / 'typo.db'}", "samples")
    assert not list(tmp_path.iterdir())


def test_a_url_that_means_nothing_is_named(database: Path) -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(TemplateError, match="nonsense://"):
        import_table(f"nonsense://{database}", "samples")


def test_a_password_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    with pytest.raises(TemplateError) as caught:
        import_table(f"sqlite://me:secret@/{tmp_path / 'none' / 'x.db'}", "samples")
    assert "secret" not in str(caught.value)


def test_without_sqlalchemy_a_url_says_what_to_install(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtra, match="needs sqlalchemy") as caught:
        import_table(f"sqlite:///{database}", "samples")
    assert "featpipe[sql]" in str(caught.value.hint)
    assert import_table(str(database), "samples")


def test_an_imported_table_becomes_a_template_by_the_command(
    database: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(
        featpipe, ["template", "import", str(database), "--from", "table", "--table", "samples"]
    )
    (tmp_path / "t.samples.jsonl").write_text(result.stdout, "utf-8")
    (tmp_path / "t.toml").write_text(
        'name = "t"\n[[fields]]\nname = "甲方"\n[[fields]]\nname = "金额"\n', "utf-8"
    )
    template = load_template(tmp_path / "t.toml")
    assert [s.values_of("甲方") for s in template.samples] == [("某甲公司", "某乙公司"), ()]


def test_a_sample_with_spans_teaches_exactly_those(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    texts = [
        f"甲方：{n}有限公司。{n}有限公司是乙方。" for n in ("海南毓坤", "包头华信", "株洲恒峰")
    ]
    rows = [{"text": text, "label": [[3, 11, "甲方"]]} for text in texts]
    file.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    out = CliRunner().invoke(featpipe, ["template", "import", str(file), "--from", "doccano"])
    (tmp_path / "t.samples.jsonl").write_text(out.stdout, "utf-8")
    (tmp_path / "t.toml").write_text('name = "t"\n[[fields]]\nname = "甲方"\n', "utf-8")
    with Extractor(tmp_path / "t.toml", cache) as extractor:
        value = extractor.extract("甲方：柳州景信有限公司。柳州景信有限公司是乙方。").fields["甲方"]
    assert (value.values[0].start, value.value) == (3, "柳州景信有限公司")


def test_parquet_holds_what_csv_and_jsonl_hold(
    cache: Path, templates: Path, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import csv

    with Extractor(templates / "lease.toml", cache) as extractor:
        found = [extractor.extract(f"contracts/lease_{n}") for n in ("shop.txt", "office.md")]
    for suffix in (".parquet", ".csv", ".jsonl"):
        assert write_extractions(found, tmp_path / f"o{suffix}").n_extractions == 2
    rows = parquet.read_table(tmp_path / "o.parquet").to_pylist()
    flat = [value for line in (tmp_path / "o.jsonl").read_text("utf-8").splitlines()
            for values in json.loads(line)["fields"].values() for value in values]  # fmt: skip
    with (tmp_path / "o.csv").open(encoding="utf-8-sig", newline="") as file:
        listed = list(csv.DictReader(file))
    assert len(rows) == len(flat) == len(listed) > 10
    for row, value, line in zip(rows, flat, listed, strict=True):
        assert (row["text"], row["start"], row["end"]) == (
            value["text"], value["start"], value["end"],
        )  # fmt: skip
        assert {name: "" if v is None else str(v) for name, v in row.items()} == line


def test_parquet_of_nothing_has_its_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_extractions([], tmp_path / "none.parquet").n_extractions == 0
    assert "probability" in parquet.read_table(tmp_path / "none.parquet").column_names


def test_without_pyarrow_parquet_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="needs pyarrow"):
        write_extractions([], tmp_path / "o.parquet")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('name = "t"\n[[fields]]\nname = "f"\ntype = "monney"\n', "t.toml:4: field f, type"),
        ('name = "t"\n[[fields]]\nname = "f"\n[[samples]\n', "t.toml:4: is not TOML"),
        ("name = ", "t.toml:1: is not TOML"),
        ('name = "t"\n', "fields: is missing"),
    ],
)  # fmt: skip
def test_the_command_names_file_line_and_field(
    cache: Path, tmp_path: Path, text: str, where: str
) -> None:
    import subprocess

    (tmp_path / "t.toml").write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "featpipe", "template", "check", str(tmp_path / "t.toml"),
         "--cache", str(cache)],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 2
    assert where in done.stderr
    assert "Traceback" not in done.stderr
