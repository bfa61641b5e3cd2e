"""Settings of a build are refused by name, before anything starts."""

from __future__ import annotations

from math import inf, nan

import pytest

from featpipe.errors import UsageError
from featpipe.settings import LEVELS, BuildSettings


@pytest.mark.parametrize("levels", [("sentence", "sentence"), ["sentence"], ("sentence",)])
def test_a_level_counts_once(levels: object) -> None:
    assert BuildSettings(levels=levels).levels == ("sentence",)  # type: ignore[arg-type]


def test_levels_have_one_order() -> None:
    assert BuildSettings(levels=("word", "paragraph", "sentence")).levels == LEVELS


@pytest.mark.parametrize("levels", [(), ("page",), "words"])
def test_what_is_no_level_is_named(levels: object) -> None:
    with pytest.raises(UsageError, match="unknown level"):
        BuildSettings(levels=levels)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_prepare_workers", (0, -1, 1.5, nan, "3", True)),
        ("document_deadline_s", (0, -1, nan, "3", None, True)),
        ("ocr_deadline_s", (0, nan)),
        ("unit_deadline_s", (0, nan)),
        ("lock_wait_s", (-1, nan, "3", None)),
        ("max_document_bytes", (0, -1, 1.5, nan, inf, "3")),
        ("max_document_characters", (0, -1, "3")),
        ("max_worker_memory_bytes", (0, -1, 1000, 1e12, "3")),
        ("use_ocr", ("no", 1, None)),
    ],
)
def test_a_value_that_is_none_of_a_setting_is_refused_by_name(
    name: str, values: tuple[object, ...]
) -> None:
    for value in values:
        with pytest.raises(UsageError, match=f"{name} must be"):
            BuildSettings(**{name: value})  # type: ignore[arg-type]


def test_waiting_without_end_is_a_choice() -> None:
    assert BuildSettings(lock_wait_s=inf, document_deadline_s=inf).task_deadline_s == inf
