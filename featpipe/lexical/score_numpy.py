"""Postings, scores and the best rows with numpy alone: :class:`~featpipe.lexical.bm25.Kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.uint16] | NDArray[np.uint32]

#: From here on scipy's counting transpose beats numpy's sort, its import included.
_MANY_TOKENS = 1_000_000

_BLOCK = 512


class Postings(NamedTuple):
    """Where each term of some rows occurs.

    ``terms`` (n_terms,) int32 ascending; ``pointers`` (n_terms + 1,) int64 into ``rows`` and
    ``frequencies`` (n_postings,) int32, rows ascending per term; ``firsts`` (n_terms,) int64 are
    the places in the ids where each term stands for the first time, ascending.
    """

    terms: NDArray[np.int32]
    pointers: NDArray[np.int64]
    rows: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    firsts: NDArray[np.int64]


def build_postings(ids: NDArray[np.int32], lengths: NDArray[np.int64]) -> Postings:
    """Where each term of the rows occurs."""
    firsts = _first_places(ids)
    if len(ids) >= _MANY_TOKENS:
        return Postings(*_transpose(ids, lengths), firsts)
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
    return Postings(terms, np.append(begins, len(rows)), rows, frequencies, firsts)


def _first_places(ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where each distinct id stands for the first time, ascending."""
    if not len(ids):
        return np.zeros(0, np.int64)
    first = np.full(int(ids.max()) + 1, -1)
    # The last of several writes to one place stays: written backwards, that is the first one.
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    return np.sort(first[first >= 0])


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
    """Mark, in place, the index ``bases[row] + frequency`` of every posting."""
    is_used[bases.take(rows) + frequencies] = True


def read_codes(
    numbers: Codes,
    bases: NDArray[np.int32],
    rows: NDArray[np.int32],
    frequencies: NDArray[np.int32],
) -> Codes:
    """The number at every posting's index."""
    return numbers.take(bases.take(rows) + frequencies)


def add_scores(
    scores: Floats,
    postings: tuple[NDArray[np.int64], NDArray[np.int32], Codes],
    query: tuple[NDArray[np.int64], Floats],
    factors: Floats,
) -> None:
    """Add a query's scores to all rows of a segment, in place, term after term."""
    pointers, rows, codes = postings
    for place, idf in zip(query[0].tolist(), query[1].tolist(), strict=True):
        if place >= 0:
            low, high = pointers[place : place + 2].tolist()
            if high - low < len(factors):
                values = idf * factors.take(codes[low:high])
            else:
                values = (idf * factors).take(codes[low:high])
            np.add.at(scores, rows[low:high], values)


def number_terms(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], asked: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Postings]:
    """A document's terms numbered by first appearance; the asked ones' numbers; postings."""
    distinct, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    rank = np.empty(len(distinct), np.int32)
    rank[np.argsort(first)] = np.arange(len(distinct), dtype=np.int32)
    postings = build_postings(rank[inverse], lengths)
    if not len(distinct):
        return np.full(len(asked), -1, np.int32), postings
    places = np.searchsorted(distinct, asked)
    places[places == len(distinct)] = 0
    return np.where(distinct[places] == asked, rank[places], np.int32(-1)), postings


def score_queries(
    scores: Floats,
    queries: tuple[NDArray[np.int32], Floats, NDArray[np.int64]],
    postings: Postings,
    factors: Floats,
) -> None:
    """Score queries laid end to end."""
    asked, idf, bounds = queries
    wanted, which = np.unique(asked, return_inverse=True)
    idf_of = np.zeros(len(wanted))
    idf_of[which] = idf
    # What each wanted term adds to each row; the number -1 adds nothing.
    parts = np.zeros((len(wanted), scores.shape[1]))
    known = np.flatnonzero(wanted >= 0)
    begins = postings.pointers[wanted[known]]
    counts = postings.pointers[wanted[known] + 1] - begins
    owners = np.repeat(known, counts)
    places = np.arange(len(owners)) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    parts[owners, postings.rows[places]] = idf_of[owners] * factors[places]
    # First terms of all queries, then second ones, and so on: each sum is made in query order.
    lengths = np.diff(bounds)
    for position in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > position)
        scores[longer] += parts[which[bounds[longer] + position]]


def best_rows(scores: Floats, k: int) -> NDArray[np.int64]:
    """The k best places of (n,) scores, best first, equal ones in order of place."""
    n_blocks = len(scores) // _BLOCK
    whole = n_blocks * _BLOCK
    if n_blocks < max(k, 4):
        candidates = np.arange(len(scores))
    else:
        # k blocks reach the k-th best block maximum: no score below it is among the k best.
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
