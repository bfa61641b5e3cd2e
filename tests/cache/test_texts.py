"""Units: distinct texts packed as bytes, equal to what plain dicts and lists say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from featpipe.cache.texts import LEVEL_BIT, Texts, UnitCollector, Units
from featpipe.settings import LEVELS
from featpipe.store import key_of

ANY_TEXT = st.text(st.characters(), max_size=12)
OCCURRENCES = st.lists(st.tuples(ANY_TEXT, st.sampled_from(LEVELS)), max_size=40)


@given(st.lists(ANY_TEXT, max_size=20))
def test_texts_come_back_as_they_went_in(strings: list[str]) -> None:
    assert Texts.from_strings(strings).strings() == strings


@given(st.lists(ANY_TEXT, min_size=1, max_size=20), st.data())
def test_taking_and_joining_are_those_of_lists(strings: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=30))
    packed = Texts.from_strings(strings)
    taken = packed.take(np.array(rows, np.intp))
    assert taken.strings() == [strings[row] for row in rows]
    assert Texts.joined([packed, taken]).strings() == strings + taken.strings()


@given(OCCURRENCES)
def test_the_collector_counts_like_a_dict(occurrences: list[tuple[str, str]]) -> None:
    collector = UnitCollector()
    model: dict[str, int] = {}
    for text, level in occurrences:
        at = collector.add([text], level)
        model[text] = model.get(text, 0) | LEVEL_BIT[level]
        assert at.tolist() == [list(model).index(text)]
    units = collector.units()
    assert units.texts.strings() == list(model)
    assert units.levels.tolist() == list(model.values())
    assert [key.tobytes() for key in units.keys] == [key_of(text) for text in model]


def test_halves_of_units_are_all_of_them() -> None:
    collector = UnitCollector()
    collector.add(["甲", "乙方", "丙", "丁", "戊"], "word")
    units = collector.units()
    first, second = units.halves()
    assert len(first) == 2
    assert Units.joined([first, second]).texts.strings() == units.texts.strings()
