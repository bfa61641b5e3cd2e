"""Whatever a user can name is named in the guide, in both languages; what is missing is listed."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any, cast

import click
import pytest

import featpipe
from featpipe import errors
from featpipe.cli.main import featpipe as featpipe_command
from featpipe.extraction.template import FieldSpec, SampleSpec, Template
from featpipe.extraction.values.values import FieldType, read_value
from featpipe.guide.pages import GENERATED, LANGUAGES, Language, read_page, topics
from featpipe.guide.reference import read_all_pages, read_any_page, walk

PACKAGE = Path(featpipe.__file__).parent


@cache
def everything(language: Language) -> str:
    """All pages, the ones that are made of the code included."""
    return "\n".join(page.text for page in read_all_pages(language, featpipe_command))


def missing(names: set[str], text: str) -> list[str]:
    """Those that do not stand in the text as a whole word."""
    return sorted(n for n in names if not re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", text))


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Every constant and call of the package."""
    kinds = (ast.Constant, ast.Call)
    return [
        (path, node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, kinds)
    ]


def strings_of(pattern: str) -> set[str]:
    """The string constants of the package that are wholly of a form."""
    return {
        node.value
        for _, node in nodes()
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(pattern, node.value)
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_option_of_every_command(language: Language) -> None:
    commands = read_any_page("commands", language, featpipe_command)
    for name, command in walk(featpipe_command):
        (section,) = [s for s in commands.sections if s.title == name]
        options = {
            option
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for option in parameter.opts
        }
        assert missing(options, section.text) == [], name


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_command_is_in_a_written_page(language: Language) -> None:
    written = "\n".join(
        read_page(topic, language).text for topic in topics() if topic not in GENERATED
    )
    names = {name for name, command in walk(featpipe_command) if not hasattr(command, "commands")}
    lacking = {
        name
        for name in names
        if not re.search(rf"(featpipe |`|\|){'.{0,40}'.join(name.split()[1:])}(?![\w-])", written)
    }
    assert lacking == set()


@pytest.mark.parametrize(
    ("page", "model"), [("templates", Template), ("templates", FieldSpec), ("samples", SampleSpec)]
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_of_a_template(
    page: str, model: type[Template | FieldSpec | SampleSpec], language: Language
) -> None:
    rows = re.findall(r"^\| `([^|]*)` \|", read_page(page, language).text, re.MULTILINE)
    assert set(model.model_fields) <= set(rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_type_of_a_field(language: Language) -> None:
    types = set(FieldType.__args__)
    text = read_page("templates", language).text.partition("`text` |")[2]
    assert missing(types - {"text"}, text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_values_mean_what_the_table_of_types_says(language: Language) -> None:
    text = read_page("templates", language).text
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \| (.*`.*`.*) \|$", text, re.MULTILINE)
    assert len(rows) >= 9
    for kind, values, meaning in rows:
        for value in re.findall("`([^`]+)`", values):
            found = read_value(value, cast("FieldType", kind))
            assert f"`{found.key}`" in meaning, (kind, value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_route_and_field_of_http(language: Language, built: Path) -> None:
    pytest.importorskip("fastapi")
    from featpipe.service.app import create_app
    from featpipe.service.engine import Engine
    from featpipe.service.settings import ServiceSettings

    settings = ServiceSettings(built / "cache.h5", built / "templates", is_review=True)
    schema = create_app(Engine(settings)).openapi()
    text = read_page("http", language).text
    routes = {f"{m.upper()} {path}" for path, ms in schema["paths"].items() for m in ms}
    assert sorted(route for route in routes if f"`{route}`" not in text) == []
    bodies = schema["components"]["schemas"]
    asked = set(re.findall(r"'#/components/schemas/(\w+)'", str(requests_of(schema))))
    fields = {name for body in asked for name in bodies[body]["properties"]}
    assert {"input", "query", "verdict"} <= fields
    assert missing(fields, text) == []


def requests_of(schema: dict[str, Any]) -> list[object]:
    """The bodies that routes take; that of extraction is not a component."""
    operations = [each for path in schema["paths"].values() for each in path.values()]
    return [each["requestBody"] for each in operations if "requestBody" in each]


@pytest.mark.parametrize("language", LANGUAGES)
def test_fields_of_an_extraction(language: Language) -> None:
    pytest.importorskip("fastapi")
    from featpipe.service.schemas import BatchLine, ExtractAnswer

    fields = {*BatchLine.model_fields, *ExtractAnswer.model_fields}
    assert missing(fields, read_page("http", language).text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_of_an_error_over_http(language: Language) -> None:
    codes = set()
    for path, call in nodes():
        is_there = path.parent.name in {"service", "routes"} and isinstance(call, ast.Call)
        if is_there and getattr(call.func, "id", "") in {"Failure", "_Rule"}:
            codes |= {
                str(a.value)
                for a in call.args[1:3]
                if isinstance(a, ast.Constant) and re.fullmatch("[a-z_]+", str(a.value))
            }
    assert len(codes) > 20
    assert missing(codes, read_page("http", language).text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_metric(language: Language) -> None:
    names = {
        str(call.args[0].value)
        for _, call in nodes()
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "").lower().removesuffix("metricfamily")
        in {"counter", "gauge", "histogram"}
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and str(call.args[0].value).startswith("featpipe_")
    }
    assert len(names) > 12
    assert missing(names, read_page("operations", language).text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_environment_variable(language: Language) -> None:
    names = strings_of("FEATPIPE_[A-Z_]+")
    assert "FEATPIPE_CACHE_DIR" in names
    assert missing(names, read_page("operations", language).text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_has_a_section_that_says_what_to_do(language: Language) -> None:
    page = read_page("troubleshooting", language)
    said = {section.title: section.text.strip() for section in page.sections}
    names = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert sorted(names - set(said)) == []
    assert [name for name in names if len(said[name]) < 15] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_extra(language: Language) -> None:
    import tomllib

    project = PACKAGE.parent / "pyproject.toml"
    if not project.is_file():
        pytest.skip("the installed package has no pyproject.toml")
    extras = tomllib.loads(project.read_text("utf-8"))["project"]["optional-dependencies"]
    text = read_page("start", language).text
    assert sorted(e for e in extras if e not in {"dev", "bench"} and f"[{e}]" not in text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_integration(language: Language) -> None:
    folder = PACKAGE / "integrations"
    names = {p.stem for p in folder.glob("*.py") if p.stem != "__init__"}
    hidden = {"faiss_files", "ray_engine", "ray_seat"}
    text = everything(language)
    assert sorted(n for n in names - hidden if f"featpipe.integrations.{n}" not in text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_figures_are_those_of_the_readme(language: Language) -> None:
    readme = PACKAGE.parent / "README.md"
    if not readme.is_file():
        pytest.skip("the installed package has no README")
    unit = r"(?:\d+x|\d m?s|MB|of its time|as long)"
    rows = re.findall(rf"^\|.*{unit} \|$", read_page("performance", language).text, re.MULTILINE)
    assert len(rows) == 14
    assert [row for row in rows if row not in readme.read_text("utf-8")] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_readme_rows_and_groups_of_the_file(language: Language, built: Path) -> None:
    import h5py

    groups: set[str] = set()
    with h5py.File(built / "cache.h5", "r") as file:
        groups = {f"/{name}" for name in file}
    text = read_page("file", language).text
    assert sorted(g for g in groups if f"`{g}" not in text) == []


def test_something_that_is_not_mentioned_would_be_listed() -> None:
    assert missing({"--a", "--ab"}, "takes --ab only") == ["--a"]
