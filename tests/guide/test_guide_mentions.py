"""What the guide mentions exists: options, routes, keys, statuses, metrics, variables, names.

The other way round than :mod:`test_guide_coverage`; code that is not run is read here.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import defaultdict
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import click
import pytest
from guide_blocks import Block, blocks_of
from test_guide_coverage import PACKAGE, everything, nodes, strings_of

import featpipe
from featpipe import EncoderSettings
from featpipe.cli.main import featpipe as featpipe_command
from featpipe.encoders.builtin import find_builtin_model
from featpipe.encoders.checkpoint import describe_checkpoint
from featpipe.encoders.spec import encoder_spec, fingerprint_of
from featpipe.extraction.template import FieldSpec, SampleSpec, Template
from featpipe.guide.pages import GENERATED, LANGUAGES, Language, read_page, topics
from featpipe.guide.reference import walk

#: Options of pip and curl, and of our own scripts, which the installed package lacks.
FOREIGN_OPTIONS = {"--no-deps", "--data-binary", "--only"}
SCRIPTS = PACKAGE.parent / "scripts"
#: What starts with the package's name and is no name of it: files, queues, entry points.
FILES = {"featpipe.service", "featpipe.results", "featpipe.dead", "featpipe.py",
         "featpipe.loaders"}  # fmt: skip


def written(language: Language) -> str:
    pages = [read_page(topic, language).text for topic in topics() if topic not in GENERATED]
    return "\n".join(pages)


def rows_of(topic: str, language: Language) -> list[list[str]]:
    """The cells of every row of every table of a page."""
    lines = read_page(topic, language).text.splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("|")]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("language", LANGUAGES)
def test_options_exist(language: Language) -> None:
    known = {
        option
        for _, command in walk(featpipe_command)
        for parameter in command.params
        for option in parameter.opts
    }
    for script in SCRIPTS.glob("*.py"):
        known |= set(re.findall('"(--[a-z-]+)"', script.read_text("utf-8")))
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", written(language)))
    assert {"--cache", "--model"} <= mentioned
    assert mentioned - known - FOREIGN_OPTIONS - {"--help"} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_routes_exist(language: Language, built: Path) -> None:
    pytest.importorskip("fastapi")
    from featpipe.service.app import create_app
    from featpipe.service.engine import Engine
    from featpipe.service.settings import ServiceSettings

    settings = ServiceSettings(built / "cache.h5", built / "templates", is_review=True)
    schema = create_app(Engine(settings)).openapi()
    routes = {f"{m.upper()} {path}" for path, ms in schema["paths"].items() for m in ms}
    mentioned = re.findall(r"`((?:GET|POST) /[^`]*)`", read_page("http", language).text)
    assert set(mentioned) == routes


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_code_has_the_statuses_of_the_table(language: Language) -> None:
    ours: dict[str, set[int]] = defaultdict(set)
    for path, call in nodes():
        if path.parent.name not in {"service", "routes"} or not isinstance(call, ast.Call):
            continue
        first = {"Failure": 0, "_Rule": 1}.get(getattr(call.func, "id", ""))
        pair = [] if first is None else call.args[first : first + 2]
        match [getattr(part, "value", None) for part in pair]:
            case [int(status), str(code)]:
                ours[code].add(status)
    theirs: dict[str, set[int]] = defaultdict(set)
    for cells in rows_of("http", language):
        if re.fullmatch(r"\s*\d{3}\s*", cells[0]):
            for code in names_in(cells[1]):
                theirs[code].add(int(cells[0]))
    assert len(ours) > 20
    assert {code: theirs[code] for code in ours} == ours


@pytest.mark.parametrize("language", LANGUAGES)
def test_keys_of_templates_exist(language: Language) -> None:
    keys = {
        name
        for topic in ("templates", "samples")
        for cells in rows_of(topic, language)
        if len(cells) == 2  # tables of keys; that of types has three columns
        for name in names_in(cells[0])
    }
    columns = {"start", "end", "page", "value", "unit", "bound", "probability", "nearest",
               "remark", "parts"}  # fmt: skip  # of results
    models = (Template, FieldSpec, SampleSpec)
    assert keys - columns == {name for model in models for name in model.model_fields}


@pytest.mark.parametrize("language", LANGUAGES)
def test_metrics_and_variables_exist(language: Language) -> None:
    text = written(language)
    assert set(re.findall(r"FEATPIPE_[A-Z_]+", text)) <= strings_of("FEATPIPE_[A-Z_]+")
    metrics = {*strings_of("featpipe_[a-z_]+"), "featpipe_build_info"}
    assert set(re.findall(r"featpipe_[a-z]+_[a-z_]+", text)) <= metrics


@pytest.mark.parametrize("language", LANGUAGES)
def test_modules_and_names_exist(language: Language) -> None:
    text = everything(language)
    dotted = set(re.findall(r"(?<![\w./-])featpipe(?:\.[A-Za-z_]\w*)+", text)) - FILES
    assert sorted(name for name in dotted if not is_there(name)) == []
    own = "|".join(set(featpipe.__all__) - {"__version__"})
    members = set(re.findall(rf"(?<![\w.])(?:{own})\.[a-z_]\w*", text))
    assert len(members) > 20
    assert sorted(name for name in members if not is_there(f"featpipe.{name}")) == []


def is_there(name: str) -> bool:
    """Whether a module has this name, or something in one; extras need not be installed."""
    parts = name.split(".")
    n_modules = 1
    while n_modules < len(parts) and find_spec(".".join(parts[: n_modules + 1])):
        module = import_module(".".join(parts[:n_modules]))
        if not hasattr(module, "__path__"):
            break
        n_modules += 1
    if n_modules == len(parts):
        return True
    thing: object = import_module(".".join(parts[:n_modules]))
    for part in parts[n_modules:]:
        if not hasattr(thing, part):
            return part in getattr(thing, "__annotations__", {})
        thing = getattr(thing, part)
    return True


def test_fingerprints_are_those_of_the_built_in_encoder() -> None:
    """In the pages, and in what the notebooks keep."""
    spec = encoder_spec(
        describe_checkpoint(find_builtin_model()), EncoderSettings(precision="mixed")
    )
    files = (PACKAGE.parent / "data" / "notebooks").glob("*.ipynb")
    text = "".join(map(written, LANGUAGES)) + "".join(file.read_text("utf-8") for file in files)
    assert set(re.findall(r"zh-small@([0-9a-f]+)", text)) == {fingerprint_of(spec)[:12]}


UNRUN = [
    pytest.param(block, id=f"{topic}-{number}")
    for topic in topics()
    if topic not in GENERATED
    for number, block in enumerate(blocks_of(read_page(topic, "en").text))
    if block.reason
]


@pytest.mark.parametrize("block", UNRUN)
def test_what_is_not_run_is_parsed(block: Block) -> None:
    """Commands with their options, imports of ours with their names."""
    if block.language == "python":
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("featpipe"):
                source = (PACKAGE.parent / str(node.module).replace(".", "/")).with_suffix(".py")
                names = {n.name for n in ast.parse(source.read_text("utf-8")).body
                         if isinstance(n, ast.ClassDef | ast.FunctionDef)}  # fmt: skip
                assert {alias.name for alias in node.names} <= names
        return
    assert block.language == "sh"
    for line in block.code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["featpipe"]:
            parse(featpipe_command, list(takewhile(lambda word: word != ">", words[1:])))
        else:
            assert words[0] in {"pip", "export", "python", "scripts/install", "scripts/test",
                                "scripts/check"}  # fmt: skip


def parse(command: click.Command, words: list[str]) -> None:
    """As click does, without looking whether files are there. Raises click's errors."""
    if isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, words
        parse(found, words[1:])
        return
    context = click.Context(command)
    given, rest, _ = command.make_parser(context).parse_args(args=list(words))
    assert rest == []
    kinds = {p.name: p.type for p in command.params if isinstance(p.type, click.Choice)}
    for name, kind in kinds.items():
        for value in [given[str(name)]] if isinstance(given.get(str(name)), str) else []:
            kind.convert(value, None, context)
    needed = {p.name for p in command.params if p.required}
    assert {name for name in needed if not given.get(str(name))} == set(), words


def test_a_command_that_is_gone_would_be_seen() -> None:
    with pytest.raises(click.NoSuchOption):
        parse(featpipe_command, ["inspect", "c.h5", "--no-such"])
    with pytest.raises(AssertionError):
        parse(featpipe_command, ["no-such"])
    with pytest.raises(AssertionError):
        parse(featpipe_command, ["template", "learn"])
    assert not is_there("featpipe.Cache.no_such")
    assert not is_there("featpipe.integrations.no_such")
