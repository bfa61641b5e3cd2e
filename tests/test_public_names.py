"""The public face: one list of names, and an import that costs next to nothing."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import featpipe
from featpipe import _HOMES

HEAVY = ("torch", "transformers", "h5py", "jieba", "numpy", "scipy", "pydantic", "rich", "numba")
README = Path(__file__).resolve().parent.parent / "README.md"

#: Made by featpipe and handed out; nobody calls these constructors.
HANDED_OUT = {"CachedDocument", "Dictionary"}


def test_every_public_name_is_where_the_list_says() -> None:
    assert sorted({*_HOMES, "__version__"}) == sorted(featpipe.__all__)
    for name, home in _HOMES.items():
        assert getattr(featpipe, name) is getattr(import_module(home), name)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(str(featpipe.__file__)).read_text("utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("featpipe.")
        for alias in node.names
    }
    assert seen == _HOMES


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Cashe"):
        featpipe.Cashe  # noqa: B018 - the access is the test


# ---- every type that a public signature takes or gives is public


def definition_of(public: object) -> tuple[ModuleType, ast.ClassDef | ast.FunctionDef]:
    """The module of a public class or function, and its source there."""
    module = import_module(public.__module__)  # type: ignore[attr-defined]
    tree = ast.parse(inspect.getsource(module))
    [found] = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == public.__name__  # type: ignore[attr-defined]
    ]
    return module, found


def annotations_of(node: ast.ClassDef | ast.FunctionDef) -> Iterator[ast.expr]:
    """Of the public methods, properties and attributes of a class, or of a function."""
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            constructor = set() if node.name in HANDED_OUT else {"__init__"}
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and (
                not part.name.startswith("_") or part.name in {"__iter__", *constructor}
            ):
                yield from annotations_of(part)  # type: ignore[arg-type]
            elif isinstance(part, ast.AnnAssign) and not str(ast.unparse(part.target)).startswith(
                "_"
            ):
                yield part.annotation
        return
    for argument in (*node.args.args, *node.args.kwonlyargs):
        if argument.annotation is not None:
            yield argument.annotation
    if node.returns is not None:
        yield node.returns


def names_in(module: ModuleType) -> dict[str, str]:
    """Name -> the module of featpipe it is imported from or defined in, type checking included."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("featpipe"):
            found |= {alias.asname or alias.name: str(node.module) for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = module.__name__
    return found


@pytest.mark.parametrize("name", sorted(set(_HOMES) - {"FeatpipeError"}))
def test_types_in_public_signatures_are_public(name: str) -> None:
    module, definition = definition_of(getattr(featpipe, name))
    known = names_in(module)
    hidden = set()
    for annotation in annotations_of(definition):
        for word in re.findall(r"[A-Za-z_]\w*", ast.unparse(annotation)):
            if word in known and word not in _HOMES:
                value = getattr(import_module(known[word]), word, None)
                is_ours = inspect.isclass(value) and value.__module__.startswith("featpipe.")
                if is_ours and not getattr(value, "_is_protocol", False):
                    hidden.add(f"{known[word]}.{word}")
    assert not hidden, f"{name} takes or gives types that are not public: {sorted(hidden)}"


@pytest.mark.parametrize("name", sorted(_HOMES))
def test_public_names_are_documented_and_listed_in_the_readme(name: str) -> None:
    assert inspect.getdoc(getattr(featpipe, name))
    assert re.search(rf"`[^`]*\b{name}\b[^`]*`", README.read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(set(_HOMES) - {"FeatpipeError"}))
def test_public_classes_have_a_repr_of_their_own(name: str) -> None:
    public = getattr(featpipe, name)
    if inspect.isclass(public):
        assert public.__repr__ is not object.__repr__


# ---- what an import costs


@pytest.mark.parametrize("code", ["import featpipe", "import featpipe.cli.main"])
def test_importing_loads_nothing_heavy(code: str) -> None:
    loaded = f"{code}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_writer_role_loads_no_torch() -> None:
    code = (
        "import featpipe.cache.write, featpipe.build.messages, sys;"
        "print([m for m in ('torch', 'transformers', 'jieba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
