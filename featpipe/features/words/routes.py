"""The most probable way through jieba's dictionary, for all blocks of a batch in lockstep (numpy).

jieba walks each block from its last character to its first and keeps, at every place, the best sum
of weights to the block's end; equal sums go to the longer word. Sums are not associative, so the
order of additions is kept: every block is walked in that order, all blocks side by side. The last
few long blocks are walked one by one, which is faster than lockstep with hardly any company.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featpipe.features.words.tables import FIRST_SLOT, Tables, step

if TYPE_CHECKING:
    from featpipe.features.words.codes import Codes

_MIN_COMPANY = 12

Places = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Blocks(NamedTuple):
    """Stretches jieba cuts by its dictionary: ``starts`` and ``ends`` (n_blocks,), ascending."""

    starts: Places
    ends: Places


class _Candidates(NamedTuple):
    """Words of two and more characters: where they start, how many characters follow, weight."""

    places: Places
    depths: Places
    weights: NDArray[np.float64]


def find_blocks(classes: NDArray[np.uint8], bounds: Places) -> Blocks:
    """Maximal stretches of characters of any class but 0, within texts."""
    n = len(classes)
    inside = np.zeros(n + 2, np.bool_)
    inside[1:-1] = classes > 0
    is_first = np.zeros(n + 1, np.bool_)
    is_first[bounds] = True
    opens = inside[1:] & (~inside[:-1] | is_first)
    closes = inside[:-1] & (~inside[1:] | is_first)
    return Blocks(np.flatnonzero(opens), np.flatnonzero(closes))


def mark_words(tables: Tables, codes: Codes, blocks: Blocks) -> Flags:
    """Where words start inside blocks: (n_characters + 1,) bool, False outside of blocks."""
    n = len(codes)
    choice = np.zeros(n, np.int64)
    if len(blocks.starts):
        _choose(tables, codes, blocks, choice)
    # Follow all routes at once by doubling: after i rounds everything within 2**i words of a
    # block's start is marked. Place n stands for "left the block".
    marks = np.zeros(n + 1, np.bool_)
    marks[blocks.starts] = True
    onward = np.full(n + 1, n)
    inside = positions_in(blocks)
    targets = inside + 1 + choice[inside]
    within = targets < np.repeat(blocks.ends, blocks.ends - blocks.starts)
    onward[inside[within]] = targets[within]
    for _ in range(int((blocks.ends - blocks.starts).max(initial=0)).bit_length()):
        marks[onward[marks]] = True
        onward = onward[onward]
    marks[n] = False
    return marks


def positions_in(blocks: Blocks) -> Places:
    """Every place inside the blocks, ascending."""
    lengths = blocks.ends - blocks.starts
    offsets = np.cumsum(lengths) - lengths
    places: Places = np.arange(lengths.sum()) + np.repeat(blocks.starts - offsets, lengths)
    return places


def _choose(tables: Tables, codes: Codes, blocks: Blocks, choice: Places) -> None:
    """Write, for each place in a block, how many characters follow the first in its best word."""
    lengths = blocks.ends - blocks.starts
    places = positions_in(blocks)
    ends = np.repeat(blocks.ends, lengths)
    candidates = _find_candidates(tables, codes, places, ends)
    first = tables.roots[codes[places]]
    heads = np.full(len(codes), -np.inf)
    heads[places] = np.where(np.isfinite(first), first, tables.unknown[0])
    # A first character that is no word by itself counts as one only if nothing longer begins here.
    bare = places[~np.isfinite(first)]
    longer = np.zeros(len(codes), np.bool_)
    longer[candidates.places] = True
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
    blocks: Blocks,
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
    n_rounds = int(sorted_lengths[_MIN_COMPANY]) if len(lengths) > _MIN_COMPANY else 0
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
    blocks: Blocks,
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
