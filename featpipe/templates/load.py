"""Reading templates: TOML or JSON, one file or a folder; errors name the file, the field, the line.

A JSON Lines file of samples may lie beside a template of the same name (``loan.toml`` and
``loan.samples.jsonl``), so that many samples need not be written as TOML.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featpipe.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_core import ErrorDetails

    from featpipe.templates.model import Template

_SUFFIXES = (".toml", ".json")
_SAMPLES = ".samples.jsonl"


def load_templates(path: str | Path) -> list[Template]:
    """Every template of a file or folder, by name.

    Raises:
        TemplateError: nothing there, a file that cannot be used, or two templates of one name.

    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES)
    if not files or not path.exists():
        raise TemplateError(
            f"{path}: no template here", hint="featpipe template new SAMPLE > name.toml"
        )
    found: dict[str, Template] = {}
    for file in files:
        template = load_template(file)
        if template.name in found:
            raise TemplateError(f"{file}: a template {template.name!r} was read before")
        found[template.name] = template
    return [found[name] for name in sorted(found)]


def load_template(file: str | Path) -> Template:
    """One template.

    Raises:
        TemplateError: unreadable, not TOML or JSON, or not a template; the message starts with
            ``file:line`` and names the field.

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


def check_template(content: dict[str, Any], text: str, file: Path) -> Template:
    """Parsed content as a template; ``text`` is only searched for the line of an error."""
    from pydantic import ValidationError

    from featpipe.templates.model import Template

    try:
        return Template.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        line = find_line(text, _place_of(first))
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        where = f"{file}:{line}" if line else f"{file}"
        raise TemplateError(f"{where}: {_describe(first, content)}{more}") from error


def _place_of(error: ErrorDetails) -> tuple[int | str, ...]:
    """The way into the content to where one should look."""
    from featpipe.templates.model import PLACE

    place: tuple[int | str, ...] = error.get("ctx", {}).get(PLACE, error["loc"])
    # A key that is missing stands nowhere: the block that lacks it is the place to look.
    return place[:-1] if error["type"] == "missing" else place


def _with_samples(template: Template, file: Path) -> Template:
    """The template with the samples that lie beside it, each a line of JSON."""
    from pydantic import ValidationError

    from featpipe.templates.model import SampleSpec

    samples = list(template.samples)
    for number, row in _read_lines(file):
        where = f"{file}:{number}"
        try:
            sample = SampleSpec.model_validate(row)
        except ValidationError as error:
            raise TemplateError(f"{where}: {_describe(error.errors()[0], row)}") from error
        for place in template.unknown_in(sample):
            raise TemplateError(f"{where}: a value for {place[-1]!r}, which is no field")
        samples.append(sample)
    return template.model_copy(update={"samples": tuple(samples)})


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(f"{file}: cannot be read: {error}") from error


def _parse(text: str, file: Path) -> dict[str, Any]:
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
    if not isinstance(content, dict):
        raise TemplateError(f"{file}: holds a list, not a template")
    return content


def _read_lines(file: Path) -> Iterator[tuple[int, Any]]:
    """Number and content of every line that is not blank."""
    # Only "\n" ends a line of JSON Lines: a text may well hold other line ends, such as U+2028.
    for number, line in enumerate(_read(file).split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise TemplateError(f"{file}:{number}: is not JSON: {error.msg}") from error


def _describe(error: ErrorDetails, content: object) -> str:
    """In the template's words: which field or sample, which key, what is wrong."""
    location = error["loc"]
    names: list[str] = []
    at: Any = content
    for step in location:
        if isinstance(step, int) and isinstance(at, list | tuple) and step < len(at):
            at = at[step]
            name = at.get("name") or at.get("document") if isinstance(at, dict) else None
            kind = names.pop().rstrip("s") if names else ""
            names.append(f"{kind} {name or step + 1}")
        else:
            at = at.get(step) if isinstance(at, dict) else None
            names.append(str(step))
    what = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        what = "is no key of a template"
    elif error["type"] == "missing":
        what = "is missing"
    elif not isinstance(error["input"], dict | list | tuple):
        what = f"{what} (it is {error['input']!r})"
    return f"{', '.join(names)}: {what}" if names else what


def find_line(text: str, location: Sequence[int | str]) -> int | None:
    """Line (from 1) of the place that a path into the content leads to, as near as can be told."""
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
    """The ``index``-th ``[[key]]`` or object of ``key``, else the first ``key =`` or ``"key":``."""
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
