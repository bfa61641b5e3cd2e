"""LRU: the values used last, up to a total size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Key = TypeVar("Key", bound="Hashable")
Value = TypeVar("Value")


class LRU(Generic[Key, Value]):
    """A bounded mapping; the values used longest ago are dropped first. Any thread may call.

    ``functools.lru_cache`` neither weighs its values nor answers for a batch of keys.

    Args:
        most: the largest total size; the newest value is kept even if it alone is larger.
        size: of one value; by default each counts 1.

    """

    def __init__(self, most: int, size: Callable[[Value], int] | None = None) -> None:
        self._most = most
        self._size = size or (lambda _: 1)
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._total = 0
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is then the one used last; None if there is none."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> None:
        """Keep a value; one that is there already stays."""
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self._total += self._size(value)
            while self._total > self._most and len(self._values) > 1:
                self._total -= self._size(self._values.popitem(last=False)[1])

    def __len__(self) -> int:
        return len(self._values)
