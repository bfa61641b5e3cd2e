"""``featpipe extract`` and ``featpipe reprocess``: documents and templates in, values out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT, lock_option, ocr_option
from featpipe.cli.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from featpipe.documents import Source
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.results import Extraction
    from featpipe.report import Quarantined

#: From this many documents (extract) or fields of documents (reprocess) on, one process per core
#: is started unless --workers is given.
_MANY_DOCUMENTS, _MANY_FIELDS = 200, 1000

_MODEL_HELP = "Encoder that filled the cache; by default the built-in zh-small."
_NER_HELP = "Entity model that filled the cache; by default the built-in one."


@click.command("extract")
@click.argument("documents", nargs=-1, metavar="[DOCS...]")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option(
    "--template", metavar="NAME", help='Only this one; "auto": the likeliest for each document.'
)
@click.option("--model", metavar="PATH|NAME", help=_MODEL_HELP)
@click.option("--ner", metavar="PATH|NAME|none", help=_NER_HELP)
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@ocr_option
@click.option("-o", "--output", metavar="FILE", help="By suffix: .jsonl, .csv or .parquet.")
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
    workers: int | None,
    deadline: float,
) -> None:
    """Extract fields from DOCS, by default from all documents of the cache.

    DOCS are files, folders, or ids of cached documents; archives and JSON Lines are read as
    build-cache reads them, one document per member or record. TEMPLATES are applied to the
    documents that they are meant for, or "auto" chooses one for each. A document that is not in
    the cache gets vectors and entities by the models that filled it, and is not added to it.
    """
    from featpipe.documents import LoadLimits
    from featpipe.extraction.extractor import Extractor

    lost: list[Quarantined] = []
    limits = LoadLimits(use_ocr=ocr)
    with Extractor(
        templates, cache, model=model, ner=ner, space=space or None, limits=limits
    ) as extractor:
        wanted = list(_expand(extractor, documents))
        if workers is None:
            workers = _choose_workers(extractor, len(wanted), _MANY_DOCUMENTS)
        found = extractor.extract_many(
            wanted, template or "*", workers=workers, deadline_s=deadline
        )
        _write(_collect_lost(found, lost), output)
    _print_lost(lost)
    ctx.exit(EXIT_LEFT_OUT if lost else 0)


@click.command("reprocess")
@lock_option
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
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
@click.option("-o", "--output", metavar="FILE", help="All results: .jsonl, .csv or .parquet.")
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
    from featpipe.extraction.results import write_extractions

    with Extractor(templates, cache, model=model, ner=ner, space=space or None) as extractor:
        plan = engine.plan_reprocess(extractor)
        if dry_run:
            echo("\n".join(plan.lines()))
            return
        if workers is None:
            workers = _choose_workers(extractor, plan.n_fields, _MANY_FIELDS)
        report = engine.reprocess(extractor, plan, wait_s=wait, workers=workers)
        if diff:
            for change in report.changed:
                echo(f"{change.template}: {change}")
        if output:
            write_extractions(engine.read_results(extractor), Path(output))
    if as_json:
        echo(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        echo(report.summary())
    _print_lost(report.lost)
    ctx.exit(EXIT_LEFT_OUT if report.lost else 0)


def _expand(extractor: Extractor, documents: Sequence[str]) -> Iterator[str | Path | Source]:
    """The documents in the order of their names; a member of an archive is a source."""
    from featpipe.documents.find import expand_in_order

    if not documents:
        yield from (document.path for document in extractor.cache.documents())
    found = [_find(extractor, name) for name in documents]
    expanded = expand_in_order([one for one in found if not isinstance(one, str)])
    for one in found:
        if isinstance(one, str):
            yield one
        else:
            yield from (s.path if s.part is None else s for s in next(expanded))


def _find(extractor: Extractor, name: str) -> list[Source] | str:
    """The files of a name, else the name of a cached document."""
    from featpipe.documents import find_sources
    from featpipe.errors import MissingDocuments

    if Path(name).exists():
        return find_sources([Path(name)], note=_print_note)
    if extractor.cache.find_document(name) is not None:
        return name
    try:
        return find_sources([name], note=_print_note)
    except MissingDocuments as error:
        why = f"{error.message}, and the cache holds no document of this name"
        raise MissingDocuments(why, hint=error.hint) from error


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


def _collect_lost(
    found: Iterable[Extraction | Quarantined], lost: list[Quarantined]
) -> Iterator[Extraction]:
    """Yield extractions as they come; append the rest to ``lost``."""
    from featpipe.extraction.results import Extraction

    for one in found:
        if isinstance(one, Extraction):
            yield one
        else:
            lost.append(one)


def _write(extractions: Iterable[Extraction], output: str | None) -> None:
    """To the file ``output``, or as JSON lines to the standard output."""
    from featpipe.extraction.results import write_extractions

    if output:
        n = write_extractions(extractions, Path(output))
        echo(f"{n} extractions in {output}", err=True)
        return
    for extraction in extractions:
        echo(extraction.as_json())


def _print_lost(lost: Iterable[Quarantined]) -> None:
    for one in lost:
        echo(f"quarantined {one.reason}", err=True)
