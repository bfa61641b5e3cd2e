"""Documents and their values as the page's script reads them: short, plain JSON.

Each document has an entry, which the page needs at once, and a block with its text and details,
which it reads when the document is opened. Offsets count code points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import numpy as np

from featpipe.extraction.contradictions import find_contradictions
from featpipe.extraction.records import make_records
from featpipe.extraction.scoring.page import Page
from featpipe.html_report.cues import CueFinder, Reasons
from featpipe.html_report.links import link_to
from featpipe.html_report.page import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.results import ExtractedValue
    from featpipe.html_report.cues import Reason
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
    file: str
    """Relative address of the file that holds it, "" if there is none."""
    samples: list[tuple[int, int]]
    """(template, field) of which the document is a sample."""
    contradictions: list[tuple[int, str, list[int], str]]
    """Template, kind, fields, and what was expected of the first of them."""
    records: list[tuple[int, list[int], list[list[int]]]]
    """Template, fields, and per record the numbers of its values, -1 for none."""
    values: list[ValueRow | NothingFound]


#: Note of a document whose values are left out.
OTHER_VERSION = (
    "the values of this document are of another version of it, and are left out; featpipe "
    "reprocess (or extract) finds them anew"
)


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
        page: the file that is written, None for no links to the documents' files.

    """

    def __init__(
        self,
        results: Results,
        tagger: str | None,
        known: KnownFields | None = None,
        page: Path | None = None,
    ) -> None:
        self.results = results
        self.tagger = tagger
        self.known = known or {}
        self.reasons = Reasons((), results, self.known)
        self._page = page
        self.templates = results.field_names()
        self.labels, self.parts = Names(), Names()
        self.entries: list[Entry] = []
        self.blocks: list[dict[str, object]] = []

    def add(self, document: CachedDocument) -> None:
        """Append a document of the cache."""
        text = shown(document.text)
        entities, counts = self._entities(document)
        values, details = self._values(document.path, CueFinder(document))
        self.entries.append(
            _entry(document, text, counts, values)
            | {
                "file": link_to(document.path, self._page) if self._page else "",
                "samples": self._sampled_in(document),
                "contradictions": list(self._contradictions(document.path)),
                "records": list(self._records(document, values)),
            }
        )
        if document.path in self.results.stale:
            self.entries[-1]["notes"].append(OTHER_VERSION)
        lists = {name: _list(document.meta.get(name)) for name in ("headings", "tables", "pages")}
        self.blocks.append(
            {"text": text[:MOST_CHARACTERS], "entities": entities, **lists, "details": details}
        )

    def add_absent(self, place: str) -> None:
        """Append a document of the results that the cache does not hold: values without a text."""
        values, details = self._values(place)
        self.entries.append(
            {"id": shown(place), "key": "", "title": shown(place), "kind": "", "chars": 0,
             "pages": 0, "labels": [], "notes": [], "file": "", "samples": [],
             "contradictions": list(self._contradictions(place)), "records": [], "values": values}
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

    def _values(
        self, place: str, finder: CueFinder | None = None
    ) -> tuple[list[ValueRow | NothingFound], list[list[object]]]:
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
                    if finder is not None:
                        cue = finder.cue(value)
                        details[-1] += _tell(self.reasons.explain((template, name), place, cue))
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

    def _contradictions(self, place: str) -> Iterator[tuple[int, str, list[int], str]]:
        for number, (template, names) in enumerate(self.templates.items()):
            for one in find_contradictions(self.results.fields.get((template, place), {})):
                yield number, one.kind, [names.index(n) for n in one.fields], one.expected

    def _records(
        self, document: CachedDocument, values: list[ValueRow | NothingFound]
    ) -> Iterator[tuple[int, list[int], list[list[int]]]]:
        """The records of each template of which the document has more than one."""
        rows = [row for row in values if isinstance(row, ValueRow)]
        numbers = {(row.template, row.field, row.start, row.end): at for at, row in enumerate(rows)}
        for template, (name, fields) in enumerate(self.templates.items()):
            together = [f for f in fields if f in self._record_fields(name)]
            found = self.results.fields.get((name, document.path), {})
            if len(together) < 2 or not any(len(one.values) > 1 for one in found.values()):
                continue
            records = make_records(_page_of(document), found, together)
            at = [fields.index(field) for field in together]
            if len(records) > 1:
                yield (
                    template,
                    at,
                    [
                        [
                            numbers[template, number, one.start, one.end] if one else -1
                            for number, one in zip(at, map(record.get, together), strict=True)
                        ]
                        for record in records
                    ],
                )

    def _record_fields(self, template: str) -> set[str]:
        known = self.known.get(template, {})
        declared = {name for name, one in known.items() if one.is_of_records}
        return declared or set(self.results.record_fields.get(template, ()))


def _page_of(document: CachedDocument) -> Page:
    """As much of a document as its records are made by."""
    sentences = document.spans("sentence").astype(np.int64).reshape(-1, 2)
    return Page(document.id, document.text, sentences, sentences[:0], sentences[:0])


def _tell(reason: Reason) -> list[object]:
    """Kind and words of a cue, and the number of samples written alike, -1 if unknown."""
    n = -1 if reason.n_samples is None else reason.n_samples
    return [reason.cue.kind, shown(reason.cue.words), n]


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
        "file": "",
        "samples": [],
        "contradictions": [],
        "records": [],
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
