"""jieba's Python dictionaries into arrays: once per dictionary, then kept by its hash."""

from __future__ import annotations

import random
import string
from math import log
from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.words.codes import CodedTexts
from featpipe.features.words.tables import (
    ALNUM,
    BEYOND,
    CODE_BITS,
    FIRST_HAN,
    FIRST_SLOT,
    HAN,
    MARK,
    Tables,
    slots_of,
    walk,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.features.words.reference import Jieba

_MIN_FLOAT = -3.14e100  # finalseg.MIN_FLOAT
_STATES = "BMES"
_MIN_SLOTS = 1 << 12


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


def add_probe(tables: Tables, jieba: Jieba) -> Tables:
    """The tables with probe texts and jieba's own answers to them."""
    texts = probe_texts(jieba)
    coded = CodedTexts.from_texts(texts)
    starts, _ = jieba.cut_coded(texts, coded, hmm=True)
    plain_starts, _ = jieba.cut_coded(texts, coded, hmm=False)
    return tables._replace(
        probe_codes=coded.codes,
        probe_bounds=coded.bounds,
        probe_starts=np.ascontiguousarray(starts),
        probe_plain_starts=np.ascontiguousarray(plain_starts),
    )


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


def probe_texts(jieba: Jieba) -> list[str]:
    """Texts on which compiled tables must prove themselves before they are used.

    The dictionary's own words in random company, names no dictionary holds, deleted words, and
    the ASCII that jieba treats specially. Always the same for the same dictionary.
    """
    choice = random.Random(7)  # noqa: S311  # a fixed sample, not a secret
    every = list(jieba.frequencies)
    words = every[:: max(1, len(every) // 1500)] + every[-200:] + sorted(jieba.force_split)[:200]
    fillers = [
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
    ]
    return [
        "".join(choice.choice(words if choice.random() < 0.7 else fillers) for _ in range(12))
        for _ in range(400)
    ]
