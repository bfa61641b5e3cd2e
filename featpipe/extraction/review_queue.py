"""The review queue: fields of documents whose values are not known yet, the most useful first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.corrections_fold import Said, Subject
    from featpipe.extraction.results import ExtractedValue
    from featpipe.extraction.survey import Survey

#: The likeliest values of a field that a reviewer may choose from, those found included.
MOST_CANDIDATES = 9


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One field of one document that a reviewer may look at.

    Attributes:
        document: of the cache.
        field: of the template.
        values: as found, the likeliest first; empty where nothing was found.
        filled: share of the documents in which the field has a value.
        said: what was said of some of its values, None for nothing.

    """

    document: CachedDocument
    field: str
    values: tuple[ExtractedValue, ...]
    filled: float
    said: Said | None = None


def list_items(survey: Survey, said: Mapping[Subject, Said]) -> list[QueueItem]:
    """Every field of every surveyed document that neither a sample nor a reviewer has settled."""
    found = list(_surveyed(survey))
    n_filled = Counter(name for _, name, values in found if values)
    n_all = Counter(name for _, name, _ in found)
    return [
        QueueItem(document, name, values, n_filled[name] / n_all[name], own)
        for document, name, values in found
        if (own := said.get((document.key.hex(), name))) is None or not own.is_settled
    ]


def _surveyed(
    survey: Survey,
) -> Iterator[tuple[CachedDocument, str, tuple[ExtractedValue, ...]]]:
    fitted = survey.fitted
    in_samples = {name: fitted.known_in(name) for name in fitted.facts}
    for document, key, _ in survey.documents:
        for name in fitted.facts:
            result = survey.value(document.path, name)
            if result is not None and key not in in_samples[name]:
                yield document, name, result.values


def order_queue(items: Sequence[QueueItem], first: Sequence[str] = ()) -> list[QueueItem]:
    """The items, those first from which a verdict teaches most.

    The fields of the documents whose paths are given come first, document by document, as
    `suggest.rank_documents` orders them. The others, and the fields of one document, come by doubt;
    equally doubtful items keep the order of the cache and of the template, so that the order is the
    same each time.
    """
    places = {path: place for place, path in enumerate(first)}
    last = len(places)
    return sorted(items, key=lambda one: (places.get(one.document.path, last), -doubt(one)))


def doubt(item: QueueItem) -> float:
    """In [0, 1]: how unsure the model is of an item.

    A value that another field contradicts is as doubtful as can be.
    """
    if any(value.remark for value in item.values):
        return 1.0
    return doubt_of([value.probability for value in item.values], item.filled)


def doubt_of(probabilities: Sequence[float], filled: float) -> float:
    """In [0, 1]: how unsure the model is of a field of a document.

    Of a value it is the nearness of its probability to 1/2; of several, that of the most doubtful
    one. A gap is the more doubtful the more documents have a value of the field (the share
    ``filled``), and half as much as a value at the most.
    """
    if not probabilities:
        return 0.5 * filled
    return max(1.0 - abs(2.0 * p - 1.0) for p in probabilities)
