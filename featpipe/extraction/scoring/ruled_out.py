"""Candidates that are ruled out: names where amounts are asked for, and what is another party's.

Samples keep them: they show how unlikely what is no value looks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.candidates import ENTITY, SHAPED
from featpipe.extraction.scoring.party_details import ROLES, roles_in
from featpipe.extraction.values.text import fold
from featpipe.extraction.values.values import is_readable
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.values.values import FieldType

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

#: What texts are not, unless samples are: £3,065.00 is no article, 0836-4410275 no contact.
_NO_TEXTS: tuple[FieldType, ...] = ("phone", "money")


def without_names(found: Candidates, features: PageFeatures, kind: FieldType) -> Candidates:
    """The candidates that a value of the type may be: a name is no amount and no date.

    Samples keep theirs: they show how unlikely what is no value looks. 11日, whose month stands
    before it, may be a date.
    """
    if kind not in SHAPED or kind == "id":
        return found
    start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
    n_digits = features.character_counts[0]
    is_name = (n_digits[end] == n_digits[start]) | (kind != "date")
    keep = (found.origin != ENTITY) | ~is_name
    return found.where(keep)


def with_letters(found: Candidates, features: PageFeatures) -> Candidates:
    """The candidates that may be names, which have letters: 64,000.00 is no buyer."""
    start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
    _, *letters, _ = features.character_counts
    n_letters = np.add.reduce([own[end] - own[start] for own in letters])
    return found.where(n_letters > 0)


def of_whole_cells(found: Candidates, features: PageFeatures, *, are_names: bool) -> Candidates:
    """Without parts of the cells that have a header, are English, and one piece.

    GREEN COFFEE is no description of goods in a cell GREEN COFFEE IN JUTE BAGS. Behind a name an
    address may stand.
    """
    return found.where(~are_parts_of_cells(features, found.first, found.last, are_names=are_names))


def are_parts_of_cells(
    features: PageFeatures, first: Ints, last: Ints, *, are_names: bool = False
) -> Bools:
    """Whether spans of tokens (n,) are a part of such a cell, not all of it."""
    begins, ends = features.single_names if are_names else features.single_cells
    if not len(begins):
        return np.zeros(len(first), bool)
    at = np.searchsorted(begins, first, side="right") - 1
    is_inside = (at >= 0) & (last <= ends[at])
    return np.asarray(is_inside & ~((first == begins[at]) & (last == ends[at])))


def with_digits(found: Candidates, features: PageFeatures) -> Candidates:
    """The candidates that may be codes, which have digits: a title is no contract number."""
    start, end = features.tokens.start[found.first], features.tokens.end[found.last - 1]
    n_digits = features.character_counts[0]
    return found.where(n_digits[end] > n_digits[start])


def without_other_types(
    found: Candidates, features: PageFeatures, known: frozenset[str]
) -> Candidates:
    """Those that are nothing, and lie in nothing, of a type that no known value is of."""
    spans = [(one.start, one.end) for kind in _others(known) for one in features.find(kind)]
    if not spans:
        return found
    first, last = features.tokens.spans(sorted(spans))
    # The last end of all that begin where a candidate does, or before.
    ends = np.append(0, np.maximum.accumulate(last))
    return found.where(ends[np.searchsorted(first, found.first, side="right")] < found.last)


@lru_cache(maxsize=1024)
def _others(known: frozenset[str]) -> tuple[FieldType, ...]:
    return tuple(k for k in _NO_TEXTS if not any(is_readable(own, k) for own in known))


def of_parties(found: Candidates, features: PageFeatures, parties: Ints) -> Candidates:
    """The candidates outside the blocks of other parties than those that a field is of.

    What another party is called is none anywhere, unless it stands in a block of the field's, too.
    Where the document has a block of none of them, all may be values. Samples keep theirs, too.
    """
    tokens = features.tokens
    if not len(parties):
        return found
    parties = tokens.with_other_names(parties)
    if not is_in(tokens.party, parties).any():
        return found
    own = tokens.party[found.first]
    is_other = (own != 0) & ~is_in(own, parties)
    is_name = is_other & (tokens.role[found.first] != 0) & (tokens.label[found.first] == own)
    named = _are_inside(found, found.where(is_name), features)
    return found.where(~is_other & ~((own == 0) & named))


def of_roles(found: Candidates, features: PageFeatures, roles: Ints) -> Candidates:
    """The candidates that no label gives to another role, such as 审判员 for a field 审判长.

    Such a name is none anywhere, unless it stands behind a label of the field's, too. 代书记员 is
    another role than 书记员 where a document has both.
    """
    tokens = features.tokens
    if not len(roles) or not tokens.role.any():
        return found
    roles = roles_in(features, roles)
    first = found.first
    is_own = is_in(tokens.label[first], roles) | is_in(tokens.qualifier[first], roles)
    is_held = is_in(tokens.label[first], ROLES) & (tokens.role[first] != 0)
    others = found.where(is_held & ~is_own)
    if not len(others):
        return found
    keep = ~_are_inside(found, others, features) | _are_inside(
        found, found.where(is_held & is_own), features
    )
    return found.where(keep)


def _are_inside(found: Candidates, names: Candidates, features: PageFeatures) -> Bools:
    """Whether each candidate (n,) is, or is part of, a place of what others read up to a mark."""
    marks = np.append(features.boundaries.marks_before, features.boundaries.marks_before[-1] + 1)
    first, last = names.first, names.last
    up_to_mark = (marks[first] == marks[last]) & (marks[last + 1] > marks[last])
    inside = _places_of(names.where(up_to_mark), features)
    return np.asarray((inside[found.first] > 0) & (inside[found.first] == inside[found.last - 1]))


def _places_of(names: Candidates, features: PageFeatures) -> Ints:
    """Number (n_tokens,) of the place of a name that each token is in; 0 for none."""
    tokens, compact = features.tokens, features.compact
    texts = {
        compact_text
        for a, b in zip(tokens.start[names.first], tokens.end[names.last - 1], strict=True)
        if (compact_text := fold(features.folded[a:b]))
    }
    inside = np.zeros(len(tokens), np.int64)
    spans = [span for text in sorted(texts, key=len) for span in compact.find_all(text)]
    for number, (first, last) in enumerate(zip(*tokens.spans(spans), strict=True), 1):
        inside[first:last] = number
    return inside
