"""Postings, scores and the best rows, compiled by numba. Imported only where numba runs.

Functions and arguments are those of :class:`featpipe.lexical.bm25.Kernels`, and :func:`best_of`.
"""

# numba infers the types of compiled functions.
# mypy: allow-untyped-defs

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.lexical.backend import compiled
from featpipe.lexical.score_numpy import Postings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.lexical.score_numpy import Codes, Floats

#: Rows scored at a time, so that their sums stay in the core's own cache.
_BLOCK = 8192
#: Rows compared together with the worst score kept.
_STRIP = 256


def build_postings(ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Postings:
    """Where each term of the rows occurs."""
    return _build(ids, lengths, int(ids.max(initial=-1)) + 1)


def _build(ids: NDArray[np.int32], lengths: NDArray[np.int64], size: int) -> Postings:
    row_counts, firsts = _count_rows(ids, lengths, size)
    terms, pointers, cursors = _lay_out(row_counts, len(firsts))
    rows, frequencies = _fill(ids, lengths, cursors, pointers[-1])
    return Postings(terms, pointers, rows, frequencies, firsts)


@compiled
def _count_rows(ids, lengths, size):
    """Rows by term (size,), and where each term stands for the first time."""
    row_counts = np.zeros(size, np.int64)
    last_row = np.full(size, -1, np.int32)
    firsts = np.empty(size, np.int64)
    n_terms = 0
    place = 0
    for row in range(len(lengths)):
        for at in range(place, place + lengths[row]):
            term = ids[at]
            if last_row[term] != row:
                if last_row[term] < 0:
                    firsts[n_terms] = at
                    n_terms += 1
                last_row[term] = row
                row_counts[term] += 1
        place += lengths[row]
    return row_counts, firsts[:n_terms].copy()


@compiled
def _lay_out(row_counts, n_terms):
    """Terms ascending, the pointers to their postings, and by term where its postings begin."""
    terms = np.empty(n_terms, np.int32)
    pointers = np.zeros(n_terms + 1, np.int64)
    cursors = np.zeros(len(row_counts), np.int64)
    filled = 0
    for term in range(len(row_counts)):
        if row_counts[term]:
            terms[filled] = term
            cursors[term] = pointers[filled]
            pointers[filled + 1] = pointers[filled] + row_counts[term]
            filled += 1
    return terms, pointers, cursors


@compiled
def _fill(ids, lengths, cursors, n_postings):
    rows = np.empty(n_postings, np.int32)
    frequencies = np.empty(n_postings, np.int32)
    last_row = np.full(len(cursors), -1, np.int32)
    place = 0
    for row in range(len(lengths)):
        for at in range(place, place + lengths[row]):
            term = ids[at]
            if last_row[term] != row:
                last_row[term] = row
                rows[cursors[term]] = row
                frequencies[cursors[term]] = 1
                cursors[term] += 1
            else:
                frequencies[cursors[term] - 1] += 1
        place += lengths[row]
    return rows, frequencies


@compiled
def mark_pairs(is_used, bases, rows, frequencies):
    """Mark, in place, the index ``bases[row] + frequency`` of every posting."""
    for at in range(len(rows)):
        is_used[bases[rows[at]] + frequencies[at]] = True


@compiled
def read_codes(numbers, bases, rows, frequencies):
    """The number at every posting's index."""
    codes = np.empty(len(rows), numbers.dtype)
    for at in range(len(rows)):
        codes[at] = numbers[bases[rows[at]] + frequencies[at]]
    return codes


def add_scores(
    scores: Floats,
    postings: tuple[NDArray[np.int64], NDArray[np.int32], Codes],
    query: tuple[NDArray[np.int64], Floats],
    factors: Floats,
) -> None:
    """Add a query's scores to all rows of a segment, in place, term after term."""
    _add_scores(scores, postings, *query, factors)


@compiled
def _add_scores(scores, postings, places, idf, factors):
    pointers, rows, codes = postings
    for number in range(len(places)):
        place = places[number]
        if place >= 0:
            low, high = pointers[place], pointers[place + 1]
            _add_term(scores, 0, rows, codes, low, high, idf[number], factors)


@compiled
def _add_term(scores, begin, rows, codes, low, high, idf, factors):
    """Add one term to rows ``begin`` ...; returns the posting at which the rows end.

    The hot loop: four postings for one comparison, and unsigned places, which may not wrap.
    """
    first, end = np.int32(begin), np.int32(begin + len(scores))
    at, stop = np.uint64(low), np.uint64(high)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    while at + three < stop and rows[at + three] < end:
        part_0 = idf * factors[codes[at]]
        part_1 = idf * factors[codes[at + one]]
        part_2 = idf * factors[codes[at + two]]
        part_3 = idf * factors[codes[at + three]]
        scores[np.uint32(rows[at] - first)] += part_0
        scores[np.uint32(rows[at + one] - first)] += part_1
        scores[np.uint32(rows[at + two] - first)] += part_2
        scores[np.uint32(rows[at + three] - first)] += part_3
        at += np.uint64(4)
    while at < stop and rows[at] < end:
        scores[np.uint32(rows[at] - first)] += idf * factors[codes[at]]
        at += one
    return np.int64(at)


def best_of(
    postings: tuple[NDArray[np.int64], NDArray[np.int32], Codes],
    queries: tuple[NDArray[np.int64], Floats, NDArray[np.int64]],
    factors: Floats,
    n_rows: int,
    best: tuple[Floats, NDArray[np.int64], NDArray[np.int64], int],
) -> None:
    """Score a whole segment for many queries and keep the best rows seen so far of each.

    Args:
        postings: pointers, rows and codes of the segment.
        queries: the index of each term in the pointers (-1: in no row), idf, and the bounds of the
            queries, laid end to end.
        factors: by code.
        n_rows: of the segment.
        best: scores and rows kept (n_queries, k), best first, and how many they are (n_queries,),
            all changed in place; the number of the segment's first row.
    """
    _best_of(postings, queries, factors, n_rows, best)


@compiled
def _best_of(postings, queries, factors, n_rows, best):
    places, idf, bounds = queries
    top_scores, top_rows, n_kept, base = best
    block = np.zeros(_BLOCK)
    for query in range(len(bounds) - 1):
        low, high = bounds[query], bounds[query + 1]
        n_kept[query] = _best_of_one(
            postings,
            (places[low:high], idf[low:high]),
            factors,
            n_rows,
            (top_scores[query], top_rows[query], n_kept[query], base, block),
        )


@compiled
def _best_of_one(postings, query, factors, n_rows, best):
    pointers, rows, codes = postings
    places, idf = query
    top_scores, top_rows, n_kept, base, block = best
    cursors = np.zeros(len(places), np.int64)
    ends = np.zeros(len(places), np.int64)
    for number in range(len(places)):
        if places[number] >= 0:
            cursors[number] = pointers[places[number]]
            ends[number] = pointers[places[number] + 1]
    for begin in range(0, n_rows, _BLOCK):
        scores = block[: min(_BLOCK, n_rows - begin)]
        scores[:] = 0.0
        for number in range(len(places)):
            low, high = cursors[number], ends[number]
            cursors[number] = _add_term(scores, begin, rows, codes, low, high, idf[number], factors)
        n_kept = _keep_block(scores, begin, base, top_scores, top_rows, n_kept)
    return n_kept


@compiled
def _keep_block(scores, begin, base, top_scores, top_rows, n_kept):
    """Put the rows of a block among the best; returns how many are kept."""
    k = len(top_scores)
    for low in range(0, len(scores), _STRIP):
        high = min(low + _STRIP, len(scores))
        if n_kept == k and not _reaches(scores, low, high, top_scores[k - 1]):
            continue
        for row in range(low, high):
            if n_kept == k and scores[row] <= top_scores[k - 1]:
                continue
            n_kept = _keep(top_scores, top_rows, n_kept, scores[row], base + begin + row)
    return n_kept


@compiled
def _reaches(scores, low, high, threshold):
    """Whether any score is above the threshold; a loop without exits, for vector instructions."""
    found = False
    for row in range(low, high):
        found |= scores[np.uint64(row)] > threshold
    return found


@compiled
def _keep(top_scores, top_rows, n_kept, value, row):
    """Put a row among the best; it comes after those of equal score, which were met before it."""
    at = min(n_kept, len(top_scores) - 1)
    while at > 0 and top_scores[at - 1] < value:
        top_scores[at] = top_scores[at - 1]
        top_rows[at] = top_rows[at - 1]
        at -= 1
    top_scores[at] = value
    top_rows[at] = row
    return min(n_kept + 1, len(top_scores))


def number_terms(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], asked: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Postings]:
    """A document's terms numbered by first appearance; the asked ones' numbers; postings."""
    local, asked_local, n_terms = _localise(ids, asked)
    return asked_local, _build(local, lengths, n_terms)


@compiled
def _localise(ids, asked):
    """Number a document's terms by first appearance; those only asked for get -1."""
    size = 64
    while size < 2 * len(ids):
        size *= 2
    table = np.full(size, -1, np.int32)
    terms = np.empty(len(ids), np.int32)
    local = np.empty(len(ids), np.int32)
    asked_local = np.empty(len(asked), np.int32)
    n_terms = 0
    for place in range(len(ids)):
        slot = _slot_of(table, terms, ids[place])
        if table[slot] < 0:
            table[slot] = n_terms
            terms[n_terms] = ids[place]
            n_terms += 1
        local[place] = table[slot]
    for place in range(len(asked)):
        asked_local[place] = table[_slot_of(table, terms, asked[place])]
    return local, asked_local, n_terms


@compiled
def _slot_of(table, terms, term):
    """Where a term's number stands, or the free place where it would."""
    mask = len(table) - 1
    slot = np.int64((np.uint64(np.uint32(term)) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32))
    slot &= mask
    while table[slot] >= 0 and terms[table[slot]] != term:
        slot = (slot + 1) & mask
    return slot


def score_queries(
    scores: Floats,
    queries: tuple[NDArray[np.int32], Floats, NDArray[np.int64]],
    postings: Postings,
    factors: Floats,
) -> None:
    """Score queries laid end to end."""
    _score_queries(scores, queries, postings.pointers, postings.rows, factors)


@compiled
def _score_queries(scores, queries, pointers, rows, factors):
    asked, idf, bounds = queries
    for number in range(len(bounds) - 1):
        own = scores[number]
        for place in range(bounds[number], bounds[number + 1]):
            term = asked[place]
            if term >= 0:
                for at in range(pointers[term], pointers[term + 1]):
                    own[np.uint32(rows[at])] += idf[place] * factors[at]
