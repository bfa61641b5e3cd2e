"""Templates: fields and reference samples, read from TOML or JSON, checked and frozen.

A file or a folder is read; errors name the file, the line and the field. Samples may also be in a
JSON Lines file beside the template (``loan.toml`` and ``loan.samples.jsonl``).

Unknown is not none: a sample counts only for the fields that it was read for. These are the fields
that it names; one named with an empty list (``"保证人" = []``, in JSON also ``null``) has no
value in the document. A field that it does not name is unknown there, so that correcting one field
of a document teaches nothing about the others. ``complete = true`` in a sample states that it was
read for every field, and that those it does not name have no value.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from featpipe.errors import TemplateError
from featpipe.extraction.values.values import FieldType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_core import ErrorDetails

Content = dict[str, Any]  # Any: the values of a TOML or JSON object
Level = Literal["entity", "word", "sentence", "paragraph"]
Cardinality = Literal["one", "many", "records"]

#: Key of an error's context: the way to the part that is wrong.
PLACE = "place"


class FieldSpec(BaseModel):
    """One field to extract. Settings left out are inferred from the samples.

    Attributes:
        name: of the field, unique in its template.
        aliases: other names that documents use for it, such as the words before a colon.
        type: of its values; None to infer it.
        level: ``sentence`` and ``paragraph`` give whole units, the others spans inside them.
        cardinality: one value per document, many, or one per record; None to infer it.
        pattern: regular expression of ``pattern`` fields.
        choices: values of ``enum`` fields.
        hint: for annotators; extraction does not read it.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    type: FieldType | None = None
    level: Level | None = None
    cardinality: Cardinality | None = None
    pattern: str | None = None
    choices: tuple[str, ...] = ()
    hint: str = ""

    def __repr__(self) -> str:
        return f"FieldSpec({self.name!r}, type={self.type!r})"

    @field_validator("aliases", "choices", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
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

    Attributes:
        document: a path beside the template, or the id or path of a cached document.
        text: the document itself, instead of ``document``.
        fields: values by field name; an empty list for a field without a value in the document.
        records: values that belong together, such as those of one table row; by field name.
        spans: character spans (start, end) of the values by field name, where known; the values of
            other fields are located by meaning.
        complete: whether it was read for every field of the template: those it does not name have
            no value. By default they are unknown, and the sample does not count for them.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    document: str | None = None
    text: str | None = None
    fields: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    records: tuple[dict[str, str], ...] = ()
    spans: dict[str, tuple[tuple[int, int], ...]] = Field(default_factory=dict)
    complete: bool = False

    def __repr__(self) -> str:
        source = f"text of {len(self.text or '')} characters" if self.text else repr(self.document)
        return f"SampleSpec({source}, {len(self.fields)} fields)"

    @field_validator("fields", mode="before")
    @classmethod
    def _as_lists(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: _as_values(given) for name, given in value.items()}

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

    def is_read_for(self, field: str) -> bool:
        """Whether the sample tells anything about a field: its values, or that there are none."""
        named = [*self.fields, *self.spans, *(name for one in self.records for name in one)]
        return self.complete or field in named

    def values_of(self, field: str) -> tuple[str, ...]:
        """Distinct values of one field, listed or in records."""
        listed = self.fields.get(field, ())
        inside = tuple(record[field] for record in self.records if field in record)
        return tuple(dict.fromkeys((*listed, *inside)))


def _as_values(given: object) -> object:
    """The values of a field as a tuple; null for a field that has none."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    return tuple(given) if isinstance(given, list) else given


class Template(BaseModel):
    """The fields to extract from one kind of document, with reference samples.

    Attributes:
        name: unique among the templates used together.
        fields: at least one.
        samples: reference documents with their values.
        version: free text of its authors; it has no effect on the fingerprint.
        documents: glob patterns of the ids of documents that it is meant for; empty for all.

    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1)
    fields: tuple[FieldSpec, ...] = Field(min_length=1)
    samples: tuple[SampleSpec, ...] = ()
    version: str = ""
    documents: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Template({self.name!r}, {len(self.fields)} fields, {len(self.samples)} samples)"

    @field_validator("fields", "samples", "documents", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _names_agree(self) -> Template:
        names = [field.name for field in self.fields]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise _fault("field {field} is defined twice", name, ("fields", number, "name"))
        for number, sample in enumerate(self.samples):
            for place in self.unknown_in(sample):
                message = f"sample {number + 1} has a value for {{field}}, which is no field"
                raise _fault(message, place[-1], ("samples", number, *place))
        return self

    def unknown_in(self, sample: SampleSpec) -> list[tuple[str | int, ...]]:
        """Places of a sample's values whose name, the last step, is not a field here."""
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
        raise TemplateError(f"{where}: {_describe(first, content)}{more}") from error


def _place_of(error: ErrorDetails) -> tuple[int | str, ...]:
    """The way through the content to the faulty part."""
    place: tuple[int | str, ...] = error.get("ctx", {}).get(PLACE, error["loc"])
    # A missing key has no line of its own: its block has one.
    return place[:-1] if error["type"] == "missing" else place


def _with_samples(template: Template, file: Path) -> Template:
    """The template with the samples of the JSON Lines file beside it."""
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


def _describe(error: ErrorDetails, content: object) -> str:
    """Name the field or sample, the key and the fault."""
    location = error["loc"]
    names: list[str] = []
    at: Any = content  # Any: a part of JSON
    for step in location:
        if isinstance(step, int) and isinstance(at, list | tuple) and step < len(at):
            at = at[step]
            name = at.get("name") or at.get("document") if isinstance(at, dict) else None
            kind = names.pop().rstrip("s") if names else ""
            names.append(f"{kind} {name or step + 1}")
        else:
            at = at.get(step) if isinstance(at, dict) else None
            names.append(str(step))
    fault = _describe_fault(error)
    return f"{', '.join(names)}: {fault}" if names else fault


def _fault(message: str, field: str | int, place: tuple[int | str, ...]) -> PydanticCustomError:
    """A fault at ``place`` of a template; ``{field}`` in the message is the field's name."""
    return PydanticCustomError("template", message, {"field": repr(field), PLACE: place})


def _describe_fault(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return "is no key of a template"
    if error["type"] == "missing":
        return "is missing"
    fault = error["msg"].removeprefix("Value error, ")
    is_plain = not isinstance(error["input"], dict | list | tuple)
    return f"{fault} (it is {error['input']!r})" if is_plain else fault


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
