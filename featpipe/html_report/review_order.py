"""The order in which the page asks about values: that of the service's review queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from featpipe.extraction.results import FieldResult
from featpipe.extraction.review_queue import QueueItem, order_queue
from featpipe.extraction.suggest import MOST_RANKED, Layouts, rank_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.html_report.known_fields import KnownField
    from featpipe.html_report.results import Results

_NOTHING = FieldResult()


def review_order(
    template: str,
    documents: Sequence[CachedDocument],
    results: Results,
    known: Mapping[str, KnownField],
) -> list[int]:
    """Numbers of document and field, in turn, of all that samples do not tell.

    Args:
        template: its name.
        documents: as they are numbered on the page.
        results: of all templates.
        known: what is known of the template's fields.

    """
    numbers = {document.path: number for number, document in enumerate(documents)}
    places = {name: at for at, name in enumerate(results.field_names()[template])}
    items = [
        item
        for name in places
        for item in _items_of(template, name, documents, results)
        if name not in known or item.document.key not in known[name].samples
    ]
    # By document, then by field, where both are equally doubtful.
    items.sort(key=lambda item: (numbers[item.document.path], places[item.field]))
    first = _first_documents(documents, items, known, len(places))
    return [
        number
        for item in order_queue(items, first)
        for number in (numbers[item.document.path], places[item.field])
    ]


def _first_documents(
    documents: Sequence[CachedDocument],
    items: Sequence[QueueItem],
    known: Mapping[str, KnownField],
    n_fields: int,
) -> list[str]:
    """Paths of the documents that come first, as `featpipe template suggest` orders them."""
    samples = frozenset[bytes]().union(*(one.samples for one in known.values()))
    layouts = Layouts()
    labelled = [layouts.of(document) for document in documents if document.key in samples]
    ahead = [item for item in items if item.document.key not in samples]
    ranked = rank_items(ahead, labelled, layouts, n_fields, MOST_RANKED)
    return [one.document.path for one in ranked]


def _items_of(
    template: str, name: str, documents: Sequence[CachedDocument], results: Results
) -> list[QueueItem]:
    """One field of all documents that the template was applied to."""
    found = [
        (document, fields.get(name, _NOTHING).values)
        for document in documents
        if (fields := results.fields.get((template, document.path))) is not None
    ]
    filled = sum(bool(values) for _, values in found) / max(1, len(found))
    return [QueueItem(document, name, values, filled) for document, values in found]
