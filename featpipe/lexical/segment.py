"""Postings of some rows: derived from their term ids, immutable, mappable.

A segment holds no scores and no corpus figures: it stays valid while other documents come and go.
Each posting is a row and a code; the code numbers the pair (row length, term frequency), of
which a corpus has one or two thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from featpipe.errors import DictionaryError
from featpipe.lexical.bm25 import open_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from featpipe.lexical.bm25 import Kernels
    from featpipe.lexical.score_numpy import Codes, Postings

#: Counted up when the arrays below change their meaning.
SEGMENT_VERSION = 2

#: Pairs of length and frequency are numbered by a dense table of up to this many entries.
_DENSE_PAIRS = 1 << 24

#: The arrays derived from term ids and lengths.
DERIVED = ("terms", "pointers", "rows", "codes", "pairs", "order")


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows and where each term occurs in them.

    Given: ``lengths`` (n_rows,) terms per row. Derived from these and the rows' term ids:
    ``terms`` (n_terms,) int32 ascending; ``pointers`` (n_terms + 1,) int64 into ``rows``
    (n_postings,) int32, ascending per term, and ``codes`` (n_postings,) uint16 or uint32 into
    ``pairs`` (n_pairs, 2) int32 of row length and frequency; ``order`` (n_terms,) int32 are the
    terms by first appearance.
    """

    lengths: NDArray[np.int64]
    terms: NDArray[np.int32]
    pointers: NDArray[np.int64]
    rows: NDArray[np.int32]
    codes: Codes
    pairs: NDArray[np.int32]
    order: NDArray[np.int32]

    @classmethod
    def from_ids(
        cls,
        ids: NDArray[np.int32],
        lengths: NDArray[np.int64],
        *,
        backend: Literal["numba", "numpy"],
    ) -> Segment:
        """Derive the postings of rows given as term ids, not negative, laid end to end."""
        kernels = open_kernels(backend)
        ids, lengths = np.asarray(ids), np.asarray(lengths, np.int64)
        found = kernels.build_postings(ids, lengths)
        codes, pairs = _encode_pairs(lengths, found, kernels)
        order = ids[found.firsts]
        return cls(lengths, found.terms, found.pointers, found.rows, codes, pairs, order)

    @classmethod
    def from_arrays(
        cls, lengths: NDArray[np.int64], arrays: Mapping[str, NDArray[np.generic]]
    ) -> Segment:
        """A segment of kept arrays, as :meth:`derived` gave them; mapped ones are not read.

        Raises:
            DictionaryError: they do not belong to each other or to these rows. Shapes and ends are
                checked; see :meth:`is_within_bounds`.
        """
        try:
            # A memmap is a subclass that makes every operation on it slower; its view is not.
            plain = {name: np.asarray(arrays[name]) for name in DERIVED}
            segment = cls(np.asarray(lengths), **plain)
            is_own = np.array_equal(arrays["version"], segment._version)
            belongs = is_own and segment._has_matching_shapes()
        except (KeyError, IndexError) as error:
            raise DictionaryError(f"postings lack {error}", hint="derive them anew") from error
        if not belongs:
            raise DictionaryError("postings do not belong to these rows", hint="derive them anew")
        return segment

    def _has_matching_shapes(self) -> bool:
        n_terms, n_postings = len(self.terms), len(self.rows)
        return (
            self.pointers.shape == (n_terms + 1,)
            and self.order.shape == (n_terms,)
            and self.codes.shape == (n_postings,)
            and self.pairs.shape[1:] == (2,)
            and int(self.pointers[-1]) == n_postings
            and self.rows.dtype == np.int32
            and self.codes.dtype in {np.dtype(np.uint16), np.dtype(np.uint32)}
        )

    def is_within_bounds(self) -> bool:
        """Whether every row, code and pointer is within its bounds: kernels do not check them.

        For mapped arrays, of which only the ends were read; 3 ms for a million rows.
        """
        if self.lengths.min(initial=0) < 0:
            return False
        # Viewed as unsigned, a negative row is above every bound: one pass instead of two.
        return (
            self._is_ordered()
            and (not len(self.rows) or int(self.rows.view(np.uint32).max()) < self.n_rows)
            and (not len(self.codes) or int(self.codes.max()) < len(self.pairs))
            and (
                not len(self.order) or int(self.order.view(np.uint32).max()) <= int(self.terms[-1])
            )
        )

    def _is_ordered(self) -> bool:
        pointers, terms = self.pointers, self.terms
        return (
            int(pointers[0]) == 0
            and bool((pointers[1:] >= pointers[:-1]).all())
            and terms[:1].min(initial=0) >= 0
            and bool((terms[1:] > terms[:-1]).all())
        )

    def derived(self) -> dict[str, NDArray[np.generic]]:
        """The derived arrays and their version, by name."""
        kept: dict[str, NDArray[np.generic]] = {name: getattr(self, name) for name in DERIVED}
        return kept | {"version": self._version}

    @property
    def _version(self) -> NDArray[np.int64]:
        return np.array([SEGMENT_VERSION, self.n_rows, self.n_tokens])

    @property
    def n_tokens(self) -> int:
        """Terms of all rows, each as often as it occurs."""
        return int(self.lengths.sum())

    @property
    def n_rows(self) -> int:
        """Rows, empty ones included."""
        return len(self.lengths)

    def places_of(self, wanted: NDArray[np.int32]) -> NDArray[np.int64]:
        """Place of each term in ``terms``, -1 where no row holds it."""
        if not len(self.terms):
            return np.full(len(wanted), -1)
        places = np.searchsorted(self.terms, wanted)
        places[places == len(self.terms)] = 0
        return np.where(self.terms[places] == wanted, places, -1)


def _encode_pairs(
    lengths: NDArray[np.int64], postings: Postings, kernels: Kernels
) -> tuple[Codes, NDArray[np.int32]]:
    """A code for each posting, and the pairs they stand for, ascending."""
    rows, frequencies = postings.rows, postings.frequencies
    if not len(rows):
        return np.zeros(0, np.uint16), np.zeros((0, 2), np.int32)
    width = int(frequencies.max()) + 1
    n_places = (int(lengths.max()) + 1) * width
    if n_places > _DENSE_PAIRS:
        used, inverse = np.unique((lengths * width)[rows] + frequencies, return_inverse=True)
        codes = _narrow(inverse, len(used))
    else:
        bases = (lengths * width).astype(np.int32)
        is_used = np.zeros(n_places, np.bool_)
        kernels.mark_pairs(is_used, bases, rows, frequencies)
        used = np.flatnonzero(is_used)
        numbers = _narrow(np.cumsum(is_used) - 1, len(used))
        codes = kernels.read_codes(numbers, bases, rows, frequencies)
    return codes, np.stack((used // width, used % width), axis=1).astype(np.int32)


def _narrow(numbers: NDArray[np.int64], n_codes: int) -> Codes:
    return numbers.astype(np.uint16) if n_codes <= 1 << 16 else numbers.astype(np.uint32)
