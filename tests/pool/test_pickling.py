"""What cannot travel is refused with the path to it and the cure."""

from __future__ import annotations

import functools
import pickle
import sys
import threading
import types
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featpipe.errors import CannotTravel
from featpipe.pool import Pool, Role
from featpipe.pool.pickling import dumps


class Holder:
    def __init__(self, **members: object) -> None:
        self.__dict__.update(members)


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: object) -> None:
        self.inner = inner


@dataclass
class Record:
    name: str
    parts: list[object] = field(default_factory=list)


class Reduced:
    """Pickles by a constructor call, whose arguments have no name of their own."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def __reduce__(self) -> tuple[object, ...]:
        return Reduced, (self.inner,)


def a_generator() -> Any:  # noqa: ANN401  # a generator
    yield 1


def make_local_class() -> type:
    class Local:
        pass

    return Local


class FakeDataset:
    """Stands for an open h5py object: h5py itself is none of the pool's business."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("h5py objects cannot be pickled")


FakeDataset.__module__ = "h5py._hl.dataset"


class FakeTensor:
    is_cuda = True
    note = "cuda"


FakeTensor.__module__ = "torch"


LOCK = threading.Lock()

CASES = {
    "in a dict": ({"a": {"b": LOCK}}, "['a']['b']", "__getstate__"),
    "in a list": ([1, [2, LOCK]], "[1][1]", "__getstate__"),
    "in a tuple": ((1, LOCK), "[1]", "__getstate__"),
    "in an attribute": (Holder(inner=Holder(lock=LOCK)), ".inner.lock", "__getstate__"),
    "in a slot": (Slotted(Slotted(LOCK)), ".inner.inner", "__getstate__"),
    "in a dataclass": (Record("r", [0, LOCK]), ".parts[1]", "__getstate__"),
    "behind a constructor": ({"r": Reduced(LOCK)}, "['r'].inner", "__getstate__"),
    "a lambda": ({"f": lambda: 1}, "['f']", "functools.partial"),
    "a default factory": ({"d": defaultdict(lambda: 1)}, "['d'].default_factory", "partial"),
    "a local class": ([make_local_class()], "[0]", "top level"),
    "a local object": ([make_local_class()()], "[0]", "top level"),
    "a generator": ({"g": a_generator()}, "['g']", "list"),
    "a module": ({"m": types}, "['m']", "name"),
    "in a partial": (functools.partial(print, LOCK), "", "__getstate__"),
    "a dataset": ({"opts": {"cache": FakeDataset()}}, "['opts']['cache']", "path of the file"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_path_and_the_cure_are_named(case: str) -> None:
    thing, path, cure = CASES[case]
    with pytest.raises(CannotTravel) as caught:
        dumps(thing, "payload")
    assert f"payload{path}" in caught.value.message
    assert cure in (caught.value.hint or ""), caught.value.hint


def test_an_open_file_is_named_by_its_path(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file, pytest.raises(CannotTravel) as caught:
        dumps({"log": file}, "payload")
    assert "payload['log']" in caught.value.message
    assert "path" in (caught.value.hint or "")


def test_a_function_of_the_main_module_is_refused_before_it_fails_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def function() -> None:
        pass

    function.__module__ = "__main__"
    function.__qualname__ = "function"
    monkeypatch.setattr(sys.modules["__main__"], "function", function, raising=False)
    assert pickle.dumps(function)
    with pytest.raises(CannotTravel, match=r"payload\['f'\]") as caught:
        dumps({"f": function}, "payload")
    assert "main module" in (caught.value.hint or "")


def test_a_tensor_on_a_card_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch")
    module.FakeTensor = FakeTensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    tensor = FakeTensor()
    tensor.__dict__["device"] = "cuda:0"
    with pytest.raises(CannotTravel, match=r"payload\[0\]") as caught:
        dumps([tensor], "payload")
    assert "numpy" in (caught.value.hint or "")


def test_the_words_alone_do_no_harm() -> None:
    thing = {"__main__": "torch on cuda", "list": ["__main__", "torch", "cuda"]}
    assert pickle.loads(dumps(thing, "payload")) == thing  # noqa: S301  # our own bytes


def test_a_roles_arguments_are_checked_before_anything_starts() -> None:
    role = Role("echo", "pool_roles:Echo", {"options": {"lock": LOCK}}, is_lazy=False)
    with pytest.raises(CannotTravel, match=r"echo\.arguments\['options'\]\['lock'\]"):
        Pool([role])


def test_a_large_payload_is_not_slower_to_be_refused() -> None:
    """The search walks the objects; it does not copy the arrays."""
    with pytest.raises(CannotTravel, match=r"payload\['lock'\]"):
        dumps({"big": np.zeros(10_000_000), "lock": LOCK}, "payload")
