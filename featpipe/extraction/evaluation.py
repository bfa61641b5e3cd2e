"""The evaluation of a template: a frozen value with scores, calibration and disagreements.

``TemplateEvaluation.as_dict`` is its JSON form, and ``TemplateEvaluation.of`` the way back; the
report and the command ``featpipe template evaluate --json`` share it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from featpipe.extraction.results import ExtractedValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

#: Values of at least this probability are taken without a look.
SURE = 0.9
_BINS = 10
_RESAMPLES = 1000
_WHOLE = ""

Source = Literal["samples", "gold"]


@dataclass(frozen=True, slots=True)
class Stated:
    """A value that a sample or gold document states.

    ``places`` (start, end) are where it stands in the document; none where it cannot be located.
    """

    text: str
    places: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        place = "".join(f" [{start}:{end}]" for start, end in self.places[:1])
        return f"{self.text!r}{place or ' (not located)'}"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A field of a document of which other values were found than are stated.

    Attributes:
        document: name of the document, or ``text N`` for a text that the template holds.
        key: of the document in the cache, 32 hex digits; "" outside it.
        field: its name.
        missed: stated values that were not found.
        wrong: found values that are not stated.

    """

    document: str
    key: str
    field: str
    missed: tuple[Stated, ...]
    wrong: tuple[ExtractedValue, ...]

    def __str__(self) -> str:
        missed = ", ".join(map(str, self.missed)) or "nothing more"
        wrong = ", ".join(_describe(value) for value in self.wrong) or "nothing"
        return f"{self.document}, {self.field}: stated {missed}, found {wrong}"


def _describe(value: ExtractedValue) -> str:
    page = "" if value.page is None else f" (page {value.page})"
    return f"{value}{page}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """One field of one document: the number of stated values, and (p, right) of those found."""

    document: str
    field: str
    n_stated: int
    found: tuple[tuple[float, bool], ...]
    disagreement: Disagreement | None = None


@dataclass(frozen=True, slots=True)
class FieldScore:
    """Counts and measures of one field, or of all.

    Attributes:
        field: its name; "" for all fields together.
        n_documents: documents that were read for it.
        n_stated: values that they state, each meaning once.
        n_found: values that were found.
        n_right: found values that are stated.
        n_sure: found values with a probability of at least :data:`SURE`.
        n_sure_right: those of them that are right.
        f1_low, f1_high: 95 % interval of F1, by resampling the documents.
        ece: expected calibration error, in ten bins of probability.

    """

    field: str
    n_documents: int
    n_stated: int
    n_found: int
    n_right: int
    n_sure: int
    n_sure_right: int
    f1_low: float
    f1_high: float
    ece: float

    @property
    def precision(self) -> float:
        """Share of the found values that are right; 1 where none was found; 0 without documents."""
        return self.n_right / self.n_found if self.n_found else float(self.n_documents > 0)

    @property
    def recall(self) -> float:
        """Share of the stated values that were found; 1 where none is; 0 without documents."""
        return self.n_right / self.n_stated if self.n_stated else float(self.n_documents > 0)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 1 where nothing is stated nor found."""
        n_values = self.n_found + self.n_stated
        return 2 * self.n_right / n_values if n_values else float(self.n_documents > 0)

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types, precision, recall and F1 included."""
        measures = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        rounded = {name: round(value, 4) for name, value in measures.items()}
        return asdict(self) | rounded


@dataclass(frozen=True, slots=True)
class LeftOutOfEvaluation:
    """A gold document that could not be judged, and why."""

    document: str
    reason: str

    def __str__(self) -> str:
        return f"{self.document}: left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class TemplateEvaluation:
    """How good a template is.

    Attributes:
        template: its name.
        source: ``samples``: each judged by the template without it; ``gold``: other documents.
        whole: all fields together (micro-averaged).
        fields: scores by field, in the order of the template.
        unjudged: fields of the template that could not be judged: no two texts were read for them.
        disagreements: every field of a document with a missed or wrong value.
        left_out: gold documents that could not be judged.

    """

    template: str
    source: Source
    whole: FieldScore
    fields: tuple[FieldScore, ...]
    unjudged: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    left_out: tuple[LeftOutOfEvaluation, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return {
            "template": self.template,
            "source": self.source,
            "whole": self.whole.as_dict(),
            "fields": [one.as_dict() for one in self.fields],
            "unjudged": list(self.unjudged),
            "disagreements": [
                {
                    "document": one.document,
                    "key": one.key,
                    "field": one.field,
                    "missed": [
                        {"text": stated.text, "places": [list(p) for p in stated.places]}
                        for stated in one.missed
                    ],
                    "wrong": [value.as_dict() for value in one.wrong],
                }
                for one in self.disagreements
            ],
            "left_out": [asdict(one) for one in self.left_out],
        }

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TemplateEvaluation:  # Any: values of JSON
        """The evaluation that :meth:`as_dict` gave."""
        return cls(
            content["template"],
            content["source"],
            _score_of(content["whole"]),
            tuple(map(_score_of, content["fields"])),
            tuple(content["unjudged"]),
            tuple(map(_disagreement_of, content["disagreements"])),
            tuple(LeftOutOfEvaluation(**one) for one in content["left_out"]),
        )


def _score_of(content: Mapping[str, Any]) -> FieldScore:
    return FieldScore(**{name: content[name] for name in FieldScore.__slots__})


def _disagreement_of(content: Mapping[str, Any]) -> Disagreement:
    missed = (
        Stated(one["text"], tuple((int(a), int(b)) for a, b in one["places"]))
        for one in content["missed"]
    )
    wrong = tuple(map(ExtractedValue.from_dict, content["wrong"]))
    where = content["document"], content["key"], content["field"]
    return Disagreement(*where, tuple(missed), wrong)


def score(
    template: str,
    source: Source,
    names: Sequence[str],
    judged: Sequence[Judgement],
    left_out: Iterable[LeftOutOfEvaluation] = (),
) -> TemplateEvaluation:
    """Add judgements up.

    Args:
        template: its name.
        source: of the documents.
        names: of the fields, in order; those without a judgement are listed as unjudged.
        judged: of all fields and documents.
        left_out: gold documents that could not be judged.

    """
    by_field = {name: [one for one in judged if one.field == name] for name in names}
    return TemplateEvaluation(
        template,
        source,
        _score(_WHOLE, judged),
        tuple(_score(name, own) for name, own in by_field.items() if own),
        tuple(name for name, own in by_field.items() if not own),
        tuple(one.disagreement for one in judged if one.disagreement is not None),
        tuple(left_out),
    )


def _score(name: str, judged: Sequence[Judgement]) -> FieldScore:
    found = [pair for one in judged for pair in one.found]
    sure = [right for p, right in found if p >= SURE]
    low, high = _interval(judged)
    return FieldScore(
        name,
        n_documents=len({one.document for one in judged}),
        n_stated=sum(one.n_stated for one in judged),
        n_found=len(found),
        n_right=sum(right for _, right in found),
        n_sure=len(sure),
        n_sure_right=sum(sure),
        f1_low=round(low, 4),
        f1_high=round(high, 4),
        ece=round(calibration_error(found), 4),
    )


def _interval(judged: Sequence[Judgement]) -> tuple[float, float]:
    """95 % interval of F1 by the bootstrap over documents (Efron 1979), the same each time."""
    counts: dict[str, NDArray[np.float64]] = {}
    for one in judged:
        own = counts.setdefault(one.document, np.zeros(2))
        own += (2 * sum(right for _, right in one.found), len(one.found) + one.n_stated)
    if not counts:
        return 0.0, 1.0
    table = np.stack(list(counts.values()))
    chance = np.random.default_rng(0)
    drawn = table[chance.integers(len(table), size=(_RESAMPLES, len(table)))].sum(axis=1)
    scores = np.where(drawn[:, 1] > 0, drawn[:, 0] / np.maximum(drawn[:, 1], 1), 1.0)
    low, high = np.quantile(scores, [0.025, 0.975]).tolist()
    return float(low), float(high)


def calibration_error(found: Sequence[tuple[float, bool]]) -> float:
    """Expected calibration error (Naeini et al. 2015), in ten bins; 0 without values."""
    if not found:
        return 0.0
    p, right = (np.array(column, float) for column in zip(*found, strict=True))
    bins = np.minimum((p * _BINS).astype(int), _BINS - 1)
    gaps = np.abs(np.bincount(bins, p, _BINS) - np.bincount(bins, right, _BINS))
    return float(gaps.sum() / len(p))
