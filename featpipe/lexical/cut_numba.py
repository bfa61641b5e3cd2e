"""jieba's cut and the interning of words, compiled by numba. Imported only where numba runs.

The cut is one pass over the characters, with the rules and the order of operations of
``cut_numpy``, where their reasons stand. The GIL is released.
"""

# numba infers the types of compiled functions.
# mypy: allow-untyped-defs

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from featpipe.lexical.backend import compiled
from featpipe.lexical.compile import (
    ALNUM,
    BEYOND,
    CODE_BITS,
    FIRST_HAN,
    FIRST_SLOT,
    HAN,
    HASH_MULTIPLIER,
    B,
    E,
    M,
    S,
)

if TYPE_CHECKING:
    from featpipe.lexical.compile import CodedTexts, Offsets, Tables

_MULTIPLIER = np.uint64(HASH_MULTIPLIER)
_SHIFT = np.uint64(29)
_FIRST_SIZE = 1 << 12
_DOT, _PERCENT, _ZERO, _NINE, _RETURN, _FEED = 46, 37, 48, 57, 13, 10


def cut(tables: Tables, coded: CodedTexts, *, hmm: bool) -> Offsets:
    """Where words start, over all texts laid end to end: (n_words,) int64, ascending."""
    n_slots = len(tables.trie)
    trie = (
        tables.trie[:, 0],
        tables.trie[:, 1].view(np.float64),
        np.uint64(64 - (n_slots.bit_length() - 1)),
        tables.roots,
        tables.force_split,
    )
    model = (tables.emissions, tables.starts, tables.transitions)
    longest = int(np.diff(coded.bounds).max(initial=0))
    starts: Offsets = _cut(
        coded.codes,
        coded.bounds,
        tables.classes,
        trie,
        model,
        (float(tables.unknown[0]), hmm, longest),
    )
    return starts


@compiled
def _cut(codes, bounds, classes, trie, model, options):
    unknown, hmm, longest = options
    starts = np.empty(len(codes), np.int64)
    sums = np.empty(longest + 1)
    choice = np.empty(longest + 1, np.int32)
    origins = np.empty(longest + 1, np.uint8)
    scratch = (origins, np.empty(longest + 1, np.uint8))
    n_words = 0
    for text in range(len(bounds) - 1):
        place = bounds[text]
        stop = bounds[text + 1]
        while place < stop:
            if classes[min(codes[place], BEYOND)] == 0:
                starts[n_words] = place
                n_words += 1
                is_pair = codes[place] == _RETURN and place + 1 < stop
                place += 2 if is_pair and codes[place + 1] == _FEED else 1
                continue
            end = place
            while end < stop and classes[min(codes[end], BEYOND)] != 0:
                end += 1
            _choose(codes, place, end, trie, unknown, sums, choice)
            if hmm:
                n_words = _follow(
                    codes, place, end, classes, trie, model, choice, scratch, starts, n_words
                )
            else:
                n_words = _follow_plainly(codes, place, end, classes, choice, starts, n_words)
            place = end
    return starts[:n_words]


@compiled
def _slot(trie, state, code):
    """The slot reached from a state by a character, or -1."""
    keys = trie[0]
    key = (state << CODE_BITS) | code
    # Unsigned places: numba would otherwise ask of each whether it counts from the end.
    slot = (np.uint64(key) * _MULTIPLIER) >> trie[2]
    mask = np.uint64(len(keys) - 1)
    while True:
        found = keys[slot]
        if found == key:
            return np.int64(slot)
        if found < 0:
            return np.int64(-1)
        slot = (slot + np.uint64(1)) & mask


@compiled
def _choose(codes, start, end, trie, unknown, sums, choice):
    """choice[i]: characters after the first in the best word at start + i."""
    weights, roots = trie[1], trie[3]
    length = end - start
    block = codes[start:end]
    sums[length] = 0.0
    for place in range(length - 1, -1, -1):
        first = np.int64(block[np.uint64(place)])
        weight = roots[np.uint64(first)]
        rest = sums[np.uint64(place + 1)]
        best = weight + rest  # NaN and infinity: not a word
        depth = -1
        if weight != np.inf:
            if not math.isnan(weight):
                depth = 0
            state = first
            onward = place + 1
            while onward < length:
                slot = _slot(trie, state, np.int64(block[np.uint64(onward)]))
                if slot < 0:
                    break
                weight = weights[np.uint64(slot)]
                if not math.isnan(weight):
                    total = weight + sums[np.uint64(onward + 1)]
                    if depth < 0 or total >= best:
                        best = total
                        depth = onward - place
                state = slot + FIRST_SLOT
                onward += 1
        if depth < 0:
            best = unknown + rest
            depth = 0
        sums[np.uint64(place)] = best
        choice[np.uint64(place)] = depth


@compiled
def _follow_plainly(codes, start, end, classes, choice, starts, n_words):
    """HMM=False: single letters and digits in a row are one word."""
    place = start
    in_run = False
    while place < end:
        depth = choice[place - start]
        is_letter = depth == 0 and classes[codes[place]] == ALNUM
        if not (is_letter and in_run):
            starts[n_words] = place
            n_words += 1
        in_run = is_letter
        place += depth + 1
    return n_words


@compiled
def _follow(codes, start, end, classes, trie, model, choice, scratch, starts, n_words):
    """HMM=True: single characters in a row go to the model, all of them together."""
    place = start
    run = start
    while place < end:
        depth = choice[place - start]
        if depth > 0:
            if place - run == 1:
                starts[n_words] = run
                n_words += 1
            elif place > run:
                n_words = _recognise(
                    codes, run, place, classes, trie, model, scratch, starts, n_words
                )
            starts[n_words] = place
            n_words += 1
            run = place + depth + 1
        place += depth + 1
    if end > run:
        n_words = _recognise(codes, run, end, classes, trie, model, scratch, starts, n_words)
    return n_words


@compiled
def _recognise(codes, start, end, classes, trie, model, scratch, starts, n_words):
    if end - start == 1:
        starts[n_words] = start
        return n_words + 1
    if _is_word(trie, _spell(codes, start, end, trie)):
        for place in range(start, end):
            starts[n_words] = place
            n_words += 1
        return n_words
    place = start
    while place < end:
        stop = place
        is_han = classes[codes[place]] == HAN
        while stop < end and (classes[codes[stop]] == HAN) == is_han:
            stop += 1
        if is_han:
            _decode(codes, place, stop, model, scratch)
            n_words = _emit(codes, place, stop, trie, scratch[1], starts, n_words)
        else:
            n_words = _split_ascii(codes, place, stop, classes, starts, n_words)
        place = stop
    return n_words


@compiled
def _spell(codes, start, end, trie):
    """The state a stretch spells, or -1."""
    state = np.int64(codes[start])
    if trie[3][state] == np.inf:
        return np.int64(-1)
    for place in range(start + 1, end):
        slot = _slot(trie, state, np.int64(codes[place]))
        if slot < 0:
            return slot
        state = slot + FIRST_SLOT
    return state


@compiled
def _is_word(trie, state):
    if state < 0:
        return False
    weight = trie[1][state - FIRST_SLOT] if state >= FIRST_SLOT else trie[3][state]
    return not math.isnan(weight)


@compiled
def _split_ascii(codes, start, end, classes, starts, n_words):
    r"""Cut at finalseg's ``[a-zA-Z0-9]+(?:\.\d+)?%?``: matches are words, and so are the gaps."""
    place = start
    while place < end:
        starts[n_words] = place
        n_words += 1
        is_letter = classes[codes[place]] == ALNUM
        while place < end and (classes[codes[place]] == ALNUM) == is_letter:
            place += 1
        if not is_letter:
            continue
        if place + 1 < end and codes[place] == _DOT and _ZERO <= codes[place + 1] <= _NINE:
            place += 1
            while place < end and _ZERO <= codes[place] <= _NINE:
                place += 1
        if place < end and codes[place] == _PERCENT:
            place += 1
    return n_words


@compiled
def _decode(codes, start, end, model, scratch):
    """Viterbi. One bit per state holds which of its two predecessors won."""
    emissions, begin, transitions = model
    origins, states = scratch
    row = emissions[codes[start] - FIRST_HAN]
    b, m, e, s = begin[B] + row[B], begin[M] + row[M], begin[E] + row[E], begin[S] + row[S]
    for place in range(1, end - start):
        row = emissions[codes[start + place] - FIRST_HAN]
        b_s = s + transitions[S, B] + row[B]
        b_e = e + transitions[E, B] + row[B]
        m_m = m + transitions[M, M] + row[M]
        m_b = b + transitions[B, M] + row[M]
        e_m = m + transitions[M, E] + row[E]
        e_b = b + transitions[B, E] + row[E]
        s_s = s + transitions[S, S] + row[S]
        s_e = e + transitions[E, S] + row[S]
        origins[place] = (b_s >= b_e) | (m_m >= m_b) << 1 | (e_m >= e_b) << 2 | (s_s >= s_e) << 3
        b, m, e, s = max(b_s, b_e), max(m_m, m_b), max(e_m, e_b), max(s_s, s_e)
    state = E if e > s else S
    for place in range(end - start - 1, -1, -1):
        states[place] = state
        if place > 0:
            first = (origins[place] >> state) & 1
            state = (S if first else E) if state in (B, S) else M if first else B


@compiled
def _emit(codes, start, end, trie, states, starts, n_words):
    """Words end after E and S; a word the user deleted is split into characters."""
    force_split = trie[4]
    word = start
    for place in range(start, end):
        state = states[place - start]
        if state not in (E, S):
            continue
        is_deleted = False
        if len(force_split) > 0 and place > word:
            spelled = _spell(codes, word, place + 1, trie)
            found = np.searchsorted(force_split, spelled)
            is_deleted = found < len(force_split) and force_split[found] == spelled
        starts[n_words] = word
        n_words += 1
        if is_deleted:
            for each in range(word + 1, place + 1):
                starts[n_words] = each
                n_words += 1
        word = place + 1
    return n_words


@compiled
def intern_spans(codes, starts, ends):
    """(ids (n,) int32, first (n_distinct,) int64): see :mod:`featpipe.lexical.interning`.

    An open-addressed table of numbers; equal hashes are compared character by character.
    """
    n = len(starts)
    ids = np.empty(n, np.int32)
    first = np.empty(n, np.int64)
    hashes = np.empty(n, np.uint64)  # by number, to grow the table without reading the text again
    table = np.full(_FIRST_SIZE, -1, np.int32)
    n_distinct = 0
    for place in range(n):
        start, end = starts[place], ends[place]
        value = np.uint64(end - start)
        for at in range(start, end):
            value = (value ^ np.uint64(codes[at])) * _MULTIPLIER
            value ^= value >> _SHIFT
        slot = np.int64(value & np.uint64(len(table) - 1))
        number = table[slot]
        while number >= 0:
            if hashes[number] == value and _are_equal(codes, starts, ends, place, first[number]):
                break
            slot = (slot + 1) & (len(table) - 1)
            number = table[slot]
        if number < 0:
            number = np.int32(n_distinct)
            table[slot] = number
            first[number] = place
            hashes[number] = value
            n_distinct += 1
            if 2 * n_distinct > len(table):
                table = _grown(hashes, n_distinct, 4 * len(table))
        ids[place] = number
    return ids, first[:n_distinct].copy()


@compiled
def _are_equal(codes, starts, ends, left, right):
    width = ends[left] - starts[left]
    if width != ends[right] - starts[right]:
        return False
    for offset in range(width):
        if codes[starts[left] + offset] != codes[starts[right] + offset]:
            return False
    return True


@compiled
def _grown(hashes, n_distinct, size):
    table = np.full(size, -1, np.int32)
    for number in range(n_distinct):
        slot = np.int64(hashes[number] & np.uint64(size - 1))
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    return table
