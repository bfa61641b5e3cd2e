"""The values of a report: from the cache, from one of its runs, or from a file; and differences."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from featpipe.errors import UsageError
from featpipe.extraction.results import ExtractedValue, FieldResult, change_of
from featpipe.extraction.results_table import ResultsReader
from featpipe.html_report.page import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument

    #: A value in a file of results: parsed JSON, of any form until `_checked`.
    Record = dict[str, Any]

#: Names the run before the last one.
PREVIOUS = "previous"
_NOTHING = FieldResult()


@dataclass(frozen=True, slots=True)
class Results:
    """Field -> values, for each (template, place of a document).

    A place is the path of a cached document, or the id in the file of a document that the cache
    does not hold.
    """

    name: str
    fields: Mapping[tuple[str, str], Mapping[str, FieldResult]]
    record_fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Template -> fields whose values belong together, as far as the results tell it."""
    contents: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Key (hex) of the version of the document that values were found in, as far as it is known."""
    stale: frozenset[str] = frozenset()
    """Documents, by path, whose values were left out, as they are of another version."""

    def of_versions(self, documents: Iterable[CachedDocument]) -> Results:
        """Without values that were found in another version of some documents.

        Their places count in that version's text: marked here, or confirmed, they would be wrong.
        """
        by_path = {document.path: document for document in documents}
        stale = [
            place
            for place, fields in self.fields.items()
            if place[1] in by_path and not self._is_of(place, fields, by_path[place[1]])
        ]
        kept = {place: fields for place, fields in self.fields.items() if place not in stale}
        return replace(self, fields=kept, stale=frozenset(path for _, path in stale))

    def _is_of(
        self, place: tuple[str, str], fields: Mapping[str, FieldResult], document: CachedDocument
    ) -> bool:
        key, text = document.key.hex(), document.text
        values = (value for result in fields.values() for value in result.values)
        return self.contents.get(place, key) == key and all(
            text[value.start : value.end] == value.text for value in values
        )

    def field_names(self) -> dict[str, list[str]]:
        """Fields of every template, in the order in which they first occur."""
        found: dict[str, dict[str, None]] = {}
        for (template, _), fields in self.fields.items():
            found.setdefault(template, {}).update(dict.fromkeys(fields))
        return {template: list(names) for template, names in sorted(found.items())}

    def values_of(self, template: str, field: str) -> Iterator[ExtractedValue]:
        """All values of one field."""
        for (name, _), fields in self.fields.items():
            if name == template and field in fields:
                yield from fields[field].values


@dataclass(frozen=True, slots=True)
class ResultsRun:
    """One run of ``featpipe reprocess``."""

    run: str
    templates: tuple[str, ...]
    n_documents: int


def list_runs(cache: Cache) -> list[ResultsRun]:
    """Every run that wrote results, oldest first."""
    seen: dict[str, tuple[dict[str, None], set[str]]] = {}
    for record in ResultsReader(cache.reader).log():
        templates, places = seen.setdefault(str(record["run"]), ({}, set()))
        templates[str(record["template"])] = None
        places.add(str(record["path"]))
    return [ResultsRun(run, tuple(seen[run][0]), len(seen[run][1])) for run in seen]


def read_stored(cache: Cache, run: str | None = None) -> Results:
    """The results in the cache, as they are or as they were at the end of a run.

    Args:
        cache: opened.
        run: its id, the beginning of its id, or :data:`PREVIOUS`.

    Raises:
        UsageError: no such run, or several.

    """
    reader = ResultsReader(cache.reader)
    log = reader.log()
    chosen = None if run is None else _find_run(list_runs(cache), run)
    if chosen is not None:
        last = max(at for at, record in enumerate(log) if record["run"] == chosen)
        log = log[: last + 1]
    forgotten = cache.stored_documents.forgotten().paths
    rows = {(str(r["template"]), str(r["path"])): r for r in log if str(r["path"]) not in forgotten}
    # Without fields: the template is meant for the document no longer.
    rows = {place: row for place, row in rows.items() if row["fields"]}
    found = {place: _fields_of(reader, row["fields"]) for place, row in rows.items()}
    # The first caches logged no content.
    contents = {place: str(row["content"]) for place, row in rows.items() if row.get("content")}
    name = chosen or (str(log[-1]["run"]) if log else "")
    return Results(name, found, contents=contents)


def _fields_of(reader: ResultsReader, keys: Mapping[str, str]) -> dict[str, FieldResult]:
    found = {name: reader.field(bytes.fromhex(key)) for name, key in keys.items()}
    return {name: result for name, result in found.items() if result is not None}


def read_file(path: Path, documents: Sequence[CachedDocument]) -> Results:
    """The results in a file of ``featpipe extract -o FILE.jsonl``.

    Raises:
        UsageError: the file cannot be read, or a line of it is no extraction.

    """
    # Without the folder that was given: as ids were in the first caches, and their results.
    short = Counter(document.id.partition("/")[2] for document in documents)
    places = {name: d.path for d in documents if short[name := d.id.partition("/")[2]] == 1} | {
        d.id: d.path for d in reversed(documents)
    }
    found: dict[tuple[str, str], dict[str, FieldResult]] = {}
    together: dict[str, dict[str, None]] = {}
    for number, line in enumerate(_lines(path), start=1):
        try:
            record = json.loads(line)
            place = str(record["document"])
            fields = {str(name): _field_of(values) for name, values in record["fields"].items()}
            template = str(record["template"])
            found[template, places.get(place, place)] = fields
            together.setdefault(template, {}).update(_names_in(record.get("records", ())))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"{path}:{number}: is no extraction: {error!r}",
                hint="write one with `featpipe extract ... -o results.jsonl`",
            ) from error
    return Results(path.name, found, {name: list(names) for name, names in together.items()})


def _names_in(records: Iterable[Mapping[str, object]]) -> dict[str, None]:
    return dict.fromkeys(str(name) for record in records for name in record)


def _field_of(values: list[Record]) -> FieldResult:
    return FieldResult(tuple(ExtractedValue.from_dict(_checked(dict(value))) for value in values))


def _checked(value: Record) -> Record:
    """Check the types that the page computes with."""
    numbers = (value["probability"], *value.get("parts", {}).values())
    if not all(isinstance(n, int | float) and isfinite(n) for n in numbers):
        raise TypeError("probability and parts are finite numbers")
    if not all(isinstance(value[name], int) for name in ("start", "end")):
        raise TypeError("start and end are whole numbers")
    if not (isinstance(value["text"], str) and isinstance(value["page"], int | None)):
        raise TypeError("text is a string, page a whole number or null")
    return value


def _lines(path: Path) -> Iterator[str]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return (line for line in text.split("\n") if line.strip())


def _find_run(runs: Sequence[ResultsRun], name: str) -> str:
    ids = [run.run for run in runs]
    if name == PREVIOUS and len(ids) > 1:
        return ids[-2]
    found = [run for run in ids if run.startswith(name)]
    if len(found) == 1 or name in found:
        return name if name in found else found[0]
    what = "several runs begin with" if found else "no run of reprocess named"
    raise UsageError(f"{what} {name!r}", hint="featpipe runs list CACHE")


def compare(
    before: Results, now: Results, numbers: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, object]:
    """The changed fields of every document, as plain JSON.

    A field has changed when its list of meanings (value, unit and bound) has, or when the
    probability of one of them moved notably, as in ``featpipe reprocess --diff``; places are not
    compared. Documents in only one of the two sets are counted, not listed.

    Args:
        before: older results.
        now: newer results.
        numbers: place of a document -> its number on the page.
        names: place of a document -> its readable name.

    """
    shared = sorted(before.fields.keys() & now.fields.keys())
    items = [
        [each[0], field, numbers.get(each[1], -1), shown(names.get(each[1], each[1])), *spelled]
        for each in shared
        for field, *spelled in _changed(before.fields[each], now.fields[each])
    ]
    return {
        "before": before.name,
        "now": now.name,
        "items": items,
        "compared": len(shared),
        "only_before": len(before.fields.keys() - now.fields.keys()),
        "only_now": len(now.fields.keys() - before.fields.keys()),
    }


def _changed(
    old: Mapping[str, FieldResult], new: Mapping[str, FieldResult]
) -> Iterator[tuple[str, list[list[object]], list[list[object]]]]:
    """Name, older and newer values of each changed field."""
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name, _NOTHING), new.get(name, _NOTHING)
        if change_of(one, other):
            yield name, _spell(one), _spell(other)


def _spell(result: FieldResult) -> list[list[object]]:
    return [
        [shown(value.text), round(float(value.probability), 4), value.start, value.end]
        for value in result.values
    ]
