"""The order of the review queue: what is most doubtful comes first, and always the same way."""

from __future__ import annotations

from pathlib import Path

import pytest

from featpipe import Cache
from featpipe.extraction.results import ExtractedValue
from featpipe.extraction.review_queue import QueueItem, doubt, order_queue


def value(p: float, remark: str = "") -> ExtractedValue:
    return ExtractedValue("v", "v", "", "", 0, 1, None, p, remark=remark)


@pytest.mark.parametrize(
    ("values", "filled", "expected"),
    [
        ([value(0.5)], 1.0, 1.0),
        ([value(0.99)], 1.0, 0.02),
        ([value(0.01)], 1.0, 0.02),
        ([value(0.99), value(0.6)], 1.0, 0.8),
        ([value(0.99, "the same as \u7532\u65b9")], 1.0, 1.0),
        ([], 0.9, 0.45),
        ([], 0.0, 0.0),
    ],
)
def test_doubt(built: Path, values: list[ExtractedValue], filled: float, expected: float) -> None:
    with Cache.open(built) as cache:
        document = next(cache.documents())
    item = QueueItem(document, "f", tuple(values), filled)
    assert doubt(item) == pytest.approx(expected)


def test_equally_doubtful_items_keep_their_order(built: Path) -> None:
    with Cache.open(built) as cache:
        document = next(cache.documents())
    items = [
        QueueItem(document, name, (value(p),), 1.0)
        for name, p in (("a", 0.9), ("b", 0.5), ("c", 0.1), ("d", 0.5))
    ]
    assert [item.field for item in order_queue(items)] == ["b", "d", "a", "c"]
