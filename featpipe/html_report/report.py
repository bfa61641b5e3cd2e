"""Writes the report of a cache. Everything is read from the cache; nothing is computed again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from featpipe.atomic_write import check_writable, write_atomically
from featpipe.cache.summary import read_runs
from featpipe.documents.output import check_apart, check_free
from featpipe.errors import UsageError
from featpipe.html_report.alternatives import list_alternatives
from featpipe.html_report.contents import Contents, choose_documents
from featpipe.html_report.cues import Reasons
from featpipe.html_report.evaluations import describe, read_evaluations
from featpipe.html_report.known_fields import KnownField, infer_kind, read_known_fields
from featpipe.html_report.page import report_pieces, shown
from featpipe.html_report.results import Results, compare, list_runs, read_file, read_stored
from featpipe.html_report.review_order import review_order
from featpipe.html_report.space_map import draw_maps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from featpipe.cache.cache import Cache
    from featpipe.cache.dictionary import Dictionary
    from featpipe.cache.documents import CachedDocument
    from featpipe.html_report.alternatives import Alternatives
    from featpipe.report import RunReport

#: Quarantined documents listed per run; the record in the cache holds all of them.
_MOST_QUARANTINED = 500
_MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The choices of a report.

    Attributes:
        results: a file of ``featpipe extract -o``; by default the results in the cache.
        compare: a run of ``reprocess`` (its id, the beginning of it, or ``previous``) or a file
            of results; the page lists the differences from it.
        limit: most documents, those with values first.
        space: the vectors of the maps, by default the first space of the cache; and of the
            alternatives, which are asked for by name where the cache has several.
        templates: file or folder of the templates, which tell the samples and the types of the
            fields; by default as ``reprocess`` left them in the cache.
        evaluation: file of what ``featpipe template evaluate --json`` printed, a template a line.
        has_alternatives: whether the first questions of the review have the other candidates of
            their fields; they are found by ``templates``, in a few milliseconds each.

    """

    results: Path | None = None
    compare: str | None = None
    limit: int = 1000
    space: str | None = None
    templates: Path | None = None
    evaluation: Path | None = None
    has_alternatives: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"limit must be at least 1, not {self.limit}")
        if self.has_alternatives and self.templates is None:
            raise UsageError(
                "alternatives are found by the templates themselves, and none are named",
                hint="name them: --templates PATH",
            )


@dataclass(frozen=True, slots=True)
class ReportSize:
    """Counts of the written page."""

    n_documents: int
    n_in_cache: int
    n_values: int
    n_bytes: int
    stale: tuple[str, ...] = ()
    """Ids of documents whose values are of another version of them, and left out."""


def write_report(
    cache: Cache, path: str | Path, settings: ReportSettings | None = None
) -> ReportSize:
    """Write the report of a cache to one HTML file.

    Raises:
        UsageError: no such run; a file of results or evaluations that cannot be used; a path that
            cannot be written, or holds a cache, results, a template or a document of the cache;
            alternatives without templates.
        UnknownSpace: no such space; of alternatives also one that must be named.
        TemplateError: the templates cannot be used.

    """
    check_writable(Path(path))
    settings = settings or ReportSettings()
    documents = list(cache.documents())
    given = (settings.results, settings.compare, settings.evaluation)
    check_apart(Path(path), [one for one in given if one is not None])
    check_apart(Path(path), (document.path for document in documents))
    check_free(Path(path), "a report")
    now = read_file(settings.results, documents) if settings.results else read_stored(cache)
    chosen = choose_documents(documents, now, settings.limit)
    now = now.of_versions(chosen)
    known = read_known_fields(cache, settings.templates)
    tagger = next(iter(cache.stored_documents.taggers()), None)
    contents = Contents(now, tagger, known, Path(path))
    contents.reasons = Reasons(documents, now, known)
    for document in chosen:
        contents.add(document)
    for place in _absent(now, documents)[: settings.limit - len(chosen)]:
        contents.add_absent(place)
    main = render_contents(cache, settings, contents, chosen, documents)
    n_bytes = _write(Path(path), report_pieces(main, contents.blocks))
    stale = tuple(document.id for document in chosen if document.path in now.stale)
    return ReportSize(len(contents.entries), len(documents), contents.n_values(), n_bytes, stale)


def render_contents(
    cache: Cache,
    settings: ReportSettings,
    contents: Contents,
    chosen: Sequence[CachedDocument],
    documents: Sequence[CachedDocument],
) -> dict[str, object]:
    """The part of the page that it needs at once: everything but the texts."""
    judged = read_evaluations(settings.evaluation) if settings.evaluation else []
    dictionary = _dictionary(cache, settings.space)
    queues = {
        name: review_order(name, chosen, contents.results, contents.known.get(name, {}))
        for name in contents.templates
    }
    return {
        "mode": "report",
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "cache": shown(cache.path.name),
        "id": blake2b(str(cache.path.resolve()).encode(), digest_size=8).hexdigest(),
        "space": dictionary.name if dictionary else "",
        "in_cache": len(documents),
        "templates": [
            _describe_template(name, fields, contents)
            for name, fields in contents.templates.items()
        ],
        "queue": list(queues.values()),
        "alternatives": _alternatives(cache, settings, contents, chosen, queues),
        "labels": contents.labels.listed,
        "parts": contents.parts.listed,
        "docs": contents.entries,
        "changes": _changes(cache, settings, contents.results, documents, chosen),
        "evaluations": list(map(describe, judged)),
        "runs": [_plain_run(run) for run in read_runs(cache)[-_MOST_RUNS:]],
        "results_runs": [asdict(run) for run in list_runs(cache)[-_MOST_RUNS:]],
        "maps": draw_maps(dictionary, chosen, contents.entries) if dictionary else [],
        "results": shown(contents.results.name),
        "tagger": contents.tagger or "",
    }


def _describe_template(name: str, fields: Sequence[str], contents: Contents) -> dict[str, object]:
    known = contents.known.get(name, {})
    listed = [known.get(field, KnownField()) for field in fields]
    return {
        "name": shown(name),
        "fields": [shown(field) for field in fields],
        "kinds": [
            one.kind or infer_kind(contents.results.values_of(name, field))
            for field, one in zip(fields, listed, strict=True)
        ],
        "is_many": [one.is_many for one in listed],
        "models": [one.model for one in listed],
    }


def _alternatives(
    cache: Cache,
    settings: ReportSettings,
    contents: Contents,
    chosen: Sequence[CachedDocument],
    queues: Mapping[str, Sequence[int]],
) -> list[Alternatives]:
    if settings.templates is None or not settings.has_alternatives:
        return []
    asked = {name: (contents.templates[name], queue) for name, queue in queues.items()}
    return list_alternatives(cache, settings.templates, settings.space, chosen, asked)


def _absent(results: Results, documents: Sequence[CachedDocument]) -> list[str]:
    known = {document.path for document in documents}
    return list(dict.fromkeys(place for _, place in results.fields if place not in known))


def _changes(
    cache: Cache,
    settings: ReportSettings,
    now: Results,
    documents: Sequence[CachedDocument],
    chosen: Sequence[CachedDocument],
) -> dict[str, object] | None:
    if settings.compare is None:
        return None
    path = Path(settings.compare)
    before = read_file(path, documents) if path.is_file() else read_stored(cache, settings.compare)
    numbers = {document.path: number for number, document in enumerate(chosen)}
    return compare(before, now, numbers, {d.path: d.id for d in documents})


def _plain_run(run: RunReport) -> dict[str, object]:
    return run.as_dict() | {
        "n_quarantined": len(run.quarantined),
        "quarantined": [
            {"source": shown(lost.source), "reason": shown(lost.reason), "error": lost.error}
            for lost in run.quarantined[:_MOST_QUARANTINED]
        ],
        "notes": [shown(note) for note in run.notes],
    }


def _dictionary(cache: Cache, space: str | None) -> Dictionary | None:
    names = cache.spaces()
    return cache.dictionary(space or names[0]) if names or space else None


def _write(path: Path, pieces: Iterable[str]) -> int:
    """Write the page atomically; returns its bytes."""
    try:
        write_atomically(path, lambda file: file.writelines(map(str.encode, pieces)))
        return path.stat().st_size
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
