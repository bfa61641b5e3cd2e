"""Characters: what holds of each one, looked up for a whole text at once.

The tables are as long as Unicode and empty at first: a character is looked at in Python when it is
met for the first time, so that most of their memory is never touched. Filling them twice, by two
threads, writes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Points = NDArray[np.uint32]

_N_POINTS = 0x110000
#: Bits of a character's traits.
LETTER, DECIMAL, DIGIT, BREAK, BLANK, PLAIN, UPPER, _KNOWN = (1 << n for n in range(8))


def points_of(text: str) -> Points:
    """Code points (len(text),)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def text_of(points: Points) -> str:
    """The text back."""
    return points.astype(np.uint32, copy=False).tobytes().decode("utf-32-le", "surrogatepass")


class CharacterTable:
    """One number for each character, computed when it is first met. Any thread may look up.

    Args:
        compute: character -> a number; for 0 it is asked every time.
        dtype: that holds it.

    """

    def __init__(self, compute: Callable[[str], int], dtype: type[np.generic]) -> None:
        self._compute = compute
        self._values: NDArray[Any] = np.zeros(_N_POINTS, dtype)

    def look_up(self, points: Points) -> NDArray[Any]:
        """Shape of ``points``."""
        found = self._values[points]
        if not found.all():
            for point in np.unique(points[found == 0]).tolist():
                self._values[point] = self._compute(chr(point))
            found = self._values[points]
        return found


def traits_of(char: str) -> int:
    """Bits: a to z; part of a number as patterns see it; any digit; line break or tab; blank ...

    ``PLAIN`` are letters and digits of any writing.
    """
    bits = _KNOWN
    bits |= LETTER * ("a" <= char <= "z") | DECIMAL * char.isdecimal() | DIGIT * char.isdigit()
    bits |= BREAK * (char in "\n\t") | BLANK * char.isspace()
    return bits | PLAIN * char.isalnum() | UPPER * char.isupper()


TRAITS = CharacterTable(traits_of, np.uint8)
