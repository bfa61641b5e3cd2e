"""Details of parties by names of fields: 甲方电话 is behind 电话 in the block of 甲方."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.bare_labels import ACTING, LISTED_ROLES
from featpipe.extraction.names.synonyms import (
    ORDINALS,
    OWN_NAMES,
    party_and_rest,
    party_named,
    synonyms_of,
)
from featpipe.extraction.scoring.labels import labelled_values
from featpipe.extraction.scoring.tokens import hash_of, hashes_of
from featpipe.extraction.values.text import fold
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

#: Labels of a party's name in its block.
OWN_LABELS = hashes_of(OWN_NAMES)
#: Labels of the roles that are known by name.
ROLES = hashes_of(LISTED_ROLES)
_ACTING = {hash_of(role): hashes_of(others) for role, others in ACTING.items()}


def labelled_in_blocks(features: PageFeatures, names: Sequence[str]) -> list[tuple[int, int]]:
    """Spans of what stands behind 电话 in the block of 甲方, for the name 甲方电话."""
    tokens = features.tokens
    if not tokens.party.any():
        return []
    asked = [
        (party, [rest, *synonyms_of((rest,))])
        for party, rest in filter(None, map(party_and_rest, names))
    ]
    asked += [(party, sorted(OWN_NAMES)) for party in filter(None, map(party_named, names))]
    found: list[tuple[int, int]] = []
    for party, labels in asked:
        spans = labelled_values(features.folded, labels)
        first = np.searchsorted(tokens.start, [start for start, _ in spans])
        inside = is_in_block(features, first, party).tolist()
        found += [span for span, is_own in zip(spans, inside, strict=True) if is_own]
    return found


def is_in_block(features: PageFeatures, first: Ints, party: str) -> Bools:
    """Whether tokens (n,) stand in the block of a party, or of one that is called otherwise."""
    tokens = features.tokens
    return is_in(tokens.party[first], tokens.with_other_names(_labels_of(party)))


def parties_named(names: Sequence[str]) -> Ints:
    """Hashes of the labels of the parties whose details, or names, fields of these names are."""
    found = [party for party, _ in filter(None, map(party_and_rest, names))]
    found += filter(None, map(party_named, names))
    return np.unique(np.concatenate([np.empty(0, np.int64), *map(_labels_of, found)]))


def roles_named(names: Sequence[str]) -> Ints:
    """Hashes of the labels of the role that fields of these names ask for, as 原告律师 does."""
    asked = {one for name in names for one in (name, *(party_and_rest(name) or ())[1:])}
    known = {other for one in asked for other in (one, *synonyms_of((one,)))}
    return (
        hashes_of(map(fold, known))
        if any(map(LISTED_ROLES.__contains__, known))
        else np.empty(0, np.int64)
    )


def roles_in(features: PageFeatures, roles: Ints) -> Ints:
    """Hashes of labels of roles, and of those who act in the ones that the document has none of."""
    missing = roles[~is_in(roles, np.unique(features.tokens.label))]
    acting = [_ACTING[role] for role in missing.tolist() if role in _ACTING]
    return np.unique(np.concatenate((roles, *acting)))


@lru_cache(maxsize=1024)
def _labels_of(party: str) -> Ints:
    """Hashes of the labels that a party's block may have."""
    names = [fold(name) for name in (party, *synonyms_of((party,)))]
    numbered = [f"第{number}{name}" for name in names for number in ORDINALS[:10]]
    return hashes_of([*numbered, *(name + n for name in names for n in ("", *ORDINALS))])
