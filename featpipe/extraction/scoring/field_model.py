"""A field's model: it scores the values of documents, and chooses which to report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from featpipe.extraction.names.kinds_of_names import names_codes
from featpipe.extraction.names.synonyms import is_known, is_party, party_named
from featpipe.extraction.scoring.candidates import (
    AMOUNTS,
    SHAPED,
    Boundaries,
)
from featpipe.extraction.scoring.columns import MEASURED, measured_columns, span_rows
from featpipe.extraction.scoring.confidence import listed_confidences
from featpipe.extraction.scoring.field_names import RELATED
from featpipe.extraction.scoring.logistic import log_odds, sigmoid
from featpipe.extraction.scoring.parallel import (
    LEAST_USUAL,
    MOST_EXPECTED,
    ExpectedNumber,
    RankedValues,
    choose_further,
    further_probabilities,
    further_terms,
    labelled_again,
)
from featpipe.extraction.scoring.ranking import (
    VALUE_COLUMNS,
    Group,
    ValueModel,
    group_values,
    parallel_columns,
    value_rows,
)
from featpipe.extraction.scoring.ruled_out import (
    of_parties,
    of_roles,
    of_whole_cells,
    with_digits,
    with_letters,
    without_names,
    without_other_types,
)
from featpipe.extraction.scoring.sentence_model import SentenceModel, SentenceScores
from featpipe.extraction.scoring.similarity import (
    SampleMentions,
    SampleSentences,
    similarity_by_words,
)
from featpipe.extraction.scoring.totals import settle_totals
from featpipe.extraction.scoring.value_order import Places, are_parts, order_values
from featpipe.extraction.values.text import fold
from featpipe.store.sorted_values import is_in

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from featpipe.extraction.scoring.candidates import Candidates
    from featpipe.extraction.scoring.columns import SpanRows
    from featpipe.extraction.scoring.features import PageFeatures
    from featpipe.extraction.scoring.mentions import MentionModel
    from featpipe.extraction.scoring.rejected import RejectedValues
    from featpipe.extraction.values.values import FieldType

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_BEHIND_ALIAS, _FROM_LABEL = MEASURED.index("behind alias"), MEASURED.index("from label")
_BEHIND_BEST, _REJECTED, _SHARE = map(VALUE_COLUMNS.index, ("behind best", "rejected", "share"))
#: Least confidence of the likeliest value. Over the parts for development, weights of confidence
#: learnt without a template gave that template's values the best F1 at .22 to .28.
LEAST_CONFIDENCE = 0.25
#: The same of a pretrained field that no sample has shown a value of: other documents than those
#: that it was pretrained on may have nothing of the kind.
_LEAST_UNSHOWN = 0.35
#: Log odds that the first of several values gains by a further one that is certain. Learnt on the
#: halves for development of announcements and event sentences. Of amounts none: another one is as
#: often the price of something else.
_FIRST_OF_SEVERAL = 0.7
#: Least probability of the likeliest value that stands whole behind the field's name and a colon.
#: Samples of companies make banks and persons less likely, and the label says what they are.
_LEAST_LABELLED = 0.05


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
    """(n, n, len(PARALLEL)) of the n likeliest values: how far they stand in like places; n is 0
    where one value is reported at most."""
    confidences: Floats
    """(n_groups,): see :mod:`featpipe.extraction.scoring.confidence`."""
    is_headed: Bools
    """(n_groups,) whether the best mention of each stands in a cell of a table with a header."""
    fills_cell: Bools
    """(n_groups,) whether it is all of such a cell."""
    is_sum: Bools
    """(n_groups,) whether it stands in a row of sums: none of those are beside other values."""
    again: Bools
    """(n, n) of the n likeliest values, where names alone tell: see ``labelled_again``."""


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
    owners: Ints
    rejected: RejectedValues
    trusts_names: bool = False
    """Whether what the samples have behind the field's names, or synonyms, are its values."""
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

    @property
    def is_unshown(self) -> bool:
        """Whether it is pretrained, and no sample has shown a value of it."""
        return self.is_pretrained and not len(self.exemplars)

    def first_of(
        self, probabilities: Floats, confidences: Floats, measured: Floats, gained: float = 0.0
    ) -> list[int]:
        """Number of the value to report first, if one is sure enough; arguments as of Scored.

        Args:
            probabilities: of the values.
            confidences: of the values.
            measured: of the values.
            gained: log odds that it gains by other fields.

        """
        is_named = measured[:, _BEHIND_ALIAS] > 0
        is_labelled = (measured[:, _BEHIND_ALIAS] >= 1) & (measured[:, _FROM_LABEL] > 0)
        able = is_named if self.is_untaught else np.ones(len(probabilities), bool)
        least = _LEAST_UNSHOWN if self.is_unshown else LEAST_CONFIDENCE
        is_sure = confidences >= (sigmoid(log_odds(np.array(least)) - gained) if gained else least)
        is_sure[:1] |= is_labelled[:1] & (probabilities[:1] >= _LEAST_LABELLED)
        return [number for number in np.flatnonzero(able)[:1].tolist() if is_sure[number]]

    def choose(
        self,
        scored: Scored,
        taken: Collection[int] = (),
        expected: ExpectedNumber | None = None,
    ) -> list[int]:
        """Numbers of the values to report: the best if sure enough, then others apart from it.

        Args:
            scored: values of a document.
            taken: numbers of values that are none of the others.
            expected: how many there should be, if other fields tell.

        """
        given = scored.probabilities, scored.confidences, scored.measured
        first = self.first_of(*given)
        if not self.may_be_many:
            return first
        is_doubted = not first
        if is_doubted and expected is not None:
            first = self.first_of(*given, max(expected.log_odds(2), 0.0))
        if not first:
            return first
        chosen = first + self._choose_further(scored, first[0], taken, expected)
        if is_doubted and len(chosen) < 2:
            return []
        if self.kind not in AMOUNTS:
            return chosen
        return settle_totals(
            chosen, scored.groups, scored.probabilities, may_split=self.gives_several
        )

    def probabilities(
        self, scored: Scored, chosen: Sequence[int], expected: ExpectedNumber | None = None
    ) -> dict[int, float]:
        """How likely the values that are reported are right, by number: likeliest first.

        A further value is likely by its place beside the others as well; the more one of them is,
        the likelier is the first that it stands beside, unless they are amounts.
        """
        if self.is_untaught and len(chosen) > 1:
            own = listed_confidences(scored.confidences[chosen], scored.rows[chosen, _SHARE])
            return dict(zip(chosen, np.minimum.accumulate(own).tolist(), strict=True))
        p = {number: float(scored.confidences[number]) for number in chosen}
        if not self.is_further_ranked(scored, chosen):
            return p
        first, *others = chosen
        further = further_probabilities(self.further_terms(scored, chosen, expected))
        most = float(further.max())
        if self.kind in AMOUNTS:
            # It may be a part of the total that was likeliest.
            sure = self.first_of(scored.probabilities, scored.confidences, scored.measured)
            gained = scored.confidences[[first, *sure]].max()
        else:
            gained = sigmoid(log_odds(scored.confidences[first]) + _FIRST_OF_SEVERAL * most)
        ranked = sorted(zip(others, further.tolist(), strict=True), key=lambda pair: -pair[1])
        return {first: max(most, float(gained))} | dict(ranked)

    def is_further_ranked(self, scored: Scored, chosen: Sequence[int]) -> bool:
        """Whether there are values after the first, chosen for how likely they are beside it."""
        is_ranked = len(chosen) > 1 and max(chosen) < len(scored.parallel)
        return is_ranked and not self._column(scored, chosen[0])

    def further_terms(
        self, scored: Scored, chosen: Sequence[int], expected: ExpectedNumber | None = None
    ) -> Floats:
        """Of each reported value but the first, what tells how likely it is right."""
        return further_terms(chosen, self.ranked(scored), self._usual(scored), expected)

    def _column(self, scored: Scored, first: int) -> list[int]:
        """The other cells below a header that names a field of which nothing else is known."""
        has_columns = self.trusts_names and self.gives_several
        if not (self.is_untaught or self.is_unshown or has_columns):
            return []
        named = scored.measured[:, _BEHIND_ALIAS]
        is_cell = scored.fills_cell & (named >= named[first])
        # A synonym of a part of a name heads other things as well.
        is_enough = self.is_untaught and all(map(is_known, self.aliases))
        least = RELATED if is_enough else 1.0
        if not is_cell[first] or named[first] < least:
            return []
        return [n for n in np.flatnonzero(is_cell & ~scored.is_sum).tolist() if n != first]

    def ranked(self, scored: Scored) -> RankedValues:
        """The values of a document that may be given beside each other."""
        n = len(scored.parallel)
        rows = scored.rows[:n]
        return RankedValues(
            scored.probabilities[:n], scored.confidences[:n], scored.parallel,
            rows[:, _BEHIND_BEST], rows[:, _REJECTED], self.values.evidence.few,
        )  # fmt: skip

    def _usual(self, scored: Scored) -> Floats:
        """Of the n likeliest values, how likely each is without a like place; 0 for unlikely ones.

        That is where most documents have several. What is behind a label that is the field's name
        is as likely as the label makes it.
        """
        n = len(scored.parallel) * self.is_mostly_many
        p = scored.probabilities[:n]
        if self.trusts_names:
            named, labelled = scored.measured[:n, [_BEHIND_ALIAS, _FROM_LABEL]].T
            p = np.where((named >= 1) & (labelled > 0), np.maximum(p, scored.confidences[:n]), p)
        usual = np.zeros(len(scored.parallel))
        usual[:n] = p * (p >= LEAST_USUAL)
        return usual

    def _choose_further(
        self,
        scored: Scored,
        first: int,
        taken: Collection[int],
        expected: ExpectedNumber | None,
    ) -> list[int]:
        """Values likely enough by themselves and by their places, each apart from the others."""
        column = self._column(scored, first)
        if column:
            return [number for number in column if number not in taken]
        n = len(scored.parallel)
        if n < 2 or first >= n:
            return []
        start, end = np.array([group.spans[0] for group in scored.groups[:n]]).T
        is_apart = (end[:, None] <= start) | (end <= start[:, None])
        is_apart[scored.is_sum[:n]] = False
        is_apart[[number for number in taken if number < n]] = False
        is_named = scored.measured[:n, _BEHIND_ALIAS] >= 1
        if scored.is_headed[first] and is_named[first]:
            # What stands in another column is something else.
            is_apart &= (is_named | ~scored.is_headed[:n])[:, None]
        ranked = self.ranked(scored)
        if self.is_untaught:
            named, labelled = scored.measured[:n, [_BEHIND_ALIAS, _FROM_LABEL]].T
            is_apart &= (named > 0)[:, None]
            # The same label, or the same words, again: each record of a list has them.
            able = (named >= named[first]) & (labelled > 0) & ~scored.is_headed[:n]
            again = scored.again & able & able[:, None]
            ranked = ranked.listed(again)
        return choose_further(
            first,
            ranked,
            is_apart,
            needs_list=not self.gives_several,
            is_usual=self._usual(scored) > 0,
            expected=expected,
        )


def score_fields(models: Sequence[FieldModel], features: PageFeatures) -> list[Scored]:
    """:meth:`FieldModel.score` of many fields, with the same bits.

    Features that several fields share are computed once.
    """
    by_words = similarity_by_words(features, [model.sentences for model in models])
    found = [
        _plausible(model, features, model.boundaries.propose(features, words))
        for model, words in zip(models, by_words, strict=True)
    ]
    rows = span_rows(features, found)
    return [
        _score(model, features, own, rows, words)
        for model, own, words in zip(models, found, by_words, strict=True)
    ]


def _plausible(model: FieldModel, features: PageFeatures, found: Candidates) -> Candidates:
    """Those that a value of the field may be; samples keep the others, which show what is none."""
    found = without_names(found, features, model.kind)
    if _is_name(model):
        found = with_letters(found, features)
    if model.kind not in SHAPED and not model.boundaries.may_part_cells:
        found = of_whole_cells(found, features, are_names=_is_name(model))
    if _is_code(model):
        found = with_digits(found, features)
    if model.kind == "text" and model.boundaries.known:
        found = without_other_types(found, features, model.boundaries.known)
    found = of_parties(found, features, model.boundaries.parties)
    return of_roles(found, features, model.boundaries.roles)


def _is_code(model: FieldModel) -> bool:
    """Whether the values are numbers of documents and the like; no sample is without digits."""
    return (
        model.kind in {"text", "id"}
        and any(map(names_codes, model.aliases))
        and all(any(map(str.isdigit, own)) for own in model.boundaries.known)
    )


def _is_name(model: FieldModel) -> bool:
    """Whether the values are what somebody is called; no sample has a number alone."""
    if model.kind in SHAPED or not all(
        any(map(str.isalpha, own)) for own in model.boundaries.known
    ):
        return False
    if model.kind in {"organisation", "person"}:
        return True
    return any(is_party(fold(name)) or party_named(name) for name in model.aliases)


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
    rows = rows.of(found)
    hashed = rows.hashed
    measured = measured_columns(
        features, found, rows, sentences, model.sample_mentions, model.aliases
    )
    if not len(found):
        none = np.empty(0)
        nowhere = parallel_columns(features, (), none)
        columns = value_rows(features, (), frozenset(), model.rejected)
        headed = np.empty(0, bool)
        return Scored(
            found, none, (), none, columns, hashed.matrix(), measured, nowhere, none, headed,
            headed, headed, headed.reshape(0, 0),
        )  # fmt: skip
    logits = model.mentions.logits(hashed, measured)
    groups = group_values(features, found, logits, model.kind)
    values = value_rows(features, groups, model.boundaries.known, model.rejected)
    p = model.values.probabilities(values)
    best = np.array([group.candidate for group in groups])
    places = Places(
        features.is_headed[found.first[best]],
        is_in(found.codes[best], features.cell_codes),
        are_parts(model, found, best),
    )
    order, confidences = order_values(model, values, measured[best], p, places)
    best, ranked = best[order], tuple(groups[number] for number in order)
    p, values, measured = p[order], values[order], measured[best]
    has_further = model.may_be_many and model.first_of(p, confidences, measured, MOST_EXPECTED)
    parallel = parallel_columns(features, ranked, p if has_further else np.empty(0))
    first = found.first[best]
    return Scored(
        found, logits, ranked, p, values, hashed.at(best).matrix(), measured, parallel, confidences,
        places.is_headed[order],
        places.fills_cell[order],
        features.is_sum[first],
        labelled_again(features.tokens, first[: len(parallel)], parallel)
        if model.is_untaught
        else np.empty((0, 0), bool),
    )  # fmt: skip
