"""``featpipe extract``: documents and templates in, values out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT
from featpipe.cli.workers import choose_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.results import Extraction
    from featpipe.report import Quarantined

#: From this many documents on, processes are started for them unless told otherwise.
_MANY = 200


@click.command("extract")
@click.argument("documents", nargs=-1, metavar="[DOCS...]")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option(
    "--template", metavar="NAME", help='Only this one; "auto": the likeliest for each document.'
)
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
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
def command(ctx: click.Context, /, **options: object) -> None:
    """Extract fields from DOCS, by default from all documents of the cache.

    DOCS are files, folders, or ids of cached documents; TEMPLATES are applied to the documents
    that they are meant for, or "auto" chooses one for each. Nothing is encoded: a document that is
    not in the cache is read for its words and shapes alone.
    """
    from featpipe.extraction.extractor import Extractor
    from featpipe.extraction.results import write_extractions

    lost: list[Quarantined] = []
    space = options["space"]
    with Extractor(
        str(options["templates"]), str(options["cache"]), space=str(space) if space else None
    ) as extractor:
        wanted = options["documents"]
        documents = list(_expand(extractor, list(wanted) if isinstance(wanted, tuple) else []))
        workers = options["workers"]
        found = extractor.extract_many(
            documents,
            str(options["template"] or "*"),
            workers=choose_workers(extractor, len(documents), _MANY)
            if workers is None
            else int(str(workers)),
            deadline_s=float(str(options["deadline"])),
        )
        kept = _apart(found, lost)
        if options["output"]:
            n = write_extractions(kept, Path(str(options["output"])))
            click.echo(f"{n} extractions in {options['output']}", err=True)
        else:
            for extraction in kept:
                click.echo(extraction.as_json())
    for one in lost:
        click.echo(f"quarantined {one.reason}", err=True)
    ctx.exit(EXIT_LEFT_OUT if lost else 0)


def _apart(
    found: Iterable[Extraction | Quarantined], lost: list[Quarantined]
) -> Iterator[Extraction]:
    """Extractions as they come; the others into ``lost``."""
    from featpipe.extraction.results import Extraction

    for one in found:
        if isinstance(one, Extraction):
            yield one
        else:
            lost.append(one)


def _expand(extractor: Extractor, documents: Sequence[str]) -> Iterator[str | Path]:
    from featpipe.documents import find_sources
    from featpipe.errors import MissingDocuments

    if not documents:
        yield from (document.path for document in extractor.shelf.documents())
    for name in documents:
        if Path(name).exists():
            yield from (source.path for source in find_sources([Path(name)]))
        elif extractor.shelf.find(name) is not None:
            yield name
        else:
            raise MissingDocuments(f"{name} is neither a file nor a document of the cache")
