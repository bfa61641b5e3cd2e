"""Drafting: a first template from one sample document, to be corrected by a person.

Labels before a colon and headers of tables become fields; what stands behind them gives the type.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from featpipe.templates.inference import infer_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.templates.view import View

#: ``label：value`` at the start of a line or behind a stop; a label is short and has no marks.
_labelled = re.compile(
    r"(?:^|[\n\t。；;])\s*(?:[（(]?[一二三四五六七八九十\d]{1,3}[)）、.．]\s*)?"
    r"(?P<label>[A-Za-z\u4e00-\u9fff][\w\u4e00-\u9fff（）() ]{1,15}?)"
    r"\s*[:：]\s*(?P<value>[^\n\t；;。]{1,120})"
)
_MOST_FIELDS = 40


def draft_fields(view: View) -> dict[str, list[str]]:
    """Field name -> the values found behind it, in the order of the document."""
    found: dict[str, list[str]] = {}
    for match in _labelled.finditer(view.text):
        label, value = match["label"].strip(), _first_part(match["value"])
        if value and len(found) < _MOST_FIELDS:
            found.setdefault(label, []).append(value)
    for mark in view.headers:
        value = view.text[mark.start : mark.end].strip()
        if value and len(mark.label) <= 20 and (mark.label in found or len(found) < _MOST_FIELDS):
            found.setdefault(mark.label, []).append(value)
    return {label: list(dict.fromkeys(values)) for label, values in found.items()}


def _first_part(value: str) -> str:
    """Up to the next label of the same line: ``证券代码：009990 证券简称：铭坤轨道``."""
    cut = re.split(r"\s+\S{2,8}[:：]", value, maxsplit=1)[0]
    return cut.strip(" ，,、")


def draft_template(view: View, name: str, document: str) -> str:
    """A template in TOML, with one sample and a type for every field."""
    fields = draft_fields(view)
    lines = [f"name = {_quoted(name)}", ""]
    for label, values in fields.items():
        kind = infer_type([(view, value) for value in values])
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
