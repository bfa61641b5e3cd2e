"""The values used last are kept, up to a total size."""

from __future__ import annotations

from featpipe.lru import LRU


def test_the_value_used_longest_ago_goes_first() -> None:
    kept: LRU[str, int] = LRU(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert [kept.get(key) for key in "abc"] == [1, None, 3]


def test_values_count_by_their_size_and_the_newest_stays_however_large() -> None:
    kept: LRU[str, str] = LRU(5, len)
    kept.put("a", "xxx")
    kept.put("b", "xx")
    assert len(kept) == 2
    kept.put("b", "another value of a key that is there")
    assert kept.get("b") == "xx"
    kept.put("c", "x" * 9)
    assert len(kept) == 1
    assert kept.get("c") == "x" * 9
