"""What people say for what statutes say, written by hand: groups of words, and words that only ask.

`synonyms.txt` holds a group a line, everyday words beside those of statutes; `fillers.txt` holds
what questions are wrapped in. Texts learnt from are written by lawyers and companies; with these, a
clause is also met as somebody would ask for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Ids = np.ndarray
    Encode = Callable[[str], Sequence[int]]

MOST_FILLERS = 8


def read_groups() -> list[list[str]]:
    """Words that stand for one another, or are asked about with one another."""
    return [line.split() for line in _lines("synonyms.txt")]


def read_fillers() -> list[str]:
    """Words that ask, point and join."""
    return [word for line in _lines("fillers.txt") for word in line.split()]


def _lines(name: str) -> list[str]:
    text = Path(__file__).with_name(name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


class Fillers:
    """Puts words around a clause that say nothing, so that they come to weigh nothing."""

    def __init__(self, encode: Encode) -> None:
        encoded = [np.asarray(encode(word), np.int64) for word in read_fillers()]
        self._words = [ids for ids in encoded if len(ids)]

    def add_to(self, clause: Ids, rng: np.random.Generator, share: float) -> Ids:
        """`share` of the clauses get up to MOST_FILLERS of them at their end."""
        if not self._words or rng.random() >= share:
            return clause
        chosen = rng.integers(len(self._words), size=int(rng.integers(1, MOST_FILLERS + 1)))
        return np.concatenate([clause, *(self._words[int(number)] for number in chosen)])


class Synonyms:
    """Exchanges words for others of their groups, in sequences of ids.

    Args:
        encode: a word or phrase -> its ids; those without any are left out.

    """

    def __init__(self, encode: Encode) -> None:
        encoded = [[tuple(encode(member)) for member in group] for group in read_groups()]
        kept = [[ids for ids in group if ids] for group in encoded]
        self.groups = [group for group in kept if len(group) > 1]
        self._by_first: dict[int, dict[tuple[int, ...], list[int]]] = {}
        for number, group in enumerate(self.groups):
            for ids in group:
                self._by_first.setdefault(ids[0], {}).setdefault(ids, []).append(number)

    def exchange(self, clause: Ids, rng: np.random.Generator, share: float) -> Ids:
        """`share` of the members found, longest first, become one of their group."""
        ids, out, at = clause.tolist(), [], 0
        while at < len(ids):
            known = self._by_first.get(ids[at], {})
            found = [one for one in known if tuple(ids[at : at + len(one)]) == one]
            member = max(found, key=len, default=(ids[at],))
            if found and rng.random() < share:
                numbers = known[member]
                group = self.groups[numbers[int(rng.integers(len(numbers)))]]
                out += group[int(rng.integers(len(group)))]
            else:
                out += member
            at += len(member)
        return np.array(out, np.int64)

    def draw_pair(self, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two members of each of one to four groups: (ids, ids)."""
        first: list[int] = []
        second: list[int] = []
        for number in rng.integers(len(self.groups), size=int(rng.integers(1, 5))):
            group = self.groups[int(number)]
            one, other = rng.permutation(len(group))[:2]
            first += group[int(one)]
            second += group[int(other)]
        return np.array(first, np.int64), np.array(second, np.int64)
