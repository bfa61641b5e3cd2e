"""Samples: drafted from a document, or imported from a database table; as JSON Lines.

A table of values tells of each document only the fields that it has rows for. Files of labelling
tools are in :mod:`featpipe.extraction.labels`.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featpipe.errors import MissingExtra, TemplateError
from featpipe.extraction.scoring.locate import infer_type
from featpipe.extraction.template import SampleSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import URL

    from featpipe.extraction.scoring.features import PageFeatures

    Row = tuple[Any, ...]  # Any: whatever the columns of a database hold

#: ``label：value`` at the start of a line or behind a stop; a label is short and has no marks.
_labelled = re.compile(
    r"(?:^|[\n\t。；;])\s*(?:[（(]?[一二三四五六七八九十\d]{1,3}[)）、.．]\s*)?"
    r"(?P<label>[A-Za-z\u4e00-\u9fff][\w\u4e00-\u9fff（）() ]{1,15}?)"
    r"\s*[:：]\s*(?P<value>[^\n\t；;。]{1,120})"
)
_MOST_FIELDS = 40


def draft_fields(features: PageFeatures) -> dict[str, list[str]]:
    """Field name -> its values, in the order of the document.

    Labels before a colon and headers of table columns become fields.
    """
    text = features.page.text
    found: dict[str, list[str]] = {}
    for match in _labelled.finditer(text):
        label, value = match["label"].strip(), _first_part(match["value"])
        if value and len(found) < _MOST_FIELDS:
            found.setdefault(label, []).append(value)
    for cell in features.page.headers:
        value = text[cell.start : cell.end].strip()
        if value and len(cell.label) <= 20 and (cell.label in found or len(found) < _MOST_FIELDS):
            found.setdefault(cell.label, []).append(value)
    return {label: list(dict.fromkeys(values)) for label, values in found.items()}


def _first_part(value: str) -> str:
    """Up to the next label of the same line: ``证券代码：009990 证券简称：铭坤轨道``."""
    cut = re.split(r"\s+\S{2,8}[:：]", value, maxsplit=1)[0]
    return cut.strip(" ，,、")


def draft_template(features: PageFeatures, name: str, document: str) -> str:
    """A first template in TOML, with one sample and a type for every field.

    Raises:
        TemplateError: the document has no labels and no tables to make fields of.

    """
    fields = draft_fields(features)
    if not fields:
        raise TemplateError(
            f"{document}: no labels such as `name: value` and no tables to make fields of",
            hint="draft from another sample, or name the fields by hand",
        )
    lines = [f"name = {_quoted(name)}", ""]
    for label, values in fields.items():
        kind = infer_type([(features, value) for value in values])
        lines += ["[[fields]]", f"name = {_quoted(label)}", f"type = {_quoted(kind)}"]
        lines += ['cardinality = "many"'] if len(values) > 1 else []
        lines.append("")
    return "\n".join([*lines, ""]) + render_sample(document, fields)


def render_sample(document: str, fields: Mapping[str, Sequence[str]]) -> str:
    """One sample in TOML."""
    lines = ["[[samples]]", f"document = {_quoted(document)}", "", "[samples.fields]"]
    for label, values in fields.items():
        given = _quoted(values[0]) if len(values) == 1 else json.dumps(values, ensure_ascii=False)
        lines.append(f"{_quoted(label)} = {given}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


#: Columns a table of samples has: which document, which field, which value.
TABLE_COLUMNS = ("document", "field", "value")


def import_table(source: str, table: str) -> list[SampleSpec]:
    """Samples from a database table with the columns document, field and value.

    Args:
        source: path of an SQLite file, or any SQLAlchemy URL (needs sqlalchemy).
        table: its name. A row whose value is NULL or empty states that its document has none.

    Raises:
        TemplateError: no such table or columns, a row without a document or field, bytes, or a
            field that has both a value and none.
        MissingExtra: a URL without sqlalchemy.

    """
    if not table.replace("_", "").replace(".", "").isalnum():
        raise TemplateError(f"{source}: {table!r} is no name of a table")
    query = f"SELECT {', '.join(TABLE_COLUMNS)} FROM {table} ORDER BY document"  # noqa: S608  # the name was checked above
    by_document: dict[str, dict[str, list[str]]] = {}
    none: set[tuple[object, object]] = set()
    shown = _without_password(source)
    for document, field, value in _rows(source, query):
        if _is_empty(document) or _is_empty(field):
            gone = "document" if _is_empty(document) else "field"
            raise TemplateError(
                f"{shown}: table {table}: the row of document {document!r}, field {field!r} and "
                f"value {value!r} has no {gone}",
                hint="an empty value states that a document has none; the other two are needed",
            )
        if isinstance(value, bytes | memoryview):
            raise TemplateError(
                f"{shown}: table {table}: the value of {field} in {document} is bytes, not a text",
                hint="store it as a text",
            )
        values = by_document.setdefault(str(document), {}).setdefault(str(field), [])
        is_none = _is_empty(value)
        if values if is_none else (document, field) in none:
            raise TemplateError(
                f"{shown}: table {table}: {field} in {document} has a value, and an empty one, "
                "which states that it has none",
                hint="remove the row that is wrong",
            )
        none |= {(document, field)} if is_none else set()
        values += [] if is_none else [str(value)]
    return [
        SampleSpec(
            document=document, fields={name: tuple(values) for name, values in fields.items()}
        )
        for document, fields in by_document.items()
    ]


def _is_empty(cell: object) -> bool:
    """NULL, or "" as imports of CSV write it."""
    return cell is None or not str(cell).strip()


def _rows(source: str, query: str) -> Iterator[Row]:
    if "://" in source:
        yield from _rows_by_url(source, query)
        return
    if not Path(source).is_file():
        raise TemplateError(f"{source}: no such database")
    try:
        with closing(
            sqlite3.connect(f"{Path(source).absolute().as_uri()}?mode=ro", uri=True)
        ) as db:
            yield from db.execute(query)
    except sqlite3.Error as error:
        raise TemplateError(f"{source}: {error}") from error


def _rows_by_url(url: str, query: str) -> Iterator[Row]:
    try:
        import sqlalchemy
    except ImportError as error:
        raise MissingExtra(
            f"{_without_password(url)}: needs sqlalchemy", hint="pip install 'featpipe[sql]'"
        ) from error
    try:
        engine = sqlalchemy.create_engine(url)
        _check_file(engine.url)
        try:
            with engine.connect() as connection:
                for row in connection.execute(sqlalchemy.text(query)):
                    yield tuple(row)
        finally:
            engine.dispose()
    except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:  # ImportError: of a driver
        # Without the cause: its message may repeat the password.
        message = str(error).replace(url, _without_password(url))
        raise TemplateError(f"{_without_password(url)}: {message}") from None


def _check_file(url: URL) -> None:
    """SQLite would make the file of a misspelled name."""
    name = url.database
    if url.get_backend_name() != "sqlite" or "uri" in url.query or name in {None, "", ":memory:"}:
        return
    if not Path(str(name)).is_file():
        raise TemplateError(f"{_without_password(str(url))}: no such database: {name}")


def _without_password(url: str) -> str:
    """``scheme://user:***@host``: an error may end up in a log."""
    return re.sub(r"(?<=://)([^:/@]*):[^@/]*@", r"\1:***@", url)


def render_samples(samples: Iterable[SampleSpec]) -> str:
    """JSON Lines, as ``name.samples.jsonl`` beside a template."""
    dumped = (sample.model_dump(mode="json", exclude_defaults=True) for sample in samples)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in dumped)
