"""Imports go down, never up or sideways, and never in a circle: each is held against the drawing.

::

                              cli
         service  consumer  html_report  integrations  guide (strangers to each other)
                           extraction
                    build            on_demand               (strangers to each other)
                            cache
         documents | encoders | lexical | store | pool       (five strangers)
   user_cache   atomic_write   fork_lock   settings   report   interpreter   errors

Within extraction::

                     extractor, records, ...
                            scoring
              template   tables   statements             (strangers to each other)
                             names
                             values

Imports inside functions and under ``TYPE_CHECKING`` count.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import featpipe
from featpipe.extraction.model_cache import _CODE

PACKAGE = Path(featpipe.__file__).parent

FLOOR = {
    "atomic_write", "errors", "fork_lock", "interpreter", "report", "settings", "user_cache",
}  # fmt: skip
STRANGERS = {"documents", "encoders", "lexical", "store", "pool"}
CACHE = FLOOR | STRANGERS | {"cache"}
ENGINES = CACHE | {"build", "on_demand"}
FACES = {"service", "consumer", "html_report", "integrations", "guide"}

#: Room -> the rooms it may import. Anything else is a fault of the architecture, not of style.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "fork_lock": set(),
    "interpreter": {"errors"},
    "report": {"errors"},
    "settings": {"errors"},
    "atomic_write": {"errors"},
    "user_cache": {"atomic_write", "errors"},
    **dict.fromkeys(STRANGERS, FLOOR),
    "cache": FLOOR | STRANGERS,
    "build": CACHE,
    "on_demand": CACHE,
    "extraction": ENGINES,
    **dict.fromkeys(FACES, ENGINES | {"extraction"}),
    "guide": {"atomic_write", "documents", "errors", "__init__"},
    "cli": ENGINES | {"extraction"} | FACES | {"__init__"},
    "__init__": ENGINES | {"extraction"},
    "__main__": {"cli", "errors"},
}

#: The same of the lower parts of extraction, which import nothing else of it.
IN_EXTRACTION: dict[str, set[str]] = {
    "values": set(),
    "names": {"values"},
    "tables": {"values", "names"},
    "statements": {"values", "names"},
    "template": {"values"},
    "scoring": {"values", "names", "tables", "statements", "template"},
}

#: Foreign packages that no file of a room may import, at any depth.
FORBIDDEN = {
    "store": {"torch", "transformers", "jieba", "safetensors"},
    "pool": {"torch", "transformers", "h5py", "jieba", "multiprocessing"},
    "documents": {"torch", "transformers", "h5py"},
    "encoders": {"h5py", "multiprocessing", "subprocess"},
    "lexical": {"h5py", "torch", "transformers", "multiprocessing", "subprocess"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    parts = ("featpipe", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imported_names(path: Path) -> Iterator[str]:
    package = ("featpipe", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    room = room_of(path)
    assert room in ALLOWED, f"{room} is not in the drawing of the layers"
    for name in imported_names(path):
        parts = name.split(".")
        if parts[0] == "featpipe":
            target = parts[1] if len(parts) > 1 and parts[1] in ALLOWED else "__init__"
            assert target == room or target in ALLOWED[room], f"{path} imports {name}"
        assert parts[0] not in FORBIDDEN.get(room, set()), f"{path} imports {name}"


@pytest.mark.parametrize("part", IN_EXTRACTION)
def test_imports_go_down_within_extraction(part: str) -> None:
    folder = PACKAGE / "extraction" / part
    paths = sorted(folder.rglob("*.py")) or [folder.with_suffix(".py")]
    for path in paths:
        for name in imported_names(path):
            parts = name.split(".")
            if parts[:2] == ["featpipe", "extraction"]:
                assert parts[2] in {part, *IN_EXTRACTION[part]}, f"{path} imports {name}"


def test_models_are_kept_for_the_code_of_every_part_that_fits_them() -> None:
    assert {*_CODE} == {part for part in IN_EXTRACTION if (PACKAGE / "extraction" / part).is_dir()}


def import_graph() -> dict[str, set[str]]:
    """Module -> the modules it imports, anywhere in its text; the packages above it left out."""
    names = {module_name(path) for path in modules()}
    graph: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        me = module_name(path)
        for name in imported_names(path):
            target = name if name in names else name.rpartition(".")[0]
            if target in names and target != me and not me.startswith(f"{target}."):
                graph[me].add(target)
    return graph


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Modules that an import of ``start`` leads to."""
    found: set[str] = set()
    waiting = set(graph.get(start, ()))
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= graph.get(module, set()) - found
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that lead back to themselves."""
    leads_to = {module: reachable(graph, module) for module in graph}
    groups = {
        tuple(sorted(other for other in targets if module in leads_to.get(other, ())))
        for module, targets in leads_to.items()
        if module in targets
    }
    return [list(group) for group in sorted(groups)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(import_graph()) == []


def test_a_circle_would_be_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(graph) == [["a", "b", "c"]]
