"""Postings, scores and the best rows with numpy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.lexical.bm25 import Columns, Floats, Statistics, Variant
    from featpipe.lexical.segment import Codes, Segment

#: From here on scipy's counting transpose beats numpy's sort, its import included.
_MANY_TOKENS = 1_000_000

_BLOCK = 512

Postings = tuple[
    "NDArray[np.int32]",
    "NDArray[np.int64]",
    "NDArray[np.int32]",
    "NDArray[np.int32]",
    "NDArray[np.int64]",
]


def build_postings(ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Postings:
    """terms, pointers, rows, frequencies, firsts: see :class:`Segment`."""
    from featpipe.lexical.segment import first_places

    firsts = first_places(ids)
    if len(ids) >= _MANY_TOKENS:
        return (*_transpose(ids, lengths), firsts)
    n_rows = max(len(lengths), 1)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    keys = ids.astype(np.int64) * n_rows + owners
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    frequencies = np.diff(np.append(starts, len(keys))).astype(np.int32)
    keys = keys[starts]
    numbers = keys // n_rows
    rows = (keys - numbers * n_rows).astype(np.int32)
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    terms = numbers[begins].astype(np.int32)
    return terms, np.append(begins, len(rows)), rows, frequencies, firsts


def _transpose(
    ids: NDArray[np.int32], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    from scipy.sparse import csr_array

    n_columns = int(ids.max()) + 1
    bounds = np.concatenate(([0], np.cumsum(lengths)))
    ones = np.ones(len(ids), np.int32)
    by_row = csr_array((ones, ids, bounds), shape=(len(lengths), n_columns))
    by_term = by_row.tocsc()
    by_term.sum_duplicates()
    pointers = by_term.indptr.astype(np.int64)
    terms = np.flatnonzero(np.diff(pointers)).astype(np.int32)
    rows = by_term.indices.astype(np.int32, copy=False)
    return terms, np.append(pointers[terms], pointers[-1]), rows, by_term.data


def mark_pairs(
    is_used: NDArray[np.bool_],
    bases: NDArray[np.int32],
    rows: NDArray[np.int32],
    frequencies: NDArray[np.int32],
) -> None:
    """Mark, in place, every place ``bases[row] + frequency`` that a posting has."""
    is_used[bases.take(rows) + frequencies] = True


def read_codes(
    numbers: Codes,
    bases: NDArray[np.int32],
    rows: NDArray[np.int32],
    frequencies: NDArray[np.int32],
) -> Codes:
    """The number at every posting's place."""
    return numbers.take(bases.take(rows) + frequencies)


def add_scores(
    scores: Floats,
    segment: Segment,
    query: tuple[NDArray[np.int64], Floats],
    columns: Columns,
    constants: tuple[float, float],
    begin: int,
) -> None:
    """Add a query's scores to rows ``begin`` ... of a segment, in place, term after term.

    ``query`` holds places in ``segment.terms`` (-1: not there) and idf; ``constants`` are the
    variant's background and scale.
    """
    background, scale = constants
    end = begin + len(scores)
    for place, idf in zip(query[0].tolist(), query[1].tolist(), strict=True):
        low, high = segment.pointers[place : place + 2].tolist() if place >= 0 else (0, 0)
        rows = segment.rows[low:high]
        if len(scores) < segment.n_rows and len(rows):
            first, last = np.searchsorted(rows, (begin, end)).tolist()
            low, high, rows = low + first, low + last, rows[first:last] - np.int32(begin)
        values = _values(idf, columns, segment.codes[low:high], scale)
        if background:
            before = scores[rows]
            scores += idf * background
            scores[rows] = before + values
        else:
            np.add.at(scores, rows, values)


def _values(idf: float, columns: Columns, codes: Codes, scale: float) -> Floats:
    if len(columns.divisor):
        product = idf * columns.factor.take(codes) * scale * columns.numerator.take(codes)
        quotient: Floats = product / columns.divisor.take(codes)
        return quotient
    if len(codes) < len(columns.factor):
        return idf * columns.factor.take(codes)
    values: Floats = (idf * columns.factor).take(codes)
    return values


def best_rows(scores: Floats, k: int) -> NDArray[np.int64]:
    """The k best places of (n,) scores, best first, equal ones in order of place."""
    n_blocks = len(scores) // _BLOCK
    whole = n_blocks * _BLOCK
    if n_blocks < max(k, 4):
        candidates = np.arange(len(scores))
    else:
        # k blocks reach at least the k-th best block's maximum: nothing below it is among the best.
        tops = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
        threshold = np.partition(tops, n_blocks - k)[n_blocks - k]
        candidates = np.flatnonzero(scores >= threshold)
    if len(candidates) > 4 * k + 64:
        reached = scores[candidates]
        threshold = np.partition(reached, len(reached) - k)[len(reached) - k] if k else np.inf
        candidates = candidates[reached >= threshold]
    order = np.argsort(-scores[candidates], kind="stable")[:k]
    best: NDArray[np.int64] = candidates[order]
    return best


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

    n_queries, n_rows = len(bounds) - 1, len(lengths)
    scores = np.zeros((n_queries, n_rows))
    if not len(asked) or not n_rows:
        return scores
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), np.int64)
    rank[np.argsort(first)] = np.arange(len(distinct))
    owners = np.repeat(np.arange(n_rows), lengths)
    pairs = np.sort(rank[inverse] * n_rows + owners)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    pointers = np.searchsorted(pairs, np.arange(len(distinct) + 1) * n_rows)
    places = np.searchsorted(distinct, asked)
    places[places == len(distinct)] = 0
    is_here = distinct[places] == asked if len(distinct) else np.zeros(len(asked), np.bool_)
    local = np.where(is_here, rank.take(places, mode="clip") if len(rank) else 0, -1)
    weights = weigh_query(asked, local, pointers, lengths, variant, statistics)
    if weights is None:
        return scores
    idf, norms = weights
    wanted, which = np.unique(asked, return_inverse=True)
    n_wanted = len(wanted)
    idf_of = np.zeros(n_wanted)
    idf_of[which] = idf
    parts = _parts_by_term(ids, owners, wanted, (idf_of, norms), variant)
    _add_by_position(scores, parts, which, bounds)
    return scores


def _parts_by_term(
    ids: NDArray[np.int32],
    owners: NDArray[np.int64],
    wanted: NDArray[np.int32],
    weights: tuple[Floats, Floats],
    variant: Variant,
) -> Floats:
    """What each wanted term adds to each row: (n_wanted + 1, n_rows), the last of them nothing."""
    idf, norms = weights
    column = np.searchsorted(wanted, ids)
    column[column == len(wanted)] = 0
    asked_for = wanted[column] == ids
    shape = (len(wanted), len(norms))
    cells = column[asked_for] * shape[1] + owners[asked_for]
    frequencies = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    parts = np.zeros((shape[0] + 1, shape[1]))
    parts[:-1] = (idf * variant.background)[:, None]
    terms, rows = np.nonzero(frequencies)
    columns = variant.columns(frequencies[terms, rows], norms[rows])
    if len(columns.divisor):
        product = idf[terms] * columns.factor * variant.scale * columns.numerator
        parts[terms, rows] = product / columns.divisor
    else:
        parts[terms, rows] = idf[terms] * columns.factor
    return parts


def _add_by_position(
    scores: Floats, parts: Floats, which: NDArray[np.int64], bounds: NDArray[np.int64]
) -> None:
    """Add first tokens of all queries, then second ones, and so on: each sum in query order."""
    lengths = np.diff(bounds)
    for position in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        scores[longer] += parts[which[bounds[longer] + position]]
