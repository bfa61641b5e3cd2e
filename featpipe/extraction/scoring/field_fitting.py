"""A field's model: fitted on the samples of its template, pretrained fields beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.names.synonyms import with_stems
from featpipe.extraction.scoring.candidates import SHAPED, Boundaries
from featpipe.extraction.scoring.columns import MEASURED, measured_columns, span_rows
from featpipe.extraction.scoring.field_model import FieldModel
from featpipe.extraction.scoring.field_names import RELATED, places_of_own
from featpipe.extraction.scoring.learned_boundaries import learn_boundaries
from featpipe.extraction.scoring.locate import locate_meaning, locate_value
from featpipe.extraction.scoring.mentions import (
    MentionModel,
    TrainingRows,
    fit_mentions,
    label_candidates,
    prior_model,
)
from featpipe.extraction.scoring.ranking import Group, fit_values, group_values, value_rows
from featpipe.extraction.scoring.rejected import Judgements
from featpipe.extraction.scoring.sentence_model import SentenceModel, SentenceScores, fit_sentences
from featpipe.extraction.scoring.similarity import (
    OwnMentions,
    SampleMentions,
    SampleSentences,
    words_of,
)
from featpipe.extraction.values.text import fold, fold_width
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.columns import SpanRows
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.pretrained import PretrainedField
    from featpipe.extraction.template import Level
    from featpipe.extraction.values.values import FieldType

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Parts of the cross-validation; with fewer samples each is a part of its own.
_MOST_FOLDS = 5
_MOST_EXEMPLARS = 6
#: Share of the prior's reciprocal ranks below which the learned mention model is not used, and
#: share of those of the prior of any field below which the pretrained one is not. A few
#: samples tell no closer: at 1, one to three of six draws of 20 announcements (part for
#: development) lost what they had learnt of names of projects, and a third of the right values.
_MUCH_WORSE = 0.85
_BEHIND_ALIAS = MEASURED.index("behind alias")
#: Share of the documents pretrained on that have several values, from which on others may.
_OFTEN_SEVERAL = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One reference document with the values of one field, and where they stand."""

    features: PageFeatures
    values: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def sample_of(  # noqa: PLR0913  # what is known of a value
    features: PageFeatures,
    values: Sequence[str],
    kind: FieldType,
    spans: Sequence[tuple[int, int]] = (),
    *,
    is_selected: bool = False,
    names: Sequence[str] = (),
    twins: Sequence[str] = (),
) -> Sample:
    """A sample document with its values, located by meaning unless their spans are given.

    ``twins`` are names of other fields that have one of the values: places that they tell better
    than the field's ``names`` are left out.
    ``is_selected``: a person selected the spans on a page, more or less widely. They count where
    the meaning of the values is found nowhere: values located by meaning teach better.
    """
    places = list(spans)
    if is_selected:
        # The meaning that they have in their places: 12月31日 behind 2023年1月1日至 is of 2023.
        meant = [features.value_at(kind, *span) for span in places]
        located = [span for value in meant for span in locate_meaning(features, value)]
        if located:
            return Sample(features, tuple(values), tuple(sorted(set(located))))
    if not places or is_selected:
        located = [span for value in values for span in locate_value(features, value, kind)]
        places = places_of_own(features, sorted(set(located)), names, twins) or places
    return Sample(features, tuple(values), tuple(sorted(set(places))))


def fit_field(  # noqa: PLR0913  # what a template may say of a field
    samples: Sequence[Sample],
    kind: FieldType,
    aliases: Sequence[str] = (),
    *,
    is_many: bool | None = None,
    pattern: str | None = None,
    level: Level | None = None,
    pretrained: PretrainedField | None = None,
) -> FieldModel:
    """Learn a field from sample documents, those without a value of it included.

    The value scores are fitted on mention scores from cross-validation. The learned mention model
    is used unless it ranks the documents left out much worse than the prior, so that misleading
    samples do no harm; so with the ``pretrained`` field, which is the prior if there is one.
    """
    may_be_many = is_many is not False
    if is_many is None:
        is_many = any(len(sample.values) > 1 for sample in samples)
    names = with_stems(tuple(fold_width(alias) for alias in aliases))
    boundaries = replace(_learn(samples, kind, names), pattern=pattern, level=level)
    of_clauses = kind == "clause"
    prepared = _prepare(samples, boundaries, names, pretrained)
    prior, by_prior = _rank_by_prior(samples, prepared, kind, pretrained)
    if pretrained is not None:
        alone = _prepare(samples, boundaries, names) if of_clauses else prepared
        plain, by_plain = _rank_by_prior(samples, alone, kind)
        if _rank_score(by_prior) < _MUCH_WORSE * _rank_score(by_plain):
            pretrained, prepared, prior, by_prior = None, alone, plain, by_plain
    mentions = fit_mentions(
        [p.rows for p in prepared], of_clauses=of_clauses, pretrained=pretrained
    )
    ranked = _rank_left_out(samples, prepared, kind, pretrained)
    if ranked and _rank_score(ranked) < _MUCH_WORSE * _rank_score(by_prior):
        mentions, ranked = prior, by_prior
    judgements = Judgements(
        ([group.value.key for group in groups], truth) for groups, truth in ranked
    )
    values = fit_values(
        [
            value_rows(
                samples[number].features,
                groups,
                prepared[number].known,
                judgements.rejected_by_others(number),
            )
            for number, (groups, _) in enumerate(ranked)
        ],
        [labels for _, labels in ranked],
        [len(sample.values) for sample in samples],
    )
    n_several, n_valued = (sum(len(sample.values) > n for sample in samples) for n in (1, 0))
    is_mostly_many = 2 * n_several > n_valued
    gives_several = is_many or (pretrained is not None and pretrained.several >= _OFTEN_SEVERAL)
    return FieldModel(
        kind, is_many, may_be_many, gives_several, is_mostly_many, names, boundaries, mentions,
        values, _sentences_of(samples),
        _fit_sentences(samples, pretrained) if of_clauses else None,
        SampleMentions.of([p.mentions for p in prepared]), *_exemplars(prepared),
        judgements.rejected(), _are_named(prepared), pretrained is not None,
    )  # fmt: skip


def rows_of_samples(
    samples: Sequence[Sample], kind: FieldType, aliases: Sequence[str]
) -> list[TrainingRows]:
    """What mention scores are fitted on: each sample's candidates beside the other samples."""
    return [prepared.rows for prepared in _prepare(samples, _learn(samples, kind), aliases)]


def _learn(samples: Sequence[Sample], kind: FieldType, names: tuple[str, ...] = ()) -> Boundaries:
    known = {fold(value) for sample in samples for value in sample.values}
    return learn_boundaries(kind, [(s.features, s.spans) for s in samples], known, names)


def _sentences_of(samples: Sequence[Sample]) -> SampleSentences:
    return SampleSentences.of([(sample.features, sample.spans) for sample in samples])


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A sample document's candidates as if the document were new: its own values unknown."""

    found: Candidates
    rows: TrainingRows
    known: frozenset[str]
    mentions: OwnMentions


def _prepare(
    samples: Sequence[Sample],
    boundaries: Boundaries,
    aliases: Sequence[str],
    pretrained: PretrainedField | None = None,
) -> list[_Prepared]:
    """Each sample, compared with the other samples only."""
    none = [np.empty(0)] * len(samples)
    log_odds = _log_odds_left_out(samples, pretrained) if boundaries.kind == "clause" else none
    proposed = [
        _propose(sample, samples, boundaries, own)
        for sample, own in zip(samples, log_odds, strict=True)
    ]
    mentions = [
        _mentions_of(sample, own, boundaries.kind)
        for sample, own in zip(samples, proposed, strict=True)
    ]
    prepared = []
    for number, (sample, own) in enumerate(zip(samples, proposed, strict=True)):
        others = SampleMentions.of(mentions[:number] + mentions[number + 1 :])
        measured = measured_columns(
            sample.features, own.found, own.rows, own.sentences, others, aliases
        )
        rows = TrainingRows(own.rows.hashed, measured, own.labels, own.overlaps)
        prepared.append(_Prepared(own.found, rows, own.known, mentions[number]))
    return prepared


def _mentions_of(sample: Sample, own: _Proposed, kind: FieldType) -> OwnMentions:
    features, spans = sample.features, sample.spans
    return OwnMentions(
        own.rows.hashed.at(own.labels).matrix(),
        np.ascontiguousarray(own.rows.measures.columns[:, own.labels].T),
        *words_of(features, () if kind in SHAPED else spans),
        features.marks.shares(*features.tokens.spans(spans)),
    )


class _Proposed(NamedTuple):
    """Candidates of one sample; ``known`` and ``sentences`` are of the other samples."""

    found: Candidates
    known: frozenset[str]
    rows: SpanRows
    sentences: SentenceScores
    labels: Bools
    overlaps: Bools


def _fit_sentences(samples: Sequence[Sample], pretrained: PretrainedField | None) -> SentenceModel:
    known = None if pretrained is None else pretrained.sentences
    return fit_sentences([(sample.features, sample.spans) for sample in samples], known)


def _log_odds_left_out(
    samples: Sequence[Sample], pretrained: PretrainedField | None
) -> list[Floats]:
    """Log odds of the sentences of each sample, by a model fitted without it."""
    found = [np.empty(0)] * len(samples)
    for left_out in _folds(len(samples)) or [set(range(len(samples)))]:
        others = [one for n, one in enumerate(samples) if n not in left_out]
        model = _fit_sentences(others, pretrained)
        for number in left_out:
            found[number] = model.logits(samples[number].features)
    return found


def _propose(
    sample: Sample, samples: Sequence[Sample], boundaries: Boundaries, log_odds: Floats
) -> _Proposed:
    features = sample.features
    others = [s for s in samples if s is not sample]
    known = boundaries.known & {fold(value) for s in others for value in s.values}
    others_sentences = _sentences_of(others)
    by_words = others_sentences.by_words(features)
    sentences = SentenceScores(others_sentences.by_vectors(features), by_words, log_odds)
    found = replace(boundaries, known=known).propose(features, by_words)
    labels, overlaps = label_candidates(features, found, sample.spans)
    return _Proposed(found, known, span_rows(features, [found]), sentences, labels, overlaps)


#: Values of a document, the best mention's first, and which of them are right.
_Ranked = tuple[list["Group"], "Bools"]


def _rank_by_prior(
    samples: Sequence[Sample],
    prepared: Sequence[_Prepared],
    kind: FieldType,
    pretrained: PretrainedField | None = None,
) -> tuple[MentionModel, list[_Ranked]]:
    """The prior, and each sample by it."""
    prior = prior_model(len(samples), of_clauses=kind == "clause", pretrained=pretrained)
    return prior, [_rank(s, p, prior, kind) for s, p in zip(samples, prepared, strict=True)]


def _rank_left_out(
    samples: Sequence[Sample],
    prepared: Sequence[_Prepared],
    kind: FieldType,
    pretrained: PretrainedField | None,
) -> list[_Ranked]:
    """Each sample by a model fitted without it, in order; none when there is but one."""
    ranked: dict[int, _Ranked] = {}
    for left_out in _folds(len(samples)):
        others = [p.rows for n, p in enumerate(prepared) if n not in left_out]
        mentions = fit_mentions(others, of_clauses=kind == "clause", pretrained=pretrained)
        for number in left_out:
            ranked[number] = _rank(samples[number], prepared[number], mentions, kind)
    return [ranked[number] for number in sorted(ranked)]


def _folds(n: int) -> list[set[int]]:
    count = min(n, _MOST_FOLDS) if n > 1 else 0
    return [set(range(first, n, count)) for first in range(count)]


def _rank(sample: Sample, prepared: _Prepared, mentions: MentionModel, kind: FieldType) -> _Ranked:
    """The values of a sample by some mention scores."""
    if not len(prepared.found):
        return [], np.empty(0, bool)
    logits = mentions.logits(prepared.rows.hashed, prepared.rows.measured)
    groups = group_values(sample.features, prepared.found, logits, kind)
    wanted, spans = [read_value(value, kind) for value in sample.values], set(sample.spans)
    truth = [
        any(group.value.means(value) for value in wanted)
        # Written without what stands beside it: 3,000 of 3,000-5,000万元.
        or not spans.isdisjoint(group.spans)
        for group in groups
    ]
    return groups, np.array(truth, bool)


def _rank_score(ranked: Sequence[_Ranked]) -> float:
    """Sum over the documents of the reciprocal rank of the first right value."""
    return sum(1.0 / (1 + int(np.argmax(labels))) for _, labels in ranked if labels.any())


def _are_named(prepared: Sequence[_Prepared]) -> bool:
    """Whether samples that have anything behind a name of the field have its values there."""
    for one in prepared:
        is_named = one.rows.measured[:, _BEHIND_ALIAS] >= RELATED
        if is_named.any() and not one.rows.labels[is_named].any():
            return False
    return True


def _exemplars(prepared: Sequence[_Prepared]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Hashed columns of the true mentions, a few of each sample, and their samples' numbers."""
    rows, owners = [], []
    for number, one in enumerate(prepared):
        true = one.rows.hashed.at(np.flatnonzero(one.rows.labels)[:_MOST_EXEMPLARS]).matrix()
        rows.append(true)
        owners.append(np.full(len(true), number))
    rows = [part for part in rows if len(part)]
    if not rows:
        return np.empty((0, 0), np.int32), np.empty(0, np.int64)
    return np.concatenate(rows), np.concatenate(owners)
