"""Files of templates: TOML or JSON, with the samples and the corrections that lie beside them.

A file or a folder is read; errors name the file, the line and the field. Samples may also be in a
JSON Lines file beside the template (``loan.toml`` and ``loan.samples.jsonl``). What reviewers said
and accepted is in ``loan.corrections.jsonl`` (:mod:`featpipe.extraction.corrections`).
"""

from __future__ import annotations

import json
import re
import tomllib
from itertools import pairwise
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from featpipe.errors import TemplateError, UsageError
from featpipe.extraction.corrections import Correction
from featpipe.extraction.corrections_fold import (
    acceptances,
    accepted,
    fold,
    version_of,
    with_said,
)
from featpipe.extraction.corrections_log import BadLine, CorrectionsLog
from featpipe.extraction.template import PLACE, SampleSpec, Template

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_core import ErrorDetails

    from featpipe.extraction.corrections import Record
    from featpipe.extraction.corrections_log import Corrections

logger = getLogger(__name__)

Content = dict[str, Any]  # Any: the values of a TOML or JSON object

_SUFFIXES = (".toml", ".json")
_SAMPLES = ".samples.jsonl"


def load_templates(path: str | Path) -> list[Template]:
    """Every template of a file or folder, by name.

    Raises:
        TemplateError: no template there, a file that cannot be used, or two templates of one name.

    """
    found: dict[str, Template] = {}
    for file in _find_files(Path(path)):
        template = load_template(file)
        if template.name in found:
            raise TemplateError(f"{file}: a template {template.name!r} was read before")
        found[template.name] = template
    return [found[name] for name in sorted(found)]


def _find_files(path: Path) -> list[Path]:
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES)
    if not files or not path.exists():
        raise TemplateError(
            f"{path}: no template here", hint="featpipe template new SAMPLE > name.toml"
        )
    return files


def template_files(path: str | Path) -> dict[str, Path]:
    """The file of each template of a file or folder, by the template's name.

    Raises:
        TemplateError: as :func:`load_templates`.

    """
    return {load_uncorrected(file).name: file for file in _find_files(Path(path))}


def load_template(file: str | Path) -> Template:
    """One template, with the corrections that were accepted.

    Lines of the corrections that cannot be used are left out and logged, each with its reason.

    Raises:
        TemplateError: unreadable, not TOML or JSON, or not a template; the message starts with
            ``file:line`` and names the field.

    """
    template = load_uncorrected(file)
    log = CorrectionsLog(Path(file))
    try:
        corrections = log.read()
    except UsageError as error:
        raise TemplateError(error.message, hint=error.hint) from error
    for line in unusable(template, corrections):
        logger.warning("%s:%d: left out: %s", log.path, line.line, line.reason)
    return corrected(template, corrections.records)


def load_uncorrected(file: str | Path) -> Template:
    """One template as its authors wrote it, without corrections.

    Raises:
        TemplateError: as :func:`load_template`.

    """
    file = Path(file)
    text = _read(file)
    content = _parse(text, file)
    content.setdefault("name", file.stem)
    template = check_template(content, text, file)
    beside = file.with_name(file.stem + _SAMPLES)
    if not beside.is_file():
        return template
    return _with_samples(template, beside)


def corrected(template: Template, records: Sequence[Record]) -> Template:
    """A template with what was accepted of its corrections."""
    said = fold(accepted(records))
    return with_said(template, said, version_of(template, len(acceptances(records))))


def unusable(template: Template, corrections: Corrections) -> list[BadLine]:
    """The lines that tell nothing about a template: of no record, or of no field of it."""
    names = {spec.name for spec in template.fields}
    gone = [
        BadLine(line, f"the template has no field {record.field!r}")
        for line, record in zip(corrections.lines, corrections.records, strict=True)
        if isinstance(record, Correction) and record.field not in names
    ]
    return sorted([*corrections.bad, *gone], key=lambda bad: bad.line)


def check_template(content: Content, text: str, file: Path) -> Template:
    """Validate parsed content; ``text`` is only searched for the line of an error.

    Raises:
        TemplateError: as :func:`load_template`.

    """
    try:
        return Template.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        line = find_line(text, _place_of(first))
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        where = f"{file}:{line}" if line else f"{file}"
        message = f"{where}: {_describe(first, content)}{more}"
        raise TemplateError(message, hint=_hint(first)) from error


def _place_of(error: ErrorDetails) -> tuple[int | str, ...]:
    """The way through the content to the faulty part."""
    place: tuple[int | str, ...] = error.get("ctx", {}).get(PLACE, error["loc"])
    # A missing key has no line of its own: its block has one.
    return place[:-1] if error["type"] == "missing" else place


def _with_samples(template: Template, file: Path) -> Template:
    """The template with the samples of the JSON Lines file beside it."""
    samples = (*template.samples, *read_samples(template, file))
    return template.model_copy(update={"samples": samples})


def read_samples(template: Template, file: Path) -> list[SampleSpec]:
    """The samples of a JSON Lines file, checked against the fields of a template.

    Raises:
        TemplateError: unreadable, or a line that is no sample; the message names the line.

    """
    samples = []
    for number, row in _read_lines(file):
        where = f"{file}:{number}"
        try:
            sample = SampleSpec.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            message = f"{where}: {_describe(first, row)}"
            raise TemplateError(message, hint=_hint(first)) from error
        for place in template.unknown_in(sample):
            raise TemplateError(f"{where}: a value for {place[-1]!r}, which is no field")
        samples.append(sample)
    return samples


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{file}: cannot be read: {error}") from error


def _parse(text: str, file: Path) -> Content:
    try:
        content = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise TemplateError(f"{file}:{error.lineno}: is not JSON: {error.msg}") from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        # "at end of document" names no line: it is the last one.
        number = line[1] if line else max(len(text.rstrip("\n").split("\n")), 1)
        where = f"{file}:{number}"
        raise TemplateError(f"{where}: is not TOML: {error}") from error
    except RecursionError as error:
        raise TemplateError(f"{file}: is nested too deeply") from error
    if not isinstance(content, dict):
        raise TemplateError(f"{file}: holds a list, not a template")
    return content


def _read_lines(file: Path) -> Iterator[tuple[int, Any]]:  # Any: JSON
    """Number and content of every line that is not blank."""
    # Only "\n" ends a line of JSON Lines: texts may hold other line ends, such as U+2028.
    for number, line in enumerate(_read(file).split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise TemplateError(f"{file}:{number}: is not JSON: {error.msg}") from error
            except RecursionError as error:
                raise TemplateError(f"{file}:{number}: is nested too deeply") from error


#: Keys that hold lists -> what one part is called.
_ONE_OF = {
    "fields": "field", "samples": "sample", "records": "record", "documents": "document",
    "aliases": "alias", "choices": "choice",
}  # fmt: skip


def _describe(error: ErrorDetails, content: object) -> str:
    """Name the field or sample, the key and the fault."""
    location = error["loc"]
    names: list[str] = []
    at: Any = content  # Any: a part of JSON
    for step in location:
        if isinstance(step, int) and isinstance(at, list | tuple) and step < len(at):
            at = at[step]
            name = at.get("name") or at.get("document") if isinstance(at, dict) else None
            kind = names.pop() if names else ""
            name = name if isinstance(name, str) and name else step + 1
            names.append(f"{_ONE_OF.get(kind, kind)} {name}")
        else:
            at = at.get(step) if isinstance(at, dict) else None
            names.append(str(step))
    fault = _describe_fault(error)
    return f"{', '.join(names)}: {fault}" if names else fault


def _describe_fault(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "is no key of a template"
    if error["type"] == "missing":
        return "is missing"
    given = error["input"]
    if error["type"] in _TYPES:
        fault = f"is {_form_of(given)}, where {_wanted(error)} is needed"
        return fault if isinstance(given, dict | list | tuple) else f"{fault}: {_spelled(given)}"
    fault = error["msg"].removeprefix("Value error, ")
    is_plain = not isinstance(given, dict | list | tuple)
    return f"{fault} (it is {_spelled(given)})" if is_plain else fault


#: Types of errors -> what is needed.
_TYPES = {
    "string_type": "a text", "tuple_type": "a list", "dict_type": "an object with keys",
    "bool_type": "true or false", "model_type": "an object with keys",
}  # fmt: skip


def _wanted(error: ErrorDetails) -> str:
    is_list = error["type"] == "tuple_type" and _is_of_value(error["loc"])
    return "a text or a list of texts" if is_list else _TYPES[error["type"]]


def _hint(error: ErrorDetails) -> str | None:
    """The next step for a value of a sample that is no text, such as 5 without quotes."""
    given = error["input"]
    if error["type"] not in _TYPES or not _is_of_value(error["loc"]):
        return None
    if isinstance(given, dict | list | tuple):
        return "a field has its values in `fields`, and one text in each of `records`"
    if given is None:
        return "a field without a value is an empty list in `fields`, and left out of a record"
    quoted = json.dumps(str(given).lower() if isinstance(given, bool) else str(given))
    return f"write it as it stands in the document, in quotes, such as {quoted}"


def _is_of_value(location: Sequence[int | str]) -> bool:
    """Whether a place is, or is in, the values that a sample has for one field."""
    steps = [step for step in location if isinstance(step, str)]
    in_fields = any(
        one == "fields" and isinstance(next_one, str) for one, next_one in pairwise(location)
    )
    return in_fields or ("records" in steps and steps[-1] != "records")


def _form_of(given: object) -> str:
    """What kind of thing was given, as TOML and JSON name it."""
    if given is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text",
             dict: "an object", list: "a list", tuple: "a list"}  # fmt: skip
    return names.get(type(given), "a date or time")


def _spelled(given: object) -> str:
    """A plain value as it is written in a file; texts in quotes."""
    if given is None or isinstance(given, bool):
        return json.dumps(given)
    return repr(given) if isinstance(given, str) else str(given)


def find_line(text: str, location: Sequence[int | str]) -> int | None:
    """Line (from 1) of a place in the content, or of the last step towards it that is found."""
    lines = text.split("\n")
    at, found = 0, None
    for place, step in enumerate(location):
        if isinstance(step, int):
            continue
        following = location[place + 1] if place + 1 < len(location) else 0
        index = following if isinstance(following, int) else 0
        line = _find_key(lines, at, str(step), index)
        if line is None:
            break
        at = found = line
    return None if found is None else found + 1


def _find_key(lines: Sequence[str], start: int, key: str, index: int) -> int | None:
    """Line of the ``index``-th ``[[key]]`` or object of ``key``, else of the first assignment."""
    quoted = re.escape(key)
    blocks = [
        number
        for number, line in enumerate(lines[start:], start)
        if re.match(rf"\s*\[\[\s*\"?{quoted}\"?\s*\]\]", line)
    ]
    if index < len(blocks):
        return blocks[index]
    assigned = re.compile(rf"\s*(?:\"?{quoted}\"?\s*=|\"{quoted}\"\s*:|\[[^\]]*{quoted}\"?\])")
    for number, line in enumerate(lines[start:], start):
        if assigned.match(line) or f'"{key}":' in line:
            return _nth_object(lines, number, index) if index else number
    return start or None


def _nth_object(lines: Sequence[str], start: int, index: int) -> int:
    """Line of the object number ``index`` in the JSON list that begins at ``start``."""
    depth, seen = 0, -1
    for number, line in enumerate(lines[start:], start):
        for char in line:
            if char == "{":
                depth += 1
                if depth == 1:
                    seen += 1
                    if seen == index:
                        return number
            elif char == "}":
                depth -= 1
    return start
