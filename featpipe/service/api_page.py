"""The page of the API: OpenAPI's schema as HTML that loads nothing and runs nothing."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: A part of a schema; JSON has no narrower type.
_Part = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark; --quiet: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font: 13px/1.45 ui-monospace, monospace }
pre { background: #8881; padding: .7rem; overflow-x: auto }
details { border-top: 1px solid var(--quiet) } summary { cursor: pointer; padding: .5rem 0 }
summary b { display: inline-block; min-width: 3.5rem; text-transform: uppercase; font-size: 12px }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0 }
td { border-top: 1px solid var(--quiet) } h3 { font-size: 1rem; margin: .8rem 0 0 }
"""


def render_api(schema: _Part) -> str:
    """One HTML page: routes by tag, each with its parameters, bodies, answers and an example.

    Args:
        schema: OpenAPI's, of version 3.1.

    """
    page = "\n".join(_sections(schema))
    info = schema["info"]
    title = escape(f"{info['title']} {info['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title} API</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{_prose(info.get('description', ''))}</p>"
        f"{_access(schema)}{page}</html>"
    )


def _access(schema: _Part) -> str:
    raw = '<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>'
    if not schema.get("security"):
        return raw
    return (
        "<p>Send a key with each request: <code>Authorization: Bearer KEY</code> or "
        f"<code>X-API-Key: KEY</code>.</p>{raw}"
    )


def _sections(schema: _Part) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            shown = "".join(_operation(schema, path, method, operation))
            by_tag.setdefault(operation.get("tags", ["other"])[0], []).append(shown)
    for tag, operations in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(operations)}"


def _operation(schema: _Part, path: str, method: str, operation: _Part) -> Iterator[str]:
    summary = escape(operation.get("summary", ""))
    yield f'<details id="{escape(method)}{escape(path)}"><summary><b>{escape(method)}</b> '
    yield f"<code>{escape(path)}</code> {summary}</summary>"
    yield f"<p>{_prose(operation.get('description', ''))}</p>"
    if parameters := operation.get("parameters"):
        rows = [(one["name"], one["schema"], one.get("required", False)) for one in parameters]
        yield f"<h3>Parameters</h3>{_table(schema, rows)}"
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<h3>Body: {escape(kind)}</h3>{_fields(schema, content.get('schema', {}))}"
    if method == "post":
        yield f"<pre>{escape(_example(schema, path, operation))}</pre>"
    for status, answer in operation["responses"].items():
        yield _answer(schema, status, answer)
    yield "</details>"


def _answer(schema: _Part, status: str, answer: _Part) -> str:
    text = f"<h3>{escape(status)} {_prose(answer.get('description', ''))}</h3>"
    if status != "200":
        return f"<p><code>{escape(status)}</code> {_prose(answer.get('description', ''))}</p>"
    fields = (_fields(schema, one.get("schema", {})) for one in answer.get("content", {}).values())
    return text + "".join(fields)


def _fields(schema: _Part, part: _Part) -> str:
    """The fields of an object, or of each alternative; of anything else its type."""
    part = _resolve(schema, part)
    for kind in ("anyOf", "oneOf"):
        if kind in part and "properties" not in part:
            return "<p>or</p>".join(_fields(schema, one) for one in part[kind])
    if part.get("type") == "array":
        return f"<p>a list of</p>{_fields(schema, part.get('items', {}))}"
    about = f"<p>{_prose(part['description'])}</p>" if part.get("description") else ""
    if "properties" not in part:
        return f"{about}<p><code>{escape(_type(schema, part))}</code></p>"
    needed = set(part.get("required", ()))
    rows = [(name, one, name in needed) for name, one in part["properties"].items()]
    return about + _table(schema, rows)


def _table(schema: _Part, rows: list[tuple[str, _Part, bool]]) -> str:
    lines = [
        f"<tr><td><code>{escape(name)}</code><td><code>{escape(_type(schema, part))}</code>"
        f"<td>{'needed' if is_needed else _default(part)}<td>{_prose(part.get('description', ''))}"
        for name, part, is_needed in rows
    ]
    return f"<table>{''.join(lines)}</table>"


def _default(part: _Part) -> str:
    return "" if part.get("default") is None else f"default {escape(json.dumps(part['default']))}"


def _type(schema: _Part, part: _Part) -> str:
    """A short name of a type: ``string``, ``list of ValueBody``, ``integer or null``."""
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    for kind in ("anyOf", "oneOf"):
        if kind in part:
            return " or ".join(dict.fromkeys(_type(schema, one) for one in part[kind]))
    if "enum" in part or "const" in part:
        return " or ".join(map(json.dumps, part.get("enum", [part.get("const")])))
    if part.get("type") == "array":
        return f"list of {_type(schema, part.get('items', {}))}"
    return str(part.get("type", "any"))


def _resolve(schema: _Part, part: _Part) -> _Part:
    while "$ref" in part:
        part = schema["components"]["schemas"][str(part["$ref"]).rpartition("/")[2]]
    return part


def _example(schema: _Part, path: str, operation: _Part) -> str:
    """A command line that sends the first example of the first body."""
    body = _first_example(schema, operation.get("requestBody", {}).get("content", {}))
    if body is None:
        return f"curl -X POST localhost:8080{path}"
    kind, text = body
    return f"curl localhost:8080{path} -H 'Content-Type: {kind}' -d '{text}'"


def _first_example(schema: _Part, content: Mapping[str, _Part]) -> tuple[str, str] | None:
    for kind, one in content.items():
        if "example" in one:
            return kind, str(one["example"]).strip()
        part = _resolve(schema, one.get("schema", {}))
        for inner in [part, *(_resolve(schema, each) for each in part.get("anyOf", ()))]:
            if inner.get("examples"):
                return kind, json.dumps(inner["examples"][0], ensure_ascii=False)
    return None


def _prose(text: str) -> str:
    """Escaped text, with what stands between backquotes as code."""
    pieces = escape(text.replace("``", "`"), quote=False).split("`")
    return "".join(
        f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces)
    )
