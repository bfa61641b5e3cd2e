"""Imports: samples that people labelled elsewhere: doccano, Label Studio, database tables.

Each gives :class:`SampleSpec` values with inline texts and exact spans, to be put into a template
or written as ``name.samples.jsonl`` beside it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featpipe.errors import MissingExtra, TemplateError
from featpipe.templates.model import SampleSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Columns a table of samples has: which document, which field, which value.
TABLE_COLUMNS = ("document", "field", "value")


def import_doccano(path: str | Path) -> list[SampleSpec]:
    """A doccano JSONL export of sequence labelling, old (``label``) or new (``entities``).

    Raises:
        TemplateError: a line that is no such export.

    """
    path = Path(path)
    samples = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            labels = row.get("label", row.get("labels"))
            spans = (
                [(e["start_offset"], e["end_offset"], e["label"]) for e in row["entities"]]
                if labels is None
                else [(a, b, name) for a, b, name in labels]
            )
            samples.append(_sample(row.get("text", row.get("data")), spans))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TemplateError(f"{path}:{number}: is no doccano export: {error!r}") from error
    return samples


def import_label_studio(path: str | Path) -> list[SampleSpec]:
    """A Label Studio JSON export with text spans; the first annotation of a task counts.

    Raises:
        TemplateError: not such an export.

    """
    path = Path(path)
    try:
        return [_label_studio_task(task) for task in _tasks_of(path.read_text("utf-8"))]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TemplateError(f"{path}: is no Label Studio export: {error!r}") from error


def _tasks_of(text: str) -> list[dict[str, Any]]:
    tasks = json.loads(text)
    if not isinstance(tasks, list):
        raise TypeError("not a list of tasks")
    return tasks


def _label_studio_task(task: dict[str, Any]) -> SampleSpec:
    data = task["data"]
    texts = [value for value in data.values() if isinstance(value, str)]
    text = data["text"] if "text" in data else texts[0]
    annotations = task.get("annotations") or task.get("completions") or [{"result": []}]
    spans = [
        (r["value"]["start"], r["value"]["end"], r["value"]["labels"][0])
        for r in annotations[0]["result"]
        if "labels" in r.get("value", {})
    ]
    return _sample(text, spans)


def _sample(text: str, labelled: Iterable[tuple[int, int, str]]) -> SampleSpec:
    fields: dict[str, list[str]] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end, name in labelled:
        if not 0 <= start < end <= len(text):
            raise ValueError(f"span {start}:{end} is not inside its text")
        spans.setdefault(name, []).append((start, end))
        if text[start:end] not in fields.setdefault(name, []):
            fields[name].append(text[start:end])
    return SampleSpec(
        text=text,
        fields={name: tuple(values) for name, values in fields.items()},
        spans={name: tuple(places) for name, places in spans.items()},
    )


def import_table(source: str, table: str) -> list[SampleSpec]:
    """Samples from a database table with the columns document, field and value.

    Args:
        source: path of an SQLite file, or any SQLAlchemy URL (needs sqlalchemy).
        table: its name.

    Raises:
        TemplateError: no such table or columns.
        MissingExtra: a URL without sqlalchemy.

    """
    if not table.replace("_", "").replace(".", "").isalnum():
        raise TemplateError(f"{source}: {table!r} is no name of a table")
    query = f"SELECT {', '.join(TABLE_COLUMNS)} FROM {table} ORDER BY document"  # noqa: S608  # the name was checked above
    by_document: dict[str, dict[str, list[str]]] = {}
    for document, field, value in _rows(source, query):
        by_document.setdefault(str(document), {}).setdefault(str(field), []).append(str(value))
    return [
        SampleSpec(
            document=document, fields={name: tuple(values) for name, values in fields.items()}
        )
        for document, fields in by_document.items()
    ]


def _rows(source: str, query: str) -> Iterator[tuple[Any, ...]]:
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


def _rows_by_url(url: str, query: str) -> Iterator[tuple[Any, ...]]:
    try:
        import sqlalchemy
    except ImportError as error:
        raise MissingExtra(
            f"{_without_password(url)}: needs sqlalchemy", hint="pip install 'featpipe[sql]'"
        ) from error
    try:
        engine = sqlalchemy.create_engine(url)
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


def _without_password(url: str) -> str:
    """``scheme://user:***@host``: an error may end up in a log."""
    return re.sub(r"(?<=://)([^:/@]*):[^@/]*@", r"\1:***@", url)


def render_samples(samples: Iterable[SampleSpec]) -> str:
    """JSON Lines, as ``name.samples.jsonl`` beside a template."""
    dumped = (sample.model_dump(mode="json", exclude_defaults=True) for sample in samples)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in dumped)
