"""``featpipe import``: take over files of one dataset per text."""

from __future__ import annotations

import json

import click

from featpipe.cli.main import EXIT_LEFT_OUT

_MOST_LISTED = 20


@click.command("import")
@click.argument("old", metavar="OLD")
@click.option("--cache", required=True, metavar="FILE", help="The cache; made when missing.")
@click.option("--group", default="word_emb", show_default=True, help="Where the datasets are.")
@click.option("--name", metavar="NAME", help="Name of the space; by default that of the file.")
@click.pass_context
def command(ctx: click.Context, old: str, cache: str, group: str, name: str | None) -> None:
    """Append every vector below a group of OLD (one dataset per text) to a space of its own.

    The file does not say which weights made its vectors, so the space's fingerprint is that of the
    file: it is never mistaken for the space of a model.
    """
    from featpipe.cache.merge import import_vectors

    done = import_vectors(old, cache, group=group, name=name)
    for text, reason in done.skipped[:_MOST_LISTED]:
        click.echo(f"skipped {json.dumps(text, ensure_ascii=False)}: {reason}", err=True)
    click.echo(str(done))
    ctx.exit(EXIT_LEFT_OUT if done.skipped else 0)
