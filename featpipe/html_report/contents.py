"""Documents and their values as the page's script reads them: short, plain JSON.

Each document has an entry, which the page needs at once, and a block with its text and details,
which it reads when the document is opened. Offsets count code points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from featpipe.html_report.page import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.results import ExtractedValue
    from featpipe.html_report.known_fields import KnownFields
    from featpipe.html_report.results import Results

#: Characters of a document's text that the page holds; it names the number when there are more.
MOST_CHARACTERS = 400_000


class ValueRow(NamedTuple):
    """One value; ``template`` and ``field`` are numbers."""

    template: int
    field: int
    text: str
    value: str
    unit: str
    bound: str
    probability: float
    start: int
    end: int
    page: int | None
    nearest: str
    remark: str


class NothingFound(NamedTuple):
    """A template was applied to the document and found no value."""

    template: int
    field: int = -1


class Entry(TypedDict):
    """A document in the table of contents."""

    id: str
    key: str
    """Of the document's version, 32 hex digits; "" where the cache does not hold it."""
    title: str
    kind: str
    chars: int
    pages: int
    labels: list[int]
    """Entities per label, by the label's number."""
    notes: list[str]
    samples: list[tuple[int, int]]
    """(template, field) of which the document is a sample."""
    values: list[ValueRow | NothingFound]


@dataclass(slots=True)
class Names:
    """Numbers for strings that occur often."""

    listed: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The place of a string in ``listed``."""
        if name not in self._numbers:
            self._numbers[name] = len(self.listed)
            self.listed.append(name)
        return self._numbers[name]


class Contents:
    """Collects documents; ``entries`` and ``blocks`` run parallel.

    Args:
        results: the values.
        tagger: the entities' tagger, None for none.
        known: what is known of the templates' fields.

    """

    def __init__(
        self, results: Results, tagger: str | None, known: KnownFields | None = None
    ) -> None:
        self.results = results
        self.tagger = tagger
        self.known = known or {}
        self.templates = results.field_names()
        self.labels, self.parts = Names(), Names()
        self.entries: list[Entry] = []
        self.blocks: list[dict[str, object]] = []

    def add(self, document: CachedDocument) -> None:
        """Append a document of the cache."""
        text = shown(document.text)
        entities, counts = self._entities(document)
        values, details = self._values(document.path)
        samples = self._sampled_in(document)
        self.entries.append(_entry(document, text, counts, values) | {"samples": samples})
        lists = {name: _list(document.meta.get(name)) for name in ("headings", "tables", "pages")}
        self.blocks.append(
            {"text": text[:MOST_CHARACTERS], "entities": entities, **lists, "details": details}
        )

    def add_absent(self, place: str) -> None:
        """Append a document of the results that the cache does not hold: values without a text."""
        values, details = self._values(place)
        self.entries.append(
            {"id": shown(place), "key": "", "title": shown(place), "kind": "", "chars": 0,
             "pages": 0, "labels": [], "notes": [], "samples": [], "values": values}
        )  # fmt: skip
        self.blocks.append({"text": None, "details": details})

    def n_values(self) -> int:
        """Values of all documents."""
        rows = (row for entry in self.entries for row in entry["values"])
        return sum(isinstance(row, ValueRow) for row in rows)

    def _entities(self, document: CachedDocument) -> tuple[list[float], list[int]]:
        """Flat (start, end, label, score) of all entities, and their number per label."""
        counts = [0] * len(self.labels.listed)
        flat: list[float] = []
        for entity in document.entities(self.tagger) if self.tagger else ():
            label = self.labels.number(entity.label)
            counts += [0] * (label + 1 - len(counts))
            counts[label] += 1
            flat += (entity.start, entity.end, label, round(entity.score, 3))
        return flat, counts

    def _values(self, place: str) -> tuple[list[ValueRow | NothingFound], list[list[object]]]:
        values: list[ValueRow | NothingFound] = []
        details = []
        for number, (template, names) in enumerate(self.templates.items()):
            fields = self.results.fields.get((template, place))
            if fields is None:
                continue
            n_before = len(values)
            for at, name in enumerate(names):
                for value in fields[name].values if name in fields else ():
                    values.append(_value_row(number, at, value))
                    details.append(self._detail(value))
            if len(values) == n_before:
                values.append(NothingFound(number))
        return values, details

    def _sampled_in(self, document: CachedDocument) -> list[tuple[int, int]]:
        return [
            (number, at)
            for number, (template, names) in enumerate(self.templates.items())
            for at, name in enumerate(names)
            if (field := self.known.get(template, {}).get(name)) and document.key in field.samples
        ]

    def _detail(self, value: ExtractedValue) -> list[object]:
        parts: list[float] = []
        for name, weight in sorted(value.parts.items(), key=lambda part: -abs(part[1])):
            parts += (self.parts.number(shown(name)), round(float(weight), 3))
        return [parts, [list(place) for place in value.places]]


def choose_documents(
    documents: Sequence[CachedDocument], results: Results, limit: int
) -> list[CachedDocument]:
    """At most ``limit``: those with values before those without, in the cache's order."""
    places = {place for _, place in results.fields}
    listed = sorted(range(len(documents)), key=lambda at: (documents[at].path not in places, at))
    return [documents[at] for at in sorted(listed[:limit])]


def _entry(
    document: CachedDocument,
    text: str,
    counts: list[int],
    values: list[ValueRow | NothingFound],
) -> Entry:
    meta = document.meta
    return {
        "id": shown(document.id),
        "key": document.key.hex(),
        "title": shown(str(meta.get("title") or _first_line(text))),
        "kind": str(meta.get("media_type", "")),
        "chars": len(text),
        "pages": len(_list(meta.get("pages"))),
        "labels": counts,
        "notes": [shown(str(note)) for note in _list(meta.get("notes"))],
        "samples": [],
        "values": values,
    }


def _value_row(template: int, field_number: int, value: ExtractedValue) -> ValueRow:
    return ValueRow(
        template,
        field_number,
        shown(value.text),
        shown(str(value.value)),
        shown(str(value.unit)),
        shown(str(value.bound)),
        round(float(value.probability), 4),
        value.start,
        value.end,
        value.page,
        shown(str(value.nearest)),
        shown(str(value.remark)),
    )


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0][:80]


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []
