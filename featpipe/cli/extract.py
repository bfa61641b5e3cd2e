"""``featpipe extract``: documents and templates in, values out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from featpipe.cli.main import EXIT_LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from featpipe.templates.extraction import Extraction
    from featpipe.templates.extractor import Extractor


@click.command("extract")
@click.argument("documents", nargs=-1, metavar="[DOCS...]")
@click.option("--cache", required=True, metavar="FILE", help="The HDF5 file.")
@click.option("--templates", required=True, metavar="PATH", help="A template, or a folder of them.")
@click.option("--template", metavar="NAME", help="Only this one.")
@click.option("--space", metavar="NAME", help="Which vectors, when the cache has several.")
@click.option("-o", "--output", metavar="FILE", help="By suffix: .jsonl, .csv or .parquet.")
@click.pass_context
def command(ctx: click.Context, /, **options: object) -> None:
    """Extract every template's fields from DOCS, by default from all documents of the cache.

    DOCS are files, folders, or ids of cached documents. Nothing is encoded: a document that is not
    in the cache is read for its words and shapes alone.
    """
    from featpipe.templates.extraction import write_extractions
    from featpipe.templates.extractor import Extractor

    lost: list[str] = []
    space = options["space"]
    with Extractor(
        str(options["templates"]), str(options["cache"]), space=str(space) if space else None
    ) as extractor:
        names = [str(options["template"])] if options["template"] else list(extractor.templates)
        wanted = options["documents"]
        documents = list(wanted) if isinstance(wanted, tuple) else []
        found = _extract(extractor, documents, names, lost)
        if options["output"]:
            n = write_extractions(found, Path(str(options["output"])))
            click.echo(f"{n} extractions in {options['output']}", err=True)
        else:
            for extraction in found:
                click.echo(extraction.as_json())
    for reason in lost:
        click.echo(f"quarantined {reason}", err=True)
    ctx.exit(EXIT_LEFT_OUT if lost else 0)


def _extract(
    extractor: Extractor, documents: Sequence[str], names: Sequence[str], lost: list[str]
) -> Iterator[Extraction]:
    from featpipe.errors import DocumentError

    for document in _expand(extractor, documents):
        try:
            view = extractor.view(document)
        except DocumentError as error:
            lost.append(error.message)
            continue
        for name in names:
            yield extractor.extract_view(view, extractor.choose(name))


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
