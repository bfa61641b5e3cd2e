"""A field's model: boundaries, mention scores and value scores, fitted on the samples alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.scoring.candidates import Boundaries, learn_boundaries
from featpipe.extraction.scoring.columns import measured_columns, span_rows
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.scoring.mentions import (
    MentionModel,
    Rows,
    fit_mentions,
    plain_mentions,
    true_mentions,
)
from featpipe.extraction.scoring.ranking import (
    VALUE_COLUMNS,
    Group,
    ValueModel,
    fit_values,
    group_values,
    value_rows,
)
from featpipe.extraction.scoring.similarity import Anchors, Manner, like_words
from featpipe.extraction.values.text import fold, fold_width
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.columns import SpanRows
    from featpipe.extraction.scoring.page import Page
    from featpipe.extraction.template import Level
    from featpipe.extraction.values.values import FieldType

    Floats = NDArray[np.float64]

#: Samples are left out one by one up to this many, then in as many parts.
_MOST_FOLDS = 5
_MOST_EXEMPLARS = 6


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One reference document with the values of one field, and where they stand."""

    page: Page
    values: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """All candidates and values of one document under one field, best value first."""

    found: Candidates
    logits: Floats
    groups: tuple[Group, ...]
    probabilities: Floats
    rows: Floats
    hashed: NDArray[np.int32]
    """Columns (n_groups, n) of the best mention of each value; ``measured`` likewise."""
    measured: Floats


@dataclass(frozen=True, slots=True, eq=False)
class FieldModel:
    """Fitted once per (field, samples); used by any number of threads."""

    kind: FieldType
    is_many: bool
    aliases: tuple[str, ...]
    boundaries: Boundaries
    mentions: MentionModel
    values: ValueModel
    anchors: Anchors
    manner: Manner

    exemplars: NDArray[np.int32]
    """Hashed columns (n, width) of true mentions in the samples; ``owners`` (n,) their samples."""
    owners: NDArray[np.int64]

    def score(self, page: Page) -> Scored:
        """Every value this document might give for the field."""
        return score_fields([self], page)[0]

    def choose(self, scored: Scored) -> list[int]:
        """Numbers of the values to report: the best if likely enough, then others apart from it."""
        chosen: list[int] = []
        for number, p in enumerate(scored.probabilities.tolist()):
            limit = self.values.other_threshold if chosen else self.values.first_threshold
            if p < limit or (chosen and not self.is_many):
                break
            if not any(_overlap(scored.groups[number], scored.groups[c]) for c in chosen):
                chosen.append(number)
        return chosen


def score_fields(models: Sequence[FieldModel], page: Page) -> list[Scored]:
    """:meth:`FieldModel.score` of many fields: what they have in common is computed once.

    Each result has the same bits as that of the field alone.
    """
    near = list(
        zip(
            (model.anchors.by_vectors(page) for model in models),
            like_words(page, [model.anchors for model in models]),
            strict=True,
        )
    )
    found = [
        model.boundaries.propose(page, words)
        for model, (_, words) in zip(models, near, strict=True)
    ]
    rows = span_rows(page, found)
    return [
        _score(model, page, own, rows, own_near)
        for model, own, own_near in zip(models, found, near, strict=True)
    ]


def _score(
    model: FieldModel, page: Page, found: Candidates, rows: SpanRows, near: tuple[Floats, Floats]
) -> Scored:
    hashed = rows.hashed[rows.places(found)]
    measured = measured_columns(page, found, rows, near, model.manner, model.aliases)
    if not len(found):
        none = np.empty(0)
        return Scored(found, none, (), none, none, hashed, measured)
    logits = model.mentions.logits(hashed, measured)
    groups = group_values(page, found, logits, model.kind)
    values = value_rows(page, groups, model.boundaries.known)
    p = model.values.probabilities(values)
    order = np.argsort(-p, kind="stable")
    best = np.array([groups[number].candidate for number in order])
    return Scored(
        found, logits, tuple(groups[number] for number in order), p[order], values[order],
        hashed[best], measured[best],
    )  # fmt: skip


def sample_of(page: Page, values: Sequence[str], kind: FieldType) -> Sample:
    """Locate the values of one sample document."""
    spans = [span for value in values for span in locate_value(page, value, kind)]
    return Sample(page, tuple(values), tuple(sorted(set(spans))))


def fit_field(
    samples: Sequence[Sample],
    kind: FieldType,
    aliases: Sequence[str] = (),
    *,
    is_many: bool | None = None,
    pattern: str | None = None,
    level: Level | None = None,
) -> FieldModel:
    """Learn a field from sample documents, those without a value of it included.

    The value scores are fitted on mention scores of documents left out, so that they are as
    honest as on a new document. What was learned must also rank the documents left out at least as
    well as what is known without any sample: else that is kept instead, so that samples which
    mislead do no harm.
    """
    if is_many is None:
        is_many = any(len(sample.values) > 1 for sample in samples)
    boundaries = replace(_learn(samples, kind), pattern=pattern, level=level)
    names = tuple(fold_width(alias) for alias in aliases)
    prepared = _prepare(samples, boundaries, names)
    mentions = fit_mentions([p.rows for p in prepared])
    judged = _judge_left_out(samples, prepared, kind)
    unlearned = plain_mentions(len(samples))
    plain = [_judge(s, p, unlearned, kind) for s, p in zip(samples, prepared, strict=True)]
    if judged and _rank_score(judged) < _rank_score(plain):
        mentions, judged = unlearned, plain
    values = fit_values(
        [rows for rows, _ in judged],
        [labels for _, labels in judged],
        [len(sample.values) for sample in samples],
    )
    return FieldModel(
        kind, is_many, names, boundaries, mentions, values, _anchors(samples),
        Manner.of([p.manner for p in prepared]), *_exemplars(prepared),
    )  # fmt: skip


_Judged = tuple["Floats", "NDArray[np.bool_]"]


def _judge_left_out(
    samples: Sequence[Sample], prepared: Sequence[_Prepared], kind: FieldType
) -> list[_Judged]:
    """Each sample by a model fitted without it, in order; none when there is but one."""
    judged: dict[int, _Judged] = {}
    for left_out in _folds(len(samples)):
        mentions = fit_mentions([p.rows for n, p in enumerate(prepared) if n not in left_out])
        for number in left_out:
            judged[number] = _judge(samples[number], prepared[number], mentions, kind)
    return [judged[number] for number in sorted(judged)]


def _rank_score(judged: Sequence[_Judged]) -> float:
    """Sum over the documents of one over the rank of the first right value."""
    return sum(1.0 / (1 + int(np.argmax(labels))) for _, labels in judged if labels.any())


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A sample document's candidates as if the document were new: its own values unknown."""

    found: Candidates
    rows: Rows
    known: frozenset[str]
    manner: tuple[NDArray[np.int32], Floats]
    """Hashed columns and numbers of its true mentions."""


def _learn(samples: Sequence[Sample], kind: FieldType) -> Boundaries:
    known = {fold(value) for sample in samples for value in sample.values}
    return learn_boundaries(kind, [(s.page, s.spans) for s in samples], known)


def _prepare(
    samples: Sequence[Sample], boundaries: Boundaries, aliases: Sequence[str]
) -> list[_Prepared]:
    """Every sample; what is learned of the others is all that its rows know."""
    every = [_propose(sample, samples, boundaries) for sample in samples]
    manners = [(rows.hashed[labels], rows.numbers[labels]) for _, _, rows, _, (labels, _) in every]
    prepared = []
    for number, (sample, (found, known, rows, near, (labels, touches))) in enumerate(
        zip(samples, every, strict=True)
    ):
        manner = Manner.of(manners[:number] + manners[number + 1 :])
        measured = measured_columns(sample.page, found, rows, near, manner, aliases)
        own = Rows(rows.hashed, measured, labels, touches)
        prepared.append(_Prepared(found, own, known, manners[number]))
    return prepared


def _propose(
    sample: Sample, samples: Sequence[Sample], boundaries: Boundaries
) -> tuple[
    Candidates,
    frozenset[str],
    SpanRows,
    tuple[Floats, Floats],
    tuple[NDArray[np.bool_], NDArray[np.bool_]],
]:
    others = [s for s in samples if s is not sample]
    known = boundaries.known & {fold(value) for s in others for value in s.values}
    near = _nearness(sample.page, _anchors(others))
    found = replace(boundaries, known=known).propose(sample.page, near[1])
    labels = true_mentions(sample.page, found, sample.spans)
    return found, known, span_rows(sample.page, [found]), near, labels


def _judge(
    sample: Sample, prepared: _Prepared, mentions: MentionModel, kind: FieldType
) -> tuple[Floats, NDArray[np.bool_]]:
    """Value rows of a sample left out of the mention model, and which of them are right."""
    if not len(prepared.found):
        return np.empty((0, len(VALUE_COLUMNS))), np.empty(0, bool)
    logits = mentions.logits(prepared.rows.hashed, prepared.rows.measured)
    groups = group_values(sample.page, prepared.found, logits, kind)
    wanted = [read_value(value, kind) for value in sample.values]
    truth = [any(group.value.means(value) for value in wanted) for group in groups]
    return value_rows(sample.page, groups, prepared.known), np.array(truth, bool)


def _exemplars(prepared: Sequence[_Prepared]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Hashed columns of the true mentions, a few of each sample."""
    rows, owners = [], []
    for number, one in enumerate(prepared):
        true = one.rows.hashed[one.rows.labels][:_MOST_EXEMPLARS]
        rows.append(true)
        owners.append(np.full(len(true), number))
    rows = [part for part in rows if len(part)]
    if not rows:
        return np.empty((0, 0), np.int32), np.empty(0, np.int64)
    return np.concatenate(rows), np.concatenate(owners)


def _folds(n: int) -> list[set[int]]:
    count = min(n, _MOST_FOLDS) if n > 1 else 0
    return [set(range(first, n, count)) for first in range(count)]


def _anchors(samples: Sequence[Sample]) -> Anchors:
    return Anchors.of([(sample.page, sample.spans) for sample in samples])


def _nearness(page: Page, anchors: Anchors) -> tuple[Floats, Floats]:
    """Likeness by vectors and by words, (n_sentences,) each."""
    return anchors.by_vectors(page), anchors.by_words(page)


def _overlap(first: Group, second: Group) -> bool:
    (a, b), (c, d) = first.spans[0], second.spans[0]
    return a < d and c < b
