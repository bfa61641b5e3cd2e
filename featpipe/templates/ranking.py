"""Ranking: the mentions of one value together decide how likely the document says it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.templates.folding import fold
from featpipe.templates.logistic import Logistic, fit_logistic, sigmoid
from featpipe.templates.values import read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.templates.candidates import Candidates
    from featpipe.templates.values import FieldType, Value
    from featpipe.templates.view import View

    Floats = NDArray[np.float64]

#: Mentions looked at per document: the best by their own score.
_MOST_MENTIONS = 60

VALUE_COLUMNS = (
    "mention", "second mention", "n mentions", "behind best", "is best", "log rank", "position",
    "in title", "inside better", "around better", "known value", "share", "log length",
    "log occurrences", "stands free", "extends",
)  # fmt: skip
_PRIOR = np.zeros(len(VALUE_COLUMNS))
_PRIOR[[VALUE_COLUMNS.index(n) for n in ("mention", "behind best", "is best", "inside better",
                                         "stands free", "extends")]] = (
    0.7, 0.3, 0.8, -0.5, 0.3, -0.5
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One value of one document with its mentions; ``best`` and ``spans`` are character spans."""

    value: Value
    spans: tuple[tuple[int, int], ...]
    """Best mention first."""
    logits: tuple[float, ...]
    candidate: int
    """Number of the best mention among the candidates."""


def group_values(view: View, found: Candidates, logits: Floats, kind: FieldType) -> list[Group]:
    """The best mentions of a document by value, best value first."""
    tokens = view.tokens
    order = np.argsort(-logits, kind="stable")[:_MOST_MENTIONS]
    groups: dict[tuple[str, str], list[int]] = {}
    values: dict[tuple[str, str], Value] = {}
    for at in order.tolist():
        start, end = int(tokens.start[found.first[at]]), int(tokens.end[found.last[at] - 1])
        value = read_value(view.text[start:end], kind)
        key = (value.key, "")
        groups.setdefault(key, []).append(at)
        values.setdefault(key, value)
    return [
        Group(
            values[key],
            tuple(
                (int(tokens.start[found.first[at]]), int(tokens.end[found.last[at] - 1]))
                for at in members
            ),
            tuple(float(logits[at]) for at in members),
            members[0],
        )
        for key, members in groups.items()
    ]


def value_rows(view: View, groups: Sequence[Group], known: frozenset[str]) -> Floats:
    """Shape (n_groups, len(VALUE_COLUMNS))."""
    if not groups:
        return np.empty((0, len(VALUE_COLUMNS)))
    top = np.array([group.logits[0] for group in groups])
    share = np.exp(top - top.max())
    share /= share.sum()
    title_end = max(view.text.find("\n"), 0)
    best = np.array([group.spans[0] for group in groups])
    spans = np.array([span for group in groups for span in group.spans])
    n_before = np.cumsum([0, *(len(group.spans) for group in groups)])
    rows = []
    for rank, group in enumerate(groups):
        start, end = best[rank].tolist()
        better = spans[: n_before[rank]]
        starts_inside, ends_inside = better[:, 0] >= start, better[:, 1] <= end
        rows.append(
            (
                _within(top[rank], 12) / 2,
                _within(group.logits[1] if len(group.logits) > 1 else -12, 12) / 12,
                math.log1p(len(group.spans)) / 2,
                _within(top[rank] - top[0], 8) / 4,
                rank == 0,
                math.log1p(rank) / 3,
                start / max(len(view.text), 1),
                any(a < title_end for a, _ in group.spans),
                bool(((better[:, 0] <= start) & (better[:, 1] >= end)).any()),
                bool((starts_inside & ends_inside).any()),
                group.value.key in known,
                share[rank],
                math.log(max(end - start, 1)) / 4,
                *_repeats(view, group),
            )
        )
    return np.array(rows, np.float64)


def _within(number: float, most: float) -> float:
    return max(-most, min(most, float(number)))


def _repeats(view: View, group: Group) -> tuple[float, bool, bool]:
    """How often the value is written, whether ever between marks, and whether always within more.

    A name cut too short goes on the same way wherever it stands; a whole one does not.
    """
    start, end = group.spans[0]
    whole, places = view.compact.text, view.compact.places
    folded = fold(view.text[start:end])
    at = whole.find(folded)
    n, free, before, behind = 0, False, set(), set()
    while at >= 0 and n < 12:
        left = whole[at - 1] if at else " "
        right = whole[at + len(folded)] if at + len(folded) < len(whole) else " "
        # A dropped character (comma, blank, line break) between two kept ones is a mark as well.
        gap_left = at > 0 and places[at] - places[at - 1] > 1
        last = at + len(folded) - 1
        gap_right = last + 1 < len(whole) and places[last + 1] - places[last] > 1
        before.add("" if gap_left else left)
        behind.add("" if gap_right else right)
        free |= (gap_left or not left.isalnum()) and (gap_right or not right.isalnum())
        n += 1
        at = whole.find(folded, at + len(folded))
    extends = n > 1 and (_is_letter(before) or _is_letter(behind))
    return math.log1p(n) / 2, free, extends


def _is_letter(neighbours: set[str]) -> bool:
    return len(neighbours) == 1 and next(iter(neighbours)).isalnum()


@dataclass(frozen=True, slots=True, eq=False)
class ValueModel:
    """Second stage: calibrated probability of each value, and where to stop."""

    model: Logistic
    first_threshold: float
    other_threshold: float

    def probabilities(self, rows: Floats) -> Floats:
        """Shape (n_groups,)."""
        return sigmoid(self.model.logits(rows)) if len(rows) else np.empty(0)


def fit_values(
    rows: Sequence[Floats],
    labels: Sequence[NDArray[np.bool_]],
    n_wanted: Sequence[int],
    *,
    strength: float = 1.5,
) -> ValueModel:
    """Fit on scores that were computed without the document they are of.

    Thresholds maximise F1 on the same scores, held to a default by what few documents can tell.

    Args:
        rows: per document (n_groups, len(VALUE_COLUMNS)).
        labels: per document (n_groups,) whether the value is right.
        n_wanted: per document how many values it has, found or not.
        strength: of the prior.

    """
    every, truth = np.concatenate(list(rows)), np.concatenate(list(labels))
    model = fit_logistic(
        every, truth, np.ones(len(truth)), strength=strength, prior=_PRIOR, prior_bias=-0.5
    )
    probabilities = [sigmoid(model.logits(part)) if len(part) else np.empty(0) for part in rows]
    judged = [
        sorted(zip(p.tolist(), t.tolist(), strict=True), reverse=True)
        for p, t in zip(probabilities, labels, strict=True)
    ]
    first = _best_threshold([part[:1] for part in judged], sum(n > 0 for n in n_wanted), 0.2)
    other = _best_threshold(
        [part[1:4] for part in judged], sum(max(n - 1, 0) for n in n_wanted), 0.35
    )
    return ValueModel(model, first, max(other, first))


#: How firmly a threshold is held to its default: as by so many documents.
_HOLD = 4.0
_STEPS = (0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55)


def _best_threshold(
    judged: Sequence[Sequence[tuple[float, bool]]], n_wanted: int, default: float
) -> float:
    """The step with the best F1; each step away from the default must earn it."""
    best, best_score = default, -1.0
    for step in _STEPS:
        taken = [is_true for part in judged for p, is_true in part if p >= step]
        score = 2 * sum(taken) / max(len(taken) + n_wanted, 1)
        score -= abs(step - default) * _HOLD / max(n_wanted, 1)
        if score > best_score:
            best, best_score = step, score
    return best
