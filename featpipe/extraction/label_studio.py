"""Label Studio's JSON: a list of tasks with annotations.

Written: tasks whose ``data`` hold the text and, under ``featpipe``, their origin; one annotation
each, with a region per value, and a choice ``none`` that lists the fields without a value
(:func:`labelling_config` has the controls). Read: annotations, not predictions or drafts, which
nobody confirmed; cancelled ones are left out; ground truth wins over others; what annotators
differ on is unknown. Offsets count code points; those of old versions, which count UTF-16 units,
are told by the text of their region.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from featpipe.errors import TemplateError
from featpipe.extraction.labels import (
    ORIGIN,
    LabelFile,
    LabelledText,
    Mark,
    Origin,
    agreed,
    check_text,
    is_name,
    is_offset,
    read_label_file,
    read_marks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from featpipe.extraction.labels import SampleText
    from featpipe.extraction.template import Template

    Json = dict[str, Any]  # Any: the values of a JSON object

#: Names of the controls in the labelling configuration.
_LABEL, _TEXT, _NONE = "label", "text", "none"

_BEGIN = re.compile(r"\s*\[\s*")
_BETWEEN = re.compile(r"\s*,?\s*")
#: Layout is lost in the texts of regions, whose line ends may be written as two characters.
_LAYOUT = re.compile(r"\\[nrt]|\s+")


def read_label_studio(path: str | Path) -> LabelFile:
    """The texts of an export; what cannot be used is left out, each with its reason.

    Of a file that breaks off, the whole tasks before the break are read.

    Raises:
        TemplateError: it cannot be read, or nothing in it is a task of an export.

    """
    file = LabelFile()
    n_tasks = 0
    for number, task in enumerate(_tasks(read_label_file(path), path, file), start=1):
        try:
            where, text, origin = _head(task, number)
        except ValueError as error:
            file.leave_out(_name(task, number), error)
            continue
        n_tasks += 1
        found = _annotated(LabelledText(where, text, origin=origin), task, file)
        file.texts += [agreed(found, file)] if found else []
    if not n_tasks and file.left_out:
        first = file.left_out[0]
        raise TemplateError(f"{path}: is no Label Studio export: {first.where}: {first.reason}")
    return file


def _tasks(text: str, path: str | Path, file: LabelFile) -> Iterator[Any]:  # Any: JSON
    """The tasks of a list, up to where it breaks off."""
    decoder = json.JSONDecoder()
    start = _BEGIN.match(text)
    if start is None:
        raise TemplateError(f"{path}: is no Label Studio export: it is no list of tasks")
    at, number = start.end(), 1
    while not text.startswith("]", at):
        try:
            task, at = decoder.raw_decode(text, at)
            # Half a file may end behind a whole task.
            between = _BETWEEN.match(text, at)
            at = between.end() if between else at
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            reason = "it is nested too deeply" if deep else "the file breaks off or is damaged here"
            file.leave_out(f"task number {number}", f"{reason}, and nothing behind it is read")
            return
        yield task
        number += 1
    if text[at + 1 :].strip():
        file.leave_out("end of the file", "what stands behind the list of tasks is not read")


def _name(task: object, number: int) -> str:
    given = task.get("id") if isinstance(task, dict) else None
    return f"task {given}" if isinstance(given, int | str) else f"task number {number}"


def _head(task: object, number: int) -> tuple[str, str, Origin | None]:
    """Name, text and origin of a task.

    Raises:
        ValueError: it has no text that can be used.

    """
    if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
        raise ValueError("it has no data: export as JSON, not JSON-MIN")  # noqa: TRY004  # a fault of the file
    data = task["data"]
    texts = [one for key, one in data.items() if isinstance(one, str) and key != ORIGIN]
    text = check_text(data.get("text", texts[0] if texts else None))
    return _name(task, number), text, Origin.read(data.get(ORIGIN), text)


def _annotated(base: LabelledText, task: Json, file: LabelFile) -> list[LabelledText]:
    """The text as each annotator labelled it."""
    given = task.get("annotations", task.get("completions"))
    annotations = [one for one in given if _is_usable(one)] if isinstance(given, list) else []
    for one in given if isinstance(given, list) else ():
        if not _is_usable(one):
            file.leave_out(base.where, f"{_called(one)} was cancelled, or holds no results")
    if not given:
        file.leave_out(base.where, "it has no annotation; predictions and drafts are not taken")
    truth = [one for one in annotations if one.get("ground_truth") is True]
    for one in annotations if truth else ():
        if one not in truth:
            file.leave_out(base.where, f"{_called(one)} gives way to the ground truth")
    chosen = truth or annotations
    several = len(chosen) > 1
    return [
        _read_results(
            replace(base, where=f"{base.where}, {_called(one)}" if several else base.where),
            one["result"],
            file,
        )
        for one in chosen
    ]


def _called(annotation: object) -> str:
    given = annotation.get("id") if isinstance(annotation, dict) else None
    return f"annotation {given}" if given is not None else "an annotation"


def _is_usable(annotation: object) -> bool:
    if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
        return False
    return not (annotation.get("was_cancelled") or annotation.get("skipped"))


def _read_results(base: LabelledText, results: Sequence[object], file: LabelFile) -> LabelledText:
    marks: list[Mark] = []
    none: set[str] = set()
    for given in results:
        result = given if isinstance(given, dict) else {}
        value = result.get("value")
        value = value if isinstance(value, dict) else {}
        labels, choices = value.get("labels"), value.get("choices")
        if isinstance(labels, list) and labels and "start" in value:
            marks += _marks(value, base.text)
        elif isinstance(choices, list) and result.get("from_name") == _NONE:
            none |= {name for name in choices if is_name(name)}
        else:
            kind = result.get("type")
            file.leave_out(base.where, f"a result of the type {kind!r} is no labelled part of it")
    return read_marks(replace(base, none=frozenset(none)), marks, file)


def _marks(value: Json, text: str) -> list[Mark]:
    """One mark per label of a region."""
    start, end, there = value.get("start"), value.get("end"), value.get("text")
    fault = ""
    if is_offset(start) and is_offset(end) and isinstance(there, str):
        found = _place_of(there, text, start, end)
        fault = f"at {start}:{end} stands {text[start:end][:40]!r}, not {there[:40]!r}"
        start, end, fault = (*found, "") if found else (start, end, fault)
    return [Mark(start, end, name, fault) for name in value["labels"]]


def _place_of(there: str, text: str, start: int, end: int) -> tuple[int, int] | None:
    """Where a region stands, in code points; None where its text is not."""
    if _same(text[start:end], there):
        return start, end
    wide = text.encode("utf-16-le")
    parts = (wide[: 2 * start], wide[2 * start : 2 * end])
    before, inside = (part.decode("utf-16-le", "replace") for part in parts)
    return (len(before), len(before) + len(inside)) if _same(inside, there) else None


def _same(one: str, other: str) -> bool:
    return one == other or _LAYOUT.sub("", one) == _LAYOUT.sub("", other) != ""


def write_label_studio(samples: Iterable[SampleText], names: Sequence[str]) -> str:
    """A list of annotated tasks, one per sample; ``names`` are the fields of the template."""
    tasks = [_task(number, one, names) for number, one in enumerate(samples, start=1)]
    return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in tasks) + "\n]\n"


def _task(number: int, one: SampleText, names: Sequence[str]) -> Json:
    sample = one.sample
    none = [name for name in names if sample.is_read_for(name) and not sample.values_of(name)]
    none = [name for name in none if name not in one.places]
    control = {"to_name": _TEXT, "origin": "manual"}
    result: list[Json] = [
        control
        | {"id": f"v{place}", "from_name": _LABEL, "type": "labels"}
        | {"value": {"start": a, "end": b, "text": one.text[a:b], "labels": [name]}}
        for place, (a, b, name) in enumerate(one.marks(), start=1)
    ]
    if none:
        told = {"id": "none", "from_name": _NONE, "type": "choices", "value": {"choices": none}}
        result.append(control | told)
    origin = Origin.of(one, names, none).model_dump_json()
    return {
        "id": number,
        "data": {"text": one.text, ORIGIN: origin},
        "annotations": [{"result": result, "was_cancelled": False, "ground_truth": False}],
        "predictions": [],
    }


def labelling_config(template: Template) -> str:
    """The labelling configuration of a project for a template."""
    names = [quoteattr(spec.name) for spec in template.fields]
    return "\n".join(
        (
            "<View>",
            "  <Style>.htx-text { white-space: pre-wrap; }</Style>",
            f'  <Labels name="{_LABEL}" toName="{_TEXT}">',
            *(f"    <Label value={name}/>" for name in names),
            "  </Labels>",
            f'  <Text name="{_TEXT}" value="$text"/>',
            '  <Header value="Not in this document:"/>',
            f'  <Choices name="{_NONE}" toName="{_TEXT}" choice="multiple" showInline="true">',
            *(f"    <Choice value={name}/>" for name in names),
            "  </Choices>",
            "</View>\n",
        )
    )
