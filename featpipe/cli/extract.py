"""``featpipe extract`` and ``featpipe reprocess``: documents and templates in, values out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_INTERRUPTED, EXIT_LEFT_OUT, lock_option, ocr_option
from featpipe.cli.progress import open_extract_view
from featpipe.cli.terminal import echo
from featpipe.pool import stopping_in_two_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from featpipe.documents import Source
    from featpipe.extraction.extract_run import Asked, ExtractRun
    from featpipe.extraction.extractor import Extractor
    from featpipe.report import Quarantined

#: From this many documents (extract) or fields of documents (reprocess) on, one process per core
#: is started unless --workers is given.
_MANY_DOCUMENTS, _MANY_FIELDS = 200, 1000

_MODEL_HELP = "Encoder; by default the one that filled the cache."
_NER_HELP = "Entity model; likewise."


@click.command("extract")
@click.argument("documents", nargs=-1, metavar="[DOCS...]")
@click.option("--cache", required=True, metavar="CACHE", help="A file, or a folder.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option(
    "--template", metavar="NAME", help='Only this one; "auto": the likeliest for each document.'
)
@click.option("--model", metavar="PATH|NAME", help=_MODEL_HELP)
@click.option("--ner", metavar="PATH|NAME|none", help=_NER_HELP)
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@ocr_option
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="By suffix: .jsonl, .json, .csv, .tsv, .parquet or .xlsx.",
)
@click.option("--restart", is_flag=True, help="Drop what an interrupted run finished for FILE.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Processes; 0: this one. By default one per core when there is much to do.",
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="After which workers give a document up.",
)
@click.pass_context
def extract(
    ctx: click.Context,
    documents: tuple[str, ...],
    cache: str,
    templates: str,
    template: str | None,
    model: str | None,
    ner: str | None,
    space: str | None,
    ocr: bool,
    output: str | None,
    restart: bool,
    workers: int | None,
    deadline: float,
) -> None:
    """Extract fields from DOCS, by default from all documents of the cache.

    DOCS are files, folders, or ids of cached documents; archives and JSON Lines are read as
    build-cache reads them, one document per member or record. A document is extracted under the
    templates whose `documents` patterns it matches; a file that is named is extracted under a
    template that is named in any case; "auto" chooses one for each. A document that is not in the
    cache gets vectors and entities by the models that filled it, and is not added to it.

    What is finished is kept in OUTPUT.partial until all is: run the command twice, or after an
    interruption, and only the rest is done.
    """
    from featpipe.documents import LoadLimits
    from featpipe.extraction.extract_run import ExtractRun, select_documents
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.results_file import check_output

    if output:
        check_output(Path(output))
    limits = LoadLimits(use_ocr=ocr)
    with Extractor(
        templates, cache, model=model, ner=ner, space=space or None, limits=limits
    ) as extractor:
        asked = _distinct(_expand(extractor, documents))
        _check_apart(output, map(_place_of, asked))
        is_named = Path(templates).is_file()
        selection = select_documents(extractor.engine, asked, template, is_template_named=is_named)
        n = len(selection.documents)
        if workers is None:
            workers = _choose_workers(extractor, n, _MANY_DOCUMENTS)
        run = ExtractRun(extractor, selection, workers=workers, deadline_s=deadline)
        try:
            code = _run(run, n, output, is_new=restart)
        finally:
            _print_lost(run.quarantined)
            _print_lines(selection.lines())
    ctx.exit(code)


@click.command("reprocess")
@lock_option
@click.option("--cache", required=True, metavar="CACHE", help="A file, or a folder.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--model", metavar="PATH|NAME", help=_MODEL_HELP)
@click.option("--ner", metavar="PATH|NAME|none", help=_NER_HELP)
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("--dry-run", is_flag=True, help="Say what would be done and why, and do nothing.")
@click.option("--diff", is_flag=True, help="Show what changed, probabilities too: old -> new.")
@click.option("--wait", type=click.FloatRange(min=0), default=600.0, metavar="SECONDS")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    metavar="N",
    help="Processes; 0: this one. By default one per core when there is much to do.",
)
@click.option("-o", "--output", metavar="FILE", help="All results, by suffix as for extract.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON object.")
@click.pass_context
def reprocess(
    ctx: click.Context,
    cache: str,
    templates: str,
    model: str | None,
    ner: str | None,
    space: str | None,
    dry_run: bool,
    diff: bool,
    wait: float,
    workers: int | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Extract again exactly what a change of templates or documents touches.

    No document is encoded; a sample that the cache does not hold is, when a field is fitted to it.
    """
    from featpipe.extraction import reprocess as engine
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.reprocess_plan import plan_reprocess
    from featpipe.extraction.results_file import check_output, write_extractions

    if output:
        check_output(Path(output))
    with Extractor(templates, cache, model=model, ner=ner, space=space or None) as extractor:
        _check_apart(output, (one.path for one in extractor.cache.documents()))
        plan = plan_reprocess(extractor)
        if dry_run:
            echo("\n".join(plan.lines()))
            return
        _print_lines(plan.unmatched)
        if workers is None:
            workers = _choose_workers(extractor, plan.n_fields, _MANY_FIELDS)
        report = engine.reprocess(extractor, plan, wait_s=wait, workers=workers)
        if diff:
            for change in report.changed:
                echo(f"{change.template}: {change}")
        if output:
            written = write_extractions(engine.read_results(extractor), Path(output))
            _print_lines(f"{output}: {note}" for note in written.notes)
    if as_json:
        echo(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        echo(report.summary())
    _print_lost(report.lost)
    ctx.exit(EXIT_LEFT_OUT if report.lost else 0)


def _expand(extractor: Extractor, documents: Sequence[str]) -> Iterator[Asked]:
    """The documents in the order of their names; a member of an archive is a source."""
    from featpipe.documents.find import expand_in_order
    from featpipe.extraction.extract_run import Asked

    if not documents:
        yield from map(Asked, extractor.cache.documents())
    found = [_find(extractor, name) for name in documents]
    expanded = expand_in_order([one for one in found if not isinstance(one, str)])
    for name, one in zip(documents, found, strict=True):
        if isinstance(one, str):
            known = extractor.cache.stored_documents.find_only(one)
            yield Asked(one if known is None else known, is_named=True)
            continue
        for source in next(expanded):
            document = source.path if source.part is None else source
            yield Asked(document, is_named=Path(name).is_file(), id=source.id)


def _distinct(asked: Iterable[Asked]) -> list[Asked]:
    """Each document once, where it is asked for first: a file and its folder may be named both."""
    from dataclasses import replace

    from featpipe.documents import Source

    found: dict[str, Asked] = {}
    for one in asked:
        document = one.document
        place = document.address if isinstance(document, Source) else _place_of(one)
        before = found.get(real := os.path.realpath(place), one)
        is_named = before.is_named or one.is_named
        found[real] = replace(before, is_named=is_named, id=before.id or one.id)
    return list(found.values())


def _check_apart(output: str | None, places: Iterable[str]) -> None:
    """Results take the place of no document that they are of."""
    from featpipe.documents.output import check_apart

    if output:
        check_apart(Path(output), places)


def _place_of(asked: Asked) -> str:
    """Where a document stands; of one that was named by its id, that id."""
    from featpipe.cache.documents import CachedDocument
    from featpipe.documents import Source

    document = asked.document
    return str(document.path if isinstance(document, Source | CachedDocument) else document)


def _find(extractor: Extractor, name: str) -> list[Source] | str:
    """The files of a name, else the name of a cached document."""
    from featpipe.documents import find_sources
    from featpipe.errors import MissingDocuments

    if Path(name).exists():
        return find_sources([Path(name)], note=_print_note)
    if extractor.cache.stored_documents.find_only(name) is not None:
        return name
    try:
        return find_sources([name], note=_print_note)
    except MissingDocuments as error:
        why = f"{error.message}, and the cache holds no document of this name"
        raise MissingDocuments(
            why, hint="check the path; featpipe documents list CACHE shows what the cache holds"
        ) from error


def _print_note(words: str) -> None:
    echo(f"note {words}", err=True)


def _choose_workers(extractor: Extractor, n: int, many: int) -> int:
    """One process per core from ``many`` things on, else 0 or 1.

    Templates with a pattern get at least one process: a regular expression can run without end on
    some document, and only a worker can be killed for that.
    """
    from featpipe.pool.devices import default_devices

    if n >= many:
        return sum(device == "cpu" for device in default_devices())
    fields = [field for one in extractor.templates.values() for field in one.fields]
    return int(any(field.pattern for field in fields) and n > 0)


def _run(run: ExtractRun, n: int, output: str | None, *, is_new: bool) -> int:
    """Extract and write; returns the exit code. Ctrl-C finishes what is in flight, then stops."""
    from featpipe.extraction.results_file import is_device

    is_stream = output is None or is_device(Path(output))
    try:
        with stopping_in_two_steps(run.stop):
            code = _stream(run, n, output) if is_stream else _keep(run, output or "", is_new=is_new)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        echo(_describe_interruption(run.n_done, n, None if is_stream else output), err=True)
    return code


def _stream(run: ExtractRun, n: int, output: str | None) -> int:
    """To a pipe or device, or as JSON lines to the standard output."""
    from featpipe.extraction.results_file import write_extractions

    with open_extract_view(is_quiet=sys.stdout.isatty()) as view:
        if output is not None:
            write_extractions(run.extractions(view.show), Path(output))
        else:
            for extraction in run.extractions(view.show):
                echo(extraction.as_json())
    return _exit_code(run, is_complete=run.n_done == n)


def _keep(run: ExtractRun, output: str, *, is_new: bool) -> int:
    """To a file, by way of what can be gone on with."""
    with open_extract_view() as view:
        report = run.finish(Path(output), view.show, is_new=is_new)
    if run.changed:
        echo(f"{run.changed} and what follows are new since the interruption", err=True)
    if not report.was_interrupted:
        plural = "" if report.n_extractions == 1 else "s"
        echo(f"{report.n_extractions} extraction{plural} in {output}", err=True)
        _print_lines(f"{output}: {note}" for note in report.notes)
    return _exit_code(run, is_complete=not report.was_interrupted)


def _exit_code(run: ExtractRun, *, is_complete: bool) -> int:
    if not is_complete:
        return EXIT_INTERRUPTED
    return EXIT_LEFT_OUT if run.quarantined else 0


def _describe_interruption(n_done: int, n: int, output: str | None) -> str:
    if output is None:
        return f"interrupted: {n_done} of {n} documents are done"
    if n_done:
        return (
            f"interrupted: {n_done} of {n} documents are kept in {output}.partial; "
            "the same command goes on from there"
        )
    return f"interrupted: none of {n} documents was finished"


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        echo(line, err=True)


def _print_lost(lost: Iterable[Quarantined]) -> None:
    for one in lost:
        echo(f"quarantined {one.reason}", err=True)
