"""Edges: where values may begin and end in a document, as far as every field has it in common.

Made once per document, whatever the number of fields and templates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.hashing import hash_of, is_in, pair_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.page import Page

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

#: Closed-class words of Chinese and English behind which a name may begin, or before which it ends.
OPENING = np.array(sorted(
    hash_of(word)
    for word in (
        *"与和及为由是向对在于将到从被的系以即让给同并等了之后称第",
        "of", "by", "between", "and", "the", "to", "with", "in", "is", "for", "from", "a", "an",
    )
))  # fmt: skip
CLOSING = np.array(sorted(
    hash_of(word)
    for word in (
        *"的与和及为于在中等发之将是由以已对向签关近就成拟共所持及均系",
        "and", "of", "or", "to", "in", "is", "has", "for", "by", "with", "shall",
    )
))  # fmt: skip
_organisation_end = re.compile(
    r"公司|集团|银行|分行|支行|政府|委员会|管委会|大学|学院|医院|研究院|设计院|研究所|中心|指挥部|联合体"
    r"|合伙企业|(?:有限合伙)\)?|管理局|管理处|办公室|法院|事务所|协会|基金会|总队|支队|总公司|厂|局|厅|署|院|所|部|处|社"
    r"|\b(?:inc|ltd|llc|corp|corporation|company|limited|l\.p|plc|gmbh|bhd|co)\b\.?"
)
#: What ends a clause; a full point does so only before a blank.
_STOPS = np.sort([hash_of(mark) for mark in "。;!?:"])
_POINT, _BREAK = hash_of("."), hash_of("\n")
_NUMBERING = np.sort(
    [hash_of(f"digits {n}") for n in range(1, 4)]
    + [hash_of(mark) for mark in (*"abcdefghijklmnopqrstuvwxyz", "ii", "iii", "iv", "vi", "vii")]
    + [hash_of(mark) for mark in "第条款章节一二三四五六七八九十"]
)
_LONGEST_NUMBER = 8
#: Brackets are part of many names and not counted as marks; a lone one is marked down later.
OPENING_BRACKET, CLOSING_BRACKET = hash_of("("), hash_of(")")


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Shapes: (n_tokens,) unless said otherwise."""

    before: Ints
    """Code of the token before, 0 at the start."""
    pair_before: Ints
    """Hash of the two tokens before."""
    behind: Ints
    last_pairs: Ints
    """Hash of each token with the one before it."""
    opens: Bools
    """Behind a mark or an opening word."""
    closes: Bools
    """Before a mark or a closing word."""
    startable: Bools
    endable: Bools
    is_word_end: Bools
    is_organisation_end: Bools
    marks_before: Ints
    """(n_tokens + 1,) running count of marks, brackets left out."""
    words: Ints
    """(n,) tokens that begin a word and are no mark."""
    entities: tuple[Ints, Ints]
    """(n,) first and last (half-open) token of each entity."""
    cells: tuple[Ints, Ints]
    clause_starts: Ints
    """(n,) tokens behind a stop, a line break, or the number or name of a clause."""
    clause_ends: Ints
    """(n,) tokens (half-open) at a stop or a line break, with its mark."""


def edges_of(page: Page) -> Edges:
    """Of a document; kept with it."""
    return page.edges


def make_edges(page: Page) -> Edges:
    """For :attr:`Page.edges`."""
    tokens = page.tokens
    code, is_mark = tokens.code, tokens.is_mark
    n = len(code)
    none = np.zeros(min(n, 1), np.int64)
    is_bracket = (code == OPENING_BRACKET) | (code == CLOSING_BRACKET)
    pairs = pair_codes(code)
    before, behind = np.concatenate((none, code[:-1])), np.concatenate((code[1:], none))
    ends = [match.end() for match in _organisation_end.finditer(page.folded)]
    return Edges(
        before=before,
        pair_before=np.concatenate((np.zeros(2, np.int64), pairs))[:n],
        behind=behind,
        last_pairs=np.concatenate((none, pairs[:-1])),
        opens=np.concatenate((none == 0, is_mark[:-1])) | is_in(before, OPENING),
        closes=np.concatenate((is_mark[1:], none == 0)) | is_in(behind, CLOSING),
        startable=~is_mark | (code == OPENING_BRACKET),
        endable=~is_mark | (code == CLOSING_BRACKET),
        is_word_end=np.concatenate((tokens.is_word_start[1:], none == 0)),
        is_organisation_end=is_in(tokens.end, np.array(ends, np.int64)),
        marks_before=np.concatenate(([0], np.cumsum(is_mark & ~is_bracket))),
        words=np.flatnonzero(tokens.is_word_start & ~is_mark),
        entities=token_spans(page, [(mark.start, mark.end) for mark in page.entities]),
        cells=token_spans(page, [(mark.start, mark.end) for mark in page.headers]),
        clause_starts=_clause_starts(page),
        clause_ends=_clause_ends(page),
    )


def _is_stop(page: Page) -> Bools:
    """Where a clause may end: a stop; of full points those alone that nothing is joined to."""
    tokens = page.tokens
    joined = np.append(tokens.end[:-1] == tokens.start[1:], False)
    is_break = tokens.code == _BREAK
    joined &= ~np.append(is_break[1:], False)
    return np.asarray(is_in(tokens.code, _STOPS) | ((tokens.code == _POINT) & ~joined))


def _clause_ends(page: Page) -> Ints:
    """With the mark, so that a clause is met in one way."""
    tokens = page.tokens
    is_break = tokens.code == _BREAK
    before_break = np.append(is_break[1:], True)[: len(tokens)]
    ends = (_is_stop(page) | before_break) & ~is_break
    return np.flatnonzero(ends) + 1


def _clause_starts(page: Page) -> Ints:
    """Behind a stop or line break, and behind what numbers or names the clause there."""
    tokens = page.tokens
    n = len(tokens)
    is_break = tokens.code == _BREAK
    behind = np.concatenate((np.zeros(min(n, 1), bool) == 0, (_is_stop(page) | is_break)[:-1]))
    # A clause is numbered by digits, marks and single letters: (a), 6.2, 第3条.
    numbering = tokens.is_mark | is_in(tokens.code, _NUMBERING)
    starts = behind & ~numbering
    for first in np.flatnonzero(behind & numbering).tolist():
        own = numbering[first : first + _LONGEST_NUMBER]
        if not own.all():
            starts[first + int(np.argmin(own))] = True
    return np.flatnonzero(starts | (behind & ~is_break))


def token_spans(page: Page, spans: Sequence[tuple[int, int]] | Ints) -> tuple[Ints, Ints]:
    """Character spans as token spans, blanks at the edges left out; a cut token counts whole."""
    if not len(spans):
        none = np.empty(0, np.int64)
        return none, none
    tokens = page.tokens
    whole = np.asarray(spans, np.int64).reshape(-1, 2)
    first = np.searchsorted(tokens.end, whole[:, 0], side="right")
    last = np.searchsorted(tokens.start, whole[:, 1], side="left")
    keep = last > first
    return first[keep], last[keep]
