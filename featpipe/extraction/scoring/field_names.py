"""Columns of a field's names: whether a document calls a span by one of them, or by a synonym.

As a label before it (``甲方：X``), in a sentence (``招标人是 X``), or in brackets behind it, as an
abbreviation (``X（以下简称“招标人”）``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.synonyms import (
    VAGUE,
    heads_of,
    is_other_kind,
    names_same,
    party_and_rest,
    party_named,
    synonyms_of,
)
from featpipe.extraction.scoring.candidates import Candidates
from featpipe.extraction.scoring.labels import labelled_starts, named_values, stated_starts
from featpipe.extraction.scoring.party_details import OWN_LABELS, is_in_block
from featpipe.extraction.values.text import fold
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: How far the label is a name of the field; how near before a span a name stands; whether the
#: brackets behind it give it a name. All in [0, 1].
NAMES = ("behind alias", "alias near", "named in bracket")
_REACH = 20
_FADE = np.linspace(1.0, 0.1, _REACH)
#: Of 1: how far a name on the line above counts as the label, and one in a sentence.
_ALONE, _STATED = 0.3, 0.8
#: Of 1: how far a synonym of the field's names counts as the label.
RELATED = 0.9
_QUOTES = frozenset("“”\"'‘’「」『』")
#: Characters between an opening bracket and the name in it.
_MOST_IN_BRACKET = 40
_no_bracket = re.compile(r"[)\n。]")


def name_columns(features: PageFeatures, found: Candidates, names: Sequence[str]) -> Floats:
    """Columns (n, len(NAMES)) of candidates by the names of their field, folded.

    A name that begins with a party's, as 甲方电话 does, is also its rest in that party's block; a
    party's is 名称 there.
    """
    has_blocks = bool(features.tokens.party.any())
    asked = {name: party_and_rest(name) for name in names} if has_blocks else {}
    of_parties = {name: parts for name, parts in asked.items() if parts is not None}
    columns = _with_synonyms(features, found, [name for name in names if name not in of_parties])
    for name, (party, rest) in of_parties.items():
        inside = _is_of_party(features, found, party)[:, None]
        np.maximum(columns, _columns_of(features, found, [name]), out=columns)
        np.maximum(columns, _with_synonyms(features, found, [rest]) * inside, out=columns)
    for party in filter(None, {party_named(name) for name in names} if has_blocks else ()):
        is_name = is_in(features.tokens.label[found.first], OWN_LABELS)
        columns[is_name & is_in_block(features, found.first, party), 0] = 1.0
    return columns


def _is_of_party(features: PageFeatures, found: Candidates, party: str) -> Bools:
    """Whether each (n,) is in the party's block; in none, where the document has none of it."""
    inside = is_in_block(features, np.arange(len(features.tokens)), party)
    if not inside.any():
        inside = features.tokens.party == 0
    return np.asarray(inside[found.first])


def places_of_own(
    features: PageFeatures,
    spans: Sequence[tuple[int, int]],
    names: Sequence[str],
    twins: Sequence[str],
) -> list[tuple[int, int]]:
    """The places of a value without those that are called by the names of other fields.

    Where one value is that of several fields, each place belongs to those whose names tell it best;
    a place that no name tells belongs to all. All places are given if none would be left.

    Args:
        features: of the document.
        spans: places of the value, in characters.
        names: of the field.
        twins: of the other fields that have the value.

    """
    if not twins or len(spans) < 2:
        return list(spans)
    own, other = (_told(features, spans, one) for one in (names, twins))
    kept = [span for span, is_own in zip(spans, (own >= other).tolist(), strict=True) if is_own]
    return kept or list(spans)


def _told(features: PageFeatures, spans: Sequence[tuple[int, int]], names: Sequence[str]) -> Floats:
    """How far (n,) names, or their synonyms, call what stands at some places."""
    edges = [features.tokens.spans([span]) for span in spans]
    first, last = (np.array([int(e[n][0]) if len(e[n]) else 0 for e in edges]) for n in (0, 1))
    found = Candidates(first, np.maximum(last, first + 1), np.zeros(len(spans), np.int64))
    columns = name_columns(features, found, [fold(name) for name in names])
    return np.where(columns[:, 0] >= _STATED * RELATED, columns[:, 0], 0.0) + columns[:, 2]


def _with_synonyms(features: PageFeatures, found: Candidates, names: Sequence[str]) -> Floats:
    own = _columns_of(features, found, names)
    # Few of them are in any document, and to look for labels takes longer than for words.
    known = {*features.tokens.label_text.values()}
    related = [
        name
        for name in synonyms_of(tuple(names))
        if (own_name := fold(name)) in known or features.mentions(own_name)
    ]
    related += heads_of(names, known)
    if not related:
        return own
    others = _columns_of(features, found, related, are_own=False)
    folded = tuple(fold(name) for name in names)
    labels = features.tokens.label_text
    alien = [n for n, label in labels.items() if is_other_kind(label, folded)]
    others[is_in(features.tokens.label[found.first], np.array(sorted(alien), np.int64))] = 0.0
    return np.maximum(own, others * (RELATED, 1.0, RELATED))


def _columns_of(
    features: PageFeatures, found: Candidates, names: Sequence[str], *, are_own: bool = True
) -> Floats:
    """Columns (n, len(NAMES)) by some names, all of which count alike."""
    tokens, text = features.tokens, features.folded
    folded = [fold(name) for name in names]
    at_start = np.zeros(len(text) + 1)
    for start, is_sure in labelled_starts(text, names).items():
        at_start[start] = 1.0 if is_sure else _ALONE
    stated = stated_starts(text, names, are_own=are_own)
    stated += [start for start, _ in named_values(text, names)] if are_own else []
    at_start[stated] = np.maximum(at_start[stated], _STATED)
    near, at_end = np.zeros((2, len(tokens) + 1))
    # However they are spaced: 甲　方.
    for start, end in (span for name in folded for span in features.compact.find_all(name)):
        token = int(np.searchsorted(tokens.start, end))
        reach = near[token : token + _REACH]
        np.maximum(reach, _FADE[: len(reach)], out=reach)
        named_end = end_before_bracket(text, start, end)
        if named_end:
            at_end[int(np.searchsorted(tokens.end, named_end)) + 1] = 1.0
    by_labels = _by_labels(features, found, folded, are_own=are_own)
    behind = np.maximum(by_labels, at_start[tokens.start[found.first]])
    return np.column_stack((behind, near[found.first], at_end[found.last]))


def _by_labels(
    features: PageFeatures, found: Candidates, folded: Sequence[str], *, are_own: bool
) -> Floats:
    """Whether the label or the qualifier (n,) of the first token of each span has a name."""
    tokens = features.tokens
    alone = () if are_own else VAGUE.intersection(folded)
    named = [
        n
        for n, text in tokens.label_text.items()
        if text in alone or any(names_same(text, name) for name in folded if name not in alone)
    ]
    codes = np.array(sorted(named), np.int64)
    label, qualifier = tokens.label[found.first], tokens.qualifier[found.first]
    return (is_in(label, codes) | is_in(qualifier, codes)).astype(np.float64)


def end_before_bracket(text: str, start: int, end: int) -> int:
    """Where the words end that a quoted name, in the brackets behind them, abbreviates; or 0.

    Args:
        text: folded.
        start: of the name; ``end`` is the place behind it.
        end: likewise.

    """
    if text[end : end + 1] not in _QUOTES or text[max(start - 1, 0) : start] not in _QUOTES:
        return 0
    opening = text.rfind("(", max(start - _MOST_IN_BRACKET, 0), start)
    if opening < 0 or _no_bracket.search(text, opening, start):
        return 0
    return len(text[:opening].rstrip())
