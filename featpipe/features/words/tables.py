"""jieba's dictionary and model as plain arrays that many processes can map."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.features.words.codes import CodedTexts

if TYPE_CHECKING:
    from typing import Protocol

    from numpy.typing import NDArray

    from featpipe.features.words.codes import Codes, Offsets

    class Kernel(Protocol):
        """Cuts a batch: where words start, over all texts laid end to end."""

        def __call__(self, tables: Tables, coded: CodedTexts, *, hmm: bool) -> Offsets:
            """(n_words,) int64, ascending."""


#: jieba's blocks hold characters below this only; the place itself stands for all others.
BEYOND = 0x9FD6
FIRST_HAN = 0x4E00

#: Classes of characters: outside of any block; Han; ASCII letter or digit; one of ``+#&._%-``.
OUTSIDE, HAN, ALNUM, MARK = 0, 1, 2, 3

HASH_MULTIPLIER = 0x9E3779B97F4A7C15
#: A state is a character (a root) or, from here on, a slot of the trie.
FIRST_SLOT = 1 << 21
CODE_BITS = 21

#: Places of the hidden states; their order decides nothing, jieba's letters do (see hidden.py).
B, M, E, S = 0, 1, 2, 3


class Tables(NamedTuple):
    """What the kernels walk. Read-only; usually mapped from files.

    - ``trie`` (n_slots, 2) int64: an open-addressed hash table with linear probing. Column 0 is
      ``state << 21 | character`` or -1, column 1 the bits of the word's float64 weight: log
      frequency minus log total as jieba computes it, NaN where only longer words go on.
    - ``roots`` (BEYOND + 1,) float64: weight by first character, NaN as above, +inf where no word
      begins so.
    - ``classes`` (BEYOND + 1,) uint8.
    - ``emissions`` (BEYOND - FIRST_HAN, 4), ``starts`` (4,), ``transitions`` (4, 4) float64 by
      state BMES: finalseg's tables.
    - ``unknown`` (1,) float64: weight of a character that is no word.
    - ``force_split`` (n,) int64: states of deleted words, ascending; the model may not make them.
    - ``probe_codes``, ``probe_bounds``: texts, end to end, on which any kernel must prove itself;
      ``probe_starts`` and ``probe_plain_starts`` int64 where jieba's words start in them, HMM on
      and off.
    """

    trie: NDArray[np.int64]
    roots: NDArray[np.float64]
    classes: NDArray[np.uint8]
    emissions: NDArray[np.float64]
    starts: NDArray[np.float64]
    transitions: NDArray[np.float64]
    unknown: NDArray[np.float64]
    force_split: NDArray[np.int64]
    probe_codes: NDArray[np.int32]
    probe_bounds: NDArray[np.int64]
    probe_starts: NDArray[np.int64]
    probe_plain_starts: NDArray[np.int64]

    def classes_of(self, codes: Codes) -> NDArray[np.uint8]:
        """Class by character (n,) -> (n,)."""
        return self.classes.take(np.minimum(codes, BEYOND))


def passes_probe(tables: Tables, cut: Kernel) -> bool:
    """Whether a kernel cuts the probe texts as jieba does."""
    coded = CodedTexts(tables.probe_codes, tables.probe_bounds)
    return np.array_equal(cut(tables, coded, hmm=True), tables.probe_starts) and np.array_equal(
        cut(tables, coded, hmm=False), tables.probe_plain_starts
    )


def slots_of(
    states: NDArray[np.int64], codes: NDArray[np.int64], n_slots: int
) -> NDArray[np.int64]:
    """The slot at which the search for each (state, character) begins."""
    keys = (states << CODE_BITS | codes).view(np.uint64)
    shift = np.uint64(64 - (n_slots.bit_length() - 1))
    return ((keys * np.uint64(HASH_MULTIPLIER)) >> shift).view(np.int64)


def step(tables: Tables, states: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Go on by one character: the slots reached (n,) int64, -1 where no word goes on so."""
    keys = tables.trie[:, 0]
    wanted = states << CODE_BITS | codes
    slots = slots_of(states, codes, len(keys))
    found = keys[slots]
    reached = np.where(found == wanted, slots, -1)
    looking = np.flatnonzero((found != wanted) & (found >= 0))
    while len(looking):
        slots[looking] = (slots[looking] + 1) & (len(keys) - 1)
        found = keys[slots[looking]]
        hit = found == wanted[looking]
        reached[looking[hit]] = slots[looking[hit]]
        looking = looking[~hit & (found >= 0)]
    return reached


def walk(
    tables: Tables, codes: Codes, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Look stretches up: the state each spells (-1: none) and its weight (NaN: no word).

    Every stretch lies within blocks and holds at least one character.
    """
    weights_by_slot = tables.trie[:, 1].view(np.float64)
    heads = codes[starts].astype(np.int64)
    weights = tables.roots[heads]
    states = np.where(weights == np.inf, -1, heads)
    active = np.flatnonzero((states >= 0) & (ends - starts > 1))
    depth = 1
    while len(active):
        slots = step(tables, states[active], codes[starts[active] + depth].astype(np.int64))
        on = slots >= 0
        states[active] = np.where(on, slots + FIRST_SLOT, -1)
        weights[active] = np.where(on, weights_by_slot[slots], np.nan)
        depth += 1
        active = active[on & ((ends - starts)[active] > depth)]
    weights[states < 0] = np.nan
    return states, weights
