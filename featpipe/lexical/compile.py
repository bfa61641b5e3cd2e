"""What the cutting kernels read: texts as code points, and jieba's dictionary as arrays.

Arrays are compiled once per dictionary from jieba's own Python dictionaries and then mapped by any
number of processes.
"""

from __future__ import annotations

import random
import string
from math import log
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.lexical.jieba_dictionary import Jieba

Codes = NDArray[np.int32]
Offsets = NDArray[np.int64]

#: Characters from here on are outside of jieba's blocks; they share index BEYOND of a table.
BEYOND = 0x9FD6
FIRST_HAN = 0x4E00

#: Classes of characters: outside of any block; Han; ASCII letter or digit; one of ``+#&._%-``.
OUTSIDE, HAN, ALNUM, MARK = 0, 1, 2, 3

HASH_MULTIPLIER = 0x9E3779B97F4A7C15
#: A state is a character (a root) or, from here on, a slot of the trie.
FIRST_SLOT = 1 << 21
CODE_BITS = 21

#: Columns of the hidden states. Ties are decided by jieba's letters, see ``cut_numpy``.
B, M, E, S = 0, 1, 2, 3
_STATES = "BMES"
_MIN_FLOAT = -3.14e100  # finalseg.MIN_FLOAT
_MIN_SLOTS = 1 << 12
#: Between the words of probe texts.
_FILLERS = (
    "，",
    "。",
    "的",
    "和",
    "1.5%",
    "A股",
    "v2.0.1",
    "-",
    "王小二",
    "\r\n",
    "C++",
    "𠮷",
    " ",
)


class CodedTexts(NamedTuple):
    """Texts laid end to end.

    ``codes`` (n_characters,) int32 holds one number per Python character, so offsets into it are
    Python string offsets; ``bounds`` (n_texts + 1,) int64 holds where each text starts. Lone
    surrogates, NUL and everything else a ``str`` may hold go through unchanged.
    """

    codes: Codes
    bounds: Offsets

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> CodedTexts:
        """Lay texts end to end; four bytes a character."""
        joined = "".join(texts)
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.int32)
        bounds = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=bounds[1:])
        return cls(codes, bounds)

    @property
    def n_texts(self) -> int:
        """Texts, empty ones included."""
        return len(self.bounds) - 1


def text_of(codes: Codes) -> str:
    """The string these code points spell; the inverse of :meth:`CodedTexts.from_texts`."""
    return np.ascontiguousarray(codes, np.int32).tobytes().decode("utf-32-le", "surrogatepass")


class Tables(NamedTuple):
    """A dictionary and model as arrays, read-only; usually mapped from files.

    - ``trie`` (n_slots, 2) int64: an open-addressed hash table with linear probing. Column 0 is
      ``state << 21 | character`` or -1, column 1 the bits of the word's float64 weight: log
      frequency minus log total as jieba computes it, NaN where only longer words go on.
    - ``roots`` (BEYOND + 1,) float64: weight by first character, NaN as above, +inf where no word
      begins so.
    - ``classes`` (BEYOND + 1,) uint8.
    - ``emissions`` (BEYOND - FIRST_HAN, 4), ``starts`` (4,), ``transitions`` (4, 4) float64 by
      state BMES: finalseg's tables.
    - ``unknown`` (1,) float64: weight of a character that is not a word.
    - ``force_split`` (n,) int64: states of deleted words, ascending; the model may not make them.
    - ``probe_codes``, ``probe_bounds``: texts, end to end, on which each kernel is tested;
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


class Kernel(Protocol):
    """Cuts a batch."""

    def __call__(self, tables: Tables, coded: CodedTexts, *, hmm: bool) -> Offsets:
        """Where words start, over all texts laid end to end: (n_words,) int64, ascending."""


def compile_tables(jieba: Jieba) -> Tables:
    """Arrays that cut as ``jieba`` does.

    Words with a character that jieba never puts into a block are left out: they can never match.

    Raises:
        ValueError: a dictionary jieba itself cannot cut with, such as one without words.
    """
    classes = _character_classes()
    log_total = log(jieba.total)
    coded = CodedTexts.from_texts(list(jieba.frequencies))
    # The very operations of Tokenizer.calc, on Python numbers: frequencies may be of any size.
    weights = np.array(
        [log(each) - log_total if each else np.nan for each in jieba.frequencies.values()]
    )
    inside = classes[np.minimum(coded.codes, BEYOND)] > 0
    before = np.concatenate(([0], np.cumsum(inside)))
    starts, ends = coded.bounds[:-1], coded.bounds[1:]
    fit = (before[ends] - before[starts] == ends - starts) & (ends > starts)
    trie, roots = _build_trie(coded.codes, starts[fit], ends[fit], weights[fit])
    start, transition, emission = jieba.model
    tables = Tables(
        trie=trie,
        roots=roots,
        classes=classes,
        emissions=_emissions(emission),
        starts=np.array([start[state] for state in _STATES]),
        transitions=np.array(
            [[transition[old].get(new, _MIN_FLOAT) for new in _STATES] for old in _STATES]
        ),
        unknown=np.array([log(1) - log_total]),
        force_split=np.zeros(0, np.int64),
        probe_codes=np.zeros(0, np.int32),
        probe_bounds=np.zeros(1, np.int64),
        probe_starts=np.zeros(0, np.int64),
        probe_plain_starts=np.zeros(0, np.int64),
    )
    return _with_force_split(tables, jieba.force_split)


def _character_classes() -> NDArray[np.uint8]:
    classes = np.zeros(BEYOND + 1, np.uint8)
    classes[FIRST_HAN:BEYOND] = HAN
    for character in string.ascii_letters + string.digits:
        classes[ord(character)] = ALNUM
    for character in "+#&._%-":
        classes[ord(character)] = MARK
    return classes


def _emissions(by_state: dict[str, dict[str, float]]) -> NDArray[np.float64]:
    table = np.full((BEYOND - FIRST_HAN, len(_STATES)), _MIN_FLOAT)
    for column, state in enumerate(_STATES):
        for character, value in by_state[state].items():
            row = ord(character) - FIRST_HAN
            if 0 <= row < len(table):
                table[row, column] = value
    return table


def _build_trie(
    codes: NDArray[np.int32],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Insert all words level by level, so that a state is known before anything goes on from it."""
    n_slots = max(_MIN_SLOTS, 1 << (2 * len(starts)).bit_length())
    trie = np.full((n_slots, 2), -1, np.int64)
    roots = np.full(BEYOND + 1, np.inf)
    states = codes[starts].astype(np.int64)
    roots[states] = np.nan
    lengths = ends - starts
    single = lengths == 1
    roots[states[single]] = weights[single]
    weight_bits = trie[:, 1].view(np.float64)
    weight_bits[:] = np.nan
    for depth in range(1, int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > depth)
        keys = states[longer] << CODE_BITS | codes[starts[longer] + depth]
        distinct, inverse = np.unique(keys, return_inverse=True)
        slots = _insert(trie[:, 0], distinct)
        states[longer] = slots[inverse] + FIRST_SLOT
        whole = longer[lengths[longer] == depth + 1]
        weight_bits[states[whole] - FIRST_SLOT] = weights[whole]
    return trie, roots


def _insert(keys: NDArray[np.int64], new: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put distinct new keys into the open-addressed table; the slot of each."""
    slots = slots_of(new >> CODE_BITS, new & ((1 << CODE_BITS) - 1), len(keys))
    waiting = np.arange(len(new))
    while len(waiting):
        free = waiting[keys[slots[waiting]] < 0]
        keys[slots[free]] = new[free]  # of several that meet in one slot, one wins ...
        waiting = waiting[keys[slots[waiting]] != new[waiting]]  # ... and the others go on
        slots[waiting] = (slots[waiting] + 1) & (len(keys) - 1)
    return slots


def _with_force_split(tables: Tables, words: set[str]) -> Tables:
    han = [word for word in words if all(FIRST_HAN <= ord(each) < BEYOND for each in word)]
    coded = CodedTexts.from_texts([word for word in han if word])
    if not coded.n_texts:
        return tables
    states, _ = walk(tables, coded.codes, coded.bounds[:-1], coded.bounds[1:])
    return tables._replace(force_split=np.unique(states[states >= 0]))


def add_probe(tables: Tables, jieba: Jieba) -> Tables:
    """The tables with probe texts and where jieba's words start in them."""
    texts = _probe_texts(jieba)
    coded = CodedTexts.from_texts(texts)
    starts, _ = jieba.cut_coded(texts, coded.bounds, hmm=True)
    plain_starts, _ = jieba.cut_coded(texts, coded.bounds, hmm=False)
    return tables._replace(
        probe_codes=coded.codes,
        probe_bounds=coded.bounds,
        probe_starts=np.ascontiguousarray(starts),
        probe_plain_starts=np.ascontiguousarray(plain_starts),
    )


def _probe_texts(jieba: Jieba) -> list[str]:
    """400 texts of the dictionary's words in random order, unknown names, deleted words and ASCII.

    The same texts for the same dictionary.
    """
    choice = random.Random(7)  # noqa: S311  # a fixed sample, not a secret
    every = list(jieba.frequencies)
    words = every[:: max(1, len(every) // 1500)] + every[-200:] + sorted(jieba.force_split)[:200]
    return [
        "".join(choice.choice(words if choice.random() < 0.7 else _FILLERS) for _ in range(12))
        for _ in range(400)
    ]


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
    """Look stretches up: the state each spells (-1: none) and its weight (NaN: not a word).

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
