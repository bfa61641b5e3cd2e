"""A field's model: boundaries, mention scores and value scores, fitted on the samples alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from featpipe.extraction.scoring.candidates import SHAPED, Boundaries, learn_boundaries
from featpipe.extraction.scoring.columns import MEASURED, measured_columns, span_rows
from featpipe.extraction.scoring.confidence import confidences_of
from featpipe.extraction.scoring.locate import locate_value
from featpipe.extraction.scoring.mentions import (
    MentionModel,
    TrainingRows,
    fit_mentions,
    label_candidates,
    prior_model,
)
from featpipe.extraction.scoring.parallel import choose_further
from featpipe.extraction.scoring.ranking import (
    Group,
    ValueModel,
    fit_values,
    group_values,
    parallel_columns,
    value_rows,
)
from featpipe.extraction.scoring.rejected import Judgements
from featpipe.extraction.scoring.sentence_model import SentenceModel, SentenceScores, fit_sentences
from featpipe.extraction.scoring.similarity import (
    OwnMentions,
    SampleMentions,
    SampleSentences,
    similarity_by_words,
    words_of,
)
from featpipe.extraction.scoring.totals import ADDED, settle_totals
from featpipe.extraction.values.text import fold, fold_width
from featpipe.extraction.values.values import read_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.columns import SpanRows
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.pretrained import PretrainedField
    from featpipe.extraction.scoring.rejected import RejectedValues
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
_BEHIND_ALIAS, _FROM_LABEL = MEASURED.index("behind alias"), MEASURED.index("from label")
#: Share of the documents pretrained on that have several values, from which on others may.
_OFTEN_SEVERAL = 0.03
#: Least confidence of the likeliest value. Over the parts for development, weights of confidence
#: learnt without a template gave that template's values the best F1 at .22 to .28.
_LEAST_CONFIDENCE = 0.25
#: The same of a pretrained field that no sample has shown a value of: other documents than those
#: that it was pretrained on may have nothing of the kind.
_LEAST_UNSHOWN = 0.35
#: Least probability of the likeliest value that stands whole behind the field's name and a colon.
#: Samples of companies make banks and persons less likely, and the label says what they are.
_LEAST_LABELLED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One reference document with the values of one field, and where they stand."""

    features: PageFeatures
    values: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]


def sample_of(
    features: PageFeatures,
    values: Sequence[str],
    kind: FieldType,
    spans: Sequence[tuple[int, int]] = (),
    *,
    is_selected: bool = False,
) -> Sample:
    """A sample document with its values, located by meaning unless their spans are given.

    ``is_selected``: a person selected the spans on a page, more or less widely. They count where
    the meaning of the values is found nowhere: values located by meaning teach better.
    """
    places = list(spans)
    if not places or is_selected:
        located = [span for value in values for span in locate_value(features, value, kind)]
        places = located or places
    return Sample(features, tuple(values), tuple(sorted(set(places))))


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
    parallel: Floats
    """(n, n, len(PARALLEL)) of the n likeliest values: how far they stand in like places."""
    confidences: Floats
    """(n_groups,): see :mod:`featpipe.extraction.scoring.confidence`."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldModel:
    """Fitted once per (field, samples); used by any number of threads."""

    kind: FieldType
    is_many: bool
    """Whether a sample has several values, or the template says that documents may."""
    may_be_many: bool
    """Whether documents may have several, as far as the template tells."""
    gives_several: bool
    """Whether a document may give several without a list of them: ``is_many``, or pretrained so."""
    is_mostly_many: bool
    """Whether most samples with a value have several."""
    aliases: tuple[str, ...]
    boundaries: Boundaries
    mentions: MentionModel
    values: ValueModel
    sentences: SampleSentences
    sentence_model: SentenceModel | None
    """Of a field of clauses."""
    sample_mentions: SampleMentions
    exemplars: NDArray[np.int32]
    """Hashed columns (n, width) of true mentions in the samples; ``owners`` (n,) their samples."""
    owners: NDArray[np.int64]
    rejected: RejectedValues
    is_pretrained: bool = False
    """Whether the mention model began with :mod:`featpipe.extraction.scoring.pretrained`."""

    def score(self, features: PageFeatures) -> Scored:
        """Every value that the document may give for the field."""
        return score_fields([self], features)[0]

    @property
    def is_untaught(self) -> bool:
        """Whether neither samples nor pretraining tell more than the field's names do."""
        is_formed = self.boundaries.pattern is not None or self.boundaries.level is not None
        return not len(self.exemplars) and not is_formed and not self.is_pretrained

    def choose(self, scored: Scored) -> list[int]:
        """Numbers of the values to report: the best if sure enough, then others apart from it."""
        is_named = scored.measured[:, _BEHIND_ALIAS] > 0
        is_labelled = (scored.measured[:, _BEHIND_ALIAS] >= 1) & (
            scored.measured[:, _FROM_LABEL] > 0
        )
        able = is_named if self.is_untaught else np.ones(len(scored.groups), bool)
        is_unshown = self.is_pretrained and not len(self.exemplars)
        least = _LEAST_UNSHOWN if is_unshown else _LEAST_CONFIDENCE
        is_sure = scored.confidences >= least
        is_sure[:1] |= is_labelled[:1] & (scored.probabilities[:1] >= _LEAST_LABELLED)
        chosen = [number for number in np.flatnonzero(able)[:1].tolist() if is_sure[number]]
        if not chosen or not self.may_be_many:
            return chosen
        chosen += self._choose_further(scored, able, chosen[0])
        if self.kind not in ADDED:
            return chosen
        return settle_totals(
            chosen, scored.groups, scored.probabilities, gives_several=self.gives_several
        )

    def _choose_further(self, scored: Scored, able: Bools, first: int) -> list[int]:
        """Values likely enough by themselves and by their places, each apart from the others."""
        n = len(scored.parallel)
        if n < 2 or first >= n:
            return []
        start, end = np.array([group.spans[0] for group in scored.groups[:n]]).T
        is_apart = (end[:, None] <= start) | (end <= start[:, None])
        return choose_further(
            first,
            scored.probabilities[:n],
            scored.parallel,
            is_apart & able[:n, None],
            needs_list=not self.gives_several,
            is_usual=self.is_mostly_many,
        )


def score_fields(models: Sequence[FieldModel], features: PageFeatures) -> list[Scored]:
    """:meth:`FieldModel.score` of many fields, with the same bits.

    Features that several fields share are computed once.
    """
    by_words = similarity_by_words(features, [model.sentences for model in models])
    found = [
        model.boundaries.propose(features, words)
        for model, words in zip(models, by_words, strict=True)
    ]
    rows = span_rows(features, found)
    return [
        _score(model, features, own, rows, words)
        for model, own, words in zip(models, found, by_words, strict=True)
    ]


def _score(
    model: FieldModel,
    features: PageFeatures,
    found: Candidates,
    rows: SpanRows,
    by_words: Floats,
) -> Scored:
    of_clauses = model.sentence_model
    sentences = SentenceScores(
        model.sentences.by_vectors(features),
        by_words,
        np.empty(0) if of_clauses is None else of_clauses.logits(features),
    )
    hashed = rows.hashed.at(rows.places(found))
    measured = measured_columns(
        features, found, rows, sentences, model.sample_mentions, model.aliases
    )
    if not len(found):
        none = np.empty(0)
        nowhere = parallel_columns(features, found, (), none)
        columns = value_rows(features, (), frozenset(), model.rejected)
        return Scored(found, none, (), none, columns, hashed.matrix(), measured, nowhere, none)
    logits = model.mentions.logits(hashed, measured)
    groups = group_values(features, found, logits, model.kind)
    values = value_rows(features, groups, model.boundaries.known, model.rejected)
    p = model.values.probabilities(values)
    order = np.argsort(-p, kind="stable")
    best = np.array([groups[number].candidate for number in order])
    ranked = tuple(groups[number] for number in order)
    return Scored(
        found, logits, ranked, p[order], values[order], hashed.at(best).matrix(), measured[best],
        parallel_columns(features, found, ranked, p[order]),
        confidences_of(model.values, values[order], p[order], is_shaped=model.kind in SHAPED),
    )  # fmt: skip


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
    names = tuple(fold_width(alias) for alias in aliases)
    boundaries = replace(_learn(samples, kind), pattern=pattern, level=level, names=names)
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
        judgements.rejected(), pretrained is not None,
    )  # fmt: skip


def rows_of_samples(
    samples: Sequence[Sample], kind: FieldType, aliases: Sequence[str]
) -> list[TrainingRows]:
    """What mention scores are fitted on: each sample's candidates beside the other samples."""
    return [prepared.rows for prepared in _prepare(samples, _learn(samples, kind), aliases)]


def _learn(samples: Sequence[Sample], kind: FieldType) -> Boundaries:
    known = {fold(value) for sample in samples for value in sample.values}
    return learn_boundaries(kind, [(s.features, s.spans) for s in samples], known)


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
        own.rows.measures.rows[own.labels],
        *words_of(features, () if kind in SHAPED else spans),
        features.amounts.shares(*features.tokens.spans(spans)),
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
    wanted = [read_value(value, kind) for value in sample.values]
    truth = [any(group.value.means(value) for value in wanted) for group in groups]
    return groups, np.array(truth, bool)


def _rank_score(ranked: Sequence[_Ranked]) -> float:
    """Sum over the documents of the reciprocal rank of the first right value."""
    return sum(1.0 / (1 + int(np.argmax(labels))) for _, labels in ranked if labels.any())


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
