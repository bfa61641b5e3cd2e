"""Documents and their values as the page holds them: short, plain JSON.

Per document there is an entry in the table of contents, with its values, and a block with its text
and all that is only seen when the document is opened. Offsets count code points, as everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from featpipe.cache.documents import CachedDocument
    from featpipe.extraction.results import ExtractedValue, FieldResult
    from featpipe.html_report.results import Results

#: What is shown of one document's text; the page says so where there is more.
MOST_CHARACTERS = 400_000

#: Stands in nothing that can be written as UTF-8. Replaced by one character, so offsets hold.
_surrogate = re.compile("[\ud800-\udfff]")

Json = dict[str, Any]


@dataclass(slots=True)
class Names:
    """Numbers for strings that occur again and again."""

    listed: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The same number for the same string."""
        if name not in self._numbers:
            self._numbers[name] = len(self.listed)
            self.listed.append(name)
        return self._numbers[name]


class Contents:
    """Collects documents; ``entries`` and ``blocks`` run parallel.

    Args:
        results: whose values are shown.
        tagger: whose entities, None for none.

    """

    def __init__(self, results: Results, tagger: str | None) -> None:
        self._results = results
        self._tagger = tagger
        self.templates = results.field_names()
        self.labels, self.parts = Names(), Names()
        self.entries: list[Json] = []
        self.blocks: list[Json] = []

    def add(self, document: CachedDocument) -> None:
        """One document of the cache."""
        meta, text = document.meta, shown(document.text)
        entities = document.entities(self._tagger) if self._tagger else []
        counts = [0] * len(self.labels.listed)
        flat: list[float] = []
        for entity in entities:
            label = self.labels.number(entity.label)
            counts += [0] * (label + 1 - len(counts))
            counts[label] += 1
            flat += (entity.start, entity.end, label, round(entity.score, 3))
        values, details = self._values(document.path)
        self.entries.append(
            {
                "id": shown(document.id),
                "title": shown(str(meta.get("title") or _first_line(text))),
                "kind": str(meta.get("media_type", "")),
                "chars": len(text),
                "pages": len(_list(meta.get("pages"))),
                "labels": counts,
                "notes": [shown(str(note)) for note in _list(meta.get("notes"))],
                "values": values,
            }
        )
        self.blocks.append(
            {
                "text": text[:MOST_CHARACTERS],
                "entities": flat,
                "headings": _list(meta.get("headings")),
                "tables": _list(meta.get("tables")),
                "pages": _list(meta.get("pages")),
                "details": details,
            }
        )

    def add_absent(self, place: str) -> None:
        """A document of the results that the cache does not hold: values without a text."""
        values, details = self._values(place)
        self.entries.append(
            {"id": shown(place), "title": shown(place), "kind": "", "chars": 0, "pages": 0,
             "labels": [], "notes": [], "values": values}
        )  # fmt: skip
        self.blocks.append({"text": None, "details": details})

    def _values(self, place: str) -> tuple[list[list[object]], list[list[object]]]:
        values, details = [], []
        for number, (template, names) in enumerate(self.templates.items()):
            fields = self._results.fields.get((template, place))
            if fields is None:
                continue
            for at, name in enumerate(names):
                for value in _values_of(fields, name):
                    values.append(_value_row(number, at, value))
                    details.append(self._detail(value))
            if not any(row[0] == number for row in values):
                # Asked for and nothing found: that is a finding too.
                values.append([number, -1])
        return values, details

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


def shown(text: str) -> str:
    """A text as UTF-8 can hold it; as many characters as before."""
    return _surrogate.sub("\ufffd", text)


def _values_of(fields: Mapping[str, FieldResult], name: str) -> Sequence[ExtractedValue]:
    return fields[name].values if name in fields else ()


def _value_row(template: int, field_number: int, value: ExtractedValue) -> list[object]:
    return [
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
    ]


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0][:80]


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
