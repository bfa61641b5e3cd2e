"""Equal stretches share a number, different ones never do, whatever their hashes."""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featpipe.errors import MissingExtra, UsageError
from featpipe.lexical import backend as backend_module
from featpipe.lexical import interning
from featpipe.lexical import jieba_dictionary as source
from featpipe.lexical.backend import Backends, choose_backend
from featpipe.lexical.compile import CodedTexts
from featpipe.lexical.interning import intern_spans
from featpipe.lexical.words import TermBatch, Words, join_batches

KernelBackend = Literal["numba", "numpy"]
BACKENDS: list[KernelBackend] = ["numba", "numpy"]


def check(words: list[str], backend: KernelBackend) -> None:
    coded = CodedTexts.from_texts(words)
    found = intern_spans(coded.codes, coded.bounds[:-1], coded.bounds[1:], backend=backend)
    numbers: dict[str, int] = {}
    assert found.ids.tolist() == [numbers.setdefault(word, len(numbers)) for word in words]
    assert found.first.tolist() == [words.index(word) for word in numbers]
    assert found.ids.dtype == np.int32


@pytest.mark.parametrize("backend", BACKENDS)
@given(words=st.lists(st.text("ab国\ud800", max_size=40) | st.text(min_size=1), max_size=40))
@settings(max_examples=60, deadline=None)
def test_numbers_are_those_of_a_dict(backend: KernelBackend, words: list[str]) -> None:
    check(words, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_grow_with_many_distinct_stretches(backend: KernelBackend) -> None:
    check([str(number % 9000) for number in range(20_000)], backend)


@pytest.mark.parametrize("same", ["every length", "one length"])
def test_stretches_with_one_hash_are_told_apart(same: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        interning, "_hash_spans", lambda _codes, starts, _ends: np.zeros(len(starts), np.uint64)
    )
    check(["ab", "ac", "ab", "ad"] if same == "one length" else ["a", "ab", "a", ""], "numpy")


def test_joined_batches_number_by_first_appearance() -> None:
    one = TermBatch(["b", "a"], np.array([0, 1, 0], np.int32), np.array([2, 1]))
    other = TermBatch(["c", "b"], np.array([1, 0], np.int32), np.array([0, 2]))
    joined = join_batches([one, other])
    assert joined.vocabulary == ["b", "a", "c"]
    assert joined.ids.tolist() == [0, 1, 0, 0, 2]
    assert joined.lengths.tolist() == [2, 1, 0, 2]


def test_without_numba_numpy_runs_and_asking_for_numba_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend_module, "numba_runs", lambda: False)
    assert choose_backend("auto") == "numpy"
    assert Backends("auto", warm_up=0).current == "numpy"
    with pytest.raises(MissingExtra, match="numba is not installed"):
        choose_backend("numba")
    with pytest.raises(UsageError, match="unknown backend"):
        choose_backend("fortran")  # type: ignore[arg-type]  # what the test is about


def test_a_numba_that_does_not_load_is_told_once_and_numpy_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend_module, "has_numba", lambda: True)
    monkeypatch.setitem(sys.modules, "numba", None)  # what importing it then raises: ImportError
    numba_runs = backend_module.numba_runs.__wrapped__
    with pytest.warns(UserWarning, match="does not load"):
        assert numba_runs() is False
    monkeypatch.setattr(backend_module, "has_numba", lambda: False)
    assert numba_runs() is False


def test_without_a_place_for_its_cache_numba_compiles_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numba

    honest = numba.njit

    def njit(**options: bool) -> object:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return honest(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert backend_module.compiled(lambda number: number + 1)(1) == 2


def test_without_jieba_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source.importlib.util, "find_spec", lambda _name: None)
    source.find_jieba.cache_clear()
    try:
        with pytest.raises(MissingExtra, match="jieba is not installed"):
            Words()
    finally:
        monkeypatch.undo()
        source.find_jieba.cache_clear()
