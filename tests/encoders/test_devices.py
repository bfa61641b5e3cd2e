"""Devices by name, and the choice of precision."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch

from featpipe.encoders import precision
from featpipe.encoders.attention import has_varlen
from featpipe.errors import MissingExtra, UnknownDevice, UsageError


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "mps", "", "cuda:-1", "cpu:0"])
def test_a_name_that_is_not_understood_is_refused(name: str) -> None:
    with pytest.raises(UnknownDevice, match="not understood"):
        precision.find_device(name)


def test_a_card_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownDevice, match="cuda:97: this machine has"):
        precision.find_device("cuda:97")


def test_the_processor_is_always_there() -> None:
    assert precision.find_device("cpu") == torch.device("cpu")


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    with precision.running_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("gain", "expected"), [(0.01, "exact"), (1.29, "exact"), (1.31, "mixed")])
def test_auto_is_mixed_only_where_that_is_worth_it_and_asked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, gain: float, expected: str
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precision, "_lacks_bf16", lambda: False)
    monkeypatch.setattr(precision, "measure_bf16_gain", lambda **_: gain)
    assert precision.resolve_precision("auto") == expected
    monkeypatch.setattr(precision, "measure_bf16_gain", lambda **_: pytest.fail("measured again"))
    assert precision.resolve_precision("auto") == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("model name\t: Old\nflags\t\t: fpu avx2 avx512f", "exact"),
        ("model name\t: New\nflags\t\t: fpu avx512f avx512_bf16", None),
        ("Features\t: fp asimd bf16 sve", None),
        ("Features\t: fp asimd", "exact"),
        ("unknown", None),
    ],
)
def test_a_processor_without_bf16_needs_no_measurement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, words: str, expected: str | None
) -> None:
    monkeypatch.setenv("FEATPIPE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(precision, "describe_processor", lambda: words)
    assert precision.find_precision("auto") == expected


def test_a_stated_precision_stays() -> None:
    assert precision.resolve_precision("exact") == "exact"
    assert precision.resolve_precision("mixed") == "mixed"
    with pytest.raises(UsageError, match="'fast' is none of"):
        precision.resolve_precision("fast")


def test_the_probe_measures_something() -> None:
    assert 0 < precision.measure_bf16_gain() < 100


def test_one_kernel_for_all_lengths_is_for_cards_that_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card, capability = torch.device("cuda", 0), (9, 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    assert not has_varlen(torch.device("cpu"), 64)
    assert has_varlen(card, 64)
    assert not has_varlen(card, 20)
    assert not has_varlen(card, 264)
    capability = (7, 5)
    assert not has_varlen(card, 64)


def test_without_torch_the_choice_of_precision_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(precision, "_lacks_bf16", lambda: False)
    monkeypatch.setattr(importlib.metadata, "version", absent)
    with pytest.raises(MissingExtra, match="torch, which is not installed"):
        precision.find_precision("auto")
    assert precision.find_precision("exact") == "exact"
