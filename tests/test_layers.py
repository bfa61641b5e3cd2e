"""Imports go down, never up or sideways: each is parsed and held against the drawing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import featpipe

PACKAGE = Path(featpipe.__file__).parent

FLOOR = {"errors", "outcome", "settings"}
STRANGERS = {"documents", "features", "pool", "store"}

#: Room -> the rooms it may import. Anything else is a fault of the architecture, not of style.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "outcome": {"errors"},
    "settings": {"errors"},
    **dict.fromkeys(STRANGERS, FLOOR),
    "pipeline": FLOOR | STRANGERS,
    "templates": FLOOR | STRANGERS | {"pipeline"},
    "adapters": FLOOR | STRANGERS | {"pipeline", "templates"},
    "testing": FLOOR | STRANGERS | {"pipeline", "templates"},
    "cli": FLOOR | STRANGERS | {"pipeline", "templates", "adapters", "__init__"},
    "__init__": {"errors", "outcome", "pipeline", "templates"},
    "__main__": {"cli"},
}

#: Foreign packages that no file of a room may import, at any depth.
FORBIDDEN = {
    "store": {"torch", "transformers", "jieba", "safetensors"},
    "pool": {"torch", "transformers", "h5py", "jieba", "multiprocessing"},
    "documents": {"torch", "transformers", "h5py"},
    "features": {"h5py", "multiprocessing", "subprocess"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


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
