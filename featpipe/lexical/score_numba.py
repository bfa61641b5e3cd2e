"""Postings, scores and the best rows, compiled by numba. Imported only where numba is to run."""

# Compiled functions take arrays, not objects, and speak in loops.
# mypy: allow-untyped-defs

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.lexical.backend import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.lexical.bm25 import Columns, Floats, Statistics, Variant
    from featpipe.lexical.score_numpy import Postings
    from featpipe.lexical.segment import Segment

#: Rows scored at a time, so that their sums stay in the core's own cache.
_BLOCK = 8192
#: Rows looked at together for anything worth keeping.
_STRIP = 256


def build_postings(ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Postings:
    """terms, pointers, rows, frequencies, firsts: see :class:`Segment`."""
    size = int(ids.max(initial=-1)) + 1
    postings: Postings = _build(ids, lengths, size)
    return postings


@compiled
def _build(ids, lengths, size):
    row_counts = np.zeros(size, np.int64)
    last_row = np.full(size, -1, np.int32)
    firsts = np.empty(size, np.int64)
    n_terms = 0
    n_postings = 0
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
                n_postings += 1
        place += lengths[row]
    terms = np.empty(n_terms, np.int32)
    pointers = np.zeros(n_terms + 1, np.int64)
    cursors = np.zeros(size, np.int64)
    filled = 0
    for term in range(size):
        if row_counts[term]:
            terms[filled] = term
            cursors[term] = pointers[filled]
            pointers[filled + 1] = pointers[filled] + row_counts[term]
            filled += 1
    rows = np.empty(n_postings, np.int32)
    frequencies = np.empty(n_postings, np.int32)
    last_row[:] = -1
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
    return terms, pointers, rows, frequencies, firsts[:n_terms].copy()


@compiled
def mark_pairs(is_used, bases, rows, frequencies):
    """Mark, in place, every place ``bases[row] + frequency`` that a posting has."""
    for at in range(len(rows)):
        is_used[bases[rows[at]] + frequencies[at]] = True


@compiled
def read_codes(numbers, bases, rows, frequencies):
    """The number at every posting's place."""
    codes = np.empty(len(rows), numbers.dtype)
    for at in range(len(rows)):
        codes[at] = numbers[bases[rows[at]] + frequencies[at]]
    return codes


def add_scores(
    scores: Floats,
    segment: Segment,
    query: tuple[NDArray[np.int64], Floats],
    columns: Columns,
    constants: tuple[float, float],
    begin: int,
) -> None:
    """Add a query's scores to rows ``begin`` ... of a segment, in place, term after term."""
    postings = (segment.pointers, segment.rows, segment.codes)
    _add_scores(scores, begin, postings, *query, tuple(columns), constants)


@compiled
def _add_scores(scores, begin, postings, places, idf, columns, constants):
    pointers, rows, _ = postings
    for number in range(len(places)):
        place = places[number]
        if place < 0:
            if constants[0] != 0.0:
                _add_everywhere(scores, idf[number] * constants[0])
            continue
        low = pointers[place]
        high = pointers[place + 1]
        if begin > 0:
            low += np.searchsorted(rows[low:high], begin)
        _add_term(scores, begin, postings, low, high, idf[number], columns, constants)


@compiled
def _add_everywhere(scores, value):
    for row in range(len(scores)):
        scores[row] += value


@compiled
def _add_term(scores, begin, postings, low, high, idf, columns, constants):
    """Add one term to rows ``begin`` ...; the posting at which the rows end."""
    _, rows, codes = postings
    factor, numerator, divisor = columns
    background, scale = constants
    end = begin + len(scores)
    at = low
    if len(divisor) > 0:
        while at < high and rows[at] < end:
            code = codes[at]
            part = idf * factor[code] * scale * numerator[code] / divisor[code]
            scores[np.uint64(rows[at] - begin)] += part
            at += 1
    elif background != 0.0:
        absent = idf * background
        row = begin
        while row < end:
            if at < high and rows[at] == row:
                scores[row - begin] += idf * factor[codes[at]]
                at += 1
            else:
                scores[row - begin] += absent
            row += 1
    else:
        at = _add_products(scores, begin, (rows, codes), low, high, idf, factor)
    return at


@compiled
def _add_products(scores, begin, postings, low, high, idf, factor):
    """The hot loop: four postings for one comparison, and unsigned places, which may not wrap."""
    rows, codes = postings
    first, end = np.int32(begin), np.int32(begin + len(scores))
    at, stop = np.uint64(low), np.uint64(high)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    while at + three < stop and rows[at + three] < end:
        part_0 = idf * factor[codes[at]]
        part_1 = idf * factor[codes[at + one]]
        part_2 = idf * factor[codes[at + two]]
        part_3 = idf * factor[codes[at + three]]
        scores[np.uint32(rows[at] - first)] += part_0
        scores[np.uint32(rows[at + one] - first)] += part_1
        scores[np.uint32(rows[at + two] - first)] += part_2
        scores[np.uint32(rows[at + three] - first)] += part_3
        at += np.uint64(4)
    while at < stop and rows[at] < end:
        scores[np.uint32(rows[at] - first)] += idf * factor[codes[at]]
        at += one
    return np.int64(at)


def best_of(
    segment: Segment,
    queries: tuple[NDArray[np.int64], Floats, NDArray[np.int64]],
    columns: Columns,
    constants: tuple[float, float],
    allowed: NDArray[np.bool_],
    best: tuple[Floats, NDArray[np.int64], NDArray[np.int64], int],
) -> None:
    """Score a whole segment for many queries and keep the best rows seen so far of each.

    ``queries`` are places in ``segment.terms`` (-1: not there), idf, and bounds, laid end to end.
    ``allowed`` (n_rows,) or (0,) for all. ``best`` are the scores and rows kept (n_queries, k),
    best first, how many there are (n_queries,), all changed in place, and the segment's first row.
    """
    postings = (segment.pointers, segment.rows, segment.codes)
    _best_of(segment.n_rows, postings, queries, tuple(columns), constants, allowed, best)


@compiled
def _best_of(n_rows, postings, queries, columns, constants, allowed, best):
    places, idf, bounds = queries
    top_scores, top_rows, n_kept, base = best
    block = np.zeros(_BLOCK)
    for query in range(len(bounds) - 1):
        low, high = bounds[query], bounds[query + 1]
        n_kept[query] = _best_of_one(
            n_rows,
            postings,
            (places[low:high], idf[low:high]),
            columns,
            constants,
            allowed,
            (top_scores[query], top_rows[query], n_kept[query], base, block),
        )


@compiled
def _best_of_one(n_rows, postings, query, columns, constants, allowed, best):
    places, idf = query
    top_scores, top_rows, n_kept, base, block = best
    k = len(top_scores)
    cursors = np.zeros(len(places), np.int64)
    ends = np.zeros(len(places), np.int64)
    for number in range(len(places)):
        if places[number] >= 0:
            cursors[number] = postings[0][places[number]]
            ends[number] = postings[0][places[number] + 1]
    for begin in range(0, n_rows, _BLOCK):
        size = min(_BLOCK, n_rows - begin)
        scores = block[:size]
        scores[:] = 0.0
        for number in range(len(places)):
            cursors[number] = _add_term(
                scores,
                begin,
                postings,
                cursors[number],
                ends[number],
                idf[number],
                columns,
                constants,
            )
        for low in range(0, size, _STRIP):
            high = min(low + _STRIP, size)
            if n_kept == k and not _reaches(scores, low, high, top_scores[k - 1]):
                continue
            for row in range(low, high):
                if n_kept == k and scores[row] <= top_scores[k - 1]:
                    continue
                if len(allowed) == 0 or allowed[begin + row]:
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


def score_document(
    ids: NDArray[np.int32],
    lengths: NDArray[np.int64],
    asked: NDArray[np.int32],
    bounds: NDArray[np.int64],
    variant: Variant,
    statistics: Statistics | None,
) -> Floats:
    """See :func:`featpipe.lexical.bm25.score_fields`; queries are laid end to end."""
    from featpipe.lexical.bm25 import weigh_query

    scores = np.zeros((len(bounds) - 1, len(lengths)))
    local, asked_local, n_terms = _localise(ids, asked)
    _, pointers, rows, frequencies, _ = _build(local, lengths, n_terms)
    weights = weigh_query(asked, asked_local, pointers, lengths, variant, statistics)
    if weights is not None:
        kind = (variant.name == "l", variant.background, variant.k1, variant.scale)
        _score_queries(
            scores,
            (asked_local, weights[0], bounds),
            (pointers, rows, frequencies),
            weights[1],
            (*kind, float(variant.delta)),
        )
    return scores


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


@compiled
def _score_queries(scores, query, postings, norms, constants):
    asked, idf, bounds = query
    pointers, rows, frequencies = postings
    is_quotient, background, k1, scale, delta = constants
    parts = np.empty(len(rows))
    is_done = np.zeros(len(pointers), np.bool_)
    for number in range(len(bounds) - 1):
        for place in range(bounds[number], bounds[number + 1]):
            term = asked[place]
            weight = idf[place]
            low = pointers[term] if term >= 0 else 0
            high = pointers[term + 1] if term >= 0 else 0
            if term >= 0 and not is_done[term]:
                is_done[term] = True
                for at in range(low, high):
                    norm = norms[rows[at]]
                    count = frequencies[at]
                    if is_quotient:
                        scaled = count / norm
                        product = weight * count * scale * (scaled + delta)
                        parts[at] = product / (k1 + scaled + delta)
                    else:
                        factor = count * scale / (count + norm)
                        # For Okapi the delta is zero, and zero plus a positive number is exact.
                        parts[at] = weight * (delta + factor)
            _add_parts(scores[number], rows, parts, low, high, weight * background)


@compiled
def _add_parts(scores, rows, parts, low, high, absent):
    at = low
    if absent == 0.0:
        for at in range(low, high):
            scores[rows[at]] += parts[at]
        return
    for row in range(len(scores)):
        if at < high and rows[at] == row:
            scores[row] += parts[at]
            at += 1
        else:
            scores[row] += absent
