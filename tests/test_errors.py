"""The error tree: drawn as it is, and every error survives the way between two processes."""

from __future__ import annotations

import pickle
import re

import pytest

from featpipe import errors
from featpipe.errors import FeatpipeError


def all_errors() -> list[type[FeatpipeError]]:
    found = [FeatpipeError]
    for kind in found:
        found.extend(kind.__subclasses__())
    return [kind for kind in found if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_with_its_hint_and_facts(kind: type[FeatpipeError]) -> None:
    error = kind("c.h5 is locked", hint="wait for it")
    error.path = "c.h5"  # type: ignore[attr-defined]  # any fact an error carries
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is kind
    assert str(copy) == "c.h5 is locked\n  wait for it"
    assert copy.path == "c.h5"


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│ ]*)(?:[├└]── )?([A-Z]\w+)(\s|$)", line)
        if match:
            depth = len(match[1]) // 4 + ("──" in line)
            path[depth:] = [match[2]]
            drawn[match[2]] = path[depth - 1] if depth else ""
    actual = {kind.__name__: kind.__bases__[0].__name__ for kind in all_errors()}
    actual["FeatpipeError"] = ""
    assert drawn == actual
