"""jieba's cut over a batch, with numpy alone.

The dictionary's part takes the most probable way through each block. jieba walks a block from its
last character to its first and keeps, at every place, the best sum of weights to the block's end;
equal sums go to the longer word. Sums of floats are not associative, so every block is walked in
that order, all blocks side by side; the last few long blocks are walked one by one, which is faster
than a lockstep of few.

The hidden Markov model's part (finalseg) finds words that are in no dictionary, by Viterbi and a
rule for ASCII. Equal probabilities go to the state whose letter comes later in the alphabet
(B < E < M < S), as Python's ``max`` over (probability, letter) decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featpipe.lexical.compile import (
    ALNUM,
    FIRST_HAN,
    FIRST_SLOT,
    HAN,
    B,
    E,
    M,
    S,
    Tables,
    step,
    text_of,
    walk,
)

if TYPE_CHECKING:
    from featpipe.lexical.compile import CodedTexts, Codes, Offsets

#: With fewer blocks than this left, each is walked alone.
_MIN_LOCKSTEP = 12

#: finalseg.re_skip: a word in a stretch without Han characters.
_WORD = re.compile(r"[a-zA-Z0-9]+(?:\.\d+)?%?")

#: Longer runs are decoded alone: in lockstep all others would wait for them.
_LONG = 48

#: state -> its two possible predecessors, the one that wins a tie first.
_BEFORE = {B: (S, E), M: (M, B), E: (M, B), S: (S, E)}

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


def cut(tables: Tables, coded: CodedTexts, *, hmm: bool) -> Offsets:
    """Where words start, over all texts laid end to end: (n_words,) int64, ascending.

    The first character of a text starts a word; so does every character outside of blocks, except
    a line feed after its carriage return.
    """
    codes, bounds = coded.codes, coded.bounds
    classes = tables.classes_of(codes)
    blocks = _find_blocks(classes, bounds)
    marks = _mark_words(tables, codes, blocks)
    if hmm:
        _join_by_model(tables, codes, classes, marks, blocks.ends)
    else:
        _join_letters(classes, marks, blocks.ends)
    _mark_outside(codes, classes, marks)
    starts = bounds[:-1]
    marks[starts[starts < len(codes)]] = True
    return np.flatnonzero(marks[:-1])


def _mark_outside(codes: Codes, classes: NDArray[np.uint8], marks: Flags) -> None:
    outside = np.flatnonzero(classes == 0)
    marks[outside] = True
    feeds = outside[(codes[outside] == ord("\n")) & (outside > 0)]
    joined = feeds[codes[feeds - 1] == ord("\r")]
    marks[joined] = False


class _Blocks(NamedTuple):
    """Stretches jieba cuts by its dictionary: ``starts`` and ``ends`` (n_blocks,), ascending."""

    starts: Places
    ends: Places


class _Candidates(NamedTuple):
    """Words of two and more characters: where they start, how many characters follow, weight."""

    places: Places
    depths: Places
    weights: NDArray[np.float64]


def _find_blocks(classes: NDArray[np.uint8], bounds: Places) -> _Blocks:
    """Maximal stretches of characters of any class but 0, within texts."""
    return _Blocks(*_stretches(classes > 0, _flag(len(classes) + 1, bounds)))


def _stretches(inside: Flags, is_first: Flags) -> tuple[Places, Places]:
    """Starts and ends of maximal stretches of True, divided where ``is_first`` (n + 1,) is."""
    padded = np.zeros(len(inside) + 2, np.bool_)
    padded[1:-1] = inside
    opens = padded[1:] & (~padded[:-1] | is_first)
    closes = padded[:-1] & (~padded[1:] | is_first)
    return np.flatnonzero(opens), np.flatnonzero(closes)


def _flag(n: int, *places: Places) -> Flags:
    """(n,) bool, True at the places."""
    flags = np.zeros(n, np.bool_)
    for each in places:
        flags[each] = True
    return flags


def _cover(n: int, starts: Places, ends: Places) -> Flags:
    """(n,) bool, True from each start up to its end."""
    change = np.zeros(n + 1, np.int64)
    change[starts] += 1
    change[ends] -= 1
    return np.cumsum(change)[:-1] > 0


def _mark_words(tables: Tables, codes: Codes, blocks: _Blocks) -> Flags:
    """Where words start inside blocks: (n_characters + 1,) bool, False outside of blocks."""
    n = len(codes)
    choice = np.zeros(n, np.int64)
    if len(blocks.starts):
        _choose(tables, codes, blocks, choice)
    # Follow all paths at once by doubling: after i rounds everything within 2**i words of a
    # block's start is marked. Place n means "outside of the block".
    marks = _flag(n + 1, blocks.starts)
    onward = np.full(n + 1, n)
    inside = _positions_in(blocks)
    targets = inside + 1 + choice[inside]
    within = targets < np.repeat(blocks.ends, blocks.ends - blocks.starts)
    onward[inside[within]] = targets[within]
    for _ in range(int((blocks.ends - blocks.starts).max(initial=0)).bit_length()):
        marks[onward[marks]] = True
        onward = onward[onward]
    marks[n] = False
    return marks


def _positions_in(blocks: _Blocks) -> Places:
    """Every place inside the blocks, ascending."""
    lengths = blocks.ends - blocks.starts
    offsets = np.cumsum(lengths) - lengths
    places: Places = np.arange(lengths.sum()) + np.repeat(blocks.starts - offsets, lengths)
    return places


def _choose(tables: Tables, codes: Codes, blocks: _Blocks, choice: Places) -> None:
    """Write, for each place in a block, how many characters follow the first in its best word."""
    lengths = blocks.ends - blocks.starts
    places = _positions_in(blocks)
    ends = np.repeat(blocks.ends, lengths)
    candidates = _find_candidates(tables, codes, places, ends)
    first = tables.roots[codes[places]]
    heads = np.full(len(codes), -np.inf)
    heads[places] = np.where(np.isfinite(first), first, tables.unknown[0])
    # A character that is not a word by itself counts as one only if no longer word begins here.
    bare = places[~np.isfinite(first)]
    longer = _flag(len(codes), candidates.places)
    heads[bare[longer[bare]]] = -np.inf
    # One sum per place and one zero behind each block: place p of block number b is sums[p + b].
    block_of = np.zeros(len(codes) + 1, np.int64)
    block_of[places] = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.zeros(len(codes) + len(lengths) + 1)
    n_rounds = _lockstep(blocks, heads, candidates, (block_of, sums, choice))
    for block in np.flatnonzero(lengths > n_rounds).tolist():
        _one_by_one(blocks, block, n_rounds, heads, candidates, (sums, choice))


def _find_candidates(tables: Tables, codes: Codes, places: Places, ends: Places) -> _Candidates:
    weights_by_slot = tables.trie[:, 1].view(np.float64)
    active = np.flatnonzero((tables.roots[codes[places]] != np.inf) & (places + 1 < ends))
    states = codes[places[active]].astype(np.int64)
    found: list[tuple[Places, Places, NDArray[np.float64]]] = []
    depth = 1
    while len(active):
        slots = step(tables, states, codes[places[active] + depth].astype(np.int64))
        on = slots >= 0
        active, slots = active[on], slots[on]
        weights = weights_by_slot[slots]
        word = ~np.isnan(weights)
        at = places[active[word]]
        found.append((at, np.full(len(at), depth), weights[word]))
        depth += 1
        on = places[active] + depth < ends[active]
        active, states = active[on], slots[on] + FIRST_SLOT
    if not found:
        return _Candidates(places[:0], places[:0], np.zeros(0))
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return _Candidates(*columns)


def _lockstep(
    blocks: _Blocks,
    heads: NDArray[np.float64],
    candidates: _Candidates,
    state: tuple[Places, NDArray[np.float64], Places],
) -> int:
    """Walk all blocks from their ends until few are left; the number of rounds walked."""
    block_of, sums, choice = state
    lengths = blocks.ends - blocks.starts
    order = np.argsort(-lengths, kind="stable")
    ends, descending = blocks.ends[order], -lengths[order]
    numbers = order
    sorted_lengths = lengths[order]
    n_rounds = int(sorted_lengths[_MIN_LOCKSTEP]) if len(lengths) > _MIN_LOCKSTEP else 0
    # Candidates by round, then by length: within a round shorter words are tried first.
    rounds = blocks.ends[block_of[candidates.places]] - 1 - candidates.places
    by_round = np.lexsort((candidates.depths, rounds))
    where, depths = candidates.places[by_round], candidates.depths[by_round]
    weights = candidates.weights[by_round]
    selves = where + block_of[where]
    pairs = rounds[by_round] << 32 | depths
    cuts = np.flatnonzero(np.diff(pairs, prepend=-1, append=-1))
    slices = zip(
        (pairs[cuts[:-1]] >> 32).tolist(), cuts[:-1].tolist(), cuts[1:].tolist(), strict=True
    )
    current = next(slices, None)
    for number in range(n_rounds):
        n_active = int(np.searchsorted(descending, -number, side="left"))
        at = ends[:n_active] - 1 - number
        own = at + numbers[:n_active]
        sums[own] = heads[at] + sums[own + 1]
        while current is not None and current[0] == number:
            _, low, high = current
            current = next(slices, None)
            here = selves[low:high]
            depth = depths[low]
            totals = weights[low:high] + sums[here + (depth + 1)]
            better = totals >= sums[here]
            sums[here[better]] = totals[better]
            choice[where[low:high][better]] = depth
    return n_rounds


def _one_by_one(
    blocks: _Blocks,
    block: int,
    n_done: int,
    heads: NDArray[np.float64],
    candidates: _Candidates,
    state: tuple[NDArray[np.float64], Places],
) -> None:
    """Finish one long block with plain floats; they round as numpy's do."""
    sums, choice = state
    start, end = int(blocks.starts[block]), int(blocks.ends[block])
    stop = end - n_done
    mine = np.flatnonzero((candidates.places >= start) & (candidates.places < stop))
    mine = mine[np.argsort(-candidates.places[mine], kind="stable")]  # shorter words stay first
    words = zip(
        candidates.places[mine].tolist(),
        candidates.depths[mine].tolist(),
        candidates.weights[mine].tolist(),
        strict=True,
    )
    word = next(words, None)
    totals = sums[start + block : end + block + 1].tolist()
    for place in range(stop - 1, start - 1, -1):
        best, depth = float(heads[place]) + totals[place - start + 1], 0
        while word is not None and word[0] == place:
            total = word[2] + totals[place - start + word[1] + 1]
            if total >= best:
                best, depth = total, word[1]
            word = next(words, None)
        totals[place - start] = best
        choice[place] = depth


def _join_by_model(
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
    in_run = _cover(len(codes), starts_run[new], ends_run[new])
    is_first = _flag(len(codes) + 1, starts_run[new], ends_run[new])
    _join_ascii(codes, classes, marks, *_stretches(in_run & (classes != HAN), is_first))
    _join_han(tables, codes, marks, *_stretches(in_run & (classes == HAN), is_first))


def _join_letters(classes: NDArray[np.uint8], marks: Flags, ends: Places) -> None:
    """Join single ASCII letters and digits in a row, as ``HMM=False`` does."""
    is_end = _flag(len(marks), ends)
    letter = marks[:-1] & (marks | is_end)[1:] & (classes == ALNUM)
    marks[1:-1] &= ~(letter[1:] & letter[:-1] & ~is_end[1:-1])


def _runs_of_singles(
    classes: NDArray[np.uint8], marks: Flags, ends: Places
) -> tuple[Places, Places]:
    is_end = _flag(len(marks), ends)
    single = marks[:-1] & (marks | is_end)[1:] & (classes > 0)
    return _stretches(single, is_end)


def _join_ascii(
    codes: Codes, classes: NDArray[np.uint8], marks: Flags, starts: Places, ends: Places
) -> None:
    n = len(codes)
    goes_on = _cover(n, starts + 1, ends)  # in a stretch and not its first
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
    goes_on = _cover(len(codes), starts + 1, ends)
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
    """Split words the user deleted into characters, also where the model joined them."""
    inside = _cover(len(codes), starts, ends)
    words_start, words_end = _stretches(inside, marks | _flag(len(codes) + 1, ends))
    spelled, _ = walk(tables, codes, words_start, words_end)
    for word in np.flatnonzero(np.isin(spelled, tables.force_split)).tolist():
        marks[words_start[word] : words_end[word]] = True
