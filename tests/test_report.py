"""Counts of parts add up to those of the whole."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from featpipe.report import Counts

NUMBER = st.integers(0, 1000)
COUNTS = st.builds(
    Counts,
    n_loaded=NUMBER,
    n_unchanged=NUMBER,
    units_by_level=st.dictionaries(st.sampled_from(["paragraph", "sentence", "word"]), NUMBER),
    n_entities=NUMBER,
    n_long=NUMBER,
    n_extra_windows=NUMBER,
    n_long_tokens=NUMBER,
    n_cut_tokens=NUMBER,
)


@given(COUNTS, COUNTS, COUNTS)
def test_counts_add_up_field_by_field(a: Counts, b: Counts, c: Counts) -> None:
    whole = a + b
    for field in fields(Counts):
        if field.name != "units_by_level":
            one, other = getattr(a, field.name), getattr(b, field.name)
            assert getattr(whole, field.name) == one + other
    for level in {*a.units_by_level, *b.units_by_level}:
        parts = a.units_by_level.get(level, 0) + b.units_by_level.get(level, 0)
        assert whole.units_by_level[level] == parts
    assert (a + b) + c == a + (b + c)
    assert a + Counts() == a
