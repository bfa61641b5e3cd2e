"""Values to show: of the cache, as they stand or as a run left them, or of a file of results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from featpipe.errors import UsageError
from featpipe.extraction.results import ExtractedValue, FieldResult
from featpipe.extraction.results_table import ResultsReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from featpipe.cache.cache import Cache
    from featpipe.cache.documents import CachedDocument

#: Asks for the run before the last one.
PREVIOUS = "previous"


@dataclass(frozen=True, slots=True)
class Results:
    """What stands for each (template, place of a document): field -> values.

    A place is the path of a cached document, or the id in the file where the cache has none.
    """

    name: str
    fields: Mapping[tuple[str, str], Mapping[str, FieldResult]]

    def field_names(self) -> dict[str, list[str]]:
        """Fields of every template, in the order in which they first occur."""
        found: dict[str, dict[str, None]] = {}
        for (template, _), fields in self.fields.items():
            found.setdefault(template, {}).update(dict.fromkeys(fields))
        return {template: list(names) for template, names in sorted(found.items())}


@dataclass(frozen=True, slots=True)
class ResultsRun:
    """One run of ``featpipe reprocess``, as its rows in the log tell."""

    run: str
    templates: tuple[str, ...]
    n_documents: int


def list_runs(cache: Cache) -> list[ResultsRun]:
    """Every run that left results, oldest first."""
    seen: dict[str, tuple[dict[str, None], set[str]]] = {}
    for record in ResultsReader(cache.reader).log():
        templates, places = seen.setdefault(str(record["run"]), ({}, set()))
        templates[str(record["template"])] = None
        places.add(str(record["path"]))
    return [ResultsRun(run, tuple(seen[run][0]), len(seen[run][1])) for run in seen]


def read_stored(cache: Cache, run: str | None = None) -> Results:
    """What the cache says now, or what it said when a run had ended.

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
    keys = {(str(r["template"]), str(r["path"])): r["fields"] for r in log}
    found = {
        place: {
            name: result
            for name, key in fields.items()
            if (result := reader.field(bytes.fromhex(key))) is not None
        }
        for place, fields in keys.items()
    }
    return Results(chosen or (str(log[-1]["run"]) if log else ""), found)


def read_file(path: Path, documents: Sequence[CachedDocument]) -> Results:
    """What ``featpipe extract -o FILE.jsonl`` wrote.

    Raises:
        UsageError: the file cannot be read, or a line of it is no extraction.

    """
    places = {document.id: document.path for document in reversed(documents)}
    found: dict[tuple[str, str], dict[str, FieldResult]] = {}
    for number, line in enumerate(_lines(path), start=1):
        try:
            record = json.loads(line)
            place = str(record["document"])
            fields = {str(name): _field_of(values) for name, values in record["fields"].items()}
            found[str(record["template"]), places.get(place, place)] = fields
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{path}:{number}: is no extraction: {error!r}",
                hint="write one with `featpipe extract ... -o results.jsonl`",
            ) from error
    return Results(path.name, found)


def _field_of(values: list[dict[str, Any]]) -> FieldResult:
    return FieldResult(tuple(ExtractedValue.from_dict(_checked(dict(value))) for value in values))


def _checked(value: dict[str, Any]) -> dict[str, Any]:
    """A file may say anything; what the page computes with must be what it says it is."""
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
