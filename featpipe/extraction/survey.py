"""A survey: the values of all documents under one state of a template, each found once.

Values are known by key from memory and from the cache's results; the rest is found by workers, or
here, and added. Two surveys of one template tell what a change of it does.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from cachetools import LRUCache

from featpipe.errors import FeatpipeError
from featpipe.extraction.choose import is_meant
from featpipe.extraction.engine import quarantine
from featpipe.extraction.field_facts import values_key
from featpipe.extraction.reprocess import ValueChange
from featpipe.extraction.reprocess_plan import document_states
from featpipe.extraction.results import FieldResult, change_of
from featpipe.extraction.results_table import ResultsReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from featpipe.extraction.engine import ExtractionEngine
    from featpipe.extraction.fitted import FittedTemplate
    from featpipe.extraction.reprocess_plan import DocumentState
    from featpipe.report import Quarantined

#: Results that are kept in memory, of one field of one document each.
_MOST_KEPT = 400_000


class KnownValues:
    """Values by key, in memory and in the results of a cache. Any thread may use it."""

    def __init__(self, engine: ExtractionEngine) -> None:
        self._engine = engine
        self._kept: LRUCache[bytes, FieldResult] = LRUCache(_MOST_KEPT)
        self._lock = Lock()

    def get(self, key: bytes) -> FieldResult | None:
        """The values of a key, None if they are not in memory."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: bytes, result: FieldResult) -> None:
        """Keep values in memory."""
        with self._lock:
            self._kept[key] = result

    def take_in(self, keys: Sequence[bytes]) -> None:
        """Read those of the keys into memory that only the results have."""
        results = ResultsReader(self._engine.cache.reader)
        unknown = [key for key in keys if self.get(key) is None]
        for key, is_known in zip(unknown, results.known(unknown), strict=True):
            found = results.field(key) if is_known else None
            if found is not None:
                self.put(key, found)


class Survey:
    """The values of the documents that a template is meant for.

    Args:
        fitted: the template in one state.
        states: documents of the cache, as `document_states` lists them.
        known: values found before; those found now are added to it.
        fields: to look at; by default all.

    """

    def __init__(
        self,
        fitted: FittedTemplate,
        states: Sequence[DocumentState],
        known: KnownValues,
        fields: Collection[str] | None = None,
    ) -> None:
        self.fitted = fitted
        self.lost: dict[str, Quarantined] = {}
        """Documents, by path, from which the values could not be extracted."""
        self.documents = self.meant(fitted, states)
        self._known = known
        prints = {
            name: facts.fingerprint
            for name, facts in fitted.facts.items()
            if fields is None or name in fields
        }
        self.keys: dict[str, dict[str, bytes]] = {
            document.path: {
                name: values_key(print_, content, missing) for name, print_ in prints.items()
            }
            for document, content, missing in self.documents
        }
        known.take_in([key for keys in self.keys.values() for key in keys.values()])

    @staticmethod
    def meant(fitted: FittedTemplate, states: Sequence[DocumentState]) -> list[DocumentState]:
        """The documents that a template is meant for."""
        return [state for state in states if is_meant(fitted, state[0].id)]

    def missing(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Path of a document and its fields without values, where there are such."""
        for path, keys in self.keys.items():
            fields = tuple(name for name, key in keys.items() if self._known.get(key) is None)
            if fields:
                yield path, fields

    def add(self, path: str, found: Mapping[str, FieldResult]) -> None:
        """Take in values that were found."""
        for name, result in found.items():
            self._known.put(self.keys[path][name], result)

    def value(self, path: str, name: str) -> FieldResult | None:
        """The values of a field of a document, None while they are not found."""
        return self._known.get(self.keys.get(path, {}).get(name, b""))

    def values(self) -> dict[bytes, FieldResult]:
        """All values found, by key."""
        keys = [key for keys in self.keys.values() for key in keys.values()]
        found = {key: self._known.get(key) for key in keys}
        return {key: result for key, result in found.items() if result is not None}

    def find_here(self, engine: ExtractionEngine) -> None:
        """Find what is missing in this process."""
        for path, fields in self.missing():
            try:
                features, _ = engine.page_of(engine.cache.document(path))
                self.add(path, self.fitted.extract_fields(fields, features))
            except FeatpipeError:
                raise
            except Exception as error:  # one bad document costs one document
                self.lost[path] = quarantine(path, error)


def changes_between(before: Survey, after: Survey) -> list[ValueChange]:
    """The fields with other values, or with surer or less sure ones, in the documents of both."""
    found = []
    for document, _, _ in after.documents:
        for name in after.keys[document.path]:
            old = before.value(document.path, name) or FieldResult()
            new = after.value(document.path, name)
            if new is not None and change_of(old, new):
                found.append(ValueChange(after.fitted.template.name, document.id, name, old, new))
    return found


def changes_here(
    engine: ExtractionEngine, before: FittedTemplate, after: FittedTemplate
) -> list[ValueChange]:
    """What a change of a template does to the documents of the cache, found in this process."""
    fields = {
        name
        for name, facts in after.facts.items()
        if name not in before.facts or before.facts[name].fingerprint != facts.fingerprint
    }
    states, known = document_states(engine), KnownValues(engine)
    surveys = [Survey(fitted, states, known, fields) for fitted in (before, after)]
    for survey in surveys:
        survey.find_here(engine)
    return changes_between(*surveys)
