"""Other values than those found, for what the page asks about first.

They are what the service's review lists: the likeliest candidates of a field, reported or not, by
the templates as their files are now. No document is encoded.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from featpipe.errors import UsageError
from featpipe.extraction.engine import ExtractionEngine
from featpipe.extraction.review_queue import MOST_CANDIDATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument

#: Questions of a template that have alternatives: each costs a few milliseconds to score.
MOST_ASKED = 500

#: "document:field" by their numbers on the page -> start, end and probability of each value.
Alternatives = dict[str, list[tuple[int, int, float]]]


def list_alternatives(
    cache: Cache,
    templates: Path,
    space: str | None,
    documents: Sequence[CachedDocument],
    asked: Mapping[str, tuple[Sequence[str], Sequence[int]]],
) -> list[Alternatives]:
    """The alternatives of each template's first questions.

    Args:
        cache: of the documents.
        templates: a template, or a folder of them.
        space: vectors that the values were found by, when the cache has several.
        documents: as they are numbered on the page.
        asked: template -> its fields as they are numbered on the page, and numbers of document and
            field in turn, as `review_order.review_order` gives them.

    Raises:
        UsageError: results of a template that is not among them are shown.
        TemplateError: they cannot be used.
        UnknownSpace: no such space, or it must be named.

    """
    engine = ExtractionEngine(templates, cache, space=space)
    try:
        missing = sorted(asked.keys() - engine.templates.keys())
        if missing:
            raise UsageError(
                f"the results are of {', '.join(missing)}, which {templates} does not hold"
            )
        return [dict(_find(engine, name, documents, *which)) for name, which in asked.items()]
    finally:
        engine.close()


def _find(
    engine: ExtractionEngine,
    template: str,
    documents: Sequence[CachedDocument],
    fields: Sequence[str],
    queue: Sequence[int],
) -> Iterator[tuple[str, list[tuple[int, int, float]]]]:
    fitted = engine.templates[template]
    pairs = zip(queue[::2], queue[1::2], strict=True)
    for document, field in islice(pairs, MOST_ASKED):
        if fields[field] not in fitted.facts:  # the results are older than the template
            continue
        features, _ = engine.page_of(documents[document])
        values, _ = fitted.candidates(fields[field], features, MOST_CANDIDATES)
        listed = [(value.start, value.end, value.probability) for value in values]
        yield f"{document}:{field}", listed
