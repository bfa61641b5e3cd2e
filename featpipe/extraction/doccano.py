"""doccano's JSON Lines of sequence labelling.

Written: ``{"id", "text", "label": [[start, end, name]], "featpipe": origin}``; doccano keeps keys
that it does not know as metadata, and writes them back. Read: ``label`` or ``labels``, and
``entities`` (projects with relations); offsets count code points. doccano does not tell a text
without a value from one that nobody looked at: choose "only approved documents" in its export.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from featpipe.errors import TemplateError
from featpipe.extraction.labels import (
    ORIGIN,
    LabelFile,
    LabelledText,
    Mark,
    Origin,
    check_text,
    read_label_file,
    read_marks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.extraction.labels import SampleText

    Json = dict[str, Any]  # Any: the values of a JSON object

_LISTS = ("label", "labels", "entities", "annotations")


def read_doccano(path: str | Path) -> LabelFile:
    """The texts of an export; lines that cannot be used are left out, each with its reason.

    Raises:
        TemplateError: it cannot be read, or no line of it is one of an export.

    """
    file = LabelFile()
    # Only "\n" ends a line of JSON Lines: texts may hold other line ends, such as U+2028.
    for number, line in enumerate(read_label_file(path).split("\n"), start=1):
        if line.strip():
            where = f"line {number}"
            try:
                file.texts.append(_read_row(where, json.loads(line), file))
            except (ValueError, RecursionError) as error:
                file.leave_out(where, _reason(error))
    if not file.texts and file.left_out:
        first = file.left_out[0]
        raise TemplateError(f"{path}: is no doccano export: {first.where}: {first.reason}")
    return file


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not whole JSON: {error.msg}"
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read_row(where: str, row: object, file: LabelFile) -> LabelledText:
    if not isinstance(row, dict):
        raise ValueError("it is no object with a text and labels")  # noqa: TRY004  # a fault of the file
    lists = [row[key] for key in _LISTS if row.get(key) is not None]
    if not lists or not all(isinstance(one, list) for one in lists):
        raise ValueError("it has no list of labels")
    marks = [_mark(given) for labels in lists for given in labels]
    text = check_text(row.get("text", row.get("data")))
    base = LabelledText(where, text, origin=Origin.read(row.get(ORIGIN), text))
    if row.get("relations"):
        file.leave_out(where, "its relations are no values of fields")
    return read_marks(base, marks, file)


def _mark(given: object) -> Mark:
    if isinstance(given, list) and len(given) == 3:
        return Mark(*given)
    if isinstance(given, dict) and {"start_offset", "end_offset", "label"} <= given.keys():
        return Mark(given["start_offset"], given["end_offset"], given["label"])
    return Mark(None, None, None, f"{str(given)[:60]!r} is no label of a part of a text")


def write_doccano(samples: Iterable[SampleText], names: Sequence[str]) -> str:
    """One line per sample, for doccano to import; ``names`` are the fields of the template."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(samples, names))


def _rows(samples: Iterable[SampleText], names: Sequence[str]) -> Iterator[Json]:
    for number, one in enumerate(samples, start=1):
        origin = Origin.of(one, names).model_dump_json()
        yield {"id": number, "text": one.text, "label": one.marks(), ORIGIN: origin}
