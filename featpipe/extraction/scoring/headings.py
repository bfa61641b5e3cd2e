"""Headings in a line: where clauses begin behind a number or a title that no mark ends.

Texts of printed contracts have lost line breaks: ``17.1 Choice of Law   This Agreement shall`` and
``2. Term The term of this Agreement``. A clause may begin behind a wide gap, behind a number inside
the line, and at each capital word of the title that follows a number or a gap: which of them is the
first of the clause, the samples teach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.tokens import hash_of, hashes_of
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.tokens import Tokens

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]


#: Blanks that part a heading from its clause.
_WIDE = 3
#: Words and marks of a title with its clause's first words.
_LONGEST_TITLE = 8
_POINT, _BREAK, _CLOSING = hash_of("."), hash_of("\n"), hash_of(")")
_DIGITS = hashes_of(f"digits {n}" for n in range(1, 4))
_LETTERS = hashes_of("abcdefghijklmnopqrstuvwxyz")
_SMALL = hashes_of((
    "of", "and", "or", "the", "to", "in", "for", "by", "with", "on", "a", "an", *",;-–&/'",
))  # fmt: skip


def starts_behind_headings(tokens: Tokens, clause_starts: Ints) -> Ints:
    """Tokens (n,), ascending, that clauses may begin with; ``clause_starts`` included.

    Args:
        tokens: of the page.
        clause_starts: those behind a stop, a line break or the number of a clause.

    """
    n = len(tokens)
    starts = np.zeros(n, bool)
    starts[clause_starts] = True
    is_number = _inline_numbers(tokens)
    heads = np.append(False, is_number[:-1])[:n] | before_gaps(tokens)
    titled = heads | (starts & _follows_number(tokens))
    return np.flatnonzero(starts | (heads & tokens.is_capital) | _in_titles(tokens, titled))


def before_gaps(tokens: Tokens) -> Bools:
    """Tokens (n_tokens,) with a wide gap before them in their line, capital words and numbers."""
    gap = tokens.start[1:] - tokens.end[:-1]
    is_wide = np.append(False, (gap >= _WIDE) & (tokens.code[:-1] != _BREAK))[: len(tokens)]
    return np.asarray(is_wide & (tokens.is_capital | is_in(tokens.code, _DIGITS)))


def _inline_numbers(tokens: Tokens) -> Bools:
    """Last tokens of ``8.1``, ``8.1.``, ``a)`` and ``(a)`` before a blank."""
    code, n = tokens.code, len(tokens)
    joined = np.append(tokens.end[:-1] == tokens.start[1:], False)[:n]
    digits, points = is_in(code, _DIGITS), code == _POINT
    decimal = np.zeros(n, bool)
    decimal[2:] = digits[:-2] & joined[:-2] & points[1:-1] & joined[1:-1] & digits[2:]
    closing = np.zeros(n, bool)
    closing[1:] = (code[1:] == _CLOSING) & (digits | is_in(code, _LETTERS))[:-1] & joined[:-1]
    with_point = np.zeros(n, bool)
    with_point[1:] = points[1:] & decimal[:-1] & joined[:-1]
    return np.asarray((decimal | closing | with_point) & ~joined)


def _follows_number(tokens: Tokens) -> Bools:
    """Tokens behind ``2.`` or another number of a clause."""
    code = tokens.code
    is_last = is_in(code, _DIGITS)
    is_last[1:] |= ((code[1:] == _POINT) | (code[1:] == _CLOSING)) & is_last[:-1]
    return np.append(False, is_last[:-1])[: len(tokens)]


def _in_titles(tokens: Tokens, titled: Bools) -> Bools:
    """Capital words behind the first word of a title, as far as its words are capital or small."""
    n = len(tokens)
    found = np.zeros(n, bool)
    goes_on = tokens.is_capital | is_in(tokens.code, _SMALL)
    at = np.flatnonzero(titled & tokens.is_capital)
    for _ in range(_LONGEST_TITLE):
        at = at + 1
        at = at[at < n]
        at = at[goes_on[at]]
        found[at] = True
    found &= tokens.is_capital
    found[1:] &= ~tokens.is_mark[:-1]
    return found
