"""What samples show of a field's values: where they begin and end, how long and odd they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.candidates import (
    AMOUNTS,
    SHAPED,
    Boundaries,
    is_no_amount,
    units_of,
)
from featpipe.extraction.scoring.party_details import parties_named, roles_named
from featpipe.extraction.scoring.ruled_out import are_parts_of_cells
from featpipe.extraction.scoring.tokens import pair_codes
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.values.values import FieldType

    Ints = NDArray[np.int64]

#: Above this share of the sample values, what is odd is the field's own way.
_ODD = 0.05
#: Samples that tell by their values whose a field is.
_FEW = 2
#: Lines of at most so many tokens on average, with their breaks, are no paragraphs.
_SHORT_LINE = 10


def learn_boundaries(
    kind: FieldType,
    samples: Sequence[tuple[PageFeatures, Sequence[tuple[int, int]]]],
    known: set[str],
    names: tuple[str, ...] = (),
) -> Boundaries:
    """Learn from located sample values (character spans per page).

    ``known`` are their folded texts, each once; ``names`` are of the field.
    """
    seen = _Seen()
    for features, spans in samples:
        seen.add(features, spans, kind)
    n = max(len(seen.lengths), 1)
    # New values may be shorter or longer than those seen: the fewer samples, the more room.
    room = 1.0 + 1.6 / max(len(known), 1) ** 0.5
    most_breaks = max(seen.breaks)
    # Sample values of a shaped type may have spellings that no pattern knows.
    is_unusual = bool(seen.lengths) and seen.n_shaped < 0.85 * len(seen.lengths)
    return Boundaries(
        kind=kind,
        before=_usual(seen.before, n / 100),
        behind=_usual(seen.behind, n / 100),
        starts=_usual(seen.starts, n / 100),
        ends=_usual(seen.ends, n / 100),
        strong_ends=_usual(seen.ends, n / 20),
        shortest=max(1, int(min(seen.lengths, default=2) / room)),
        longest=min(int(max(seen.lengths, default=30) * room) + 2, 400),
        most_marks=int(max(seen.marks) * room) + 1,
        most_breaks=most_breaks + (1 if most_breaks else 0),
        most_lines=_most_lines(seen, room) if kind not in SHAPED else 0,
        known=frozenset(known) if kind not in SHAPED else frozenset(),
        uses_grid=kind != "clause" and (kind not in SHAPED or is_unusual),
        uses_units=seen.n_units > 0.2 * n,
        parties=seen.usual_parties(names),
        roles=seen.usual_roles(names),
        names=names,
        may_cut_codes=seen.n_cut > _ODD * n,
        may_be_no_amount=seen.n_no_amounts > _ODD * n,
        may_span_cells=seen.n_spanning > _ODD * n,
        may_part_cells=seen.n_parts > _ODD * n,
        is_taught=bool(seen.lengths),
    )


def _most_lines(seen: _Seen, room: float) -> int:
    """At least one more than sample values have: a name is wrapped where the paper ends."""
    if seen.n_tokens > _SHORT_LINE * seen.n_lines:
        return 0
    most = max(seen.breaks) + 1
    return max(most + 1, int(most * room))


@dataclass(slots=True)
class _Seen:
    """Counts over located sample values; ``lengths``, ``marks`` and ``breaks`` have one of each."""

    before: Counter[int] = field(default_factory=Counter)
    behind: Counter[int] = field(default_factory=Counter)
    starts: Counter[int] = field(default_factory=Counter)
    ends: Counter[int] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    marks: list[int] = field(default_factory=lambda: [0])
    breaks: list[int] = field(default_factory=lambda: [0])
    parties: list[set[int]] = field(default_factory=list)
    """Of each document with a value, the parties in whose blocks one stands."""
    labels: set[int] = field(default_factory=set)
    are_alike: bool = False
    """Whether another party of a document has the label of a value, too."""
    n_tokens: int = 0
    n_lines: int = 0
    n_shaped: int = 0
    n_units: int = 0
    n_cut: int = 0
    """Values that begin or end inside a code."""
    n_no_amounts: int = 0
    """Values of a field of amounts that are a date, a code ..., or part of one."""
    n_spanning: int = 0
    """Values that go on from one cell of a table to the next."""
    n_parts: int = 0
    """Values that are a part of an English cell of one piece."""

    def add(
        self, features: PageFeatures, spans: Sequence[tuple[int, int]], kind: FieldType
    ) -> None:
        """Count the values of one document."""
        tokens = features.tokens
        self.n_tokens += len(tokens)
        self.n_lines += len(features.lines)
        pairs = pair_codes(tokens.code)
        shaped = {(f.start, f.end) for f in features.find(kind)} if kind in SHAPED else set()
        units = set(map(tuple, units_of(features).tolist()))
        firsts, lasts = tokens.spans(spans)
        self._add_parties(features, firsts)
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            self._add_neighbours(features, pairs, first, last)
            self._add_size(features, first, last)
            span = (int(tokens.start[first]), int(tokens.end[last - 1]))
            self.n_shaped += span in shaped
            self.n_units += span in units
            self.n_cut += bool(features.cuts[list(span)].any())
            self.n_no_amounts += kind in AMOUNTS and _is_odd(features, kind, span, span in shaped)

    def _add_parties(self, features: PageFeatures, firsts: Ints) -> None:
        """Count the parties in whose blocks the values of one document begin."""
        if not len(firsts):
            return
        tokens = features.tokens
        parties = {*tokens.party[firsts].tolist()} - {0}
        alike = is_in(tokens.label, np.unique(tokens.label[firsts])) & (tokens.label > 0)
        self.are_alike |= bool(parties and {*tokens.party[alike].tolist()} - parties - {0})
        self.parties.append(parties)
        self.labels |= {*tokens.label[firsts].tolist()} - {0}

    def usual_parties(self, names: Sequence[str]) -> Ints:
        """The parties that alone have values, of several that have their label; else none.

        A field whose name begins with a party's, as 甲方电话 does, is of that one, unless a sample
        has its values in the block of another alone.
        """
        named = set(parties_named(names).tolist())
        if named and not any(own and own.isdisjoint(named) for own in self.parties):
            return np.array(sorted(named), np.int64)
        if len(self.parties) < _FEW or not all(self.parties) or not self.are_alike:
            return np.empty(0, np.int64)
        return np.array(sorted(set[int]().union(*self.parties)), np.int64)

    def usual_roles(self, names: Sequence[str]) -> Ints:
        """The labels of the role that a field is named after, and those of its values."""
        named = roles_named(names)
        return np.union1d(named, np.array(sorted(self.labels), np.int64)) if len(named) else named

    def _add_neighbours(self, features: PageFeatures, pairs: Ints, first: int, last: int) -> None:
        tokens = features.tokens
        self.before.update([int(tokens.code[first - 1])] if first else [])
        self.before.update([int(pairs[first - 2])] if first > 1 else [])
        self.behind.update([int(tokens.code[last])] if last < len(tokens) else [])
        self.starts.update([int(tokens.code[first])] if tokens.is_mark[first] else [])
        self.ends.update([int(pairs[last - 2])] if last > 1 else [])
        self.ends.update([int(tokens.code[last - 1])] if tokens.is_mark[last - 1] else [])

    def _add_size(self, features: PageFeatures, first: int, last: int) -> None:
        tokens = features.tokens
        self.lengths.append(last - first)
        self.breaks.append(int(tokens.line[last - 1] - tokens.line[first]))
        marks = features.boundaries.marks_before
        self.marks.append(int(marks[last] - marks[first]) - self.breaks[-1])
        span = np.array([first]), np.array([last])
        self.n_spanning += bool(features.boundaries.span_cells(*span)[0])
        self.n_parts += bool(are_parts_of_cells(features, *span)[0])


def _is_odd(features: PageFeatures, kind: FieldType, span: tuple[int, int], is_shape: bool) -> bool:
    start, end = (np.array([place]) for place in span)
    return bool(is_no_amount(features, kind, start, end, np.array([is_shape]))[0])


def _usual(counts: Counter[int], least: float) -> Ints:
    """Codes seen more often than that, ascending: an odd sample of a hundred has no effect."""
    usual = sorted(code for code, count in counts.items() if count > least)
    return np.array(usual, np.int64)
