"""Pages that are made of the code: every command's help text, every public name's docstring."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

import click

import featpipe
from featpipe.guide.pages import Language, Page, make_page, read_page, topics

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Characters of a signature on one line.
_LONGEST = 76
_SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields", "Example")

_OPENINGS: dict[str, dict[Language, str]] = {
    "commands": {
        "en": "# Commands\n\nEvery command with all its options, as `--help` prints them.\n\n"
        "Exit codes: 0 all well; 1 some documents or units were left out, and each is named; 2 the"
        " arguments are wrong; 3 fatal; 130 interrupted, with everything finished so far kept.\n",
        "zh": "# 命令\n\n全部命令及其全部选项，与 `--help` 的输出一致。\n\n"
        "退出码：0 一切正常；1 有文档或文本未能处理，逐一列出；2 参数错误；3 致命错误；130 被中断，"
        "已完成的结果都已保存。\n",
    },
    "library": {
        "en": "# Library reference\n\nEvery public name of the package, made of its docstrings."
        " Import them from `featpipe`.\n",
        "zh": "# 库参考\n\n全部公开名称，由文档字符串生成（英文）。都从 `featpipe` 导入。\n",
    },
}


def read_any_page(topic: str, language: Language, group: click.Group) -> Page:
    """A page of any topic; ``group`` is the program whose commands are listed.

    Raises:
        UsageError: there is no such page.
    """
    if topic == "commands":
        body = _OPENINGS[topic][language] + "".join(_describe_command(*one) for one in walk(group))
        return make_page(topic, language, body)
    if topic == "library":
        return make_page(topic, language, _OPENINGS[topic][language] + "".join(_describe_names()))
    return read_page(topic, language)


def read_opening(topic: str, language: Language) -> Page:
    """A page up to what is made of the code, without importing it: its title and its opening.

    Raises:
        UsageError: there is no such page.
    """
    opening = _OPENINGS.get(topic)
    return make_page(topic, language, opening[language]) if opening else read_page(topic, language)


def read_all_pages(language: Language, group: click.Group) -> list[Page]:
    """Every page, in reading order."""
    return [read_any_page(topic, language, group) for topic in topics()]


def walk(group: click.Group, path: str = "featpipe") -> Iterator[tuple[str, click.Command]]:
    """Full name of every command below a group, and the command; groups come before their own."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from walk(command, f"{path} {name}")


def _describe_command(name: str, command: click.Command) -> str:
    context = click.Context(
        command, info_name=name, terminal_width=88, help_option_names=["-h", "--help"]
    )
    level = "#" * (1 + len(name.split()[1:]))
    return f"\n{level} {name}\n\n```text\n{command.get_help(context)}\n```\n"


def _describe_names() -> Iterator[str]:
    for name in sorted(set(featpipe.__all__) - {"__version__"}):
        public = getattr(featpipe, name)
        yield f"\n## {name}\n\n```python\n{name}{_signature(public)}\n```\n\n"
        yield to_markdown(inspect.getdoc(public) or "")
        for method, shown, doc in _methods(public):
            yield f"\n### {name}.{method}\n\n```python\n{shown}\n```\n\n{to_markdown(doc)}"
    yield "\n## `__version__`\n\nThe version, as `featpipe --version` prints it.\n"


def _methods(public: type) -> Iterator[tuple[str, str, str]]:
    """Name, signature and docstring of the public methods and properties defined by featpipe."""
    for name, member in inspect.getmembers_static(public):
        value: object = member
        if isinstance(member, classmethod | staticmethod):
            value = member.__func__
        is_property = isinstance(value, property)
        target = value.fget if isinstance(value, property) else value
        home = getattr(target, "__module__", "") or ""
        doc = inspect.getdoc(value)
        if name.startswith("_") or not inspect.isfunction(target) or not doc:
            continue
        if home.startswith("featpipe."):
            yield name, f"{name}{_signature(target, is_property=is_property)}", doc


def _signature(public: object, *, is_property: bool = False) -> str:
    """The parameters, one per line where they are long; types as they are written."""
    try:
        signature = inspect.signature(public)  # type: ignore[arg-type]  # raises for others
    except (TypeError, ValueError):
        return ""
    returns = _type(signature.return_annotation)
    if is_property:
        return f": {returns}" if returns else ""
    end = f" -> {returns}" if returns and not inspect.isclass(public) else ""
    parts: list[str] = []
    for name, each in signature.parameters.items():
        if each.kind is each.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        if name not in {"self", "cls"}:
            parts.append(_parameter(each))
    whole = f"({', '.join(parts)}){end}"
    if len(whole) <= _LONGEST:
        return whole
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _parameter(each: inspect.Parameter) -> str:
    stars = "*" if each.kind is each.VAR_POSITIONAL else ""
    stars = "**" if each.kind is each.VAR_KEYWORD else stars
    kind = _type(each.annotation)
    typed = f"{stars}{each.name}: {kind}" if kind else f"{stars}{each.name}"
    return typed if each.default is each.empty else f"{typed} = {each.default!r}"


def _type(annotation: object) -> str:
    """As it is written, without the modules of names and pydantic's conditions."""
    if annotation is inspect.Parameter.empty:
        return ""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", written.strip("'"))


def to_markdown(doc: str) -> str:
    """A docstring of ours as Markdown: its literals, code blocks and sections."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", doc).replace("``", "`")
    lines: list[str] = []
    section = ""
    for block in _blocks(text):
        title = block[0].rstrip(":")
        if title in _SECTIONS and block[0].endswith(":"):
            section = title
            lines += [f"**{title}**", "", *_items("\n".join(block[1:]))]
        elif section and block[0].startswith(" "):
            lines += _items("\n".join(block))
        else:
            section = ""
            lines += block if not block[0].startswith("    ") else ["```text", *_dedented(block),
                                                                    "```"]  # fmt: skip
        lines.append("")
    return "\n".join(lines).replace("::\n", ":\n")


def _blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs; a section's title begins one in any case."""
    block: list[str] = []
    for line in text.split("\n"):
        is_title = line.rstrip(":") in _SECTIONS and line.endswith(":")
        if block and (not line.strip() or is_title):
            yield block
            block = []
        if line.strip() and line.strip() != "::":
            block.append(line)
    if block:
        yield block


def _dedented(block: list[str]) -> list[str]:
    return dedent("\n".join(block)).split("\n")


def _items(text: str) -> list[str]:
    """``name: what it is``, continued on indented lines, as the items of a list."""
    lines: list[str] = []
    for line in dedent(text).split("\n"):
        named = re.match(r"([\w*, .]+?): (.*)", line)
        if line and not line.startswith(" ") and named:
            lines.append(f"- `{named[1]}`: {named[2]}")
        elif line.strip():
            lines.append(f"  {line.strip()}" if lines else line.strip())
    return lines
