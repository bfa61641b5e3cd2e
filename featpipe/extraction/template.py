"""Reading templates: TOML or JSON, one file or a folder; errors name the file, the field, the line.

A JSON Lines file of samples may lie beside a template of the same name (``loan.toml`` and
``loan.samples.jsonl``), so that many samples need not be written as TOML.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from featpipe.errors import TemplateError
from featpipe.extraction.values.values import FieldType  # noqa: TC001  # pydantic reads it

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_core import ErrorDetails

# What a template says: its fields and its reference samples, checked and frozen.


Level = Literal["entity", "word", "sentence", "paragraph"]
Cardinality = Literal["one", "many", "records"]

#: What an error about several parts together calls the place of the one to look at.
PLACE = "place"


class FieldSpec(BaseModel):
    """One thing to extract. Whatever is left out is inferred from the samples."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    """Other names that documents use for it, such as the words before a colon."""
    type: FieldType | None = None
    level: Level | None = None
    """``sentence`` and ``paragraph`` give whole units; the others spans inside them."""
    cardinality: Cardinality | None = None
    pattern: str | None = None
    """Regular expression of ``pattern`` fields."""
    choices: tuple[str, ...] = ()
    """Values of ``enum`` fields."""
    hint: str = ""
    """For people: what annotators should know. It is also read as an alias of last resort."""

    @field_validator("aliases", "choices", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        import re

        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"is no regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> FieldSpec:
        if self.type == "pattern" and not self.pattern:
            raise ValueError(f"field {self.name!r} has type pattern and no pattern")
        if self.type == "enum" and not self.choices:
            raise ValueError(f"field {self.name!r} has type enum and no choices")
        return self


class SampleSpec(BaseModel):
    """A reference document and its values.

    ``document`` is a path (beside the template, or the id or path of a cached document), or
    ``text`` holds the document itself. A field may have one value or a list; a document without a
    value of a field teaches that there may be none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    document: str | None = None
    text: str | None = None
    fields: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    records: tuple[dict[str, str], ...] = ()
    spans: dict[str, tuple[tuple[int, int], ...]] = Field(default_factory=dict)
    """Character spans of the values, where known; located by meaning where not."""

    @field_validator("fields", mode="before")
    @classmethod
    def _as_lists(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {
            name: (given,)
            if isinstance(given, str)
            else tuple(given)
            if isinstance(given, list)
            else given
            for name, given in value.items()
        }

    @field_validator("records", mode="before")
    @classmethod
    def _as_records(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("spans", mode="before")
    @classmethod
    def _as_spans(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: tuple(tuple(span) for span in spans) for name, spans in value.items()}

    @model_validator(mode="after")
    def _has_one_source(self) -> SampleSpec:
        if (self.document is None) == (self.text is None):
            raise ValueError("a sample names a document or holds a text, one of the two")
        return self

    def values_of(self, field: str) -> tuple[str, ...]:
        """Values of one field: as listed, or as they stand in the records."""
        listed = self.fields.get(field, ())
        inside = tuple(record[field] for record in self.records if field in record)
        return tuple(dict.fromkeys((*listed, *inside)))


class Template(BaseModel):
    """Fields and samples under one name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    fields: tuple[FieldSpec, ...] = Field(min_length=1)
    samples: tuple[SampleSpec, ...] = ()
    version: str = ""
    """Free text of its authors; what counts is the fingerprint."""
    documents: tuple[str, ...] = ()
    """Glob patterns of document ids it is meant for; all documents when empty."""

    @field_validator("fields", "samples", "documents", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _names_agree(self) -> Template:
        names = [field.name for field in self.fields]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise PydanticCustomError(
                    "template",
                    "field {field} is defined twice",
                    {"field": repr(name), PLACE: ("fields", number, "name")},
                )
        for number, sample in enumerate(self.samples):
            for place in self.unknown_in(sample):
                raise PydanticCustomError(
                    "template",
                    "sample {number} has a value for {field}, which is no field",
                    {
                        "number": number + 1,
                        "field": repr(place[-1]),
                        PLACE: ("samples", number, *place),
                    },
                )
        return self

    def unknown_in(self, sample: SampleSpec) -> list[tuple[str | int, ...]]:
        """Where in a sample there are values of what is no field; the last step is its name."""
        places = [("fields", name) for name in sample.fields]
        places += [("spans", name) for name in sample.spans]
        inside = [
            ("records", number, name)
            for number, record in enumerate(sample.records)
            for name in record
        ]
        names = {field.name for field in self.fields}
        return [place for place in (*places, *inside) if place[-1] not in names]

    def field(self, name: str) -> FieldSpec:
        """One field by name."""
        return next(field for field in self.fields if field.name == name)


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
    place: tuple[int | str, ...] = error.get("ctx", {}).get(PLACE, error["loc"])
    # A key that is missing stands nowhere: the block that lacks it is the place to look.
    return place[:-1] if error["type"] == "missing" else place


def _with_samples(template: Template, file: Path) -> Template:
    """The template with the samples that lie beside it, each a line of JSON."""
    from pydantic import ValidationError

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
