"""Words no dictionary holds: finalseg's Viterbi and its ASCII rule, for a batch (numpy).

Equal probabilities go to the state whose letter comes later in the alphabet (B < E < M < S), as
Python's ``max`` over (probability, letter) decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from featpipe.features.words.codes import text_of
from featpipe.features.words.tables import ALNUM, FIRST_HAN, HAN, B, E, M, S, Tables, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.features.words.codes import Codes
    from featpipe.features.words.routes import Flags, Places

#: finalseg.re_skip: what is one word in a stretch without Han characters.
_WORD = re.compile(r"[a-zA-Z0-9]+(?:\.\d+)?%?")

#: Longer runs are decoded alone: in lockstep everything would wait for them.
_LONG = 48

#: state -> its two possible predecessors, the one that wins when equal first.
_BEFORE = {B: (S, E), M: (M, B), E: (M, B), S: (S, E)}


def recognise(
    tables: Tables, codes: Codes, classes: NDArray[np.uint8], marks: Flags, ends: Places
) -> None:
    """Join single characters into words where the model says so.

    ``marks`` (n + 1,) holds the words' starts inside blocks and is changed in place; ``ends`` are
    the blocks' ends.
    """
    starts_run, ends_run = _runs_of_singles(classes, marks, ends)
    several = ends_run - starts_run > 1
    starts_run, ends_run = starts_run[several], ends_run[several]
    if not len(starts_run):
        return
    # A run that is itself a word of the dictionary stays in single characters.
    _, weights = walk(tables, codes, starts_run, ends_run)
    new = np.isnan(weights)
    in_run = np.zeros(len(codes) + 1, np.int64)
    in_run[starts_run[new]] += 1
    in_run[ends_run[new]] -= 1
    in_run = np.cumsum(in_run)[:-1]
    is_first = np.zeros(len(codes) + 1, np.bool_)
    is_first[starts_run[new]] = True
    is_first[ends_run[new]] = True
    _join_ascii(codes, classes, marks, *_stretches((in_run > 0) & (classes != HAN), is_first))
    _join_han(tables, codes, marks, *_stretches((in_run > 0) & (classes == HAN), is_first))


def join_letters(classes: NDArray[np.uint8], marks: Flags, ends: Places) -> None:
    """What ``HMM=False`` does instead: single ASCII letters and digits in a row are one word."""
    closed = marks.copy()
    closed[ends] = True
    letter = marks[:-1] & closed[1:] & (classes == ALNUM)
    is_end = np.zeros(len(marks), np.bool_)
    is_end[ends] = True
    marks[1:-1] &= ~(letter[1:] & letter[:-1] & ~is_end[1:-1])


def _runs_of_singles(
    classes: NDArray[np.uint8], marks: Flags, ends: Places
) -> tuple[Places, Places]:
    closed = marks.copy()
    closed[ends] = True
    single = marks[:-1] & closed[1:] & (classes > 0)
    is_end = np.zeros(len(marks), np.bool_)
    is_end[ends] = True
    return _stretches(single, is_end)


def _stretches(inside: Flags, is_first: Flags) -> tuple[Places, Places]:
    """Maximal stretches of True that no ``is_first`` (n + 1,) divides."""
    padded = np.zeros(len(inside) + 2, np.bool_)
    padded[1:-1] = inside
    opens = padded[1:] & (~padded[:-1] | is_first)
    closes = padded[:-1] & (~padded[1:] | is_first)
    return np.flatnonzero(opens), np.flatnonzero(closes)


def _join_ascii(
    codes: Codes, classes: NDArray[np.uint8], marks: Flags, starts: Places, ends: Places
) -> None:
    n = len(codes)
    inner = np.zeros(n + 1, np.int64)
    inner[starts + 1] += 1
    inner[ends] -= 1
    goes_on = np.cumsum(inner)[:-1] > 0  # in a stretch and not its first
    goes_on = goes_on[:n]
    letter = classes == ALNUM
    changes = np.zeros(n, np.bool_)
    changes[1:] = letter[1:] != letter[:-1]
    marks[:-1] &= ~goes_on | changes
    # "1.5" and "5%" are one word: only stretches that hold such need the expression itself.
    special = np.zeros(n, np.bool_)
    special[1:] = goes_on[1:] & letter[:-1] & ((codes[1:] == ord("%")) | (codes[1:] == ord(".")))
    owners = np.searchsorted(starts, np.flatnonzero(special), side="right") - 1
    owners = owners[np.diff(owners, prepend=-1) > 0]
    for start, end in zip(starts[owners].tolist(), ends[owners].tolist(), strict=True):
        marks[start + 1 : end] = False
        for found in _WORD.finditer(text_of(codes[start:end])):
            marks[start + found.start()] = True
            if start + found.end() < end:
                marks[start + found.end()] = True


def _join_han(tables: Tables, codes: Codes, marks: Flags, starts: Places, ends: Places) -> None:
    lengths = ends - starts
    states = np.full(len(codes), S, np.int8)
    short = (lengths > 1) & (lengths <= _LONG)
    _decode_short(tables, codes, starts[short], ends[short], states)
    for run in np.flatnonzero(lengths > _LONG).tolist():
        _decode_long(tables, codes, int(starts[run]), int(ends[run]), states)
    closing = states >= E
    inner = np.zeros(len(codes) + 1, np.int64)
    inner[starts + 1] += 1
    inner[ends] -= 1
    goes_on = np.cumsum(inner)[:-1] > 0
    marks[1:-1] = np.where(goes_on[1:], closing[:-1], marks[1:-1])
    if len(tables.force_split):
        _split_deleted(tables, codes, marks, starts, ends)


def _decode_short(
    tables: Tables, codes: Codes, starts: Places, ends: Places, states: NDArray[np.int8]
) -> None:
    """Viterbi over many runs side by side, longest first; writes a state for each character."""
    if not len(starts):
        return
    order = np.argsort(starts - ends, kind="stable")
    starts, lengths = starts[order], (ends - starts)[order]
    scores = tables.starts + tables.emissions[codes[starts] - FIRST_HAN]
    origins: list[NDArray[np.int8]] = []
    for place in range(1, int(lengths[0])):
        n_active = int(np.searchsorted(-lengths, -place, side="left"))
        emitted = tables.emissions[codes[starts[:n_active] + place] - FIRST_HAN]
        fresh = np.empty((n_active, 4))
        origin = np.empty((n_active, 4), np.int8)
        for state, (winner, other) in _BEFORE.items():
            left = scores[:n_active, winner] + tables.transitions[winner, state]
            right = scores[:n_active, other] + tables.transitions[other, state]
            # finalseg adds the emission before it compares: near-equal sums may become equal.
            left += emitted[:, state]
            right += emitted[:, state]
            stays = left >= right
            fresh[:, state] = np.where(stays, left, right)
            origin[:, state] = np.where(stays, winner, other)
        scores[:n_active] = fresh
        origins.append(origin)
    last = np.where(scores[:, E] > scores[:, S], E, S).astype(np.int8)
    rows = np.arange(len(starts))
    for place in range(int(lengths[0]) - 1, -1, -1):
        n_active = int(np.searchsorted(-lengths, -place, side="left"))
        states[starts[:n_active] + place] = last[:n_active]
        if place:
            last[:n_active] = origins[place - 1][rows[:n_active], last[:n_active]]


def _decode_long(
    tables: Tables, codes: Codes, start: int, end: int, states: NDArray[np.int8]
) -> None:
    emissions = tables.emissions[codes[start:end] - FIRST_HAN].tolist()
    transitions = tables.transitions.tolist()
    scores = [
        first + emitted for first, emitted in zip(tables.starts.tolist(), emissions[0], strict=True)
    ]
    origins: list[list[int]] = []
    for emitted in emissions[1:]:
        fresh = [0.0] * 4
        origin = [0] * 4
        for state, (winner, other) in _BEFORE.items():
            left = scores[winner] + transitions[winner][state] + emitted[state]
            right = scores[other] + transitions[other][state] + emitted[state]
            fresh[state], origin[state] = (left, winner) if left >= right else (right, other)
        scores = fresh
        origins.append(origin)
    state = E if scores[E] > scores[S] else S
    for place in range(end - 1, start - 1, -1):
        states[place] = state
        if place > start:
            state = origins[place - start - 1][state]


def _split_deleted(
    tables: Tables, codes: Codes, marks: Flags, starts: Places, ends: Places
) -> None:
    """A word the user deleted falls into its characters, even where the model would make it."""
    is_end = np.zeros(len(codes) + 1, np.bool_)
    is_end[ends] = True
    inner = np.zeros(len(codes) + 1, np.int64)
    inner[starts] += 1
    inner[ends] -= 1
    inside = np.cumsum(inner)[:-1] > 0
    words_start, words_end = _stretches(inside, marks | is_end)
    spelled, _ = walk(tables, codes, words_start, words_end)
    for word in np.flatnonzero(np.isin(spelled, tables.force_split)).tolist():
        marks[words_start[word] : words_end[word]] = True
