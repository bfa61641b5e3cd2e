"""Character grams: single characters and pairs for scripts without spaces, whole runs for the rest.

``违约金 ABC-12.5%`` gives 违 违约 约 约金 金 ABC 12.5 (folding happens elsewhere).
"""

from __future__ import annotations

import numpy as np

from featpipe.features.words.codes import CharacterTable, CodedTexts, Offsets

_BREAK, _GRAM, _RUN = 0, 1, 2

#: Scripts written without spaces, where a run of letters is not a word: Thai and Lao, Myanmar,
#: Khmer, and everything from the CJK radicals on.
_UNSPACED = (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))


def _kind_of(code: int) -> int:
    if not chr(code).isalnum():
        return _BREAK
    if code < 0x2E80:
        return _GRAM if any(code in script for script in _UNSPACED) else _RUN
    return _RUN if 0xFF00 <= code < 0xFF61 else _GRAM


_kinds = CharacterTable(_kind_of)
_digits = CharacterTable(lambda code: chr(code).isdigit())


def gram_spans(coded: CodedTexts) -> tuple[Offsets, Offsets]:
    """Starts and ends (n_grams,) of all grams, ordered by start, then end.

    A gram never reaches from one text into the next. A full stop between two digits belongs to
    the number.
    """
    codes = coded.codes
    n = len(codes)
    kinds = _kinds[codes]
    dots = np.flatnonzero(codes == ord("."))
    dots = dots[(dots > 0) & (dots < n - 1)]
    numeric = (_digits[codes[dots - 1]] == 1) & (_digits[codes[dots + 1]] == 1)
    is_first = np.zeros(n + 1, np.bool_)
    is_first[coded.bounds] = True
    numeric &= ~is_first[dots] & ~is_first[dots + 1]
    kinds[dots[numeric]] = _RUN
    joined = np.zeros(n, np.bool_)  # whether a character goes on from the one before
    joined[1:] = (kinds[1:] == kinds[:-1]) & ~is_first[1:n]
    grams = kinds == _GRAM
    followed = np.zeros(n, np.bool_)
    followed[:-1] = joined[1:] & grams[:-1]
    run_starts = np.flatnonzero((kinds == _RUN) & ~joined)
    stays = np.zeros(n, np.bool_)
    stays[:-1] = joined[1:]
    run_ends = np.flatnonzero((kinds == _RUN) & ~stays) + 1
    per_start = grams.astype(np.int64) + followed
    per_start[run_starts] = 1
    starts = np.repeat(np.arange(n), per_start)
    ends = starts + 1
    last = np.cumsum(per_start) - 1
    ends[last[followed]] += 1
    ends[last[run_starts]] = run_ends
    return starts, ends
